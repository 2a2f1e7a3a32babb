import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { formatAmount, parseAmount, type ChainBlock } from '@custody/chains'
import { parseEther } from 'viem'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { createAddress } from '../../custody/addresses/create-address.ts'
import { audit } from '../audit/audit.ts'
import type { Application } from '../app/application.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { releaseDeposit } from '../operator/aml-release.ts'
import { adoptIntoBooks } from '../operator/books/adopt.ts'
import { rescanProgress, startRescan } from '../operator/books/rescan.ts'
import { sealToken } from '../../custody/aml/policy.ts'
import { Secrets } from '../../core/secrets.ts'
import { sweepRules } from '../../core/settings/sweep-rules.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of adoption. Ether that a contract sends has no transaction of its own, so the operator
 * adopts it as a deposit. It must be credited exactly once, whatever the scan finds later.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-adopt-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.5' }
/** Number of blocks after which a block is final on the local chain. */
const FINAL_BLOCKS = 80
let devnet: Devnet
let fixture: FamilyFixture
/** Replaces the endpoint's responses. Tests may assign another function. */
let lie: (method: string, params: unknown[], answer: unknown) => unknown = (
  _method,
  _params,
  answer,
) => answer

/**
 * Runs just before the endpoint responds, for example to mine a block. Tests may assign another
 * function.
 */
let meanwhile: (method: string, params: unknown[]) => Promise<void> = async () => undefined

