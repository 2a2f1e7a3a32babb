import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { formatEther, parseEther } from 'viem'
import { stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import type { Application } from '../../server/app/application.ts'
import { audit } from '../../server/audit/audit.ts'
import { contractPayments } from '../assets/contract-payments.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { takeSnapshot } from '../../../testing/database-snapshot.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { drainTank } from '../../server/operator/gas-tanks/gas-tanks.ts'
import { adoptIntoBooks } from '../../server/operator/books/adopt.ts'
import { addressesAfter } from './addresses.ts'
import { look, type Look } from './look.ts'
import { hasBalances, watchLoop } from './watch.ts'

/**
 * Tests of native coins that contracts pay, as smart wallets, batch payers and routers do within a call.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-watch-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.5' }
const FINAL_BLOCKS = 80
let devnet: Devnet
let fixture: FamilyFixture
/** Wei that an endpoint adds to each balance, by its host. */
let invented: Record<string, bigint> = {}

const more = (hex: string, wei: bigint) =>
  `0x${(hex.slice(2).match(/.{64}/g) ?? []).map((word) => (BigInt(`0x${word}`) + wei).toString(16).padStart(64, '0')).join('')}`

/** Sends a request to the local chain, whatever the endpoint's host is called. */
const ask: typeof fetch = async (url, init) => {
  const { method, params } = JSON.parse(String(init?.body)) as {
    method: string
    params: [{ to?: string }]
  }
  const response = await fetch(`${devnet.url}/eth`, init)
  const wei = invented[new URL(String(url)).hostname] ?? 0n
  // A call without a destination returns balances.
  const isOfBalances =
    method === 'eth_getBalance' || (method === 'eth_call' && params[0].to === undefined)
  if (wei === 0n || !isOfBalances) return response
  const answer = (await response.json()) as { result: string }
  const { result } = answer
  const changed =
    method === 'eth_call' ? more(result, wei) : `0x${(BigInt(result) + wei).toString(16)}`
  return Response.json({ ...answer, result: changed })
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(async () => {
  invented = {}
  await database
    .admin()
    .query(
      'delete from contract_watches; delete from unrecorded_transfers; delete from unadopted_steps',
    )
  await open()
})

/** Opens a platform with these endpoints; without, with the local chain. */
async function open(hosts: string[] = [], quorum = 1): Promise<void> {
  fixture = new FamilyFixture(
    database.get(),
    devnet,
    PLACE,
    clock,
    ask,
    hosts.length === 0
      ? undefined
      : { endpoints: hosts.map((host) => ({ url: `http://${host}/eth` })), quorum },
  )
  await fixture.open()
}
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/** The fixture's services with waits that end at once. */
const services = (): Application => ({
  ...fixture.services,
  environment: { ...fixture.services.environment, sleep: async () => undefined },
})

async function mine(blocks: number): Promise<void> {
  await fixture.control({ command: 'mine', blocks })
  await fixture.scan()
}

async function contractPays(address: string, wei: bigint): Promise<void> {
  await fixture.control({ command: 'special', kind: 'contract', address, amount: formatEther(wei) })
  await fixture.scan()
}

/** Returns the loop of a process that has just started. */
function started(made: Application = services(), calls = 30) {
  const chain = made.networks.get('ETH')
  assert.ok(hasBalances(chain))
  return watchLoop(made, chain, { calls, awaited: async () => [], follows: () => true })
}
async function pass(loop = started()): Promise<void> {
  clock.advance(60_000)
  await loop.run(new AbortController().signal)
}

const deposits = () =>
  database.get().query<{ kind: string; status: string; amount: string; address: string }>(
    `select t.kind, t.status, t.amount::text, d.address from transactions t join deposits d
         on d.transaction_id = t.id where d.adopted order by t.created_at, t.amount`,
  )
const paused = async () =>
  (
    await database
      .get()
      .one<{ paused: { reason: string }[] }>('select paused from contract_watches')
  )?.paused.map(({ reason }) => reason)

test('coins that a contract pays are credited once, at the depth of any deposit', async () => {
  const before = await fixture.available()
  const loop = started()
  await contractPays(fixture.source, parseEther('0.25'))
  await pass(loop)
  await pass(loop)
  const [row, ...more] = await deposits()
  assert.deepEqual(
    [row?.kind, row?.status, row?.amount, more],
    ['DEPOSIT', 'pending', parseEther('0.25').toString(), []],
  )
  assert.equal(await fixture.available(), before)
  await mine(FINAL_BLOCKS)
  await fixture.run()
  assert.equal((await fixture.available()) - before, parseEther('0.25'))
  await pass(loop)
  await pass()
  await fixture.check()
  assert.equal((await deposits()).length, 1)
})

test('a gas tank is filled by a contract', async () => {
  const tank = await database
    .get()
    .one<{ address: string }>(`select address from chain_addresses where kind = 'tank'`)
  await contractPays(String(tank?.address), parseEther('2'))
  await pass()
  await mine(FINAL_BLOCKS)
  await fixture.run()
  assert.deepEqual(
    (await deposits()).map(({ kind, status }) => [kind, status]),
    [['TANK_DEPOSIT', 'confirmed']],
  )
  await fixture.check()
})

test('amounts below the minimum are credited when their sum reaches it', async () => {
  await pass()
  const shown = await contractPayments(services())
  const asset = fixture.asset
  const { contract_payments, watched_within_s, min_contract_payment } = shown(asset)
  assert.deepEqual([contract_payments, watched_within_s], ['watched', 5])
  const minimum = parseEther(stringifyJson(min_contract_payment))
  assert.ok(minimum > 0n)
  await contractPays(fixture.source, minimum - 1n)
  await pass()
  assert.deepEqual(await deposits(), [])
  await contractPays(fixture.source, 1n)
  await pass()
  assert.deepEqual(
    (await deposits()).map(({ amount }) => amount),
    [minimum.toString()],
  )
})

/** Something that happens before or after a backup. */
type Event = 'deposit' | 'withdrawal' | 'drain' | 'contract'
const event = fc.constantFrom<Event>('deposit', 'withdrawal', 'drain', 'contract')
const CONTRACT_PAYS = parseEther('0.25')

async function happen(what: Event, at: string, number: number): Promise<void> {
  if (what === 'contract') return contractPays(at, CONTRACT_PAYS)
  if (what === 'deposit')
    await fixture.control({ command: 'fund', asset: 'ETH', address: at, amount: '3' })
  if (what === 'withdrawal') await fixture.create(`number ${number}`)
  if (what === 'drain') {
    const order = { workspace: 'acme', network: 'ETH', order: `order ${number}` }
    fixture.nodes.enterDrain({ ...order, to_address: PLACE.to })
    // An empty tank refuses.
    await drainTank(fixture.services, { ...order, to: PLACE.to }).catch(() => undefined)
  }
  // A sweep of an amount that is not worth its fee waits.
  const moving = `select 1 from transactions where status = 'pending'
    and not (kind = 'SWEEP' and state = 'QUEUED' and waiting is not null)`
  while (await database.get().one(moving)) await fixture.turn()
}

const mined = async () =>
  (
    await database
      .get()
      .query<{ hash: string }>('select hash from chain_transactions where block_height is not null')
  ).map(({ hash }) => hash)

/** How often a story lost transactions of our own, and how often only payments of contracts. */
const stories = { lossy: 0, lossless: 0 }

test('a database restored to before transactions of ours credits nothing twice', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 2 }),
      fc.array(event, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (earlier, later, keepsNotes) => {
        await open()
        const loop = started()
        const addresses = [fixture.source, await fixture.newAddress('ETH')]
        const atOf = (index: number) => addresses[index % 2] as string
        for (const [index, what] of earlier.entries()) await happen(what, atOf(index), index)
        const restore = await takeSnapshot(database.get())
        const before = new Set(await mined())
        for (const [index, what] of later.entries())
          await happen(what, atOf(index + 1), earlier.length + index)
        const lost = (await mined()).filter((hash) => !before.has(hash))
        await restore()
        await mine(FINAL_BLOCKS)
        for (const each of [loop, started()]) {
          // Without the scan's notes, too: some address holds less than the books.
          if (!keepsNotes) await database.admin().query('delete from unrecorded_transfers')
          await pass(each)
        }
        const credited = (await deposits()).reduce((sum, { amount }) => sum + BigInt(amount), 0n)
        const paid = [...earlier, ...later].filter((what) => what === 'contract').length
        stories[lost.length > 0 ? 'lossy' : 'lossless']++
        assert.equal(credited, lost.length > 0 ? 0n : CONTRACT_PAYS * BigInt(paid))
        // Coins of a contract at an address that paid are no surplus there, so nothing is paused.
        for (const reason of (await paused()) ?? [])
          assert.match(reason, keepsNotes ? /custody (reconcile|audit)/ : /less than the books/)
      },
    ),
    { numRuns: 15, seed: 61 },
  )
  assert.ok(stories.lossy > 3 && stories.lossless > 1, JSON.stringify(stories))
})

