import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { parseAmount } from '@custody/chains'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { commitScanStart } from '../../../custody/addresses/start-scan.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { adminOf } from '../../../../testing/test-database.ts'

/**
 * Tests of several endpoints of one network, each of which may be unreachable or lie. The chain
 * behind them is the local one.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-endpoints-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.25' }
/**
 * Number of blocks after which any transaction is final on the local chain, with a small margin.
 */
const FINAL_BLOCKS = 80
let devnet: Devnet
let fixture: FamilyFixture

interface Behaviour {
  isAway?: boolean
  late?: () => Promise<void>
  lie?: (method: string, params: unknown[], answer: unknown) => unknown
}
const honest = (_method: string, _params: unknown[], answer: unknown): unknown => answer
let behaviour: Record<string, Behaviour> = {}
let requests: string[] = []

/** Redirects the hosts of the endpoints to the local chain. */
const ask: typeof fetch = async (url, init) => {
  const { hostname: host } = new URL(String(url))
  const { method, params } = JSON.parse(String(init?.body)) as { method: string; params: unknown[] }
  requests.push(`${host} ${method}`)
  const { isAway = false, lie = honest, late }: Behaviour = behaviour[host] ?? {}
  if (isAway) throw new Error('away')
  if (late && method === 'eth_getBlockByNumber' && params[1] === true) await late()
  const response = await fetch(`${devnet.url}/eth`, init)
  const body = (await response.json()) as { result?: unknown }
  const result = lie(method, params, body.result)
  return Response.json(
    { ...body, result, ...(result === body.result ? {} : { error: undefined }) },
    { status: response.status },
  )
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(() => {
  behaviour = {}
  requests = []
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function open(hosts: string[], quorum: number): Promise<void> {
  fixture = new FamilyFixture(database.get(), devnet, PLACE, clock, ask, {
    endpoints: hosts.map((host) => ({ url: `http://${host}/eth` })),
    quorum,
  })
  await fixture.open()
}

async function mine(blocks: number): Promise<void> {
  await fixture.control({ command: 'mine', blocks })
  await fixture.scan()
}

const settle = async () => {
  while (await fixture.step());
}
const fund = (amount: string) =>
  fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount })
const deposits = () =>
  fixture.database.query<{ amount: string; state: string; status: string }>(
    `select amount::text, state, status from transactions where kind = 'DEPOSIT' order by amount`,
  )
const disagreements = async () =>
  Object.fromEntries(
    (await fixture.services.metrics.endpointDisagreements.get()).values.map(({ labels, value }) => [
      String(labels['endpoint']),
      value,
    ]),
  )

/** Returns the behaviour of an endpoint that reports its head as final. */
function callsFinal(): Behaviour {
  let head: unknown = null
  return {
    lie(method, params, answer) {
      if (method !== 'eth_getBlockByNumber') return answer
      if (params[0] === 'latest') head = answer
      return params[0] === 'finalized' ? (head ?? answer) : answer
    },
  }
}

interface Block {
  number: string
  hash: string
  parentHash: string
  transactions: Record<string, unknown>[]
}

/** Returns the behaviour of an endpoint that returns another chain from a height on. */
function otherChain(from: number): Behaviour {
  const other = (hash: string, number: string) =>
    Number(number) >= from ? `0x${'e'.repeat(8)}${hash.slice(10)}` : hash
  return {
    lie(method, _params, answer) {
      if (method === 'eth_getLogs') return []
      const receipt = answer as { blockNumber: string; blockHash: string } | null
      if (method === 'eth_getTransactionReceipt' && receipt)
        return { ...receipt, blockHash: other(receipt.blockHash, receipt.blockNumber) }
      const block = answer as Block | null
      if (!method.startsWith('eth_getBlockBy') || !block) return answer
      const parent = `0x${(Number(block.number) - 1).toString(16)}`
      const hash = other(block.hash, block.number)
      const transactions = block.transactions.map((each) =>
        typeof each === 'string' ? each : { ...each, blockHash: hash },
      )
      return { ...block, hash, parentHash: other(block.parentHash, parent), transactions }
    },
  }
}

test('if an endpoint fails during a transfer, the next one is used; the transfer is paid once', async () => {
  await open(['a', 'b'], 1)
  const id = await fixture.create('away')
  const hash = await fixture.sentHash(id)
  behaviour['a'] = { isAway: true }
  await fixture.run()
  const row = await fixture.read(id)
  assert.deepEqual([row.status, row.hash], ['confirmed', hash])
  assert.equal(await fixture.onChain(id), 1)
  behaviour['a'] = {}
  await fixture.run()
  await fixture.check()
})

test('a deposit that one endpoint invents is never credited, and real ones in its block are', async () => {
  await open(['a', 'b', 'c'], 2)
  const held = await fixture.available()
  const forged = `0x${'f0'.repeat(32)}`
  let block: Block | null = null
  behaviour['a'] = {
    lie(method, params, answer) {
      if (method === 'eth_getBlockByNumber' && params[1] === true) {
        const shown = answer as Block | null
        const real = shown?.transactions.find(
          ({ to }) => String(to).toLowerCase() === fixture.source.toLowerCase(),
        )
        if (!shown || !real) return answer
        block = shown
        const index = `0x${shown.transactions.length.toString(16)}`
        return {
          ...shown,
          transactions: [
            ...shown.transactions,
            {
              ...real,
              hash: forged,
              value: `0x${(10n ** 20n).toString(16)}`,
              transactionIndex: index,
            },
          ],
        }
      }
      if (method === 'eth_getTransactionReceipt' && params[0] === forged && block) {
        return {
          transactionHash: forged,
          status: '0x1',
          blockNumber: block.number,
          blockHash: block.hash,
          gasUsed: '0x5208',
          effectiveGasPrice: '0x1',
          logs: [],
          logsBloom: `0x${'00'.repeat(256)}`,
        }
      }
      return answer
    },
  }
  await fund('0.125')
  await mine(FINAL_BLOCKS)
  await settle()
  for (let round = 0; round < 4; round++) {
    clock.advance(30_000)
    await mine(1)
    await settle()
  }
  const shown = (await deposits()).map(({ amount, status }) => [amount, status])
  assert.deepEqual(
    shown.filter(([amount]) => amount !== parseAmount(PLACE.held, 18).toString()),
    [
      [parseAmount('100', 18).toString(), 'failed'],
      [parseAmount('0.125', 18).toString(), 'confirmed'],
    ].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  )
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
  const counts = await disagreements()
  assert.ok((counts['a'] ?? 0) > 0, JSON.stringify(counts))
  assert.deepEqual([counts['b'], counts['c']], [0, 0], 'the endpoints that tell the truth')
  // The deposit stays uncredited as long as no other endpoint reports it.
  clock.advance(60_000)
  await mine(3)
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
})

for (const [what, lie] of [
  [
    'receipts',
    (method: string, _params: unknown[], answer: unknown) =>
      method === 'eth_getTransactionReceipt' ? null : answer,
  ],
  [
    'transactions, for half a minute,',
    (method: string, params: unknown[], answer: unknown) => {
      const block = answer as Block | null
      return method === 'eth_getBlockByNumber' && params[1] === true && block
        ? {
            ...block,
            transactions: block.transactions.map((each) =>
              String(each['to']).toLowerCase() === fixture.source.toLowerCase()
                ? { ...each, to: `0x${'d'.repeat(40)}` }
                : each,
            ),
          }
        : answer
    },
  ],
] as const)
  test(`a real deposit whose ${what} two of three endpoints do not return yet is credited later`, async () => {
    await open(['a', 'b', 'c'], 2)
    const held = await fixture.available()
    behaviour['b'] = { lie }
    behaviour['c'] = { lie }
    await fund('0.125')
    await mine(FINAL_BLOCKS)
    await settle()
    clock.advance(15_000)
    await mine(1)
    await settle()
    const [deposit] = (await deposits()).filter(
      ({ amount }) => amount === parseAmount('0.125', 18).toString(),
    )
    assert.equal(deposit?.status, 'pending')
    assert.equal(await fixture.available(), held)
    behaviour['b'] = {}
    behaviour['c'] = {}
    for (let round = 0; round < 4; round++) {
      clock.advance(60_000)
      await mine(1)
      await settle()
    }
    assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
    await fixture.check()
  })

test('a deposit waits while fewer endpoints than the quorum answer, and is then credited', async () => {
  await open(['a', 'b'], 2)
  const held = await fixture.available()
  behaviour['b'] = { isAway: true }
  await fund('0.125')
  await fixture.control({ command: 'mine', blocks: FINAL_BLOCKS })
  await assert.rejects(
    fixture.scan(),
    /ETH: 1 of its endpoints respond, and 2 must agree \(b: eth_\w+: cannot be reached\)/,
  )
  await settle()
  assert.equal(await fixture.available(), held)
  behaviour['b'] = {}
  clock.advance(60_000)
  await mine(1)
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
  await fixture.check()
})

test('a transfer is final once a quorum confirms it, and an endpoint that disagrees is reported', async () => {
  await open(['a', 'b', 'c'], 2)
  const id = await fixture.create('final')
  const hash = await fixture.sentHash(id)
  const hidden: Behaviour = {
    lie: (method, params, answer) =>
      ['eth_getTransactionReceipt', 'eth_getTransactionByHash'].includes(method) &&
      params[0] === hash
        ? null
        : answer,
  }
  behaviour['b'] = behaviour['c'] = hidden
  const rounds = async (blocks: number) => {
    for (let round = 0; round < blocks; round++) {
      clock.advance(11_000)
      await mine(1)
      await settle()
    }
  }
  await rounds(FINAL_BLOCKS)
  const waiting = await fixture.read(id)
  assert.deepEqual([waiting.status, waiting.state], ['pending', 'CONFIRMING'])
  assert.ok(waiting.confirmations > 12, `${waiting.confirmations} confirmations are shown`)
  assert.deepEqual(
    await disagreements(),
    { a: 0, b: 0, c: 0 },
    'one that does not show it yet is only behind',
  )
  behaviour['b'] = {
    lie: (method, params, answer) =>
      method === 'eth_getTransactionReceipt' && params[0] === hash
        ? { ...(answer as object), status: '0x0' }
        : answer,
  }
  await rounds(2)
  assert.equal((await fixture.read(id)).status, 'pending')
  assert.ok(((await disagreements())['b'] ?? 0) > 0)
  behaviour['c'] = {}
  await rounds(2)
  assert.equal((await fixture.read(id)).status, 'confirmed')
  behaviour = {}
  await fixture.run()
  await fixture.check()
})

test('an endpoint with another chain removes no final deposits, and is no longer used', async () => {
  await open(['a', 'b', 'c'], 2)
  await fund('0.125')
  await mine(FINAL_BLOCKS)
  await settle()
  const held = await fixture.available()
  const { height } = (await fixture.database.one<{ height: number }>(
    'select max(block_height)::integer height from deposits',
  )) as { height: number }
  behaviour['a'] = otherChain(height)
  await fixture.control({ command: 'mine', blocks: 1 })
  await assert.rejects(
    fixture.scan(),
    /ETH: an endpoint is not used: it returns another block at \d+ than the final one, and 2 other endpoints return that one/,
  )
  requests = []
  await mine(1)
  await settle()
  assert.equal(await fixture.available(), held)
  assert.ok(
    requests.every((each) => !each.startsWith('a ')),
    requests.find((each) => each.startsWith('a ')),
  )
  assert.deepEqual(
    (await deposits()).map(({ status }) => status),
    ['confirmed', 'confirmed'],
  )
  // When the other endpoints report the other chain too, it is treated as a reorganisation.
  clock.advance(20_000)
  behaviour['b'] = behaviour['c'] = behaviour['a'] as Behaviour
  await mine(1)
  assert.equal(held - (await fixture.available()), parseAmount('0.125', 18))
})

test('of two endpoints without a quorum, one that contradicts a final block is set aside, and both decide', async () => {
  await open(['a', 'b'], 1)
  fixture.accepts = false
  await fund('0.125')
  await mine(FINAL_BLOCKS)
  await settle()
  const held = await fixture.available()
  const { height } = (await fixture.database.one<{ height: number }>(
    'select max(block_height)::integer height from deposits',
  )) as { height: number }
  // Alone, it decides nothing.
  behaviour['a'] = otherChain(height)
  behaviour['b'] = { isAway: true }
  await fixture.control({ command: 'mine', blocks: 1 })
  await assert.rejects(fixture.scan(), /nothing is credited, settled or paid until/)
  delete behaviour['b']
  clock.advance(20_000)
  await assert.rejects(
    fixture.scan(),
    /ETH: an endpoint is not used: .*, and 1 other endpoints return that one/,
  )
  await mine(1)
  assert.equal(await fixture.available(), held)
  assert.equal(
    await fixture.database.one('select 1 from network_scans where contradiction is not null'),
    undefined,
  )
  clock.advance(20_000)
  behaviour['b'] = behaviour['a']
  await mine(1)
  assert.equal(held - (await fixture.available()), parseAmount('0.125', 18))
})

test('a deposit is final only if a quorum of endpoints reports its block as final', async () => {
  await open(['a', 'b', 'c'], 2)
  const held = await fixture.available()
  behaviour['a'] = callsFinal()
  await fund('0.125')
  await mine(1)
  await settle()
  assert.deepEqual(
    (await deposits()).map(({ status }) => status),
    ['confirmed', 'pending'],
  )
  assert.equal(await fixture.available(), held)
  assert.deepEqual(
    await disagreements(),
    { a: 0, b: 0, c: 0 },
    'one to which it is not deep yet is only behind',
  )
  clock.advance(11_000)
  await mine(FINAL_BLOCKS)
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
})

test('a transfer is final only if a quorum of endpoints reports its block as final', async () => {
  await open(['a', 'b', 'c'], 2)
  const id = await fixture.create('called-final')
  await fixture.sentHash(id)
  behaviour['a'] = callsFinal()
  clock.advance(16_000)
  await mine(1)
  for (let round = 0; round < 3; round++) {
    clock.advance(16_000)
    await fixture.scan()
    await settle()
  }
  const waiting = await fixture.read(id)
  assert.deepEqual([waiting.status, waiting.state], ['pending', 'CONFIRMING'])
  await fixture.run()
  assert.equal((await fixture.read(id)).status, 'confirmed')
  await fixture.check()
})

test('one endpoint that reports credited deposits’ blocks as not final removes no deposits', async () => {
  await open(['a', 'b', 'c'], 2)
  await fund('0.125')
  await mine(FINAL_BLOCKS)
  await settle()
  const held = await fixture.available()
  const { height } = (await fixture.database.one<{ height: number }>(
    'select max(block_height)::integer height from deposits',
  )) as { height: number }
  behaviour['a'] = {
    lie: (method, params, answer) =>
      method === 'eth_getBlockByNumber' && params[0] === 'finalized' ? null : answer,
  }
  await mine(1)
  behaviour['a'] = otherChain(height)
  await fixture.control({ command: 'mine', blocks: 1 })
  await assert.rejects(
    fixture.scan(),
    /ETH: an endpoint is not used: it returns another block at \d+ than the final one/,
  )
  assert.equal(await fixture.available(), held)
  await mine(1)
  await settle()
  assert.deepEqual(
    (await deposits()).map(({ status }) => status),
    ['confirmed', 'confirmed'],
  )
  assert.equal(await fixture.available(), held)
})

test('a fuel transaction is booked only by quorum, not by one endpoint’s report', async () => {
  await open(['a', 'b', 'c'], 2)
  const id = await fixture.create('fuelled')
  await fixture.runTo(id, 'FUELING')
  const fuelHash = async () =>
    (
      await fixture.database.one<{ hash: string }>(
        `select c.hash from chain_transactions c join transactions t on t.id = c.transaction_id
          where t.kind = 'FUEL' and c.hash is not null`,
      )
    )?.hash
  for (let round = 0; !(await fuelHash()); round++)
    assert.ok(round < 50 && (await fixture.turn()), 'the fuel is never signed')
  const hash = await fuelHash()
  behaviour['a'] = {
    lie: (method, params, answer) =>
      method === 'eth_getTransactionReceipt' && params[0] === hash && answer
        ? { ...answer, status: '0x0' }
        : answer,
  }
  for (let round = 0; ((await disagreements())['b'] ?? 0) === 0; round++)
    assert.ok(round < 50 && (await fixture.turn()), 'nobody is asked')
  assert.equal(
    await fixture.database.one(`select 1 from ledger_entries where kind = 'fuel'`),
    undefined,
  )
  behaviour = {}
  await fixture.run()
  assert.equal((await fixture.read(id)).status, 'confirmed')
  await fixture.check()
})

test('an endpoint whose chain branches before all stored blocks is no longer used', async () => {
  await open(['a', 'b', 'c'], 2)
  const held = await fixture.available()
  behaviour['a'] = otherChain(0)
  await fund('0.125')
  await fixture.control({ command: 'mine', blocks: 1 })
  await assert.rejects(
    fixture.scan(),
    /ETH: an endpoint is not used: it returns another block at \d+/,
  )
  clock.advance(11_000)
  await mine(FINAL_BLOCKS)
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
})

test('a slow endpoint receives queries for several blocks concurrently', async () => {
  await open(['a', 'b'], 2)
  fixture.compares = false
  const held = await fixture.available()
  let underWay = 0
  let most = 0
  // The endpoint answers nothing before it has three queries, or clearly receives no more.
  const three = Promise.withResolvers<void>()
  behaviour['b'] = {
    async late() {
      most = Math.max(most, ++underWay)
      if (underWay === 3) three.resolve()
      const timer = setTimeout(three.resolve, 30_000)
      await three.promise
      clearTimeout(timer)
      underWay--
    },
  }
  for (let count = 0; count < 3; count++) {
    await fund('0.125')
    await fixture.control({ command: 'mine', blocks: 1 })
  }
  await mine(FINAL_BLOCKS)
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.375', 18))
  assert.equal(most, 3)
})

test('an endpoint that does not return its own blocks for a minute is no longer used', async () => {
  await open(['a', 'b', 'c'], 2)
  const held = await fixture.available()
  behaviour['a'] = {
    lie: (method, params, answer) =>
      method === 'eth_getBlockByNumber' && params[1] === true ? null : answer,
  }
  await fund('0.125')
  await mine(FINAL_BLOCKS)
  clock.advance(61_000)
  await assert.rejects(
    fixture.scan(),
    /ETH: the endpoint reports \d+ as its newest block, but does not return block \d+/,
  )
  await fixture.scan()
  await settle()
  assert.equal((await fixture.available()) - held, parseAmount('0.125', 18))
})

test("a transfer ends with the quorum's result even if the current endpoint reports another", async () => {
  await open(['a', 'b', 'c'], 2)
  const id = await fixture.create('against')
  const hash = await fixture.sentHash(id)
  behaviour['a'] = {
    lie: (method, params, answer) =>
      method === 'eth_getTransactionReceipt' && params[0] === hash && answer
        ? { ...answer, status: '0x0' }
        : answer,
  }
  await fixture.run()
  const row = await fixture.read(id)
  assert.deepEqual([row.status, row.hash], ['confirmed', hash])
  assert.ok(((await disagreements())['b'] ?? 0) > 0)
  behaviour = {}
  await fixture.check()
})

test('a scan starts at a block that a quorum reports as final', async () => {
  await open(['a', 'b', 'c'], 2)
  const { network } = fixture.services.networks.get('ETH')
  const start = async (): Promise<Record<string, unknown> | undefined> => {
    await adminOf(fixture.database).query('delete from network_scans')
    await fixture.database.query('delete from blocks')
    await commitScanStart(fixture.services, network)
    return fixture.database.one(
      `select s.height::integer, b.hash from network_scans s join blocks b on b.network = s.network
        and b.height = s.height`,
    )
  }
  const honestly = await start()
  assert.ok(honestly)
  for (const by of [1000, -2]) {
    let last: unknown = null
    behaviour['a'] = {
      lie(method, params, answer) {
        if (method === 'eth_getLogs') return []
        if (method !== 'eth_getBlockByNumber') return answer
        last = answer ?? last
        const isNamed = params[0] === 'latest' || params[0] === 'finalized'
        const block = answer as Block | null
        const number = isNamed
          ? `0x${(Number(block?.number) + by).toString(16)}`
          : String(params[0])
        return {
          ...(last as Block),
          number,
          hash: `0x${'d'.repeat(56)}${Number(number).toString(16).padStart(8, '0')}`,
          transactions: [],
          gasUsed: '0x0',
          logsBloom: `0x${'00'.repeat(256)}`,
          transactionsRoot: '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
        }
      },
    }
    assert.deepEqual(await start(), honestly, `it says ${by}`)
  }
  behaviour['b'] = { isAway: true }
  await assert.rejects(start(), /network ETH cannot be reached; no address was created/)
})