const ask: typeof fetch = async (url, init) => {
  const { method, params } = JSON.parse(String(init?.body)) as { method: string; params: unknown[] }
  await meanwhile(method, params)
  const response = await fetch(url, init)
  const body = (await response.json()) as { result?: unknown }
  return Response.json(
    { ...body, result: lie(method, params, body.result) },
    { status: response.status },
  )
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(async () => {
  lie = (_method, _params, answer) => answer
  meanwhile = async () => undefined
  await database.admin().query('delete from rescans')
  fixture = new FamilyFixture(database.get(), devnet, PLACE, clock, ask)
  await fixture.open()
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/**
 * Returns the fixture's services with waits that end immediately. `sleep` runs in place of each
 * wait.
 */
const services = (sleep: () => Promise<void> = async () => undefined): Application => ({
  ...fixture.services,
  environment: { ...fixture.services.environment, sleep },
})

async function mine(blocks: number): Promise<void> {
  await fixture.control({ command: 'mine', blocks })
  await fixture.scan()
}

/** Pays an address by a contract. */
async function contractPays(address: string, amount: string): Promise<string> {
  const { hash } = await fixture.control({ command: 'special', kind: 'contract', address, amount })
  await fixture.scan()
  return String(hash)
}

const adopt = (input: Record<string, unknown> = {}, made: Application = services()) =>
  adoptIntoBooks(made, { asset: 'ETH', address: fixture.source, amount: '0.25', ...input })

const secondAddress = async (): Promise<string> =>
  (
    (await createAddress.handler(
      {
        caller: fixture.caller,
        body: { asset: 'ETH' },
        signed: null,
        query: undefined,
        params: undefined,
      } as never,
      fixture.services,
    )) as { body: { address: string } }
  ).body.address

const adopted = () =>
  fixture.database.query<TransactionRow>(
    `select t.* from transactions t join deposits d on d.transaction_id = t.id where d.adopted
      order by t.created_at`,
  )

const refused = (what: Promise<unknown>, reason: RegExp) =>
  assert.rejects(what, (error: Error) => {
    assert.match(error.message, reason)
    return true
  })

test('a surplus that the operator adopts as a deposit is credited once, after confirmations', async () => {
  const hash = await contractPays(fixture.source, '0.25')
  assert.deepEqual(
    (await audit(services())).differences.map(({ kind }) => kind),
    ['surplus'],
  )
  const before = await fixture.available()
  const { id } = await adopt({ txid: hash })
  const row = await fixture.read(String(id))
  assert.deepEqual(
    [row.state, row.status, row.hash, row.source_id],
    ['CONFIRMING', 'pending', hash, null],
  )
  await fixture.run()
  assert.deepEqual(
    [(await fixture.read(String(id))).status, (await fixture.available()) - before],
    ['confirmed', parseEther('0.25')],
  )
  await fixture.check()
  await refused(adopt(), /has no more than the ledger records/)
  assert.equal((await adopted()).length, 1)
})

test('several concurrent adoptions of one surplus create one deposit', async () => {
  await contractPays(fixture.source, '0.25')
  const outcomes = await Promise.allSettled([adopt(), adopt(), adopt({}, services()), adopt()])
  assert.equal(
    outcomes.filter(({ status }) => status === 'fulfilled').length,
    1,
    JSON.stringify(outcomes),
  )
  await fixture.run()
  await fixture.check()
  assert.equal((await adopted()).length, 1)
})

test("a wrong option value is refused with the option's name, and nothing changes", async () => {
  await contractPays(fixture.source, '0.25')
  const hash = `0x${'12'.repeat(32)}`
  for (const [input, reason] of [
    [
      { amount: '0.2' },
      /^--amount: the address has 0\.25 more than the ledger records; --amount must be the complete surplus$/,
    ],
    [{ amount: '0.3' }, /^--amount: .*0\.25 more/],
    [{ amount: '-1' }, /^--amount: /],
    [{ amount: '0' }, /^--amount: /],
    [{ amount: 'all' }, /^--amount: /],
    [{ asset: 'XYZ' }, /^--asset: "XYZ" is not an asset/],
    [{ asset: 'BTC' }, /^--asset: /],
    [{ address: PLACE.to }, /^--address: .* is not an address of this platform on ETH$/],
    [{ address: '0x12' }, /^--address: /],
    [{ txid: hash }, /^--txid: no block of ETH contains/],
    [{ txid: 'x' }, /^--txid: /],
  ] as const)
    await refused(adopt(input), reason)
  assert.deepEqual(await adopted(), [])
})

test('a rescan that finds the payment behind an adopted surplus does not credit that payment', async () => {
  const client = fixture.services.networks.client('ETH') as {
    block(height: number): Promise<ChainBlock | null>
  }
  const { block } = client
  client.block = async (height) => {
    const shown = await block.call(client, height)
    return shown && { ...shown, transfers: [] }
  }
  const before = await fixture.available()
  await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '0.25' })
  await mine(1)
  client.block = block
  const height = Number(
    (await fixture.database.one<{ height: string }>('select height::text from network_scans'))
      ?.height,
  )
  const { id } = await adopt()
  assert.deepEqual(await database.get().query('select action, object from audit_log'), [
    { action: 'suspense.adopted', object: id },
  ])
  for (const when of ['before its depth', 'after it']) {
    await startRescan(fixture.services, { network: 'ETH', from: height - 3, to: height })
    for (;;) {
      const progress = await rescanProgress(fixture.services, { network: 'ETH' })
      if (progress['done'] === true) {
        assert.equal(progress['deposits'], 0, when)
        break
      }
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
    await fixture.run()
    assert.equal((await fixture.read(String(id))).status, 'confirmed')
    assert.equal((await fixture.available()) - before, parseEther('0.25'), when)
    await fixture.check()
  }
  // A payment after the block of the adoption is a separate deposit, even if its amount is the
  // same.
  await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '0.25' })
  await mine(1)
  await fixture.run()
  assert.equal((await fixture.available()) - before, parseEther('0.5'))
  await fixture.check()
})

test('a reorganisation reverses an adopted surplus, which can then be adopted again', async () => {
  await contractPays(fixture.source, '0.25')
  const { id } = await adopt()
  await fixture.control({ command: 'reorg', depth: 2, drop: true })
  await mine(3)
  const row = await fixture.read(String(id))
  assert.deepEqual([row.state, row.status], ['REORGED', 'failed'])
  await fixture.run()
  await fixture.check()
  await contractPays(fixture.source, '0.25')
  await adopt()
  await fixture.run()
  await fixture.check()
})