test('a note of our own transaction that is not on the chain ends, and with it the pause', async () => {
  await contractPays(fixture.source, parseEther('0.25'))
  const note = (txid: string) =>
    database.get().query(
      `insert into unrecorded_transfers (network, txid, workspace_id, sender, noted_at)
         values ('ETH', $1, $2, $3, now())`,
      [txid, fixture.caller.workspaceId, fixture.source],
    )
  const { hash } = (await database.get().one<{
    hash: string
  }>(`select hash from transactions where kind = 'DEPOSIT' and hash is not null limit 1`)) as {
    hash: string
  }
  // One is in a block; a reorganisation has removed the other, or an endpoint has invented it.
  await note(hash)
  await note(`0x${'12'.repeat(32)}`)
  await pass()
  assert.deepEqual([await deposits(), (await paused())?.length], [[], 1])
  await database.admin().query('delete from unrecorded_transfers where txid = $1', [hash])
  await pass()
  assert.deepEqual([(await deposits()).length, await paused()], [1, []])
  const left = await database.get().query('select 1 from unrecorded_transfers')
  assert.deepEqual(left, [])
})

test('nothing is credited while records of the nodes are not adopted, or a final block is contradicted', async () => {
  await contractPays(fixture.source, parseEther('0.25'))
  await database
    .admin()
    .query(
      `insert into unadopted_steps (id, recorded, reason, matters, noted_at) values ('a', '{}', 'x', true, now())`,
    )
  await pass()
  assert.deepEqual(
    [await deposits(), String(await paused())],
    [[], 'records of the signer nodes are not adopted (custody reconcile)'],
  )
  await database.admin().query('delete from unadopted_steps')
  await database
    .admin()
    .query(`update network_scans set contradiction = '{"height": 1, "known": "aa", "other": "bb"}'`)
  await pass()
  assert.deepEqual(await deposits(), [])
  await database.admin().query('update network_scans set contradiction = null')
  await pass()
  assert.equal((await deposits()).length, 1)
  assert.deepEqual(await paused(), [])
})

