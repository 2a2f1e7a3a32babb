import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { formatAmount } from '@custody/chains'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { toHex } from '../../../../../devnet/src/tron/address.ts'
import { contractPayments } from '../../assets/contract-payments.ts'
import { usualSweepCost } from '../../assets/dust.ts'
import { audit } from '../../../server/audit/audit.ts'
import { createInvoice } from '../../../commerce/invoices/create-invoice.ts'
import { lookAtDue } from '../../../commerce/invoices/loop.ts'
import { getInvoice } from '../../../commerce/invoices/read-invoice.ts'
import type { Endpoint } from '../../../core/http/endpoint.ts'
import { readBody } from '../../../core/http/validate.ts'
import { adoptIntoBooks } from '../../../server/operator/books/adopt.ts'
import { rescanProgress, startRescan } from '../../../server/operator/books/rescan.ts'
import type { Application } from '../../../server/app/application.ts'
import type { TransactionRow } from '../../../core/engine/transaction.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../../testing/chains/family-fixture.ts'
import { plain } from '../../../../testing/harness.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests of TRX that contracts pay. The endpoint's tracer reports such a payment, and it is credited
 * only if the balance of its address confirms it.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-contract-payments-'))
const PLACE: WalletAddress = {
  code: 'TRX',
  to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
  held: '300',
  amount: '12',
}
const TRX = 1_000_000n
/** Number of blocks after which a claim is compared with the balance of its address. */
const PROOF_BLOCKS = 25
const INFOS = '/wallet/gettransactioninfobyblocknum'
let devnet: Devnet

type Lie = (path: string, text: string, host: string, body: string) => string
/** Replaces the endpoints' responses. Tests may assign another function. */
let lie: Lie