test('credits a payment once if its surplus is adopted before the scan reads its block', async () => {
  const ahead = parseEther('0.25')
  lie = (method, params, answer) =>
    method === 'eth_getBalance' && params[0] === fixture.source
      ? `0x${(BigInt(answer as string) + ahead).toString(16)}`
      : answer
  const before = await fixture.available()
  const { id } = await adopt()
  lie = (_method, _params, answer) => answer
  await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '0.25' })
  await mine(FINAL_BLOCKS)
  await fixture.run()
  const row = await fixture.read(String(id))
  assert.deepEqual(
    [row.status, row.failure_reason],
    ['failed', 'the address no longer has the amount that was adopted; see "custody audit"'],
  )
  assert.equal((await fixture.available()) - before, ahead)
  await fixture.check()
})

test('detects an adopted surplus that was already booked, even if a payment arrives meanwhile', async () => {
  const more = parseEther('0.25')
  lie = (method, params, answer) =>
    method === 'eth_getBalance' && params[0] === fixture.source
      ? `0x${(BigInt(answer as string) + more).toString(16)}`
      : answer
  const before = await fixture.available()
  const { id } = await adopt()
  lie = (_method, _params, answer) => answer
  await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '0.25' })
  let late = 1
  meanwhile = async (method, params) => {
    if (method !== 'eth_getBalance' || params[0] !== fixture.source || late-- <= 0) return
    await fixture.control({
      command: 'fund',
      asset: 'ETH',
      address: fixture.source,
      amount: '0.25',
    })
    await fixture.control({ command: 'mine', blocks: 1 })
  }
  await mine(FINAL_BLOCKS)
  await mine(FINAL_BLOCKS)
  await fixture.run()
  assert.ok(late <= 0, 'the balance was not asked for at its depth')
  assert.equal((await fixture.read(String(id))).status, 'failed')
  assert.equal((await fixture.available()) - before, 2n * more)
  await fixture.check()
})

test('adopts and credits a surplus on a chain that advances between all requests', async () => {
  await contractPays(fixture.source, '0.25')
  const before = await fixture.available()
  meanwhile = async (method) => {
    if (method === 'eth_getBalance') await fixture.control({ command: 'mine', blocks: 1 })
  }
  const { id } = await adopt(
    {},
    services(() => fixture.scan()),
  )
  await mine(FINAL_BLOCKS)
  await fixture.run()
  assert.equal((await fixture.read(String(id))).status, 'confirmed')
  assert.equal((await fixture.available()) - before, parseEther('0.25'))
  await fixture.check()
})

test('a failing balance query for one adopted surplus does not delay other deposits', async () => {
  await contractPays(fixture.source, '0.25')
  const { id } = await adopt()
  const before = await fixture.available()
  await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '0.1' })
  lie = (method, params, answer) => {
    if (method === 'eth_getBalance' && params[0] === fixture.source) throw new Error('no answer')
    return answer
  }
  await mine(FINAL_BLOCKS)
  while (await fixture.step());
  assert.equal((await fixture.available()) - before, parseEther('0.1'))
  assert.equal((await fixture.read(String(id))).state, 'CONFIRMING')
  lie = (_method, _params, answer) => answer
  await mine(1)
  await fixture.run()
  assert.equal((await fixture.read(String(id))).status, 'confirmed')
  await fixture.check()
})

test('credits a SOL deposit once if endpoints are some blocks ahead of the scan', async () => {
  const to = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin'
  const sol = (fixture = new FamilyFixture(
    database.get(),
    devnet,
    { code: 'SOL', to, held: '20', amount: '0.25' },
    clock,
    ask,
  ))
  await sol.open()
  const more = parseAmount('0.25', 9)
  const before = await sol.available()
  lie = (method, params, answer) =>
    method === 'getBalance' && params[0] === sol.source
      ? { ...(answer as object), value: (answer as { value: number }).value + Number(more) }
      : answer
  const { id } = await adopt({ asset: 'SOL' })
  await mine(3)
  lie = (_method, _params, answer) => answer
  await sol.control({ command: 'fund', asset: 'SOL', address: sol.source, amount: '0.25' })
  for (let blocks = 0; blocks < 60; blocks++) await mine(1)
  while (await sol.step());
  assert.equal((await sol.read(String(id))).status, 'failed')
  assert.equal((await sol.available()) - before, more)
  await sol.check()
  // A surplus that really exists is credited.
  await database.get().query(
    `update ledger_accounts set balance = balance - $1::numeric where asset = 'SOL'
        and kind = 'available'`,
    [more.toString()],
  )
  const real = await adopt({ asset: 'SOL' })
  for (let blocks = 0; blocks < 60; blocks++) await mine(1)
  while (await sol.step());
  assert.equal((await sol.read(String(real['id']))).status, 'confirmed')
})