test('a surplus that the operator adopts first, or a process that ends in between, is credited once', async () => {
  await contractPays(fixture.source, parseEther('0.25'))
  await adoptIntoBooks(services(), { asset: 'ETH', address: fixture.source, amount: '0.25' })
  await pass()
  assert.equal((await deposits()).length, 1)
  await contractPays(fixture.source, parseEther('0.5'))
  fixture.crashAt = 'deposit.adopted'
  await pass()
  await pass()
  await mine(FINAL_BLOCKS)
  await fixture.run()
  await fixture.check()
  assert.deepEqual(
    (await deposits()).map(({ amount, status }) => [amount, status]),
    [
      [parseEther('0.25').toString(), 'confirmed'],
      [parseEther('0.5').toString(), 'confirmed'],
    ],
  )
})

/** Returns the addresses that differ from the books as of a block some blocks below the scan's. */
async function differing(below: number): Promise<Look[]> {
  const chain = fixture.services.networks.get('ETH')
  assert.ok(hasBalances(chain))
  const scan = await database
    .get()
    .one<{ height: string }>(`select height::text from network_scans where network = 'ETH'`)
  const owners = await addressesAfter(database.get(), chain.network, { after: '', most: 100 })
  const looks = await look(fixture.services, chain, owners, Number(scan?.height) - below)
  return looks.filter(({ surplus, deficit }) => surplus > 0n || deficit > 0n)
}

