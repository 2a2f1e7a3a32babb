import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { parseTransaction } from 'viem'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of a network whose nodes keep the first of two conflicting transactions, as Litecoin Core does
 * by default (`mempoolreplacement=0`), or whose node asks for a higher fee than the caller allows.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-declined-'))
interface Node extends WalletAddress {
  method: string
  refusal: { code: number; message: string }
  /** Whether a transaction is a payment or its cancellation, and no fuel. */
  isPayment(raw: string): boolean
}
const NODES: Node[] = [
  {
    code: 'BTC',
    to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    held: '2',
    amount: '0.1',
    method: 'sendrawtransaction',
    refusal: { code: -26, message: 'txn-mempool-conflict' },
    isPayment: () => true,
  },
  {
    code: 'ETH',
    to: '0x00000000000000000000000000000000000000b1',
    held: '5',
    amount: '1',
    method: 'eth_sendRawTransaction',
    refusal: { code: -32_000, message: 'replacement transaction underpriced' },
    isPayment(raw) {
      const { to, value = 0n } = parseTransaction(raw as `0x${string}`)
      return value === 0n || to === this.to
    },
  },
]
let devnet: Devnet
/** The transactions that the node refused; null: it replaces. */
let declined: string[] | null = null
/** The transactions that the node has accepted. */
let accepted = new Set<string>()

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(() => {
  declined = null
  accepted = new Set()
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(place: Node, play: (fixture: FamilyFixture) => Promise<void>): Promise<void> {
  const path = place.code.toLowerCase()
  const ask: typeof fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body)) as {
      id: unknown
      method: string
      params: [string]
    }
    const isNew = method === place.method && !accepted.has(params[0])
    if (isNew && declined !== null && place.isPayment(params[0])) {
      declined.push(params[0])
      return Response.json({ jsonrpc: '2.0', id, error: place.refusal })
    }
    if (method === place.method) accepted.add(params[0])
    return fetch(`${devnet.url}/${path}`, init)
  }
  const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
    endpoints: [{ url: `http://node/${path}` }],
    quorum: 1,
  })
  try {
    await fixture.open()
    await play(fixture)
    await fixture.check()
  } finally {
    declined = null
    await congest(fixture, '0')
    await fixture.close()
  }
}
const congest = (fixture: FamilyFixture, rate: string) =>
  fixture.control({ command: 'congestion', fee_rate: rate })

const replacementsOf = (id: string) =>
  database
    .get()
    .query<{ kind: string; state: string; reason: string | null }>(
      'select kind, state, reason from replacements where transaction_id = $1 order by created_at',
      [id],
    )

/** Creates a transfer that waits for a block, and asks for a replacement that the nodes decline. */
async function waitingAndDeclined(
  fixture: FamilyFixture,
  ask: (id: string) => Promise<void>,
): Promise<{ id: string; hash: string }> {
  await congest(fixture, '60')
  const id = await fixture.create('low', { fee_rate: '5' })
  await fixture.runTo(id, 'CONFIRMING')
  declined = []
  const hash = (await fixture.read(id)).hash as string
  await ask(id)
  await fixture.runTo(id, 'BROADCASTING')
  for (let turn = 0; (await fixture.read(id)).state !== 'CONFIRMING'; turn++) {
    assert.ok(turn < 60, JSON.stringify(await fixture.pending()))
    await fixture.step()
    clock.advance(3000)
  }
  assert.ok(declined.length > 5, `${declined.length} broadcasts`)
  return { id, hash }
}

for (const node of NODES) {
  test(`${node.code}: a speed-up that the nodes refuse ends, and the transfer keeps its hash`, () =>
    staged(node, async (fixture) => {
      const { id, hash } = await waitingAndDeclined(fixture, (of) =>
        fixture.speedUp(of, { fee_rate: '70' }),
      )
      assert.equal((await fixture.read(id)).hash, hash)
      const [replacement] = await replacementsOf(id)
      assert.deepEqual([replacement?.kind, replacement?.state], ['SPEED_UP', 'REFUSED'])
      assert.match(
        replacement?.reason ?? '',
        /^the nodes of the network refuse it: .*(conflict|underpriced)/,
      )
      await congest(fixture, '0')
      await fixture.run()
      const done = await fixture.read(id)
      assert.deepEqual([done.status, done.hash], ['confirmed', hash])
      assert.equal(await fixture.onChain(id), 1)
    }))

  test(`${node.code}: a cancellation that the nodes refuse ends, and the transfer is paid`, () =>
    staged(node, async (fixture) => {
      const { id, hash } = await waitingAndDeclined(fixture, (of) => fixture.cancel(of))
      assert.deepEqual(
        (await replacementsOf(id)).map(({ kind, state }) => [kind, state]),
        [['CANCEL', 'REFUSED']],
      )
      await congest(fixture, '0')
      await fixture.run()
      const done = await fixture.read(id)
      assert.deepEqual([done.status, done.hash], ['confirmed', hash])
      assert.equal(await fixture.onChain(id), 1)
    }))

  test(`${node.code}: a refused replacement that is mined nevertheless settles the transfer once`, () =>
    staged(node, async (fixture) => {
      const { id, hash } = await waitingAndDeclined(fixture, (of) =>
        fixture.speedUp(of, { fee_rate: '70' }),
      )
      const raw = (declined as string[])[0] as string
      declined = null
      // Another node of the network accepted it.
      const sent = await fixture.services.networks
        .client(node.code)
        .broadcast(raw.replace(/^0x/, ''))
      assert.equal(sent.kind, 'accepted')
      await fixture.run()
      const done = await fixture.read(id)
      assert.equal(done.status, 'confirmed')
      assert.notEqual(done.hash, hash)
      assert.equal(await fixture.onChain(id), 1)
    }))

  test(`${node.code}: after a refused replacement, another one can be requested and is made`, () =>
    staged(node, async (fixture) => {
      const { id, hash } = await waitingAndDeclined(fixture, (of) =>
        fixture.speedUp(of, { fee_rate: '70' }),
      )
      declined = null
      await fixture.speedUp(id, { fee_rate: '90' })
      await fixture.run()
      const done = await fixture.read(id)
      assert.equal(done.status, 'confirmed')
      assert.notEqual(done.hash, hash)
      assert.equal(await fixture.onChain(id), 1)
    }))
}