test('refuses to adopt a transfer between the platform’s own addresses as a surplus', async () => {
  Object.assign(fixture.services.settings, { sweep: sweepRules('local', undefined, {}) })
  const address = await secondAddress()
  await fixture.control({ command: 'fund', asset: 'ETH', address, amount: '0.25' })
  await mine(FINAL_BLOCKS)
  const states = new Set<string>()
  for (let turns = 0; turns < 400; turns++) {
    const sweep = await fixture.database.one<{ state: string; amount: string }>(
      `select state, amount::text from transactions where kind = 'SWEEP' and status = 'pending'`,
    )
    if (sweep && !states.has(sweep.state)) {
      states.add(sweep.state)
      const held = await fixture.services.networks.get('ETH').balance(address, fixture.asset)
      const amount = formatAmount(BigInt(sweep.amount) || held || 1n, 18)
      // The platform's own steps continue while the operator's command repeats its checks.
      const busy = services(async () => {
        await fixture.step()
      })
      for (const each of [fixture.source, address])
        await refused(
          adopt({ address: each, amount }, busy),
          /must be the complete surplus|also has a deficit|[\d.]+ more/,
        )
    }
    // The sweep's fee leaves dust at the address. The next sweep waits until more arrives.
    if (
      await fixture.database.one(
        `select 1 from transactions where kind = 'SWEEP' and status = 'confirmed'`,
      )
    )
      break
    assert.ok(await fixture.turn(), 'the sweep does not end')
  }
  assert.ok(
    states.has('QUEUED') && states.has('CONFIRMING'),
    `the sweep was seen in ${[...states].join(' ')} only`,
  )
  const { differences, dust } = await audit(services())
  assert.deepEqual([differences, dust], [[], []])
  assert.deepEqual(await adopted(), [])
  // A restored older database lacks a sweep: one address then has a surplus and the other one a
  // deficit.
  for (const [kind, change] of [
    ['available', '-1'],
    ['unswept', '1'],
  ]) {
    await fixture.database.query(
      `update ledger_accounts set balance = balance + ($2::numeric * 10 ^ 17) where asset = 'ETH'
         and kind = $1
         and (kind = 'available' or address = $3)`,
      [kind, change, address],
    )
  }
  await refused(adopt({ amount: '0.1' }), /also has a deficit of \S+, at deposit 0x/)
  assert.deepEqual(await adopted(), [])
})

test('deposit screening holds an adopted surplus until the operator releases the deposit', async () => {
  Object.assign(fixture.services.aml, {
    secrets: new Secrets(new Uint8Array(32), fixture.services.environment),
  })
  const row = await fixture.database.one<{ id: string }>('select id from sub_accounts')
  assert.ok(row)
  await fixture.database.query(
    `insert into aml_settings (sub_account_id, provider, sealed_token, risk_levels, screen_deposits,
      screen_withdrawals, updated_at, workspace_id)
     values ($1, 'CHAINALYSIS', $2, '{SEVERE}', true, false, $3,
       (select workspace_id from sub_accounts where id = $1))`,
    [row.id, sealToken(fixture.services, row.id, 'key'), fixture.database.now()],
  )
  await contractPays(fixture.source, '0.25')
  const before = await fixture.available()
  const { id } = await adopt()
  await mine(FINAL_BLOCKS)
  for (let turns = 0; turns < 50 && (await fixture.read(String(id))).state !== 'FROZEN'; turns++)
    await fixture.turn()
  assert.match((await fixture.read(String(id))).failure_reason ?? '', /no known sender address/)
  assert.equal(await fixture.available(), before)
  await releaseDeposit(fixture.services, { transaction: id })
  await fixture.run()
  assert.equal((await fixture.available()) - before, parseAmount('0.25', 18))
  await fixture.check()
})