/** Sends a request for any host to the local chain. */
const ask: typeof fetch = async (url, init) => {
  const { hostname, pathname } = new URL(String(url))
  const response = await fetch(`${devnet.url}${pathname}`, init)
  const path = pathname.replace(/^\/trx/, '')
  const text = lie(path, await response.text(), hostname, String(init?.body))
  return new Response(text, { status: response.status })
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(async () => {
  lie = (_path, text) => text
  await database.admin().query('delete from rescans; delete from contract_watches')
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/** Opens a fixture with one endpoint, or with three of which two must agree. */
async function opened(hosts: readonly string[] = []): Promise<FamilyFixture> {
  const endpoints = { endpoints: hosts.map((host) => ({ url: `http://${host}/trx` })), quorum: 2 }
  const fixture = new FamilyFixture(
    database.get(),
    devnet,
    PLACE,
    clock,
    ask,
    hosts.length > 0 ? endpoints : undefined,
  )
  await fixture.open()
  return fixture
}

const withoutWaits = (fixture: FamilyFixture): Application => ({
  ...fixture.services,
  environment: { ...fixture.services.environment, sleep: async () => undefined },
})

async function mine(fixture: FamilyFixture, blocks: number): Promise<void> {
  await fixture.control({ command: 'mine', blocks })
  await fixture.scan()
}

/** Lets a contract pay an address, and scans the block of the payment. */
async function payByContract(
  fixture: FamilyFixture,
  amount: string,
  address = fixture.source,
): Promise<string> {
  const { hash } = await fixture.control({ command: 'special', kind: 'contract', address, amount })
  await mine(fixture, 1)
  return hash as string
}

const claims = (fixture: FamilyFixture) =>
  fixture.database.query<TransactionRow>(
    `select t.*, t.amount::text from transactions t join deposits d on d.transaction_id = t.id
     where d.claimed order by t.created_at, t.id`,
  )

/** Reads all blocks of the network again, and returns the number of deposits that were missed. */
async function rescan(fixture: FamilyFixture): Promise<unknown> {
  const [scan] = await fixture.database.query<{ height: string }>(
    'select height::text from network_scans',
  )
  const to = Number(scan?.height)
  await startRescan(fixture.services, { network: 'TRX', from: Math.max(1, to - 40), to })
  for (;;) {
    const progress = await rescanProgress(fixture.services, { network: 'TRX' })
    if (progress['done'] === true) return progress['deposits']
    assert.equal(progress['last_error'] ?? null, null)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

/** Removes the internal transactions from the responses of some hosts. */
const withoutInternal =
  (...hosts: string[]): Lie =>
  (path, text, host) =>
    path === INFOS && (hosts.length === 0 || hosts.includes(host))
      ? JSON.stringify(
          (JSON.parse(text) as object[]).map((info) => ({
            ...info,
            internal_transactions: undefined,
          })),
        )
      : text

/** Adds a payment to each internal transaction that the host reports. */
const inventing =
  (fixture: FamilyFixture, sun: bigint, hosts: readonly string[] = []): Lie =>
  (path, text, host) => {
    if (path !== INFOS || (hosts.length > 0 && !hosts.includes(host))) return text
    const entry = {
      caller_address: `41${'ab'.repeat(20)}`,
      transferTo_address: toHex(fixture.source),
      callValueInfo: [{ callValue: Number(sun) }],
      note: Buffer.from('call').toString('hex'),
    }
    return JSON.stringify(
      (JSON.parse(text) as { internal_transactions?: object[] }[]).map((info) => ({
        ...info,
        internal_transactions: [...(info.internal_transactions ?? []), entry],
      })),
    )
  }

test('credits TRX that a contract pays once its address proves it, with both senders', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  const hash = await payByContract(fixture, '40')
  const [found] = await claims(fixture)
  assert.deepEqual([found?.state, found?.hash, found?.amount], ['CONFIRMING', hash, '40000000'])
  // A block is final before the proof is due.
  await mine(fixture, 4)
  assert.equal((await claims(fixture))[0]?.state, 'CONFIRMING')
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  const [row] = await claims(fixture)
  assert.equal(row?.status, 'confirmed')
  assert.equal((await fixture.available()) - before, 40n * TRX)
  const deposit = await fixture.database.one<{ senders: string[]; senders_complete: boolean }>(
    'select senders, senders_complete from deposits where claimed',
  )
  assert.deepEqual([deposit?.senders.length, deposit?.senders_complete], [2, true])
  await fixture.check()
})

test('TRX of contracts below what a sweep costs is not recorded, and GET /assets says from when it is', async () => {
  const fixture = await opened()
  const { asset, services } = fixture
  assert.equal((await contractPayments(services))(asset).contract_payments, 'by hand')
  const least = usualSweepCost(services.registry, asset)
  await payByContract(fixture, formatAmount(least - 1n, asset.decimals))
  assert.deepEqual(await claims(fixture), [])
  assert.deepEqual((await audit(services)).differences, [])
  await payByContract(fixture, formatAmount(least, asset.decimals))
  assert.equal((await claims(fixture)).length, 1)
  const { contract_payments, min_contract_payment } = (await contractPayments(services))(asset)
  assert.deepEqual(
    [contract_payments, stringifyJson(min_contract_payment)],
    ['credited', formatAmount(least, asset.decimals)],
  )
})

test('sweeps TRX that a contract paid to a deposit address, and a transfer spends it', async () => {
  const fixture = await opened()
  const address = await fixture.newAddress('TRX')
  await payByContract(fixture, '500', address)
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  const sweeps = await fixture.database.query<{ status: string; source_id: string }>(
    `select status, source_id from transactions where kind = 'SWEEP'`,
  )
  assert.deepEqual(
    sweeps.filter(({ source_id: source }) => source === address),
    [{ status: 'confirmed', source_id: address }],
  )
  const id = await fixture.create('more than the wallet had', { amount: '700' })
  await fixture.run()
  const row = await fixture.read(id)
  assert.equal(row.status, 'confirmed', JSON.stringify(row))
  await fixture.check()
})

test('an invoice that a contract pays is processing until the payment is proven, then paid', async () => {
  const fixture = await opened()
  const call = async (endpoint: Endpoint<Application>, body?: object, params?: object) => {
    const answer = await endpoint.handler(
      {
        caller: fixture.caller,
        body: endpoint.body ? readBody(endpoint.body, JSON.stringify(body)) : undefined,
        query: undefined,
        params,
        signed: undefined as never,
        askedAt: fixture.services.environment.now(),
      },
      fixture.services,
    )
    return plain(parseJson(answer.text ?? stringifyJson(answer.body))) as Record<string, string>
  }
  const { inv_id: id, address } = await call(createInvoice, { asset: 'TRX', amount: 40 })
  const status = async () => {
    while ((await lookAtDue(fixture.services)) > 0);
    return (await call(getInvoice, undefined, { id }))['inv_status']
  }
  await payByContract(fixture, '40', address)
  await mine(fixture, 4)
  assert.equal(await status(), 'Processing')
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  assert.equal(await status(), 'Paid')
  await fixture.check()
})

test('a plain deposit is credited at its depth while a claim waits for its proof', async () => {
  const fixture = await opened()
  await payByContract(fixture, '40')
  await fixture.control({ command: 'fund', asset: 'TRX', address: fixture.source, amount: '7' })
  await mine(fixture, 4)
  const states = await fixture.database.query<{ state: string; amount: string }>(
    `select t.state, t.amount::text from transactions t join deposits d on d.transaction_id = t.id
     where d.amount in (7000000, 40000000) order by t.amount`,
  )
  assert.equal(states.length, 2)
  assert.notEqual(states[0]?.state, 'CONFIRMING')
  assert.equal(states[1]?.state, 'CONFIRMING')
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  await fixture.check()
})

test('credits nothing for a payment that a tracer invents', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  lie = inventing(fixture, 40n * TRX)
  await payByContract(fixture, '5', PLACE.to)
  assert.equal((await claims(fixture)).length, 1)
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  const [row] = await claims(fixture)
  assert.deepEqual(
    [row?.state, row?.status, row?.failure_reason],
    [
      'REORGED',
      'failed',
      'the address does not have the amount that an endpoint reported; see "custody audit"',
    ],
  )
  assert.equal(await fixture.available(), before)
  await fixture.check()
})

test('an invented payment beside a real one does not prevent the real one', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  lie = inventing(fixture, 900n * TRX)
  await payByContract(fixture, '40')
  assert.equal((await claims(fixture)).length, 2)
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  assert.deepEqual((await claims(fixture)).map(({ status, amount }) => [status, amount]).sort(), [
    ['confirmed', String(40n * TRX)],
    ['failed', String(900n * TRX)],
  ])
  assert.equal((await fixture.available()) - before, 40n * TRX)
  await fixture.check()
})

test('a surplus that was adopted is not credited again when a rescan reports its payment', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  lie = withoutInternal()
  await payByContract(fixture, '40')
  await mine(fixture, PROOF_BLOCKS)
  assert.deepEqual(await claims(fixture), [])
  const adopt = () =>
    adoptIntoBooks(withoutWaits(fixture), { asset: 'TRX', address: fixture.source, amount: '40' })
  await adopt()
  lie = (_path, text) => text
  for (let round = 0; round < 2; round++) {
    assert.equal(await rescan(fixture), 0)
    await mine(fixture, PROOF_BLOCKS)
    await fixture.run()
    assert.equal((await fixture.available()) - before, 40n * TRX)
  }
  assert.deepEqual(await claims(fixture), [])
  await fixture.check()
})

test('a payment that a rescan finds is credited once, and leaves no surplus to adopt', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  lie = withoutInternal()
  await payByContract(fixture, '40')
  await mine(fixture, PROOF_BLOCKS)
  lie = (_path, text) => text
  assert.equal(await rescan(fixture), 1)
  const adopt = () =>
    adoptIntoBooks(withoutWaits(fixture), { asset: 'TRX', address: fixture.source, amount: '40' })
  await assert.rejects(adopt(), /has no more than the ledger records/)
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  assert.equal((await fixture.available()) - before, 40n * TRX)
  await assert.rejects(adopt(), /has no more than the ledger records/)
  assert.equal(await rescan(fixture), 0)
  await fixture.check()
})