test('payments between our own addresses and plain deposits are no surplus or deficit, at any block', async () => {
  const loop = started()
  const addresses = [fixture.source, await fixture.newAddress('ETH')]
  const tokens = await fixture.openWallet('USDT_ETH')
  for (let turn = 0; turn < 12; turn++) {
    const ofToken = turn % 4 === 3
    await fixture.control({
      command: 'fund',
      asset: ofToken ? 'USDT_ETH' : 'ETH',
      address: ofToken ? tokens : addresses[turn % 2],
      amount: ofToken ? '100' : '1',
    })
    if (turn % 3 === 0) await fixture.create(`turn-${turn}`, { amount: '0.01' })
    for (let step = 0; step < 6; step++) {
      await fixture.turn()
      for (const below of [0, 1]) assert.deepEqual(await differing(below), [])
      await pass(loop)
    }
  }
  await mine(FINAL_BLOCKS)
  // A sweep of what an earlier one left may wait without end.
  const open = `select 1 from transactions where status = 'pending' and (kind, state) <> ('SWEEP', 'QUEUED')`
  while (await database.get().one(open)) await fixture.turn()
  await pass(loop)
  assert.deepEqual(await deposits(), [])
  assert.deepEqual((await audit(services())).differences, [])
})

test('a pass stays within its requests: awaited addresses first, and each address in its round', async () => {
  await database.admin().query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
     select 'ETH', '0x' || lpad(to_hex(n), 40, '0'), a.workspace_id, a.sub_account_id, 1000 + n, 'deposit'
     from chain_addresses a, generate_series(1, 1700) n where a.address = $1`,
    [fixture.source],
  )
  const made = services()
  const chain = made.networks.get('ETH')
  assert.ok(hasBalances(chain))
  const awaited = `0x${'6a4'.padStart(40, '0')}`
  const lots: string[][] = []
  const counted = Object.assign(Object.create(chain) as typeof chain, {
    balances: (addresses: readonly string[], ...more: [never]) => {
      lots.push([...addresses])
      return chain.balances(addresses, ...more)
    },
  })
  const loop = watchLoop(made, counted, {
    calls: 2,
    awaited: async () => [awaited],
    follows: () => true,
  })
  const seen = new Set<string>()
  for (let round = 0; round < 3; round++) {
    lots.length = 0
    await pass(loop)
    assert.ok(lots.length <= 2 && lots[0]?.[0] === awaited, String(lots.length))
    for (const address of lots.flat()) seen.add(address)
  }
  const all = await database
    .get()
    .query<{ address: string }>(`select address from chain_addresses where network = 'ETH'`)
  assert.deepEqual(
    all.filter(({ address }) => !seen.has(address)),
    [],
  )
})

test('with a quorum, one endpoint that invents or hides coins decides nothing', async () => {
  await open(['a', 'b', 'c'], 2)
  const loop = started()
  invented = { a: parseEther('1') }
  await pass(loop)
  assert.deepEqual(await deposits(), [])
  invented = { c: -parseEther('0.1') }
  await contractPays(fixture.source, parseEther('0.25'))
  await pass(loop)
  await mine(FINAL_BLOCKS)
  await fixture.run()
  assert.deepEqual(
    (await deposits()).map(({ amount, status }) => [amount, status]),
    [[parseEther('0.25').toString(), 'confirmed']],
  )
  await fixture.check()
})
