import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadRegistry, parseAmount, RpcUnavailable, type ChainClient } from '@custody/chains'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { toldTime } from '../../../../../devnet/src/timing.ts'
import { momentOf, PastNode } from '../../../../../devnet/testing/past-node.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { chainsFetch } from '../../../../testing/chains/chains-fetch.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { connectAll } from '../../../server/app/connect.ts'
import { systemEnvironment } from '../../environment.ts'
import { assured, type Chain, type ChainContext } from '../chain.ts'

/**
 * Tests of an endpoint that is a load balancer over two nodes, of which one is behind: each request of
 * a question may reach another node.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-load-balancer-'))
const registry = loadRegistry('local')
let devnet: Devnet
/**
 * Networks on which a transaction expires, and commands after which it has. A network with an expiry
 * that is missing here fails the last test.
 */
const EXPIRING = [
  {
    code: 'XRP',
    to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
    held: '500',
    amount: '2.345678',
    end: { command: 'mine', blocks: 70 },
  },
  {
    code: 'XLM',
    to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    held: '500',
    amount: '2.3456789',
    end: { command: 'mine', blocks: 1, seconds: 400 },
  },
  {
    code: 'TRX',
    to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
    held: '300',
    amount: '12.345678',
    end: { command: 'clock', advance: '+15m' },
  },
  {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '300',
    amount: '5.345678',
    end: { command: 'mine', blocks: 1, seconds: 10_000 },
  },
  {
    code: 'SOL',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    held: '20',
    amount: '0.345678912',
    end: { command: 'mine', blocks: 200 },
  },
]
/**
 * Ways of a load balancer to choose between two nodes, by the number of the request: every choice for
 * the first requests, in turn after some of them, and by chance.
 */
function* routings(): Generator<[name: string, isBehind: (request: number) => boolean]> {
  for (let bits = 0; bits < 2 ** FIRST; bits++) {
    const first = bits.toString(2).padStart(FIRST, '0')
    for (const offset of [0, 1])
      yield [
        `${first}, then in turn`,
        (request) => (request < FIRST ? first[request] === '1' : (request + offset) % 2 === 1),
      ]
    const isBehind = (request: number) =>
      createHash('sha256').update(`${first} ${request}`).digest().readUInt8(0) % 2 === 1
    yield [`by chance, ${first}`, isBehind]
  }
}
/** Number of requests that a family sends at most to ask once. */
const FIRST = 8

type Expiring = ChainClient & { isDead(hash: string, validUntil: number): Promise<boolean> }

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

for (const { end, ...place } of EXPIRING) {
  const { code } = place
  test(`${code}: a load balancer with a node that is behind proves no included transaction dead, however it routes requests`, async () => {
    const fixture = new FamilyFixture(database.get(), devnet, place, clock)
    await fixture.open()
    const hash = await fixture.sentHash(await fixture.create('included'))
    const row = await database
      .get()
      .one<{ until: string }>(
        'select valid_until::text until from chain_transactions where hash = $1',
        [hash],
      )
    const validUntil = Number(row?.until)
    const chain = devnet.chains.find((each) => each.code === code)
    assert.ok(chain)
    const node = await PastNode.open(code, await momentOf(home, chain), {
      source: home,
      home: join(home, `behind-${code}`),
      timing: toldTime(() => clock.startMs),
    })
    await fixture.control({ command: 'mine', blocks: 1 })
    await fixture.control(end)
    await fixture.control({ command: 'mine', blocks: 30 })
    const present = chainsFetch(devnet)
    const behind = chainsFetch({ url: devnet.url, answer: (request) => node.answer(request) })
    const over = (isBehind: (request: number) => boolean): Expiring => {
      let count = 0
      const ask = ((url, init) => (isBehind(count++) ? behind : present)(url, init)) as typeof fetch
      const endpoints = {
        [code]: { endpoints: [{ url: `${devnet.url}${chain.path}` }], quorum: 1 },
      }
      return connectAll({ ...fixture.services }, endpoints, ask)[0]?.client as Expiring
    }
    try {
      assert.equal((await over(() => false).status(hash)).state, 'included')
      const other = hash.replace(/[1-9]/g, (digit) => String((Number(digit) % 9) + 1))
      assert.equal(await over(() => false).isDead(other, validUntil), true, 'an absent one is dead')
      for (const [name, isBehind] of routings()) {
        const isDead = await over(isBehind)
          .isDead(hash, validUntil)
          .catch(() => false)
        assert.equal(isDead, false, name)
      }
    } finally {
      node.close()
    }
  })
}

/** Networks that refuse a payment which is too small to create its destination. */
const CREATING = [
  { code: 'XRP', to: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', held: '500', amount: '0.01' },
  {
    code: 'XLM',
    to: 'GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H',
    held: '500',
    amount: '0.5',
  },
  {
    code: 'SOL',
    to: 'SysvarC1ock11111111111111111111111111111112',
    held: '20',
    amount: '0.000001',
  },
]
for (const place of CREATING) {
  const { code, to } = place
  test(`${code}: no refusal of a node that is behind a load balancer and behind its chain ends a transfer`, async () => {
    const fixture = new FamilyFixture(database.get(), devnet, place, clock)
    await fixture.open()
    const chain = devnet.chains.find((each) => each.code === code)
    assert.ok(chain)
    const node = await PastNode.open(code, await momentOf(home, chain), {
      source: home,
      home: join(home, `behind-${code}-refusal`),
      timing: toldTime(() => clock.startMs),
    })
    const payment = {
      to,
      tag: null,
      amount: parseAmount(place.amount, fixture.asset.decimals),
      asset: fixture.asset,
    }
    const refused = async (url: string, ask: typeof fetch) => {
      const endpoints = { [code]: { endpoints: [{ url }], quorum: 1 } }
      const [connected] = connectAll({ ...fixture.services }, endpoints, ask) as [Chain]
      return assured(
        connected,
        () => connected.refusal(payment),
        (answer) => answer !== null,
      ).catch((error: unknown) => {
        if (error instanceof RpcUnavailable) return null
        throw error
      })
    }
    const present = chainsFetch(devnet)
    const behind = chainsFetch({ url: devnet.url, answer: (request) => node.answer(request) })
    const url = `${devnet.url}${chain.path}`
    try {
      assert.notEqual(await refused(url, present), null, 'its destination does not exist')
      await fixture.control({ command: 'fund', asset: code, address: to, amount: '20' })
      await fixture.scan()
      for (const [name, isBehind] of routings()) {
        let count = 0
        const refusal = await refused(url, ((target, init) =>
          (isBehind(count++) ? behind : present)(target, init)) as typeof fetch)
        assert.equal(refusal, null, name)
      }
    } finally {
      node.close()
    }
  })
}

test('every network on which transactions expire is tested', () => {
  const notAsked = async () => assert.fail('not asked')
  const context: ChainContext = {
    registry,
    environment: systemEnvironment(),
    database: database.get(),
    keys: { get: notAsked },
    addresses: { omnibus: notAsked, change: notAsked },
  }
  const endpoints = Object.fromEntries(
    registry.networks.map(({ code }) => [
      code,
      { endpoints: [{ url: `http://nowhere/${code}` }], quorum: 1 },
    ]),
  )
  const chains = connectAll(context, endpoints, fetch)
  assert.deepEqual(
    chains
      .filter(({ isDead }) => isDead)
      .map(({ network }) => network.code)
      .sort(),
    EXPIRING.map(({ code }) => code).sort(),
  )
})