test('a reorganisation takes a claim back, and the next block returns it', async () => {
  const fixture = await opened()
  const before = await fixture.available()
  await payByContract(fixture, '40')
  await fixture.control({ command: 'reorg', depth: 1, drop: false })
  await fixture.scan()
  assert.deepEqual(
    (await claims(fixture)).map(({ state }) => state),
    ['REORGED'],
  )
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  assert.deepEqual(
    (await claims(fixture)).map(({ status }) => status),
    ['confirmed'],
  )
  assert.equal((await fixture.available()) - before, 40n * TRX)
  await fixture.check()
})

test('endpoints without internal transactions dispute neither the claim nor other deposits', async () => {
  // The scanner reads from `a`; the claim is found at another endpoint when blocks are compared.
  for (const without of [['a'], ['b'], ['b', 'c'], ['a', 'c']]) {
    const fixture = await opened(['a', 'b', 'c'])
    const before = await fixture.available()
    lie = withoutInternal(...without)
    await payByContract(fixture, '40')
    await fixture.control({ command: 'fund', asset: 'TRX', address: fixture.source, amount: '7' })
    await mine(fixture, PROOF_BLOCKS)
    await fixture.run()
    assert.equal((await fixture.available()) - before, 47n * TRX, without.join())
    await fixture.check()
    const counts = (await fixture.services.metrics.endpointDisagreements.get()).values
    assert.deepEqual(
      counts.map(({ value }) => value),
      [0, 0, 0],
    )
  }
})

test('endpoints without internal transactions count for the quorum that replaces a false deposit', async () => {
  const fixture = await opened(['a', 'b', 'c'])
  const before = await fixture.available()
  const hide = withoutInternal('b')
  lie = (path, text, host, body) =>
    host === 'a'
      ? text.replaceAll('"amount":7250000', '"amount":725000000')
      : hide(path, text, host, body)
  const paid = { address: fixture.source, amount: '40' }
  await fixture.control({ command: 'special', kind: 'contract', ...paid })
  await fixture.control({ command: 'fund', asset: 'TRX', ...paid, amount: '7.25' })
  await mine(fixture, PROOF_BLOCKS)
  for (let round = 0; round < 20; round++) {
    clock.advance(30_000)
    await mine(fixture, 1)
    if (round === 10) lie = hide
  }
  await fixture.run()
  assert.equal((await fixture.available()) - before, 47_250_000n)
  const states = await fixture.database.query<{ state: string }>(
    'select state from transactions where amount = 725000000',
  )
  assert.deepEqual(states, [{ state: 'REORGED' }])
})

test('an endpoint that invents a payment and the balance for it is outvoted', async () => {
  const fixture = await opened(['a', 'b', 'c'])
  const before = await fixture.available()
  const invent = inventing(fixture, 40n * TRX, ['a'])
  let asked = 0
  lie = (path, text, host, body) => {
    if (path !== '/wallet/getaccount' || host !== 'a') return invent(path, text, host, body)
    asked++
    return text.replace(/"balance":(\d+)/, (_, sun: string) => `"balance":${BigInt(sun) * 2n}`)
  }
  await payByContract(fixture, '5', PLACE.to)
  assert.equal((await claims(fixture)).length, 1)
  await mine(fixture, PROOF_BLOCKS)
  await fixture.run()
  assert.ok(asked > 0, 'its balance was read')
  assert.deepEqual(
    (await claims(fixture)).map(({ status }) => status),
    ['failed'],
  )
  assert.equal(await fixture.available(), before)
})
