// Tests of the staking of TRX end to end, on a local chain that keeps the rules of Stake 2.0.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openDatabase, type Database } from '../src/core/database/pool.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
let user: User
let own = ''
/** Address of a customer of this platform, whose account is active. */
let other = ''
let database: Database
const TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const NEW = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
const USDT = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'

interface Answered {
  id: string
  status: string
  hash: string | null
  code?: string
  field?: string
  message?: string
}
interface Staking {
  staked: { ENERGY: string; BANDWIDTH: string }
  cooling: { amount: string; release_at: string; confirmed: boolean }[]
  releasable: string
}
type Path = 'stake' | 'unstake' | 'release-unstaked'
const ask = (path: Path, body: Record<string, unknown>, from = user) =>
  call<Answered>(from, 'POST', `/dav/v1/${path}`, body)
const bodyOf = (
  path: Path,
  address: string,
  amount: number | string,
  resource: string,
  more: Record<string, unknown>,
) =>
  path === 'release-unstaked'
    ? { asset: 'TRX', address, ...more }
    : { asset: 'TRX', address, resource, amount, ...more }
async function done(
  path: Path,
  address = own,
  amount: number | string = 0,
  resource = 'ENERGY',
  more: Record<string, unknown> = {},
  from = user,
): Promise<Transfer> {
  const answer = await ask(path, bodyOf(path, address, amount, resource, more), from)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(
    [Object.keys(answer.body), answer.body.status, answer.body.hash],
    [['id', 'status', 'hash'], 'pending', null],
  )
  const ended = await terminal(from, answer.body.id)
  assert.equal(ended.status, 'confirmed', `${ended.failure_reason ?? ''}\n${platform.output}`)
  return ended
}
async function refused(
  path: Path,
  body: Record<string, unknown>,
  code: string,
  field: string,
  from = user,
  status = 400,
): Promise<string> {
  const answer = await ask(path, body, from)
  assert.deepEqual(
    [answer.status, answer.body.code, answer.body.field],
    [status, code, field],
    `${JSON.stringify(body)}: ${answer.text}`,
  )
  return String(answer.body.message)
}
const staking = async (address = own, from = user) =>
  (await call<Staking>(from, 'GET', `/dav/v1/staking?address=${address}`)).body
const devnet = (command: Record<string, unknown>) => platform.operator('devnet', command)
const audited = async () => {
  const { ok, differences, dust } = await platform.operator('audit')
  assert.deepEqual([ok, dust], [true, []], JSON.stringify(differences))
  // Staked, lent and cooling-down amounts count as liabilities, and as assets of the account.
  const { assets } = (await platform.operator('reserves publish')) as {
    assets: { asset: string; held: string; operating: string; owed: string }[]
  }
  const { held, operating, owed } = assets.find(({ asset }) => asset === 'TRX')!
  assert.equal(BigInt(held) - BigInt(operating), BigInt(owed), 'reserves of TRX')
}
/** Sends a request to java-tron's HTTP interface, as an outside observer. */
async function node<T>(path: string, body: Record<string, unknown>): Promise<T> {
  const { devnet: port } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as {
    devnet: number
  }
  return (await (
    await fetch(`http://127.0.0.1:${port}/trx/${path}`, {
      method: 'POST',
      body: JSON.stringify({ visible: true, ...body }),
    })
  ).json()) as T
}
interface Account {
  balance?: number
  frozenV2?: { type?: string; amount?: number }[]
  unfrozenV2?: { unfreeze_amount: number }[]
}
const account = (address: string) => node<Account>('wallet/getaccount', { address })
const frozen = async (address: string, type?: string) =>
  (await account(address)).frozenV2?.find((each) => each.type === type)?.amount ?? 0
async function lent(from: string, to: string): Promise<Record<string, number>> {
  const { delegatedResource } = await node<{ delegatedResource: Record<string, number>[] }>(
    'wallet/getdelegatedresourcev2',
    { fromAddress: from, toAddress: to },
  )
  return delegatedResource[0] ?? {}
}
const events = async (id: string) =>
  (
    await database.query<{ type: string }>(
      `select type from events where payload->>'id' = $1 and type like 'staking.%' order by id`,
      [id],
    )
  ).map(({ type }) => type)
async function moved(days: number): Promise<void> {
  const shifted = await platform.cli('devnet', 'clock', `+${days}d`)
  assert.equal(shifted.status, 0, shifted.stderr)
}
/** Creates a funded wallet of a new sub-account, or of a workspace with its own tank and fees. */
async function walletOf(
  name: string,
  trx: string,
  workspace = 'staking',
): Promise<{ user: User; address: string }> {
  const made = await platform.user(workspace, { subAccount: name })
  return { user: made, address: await fundedWallet(platform, made, 'TRX', trx) }
}
const connect = () =>
  (database = openDatabase(
    (
      JSON.parse(readFileSync(join(platform.home, 'runtime.json'), 'utf8')) as {
        database_url: string
      }
    ).database_url,
    { onError: () => undefined },
  ))

before(async () => {
  await platform.start()
  connect()
  user = await platform.user('staking')
  own = await fundedWallet(platform, user, 'TRX', '30000')
  other = (await walletOf('customer', '10')).address
})
after(async () => {
  await database.close()
  await platform.remove()
})

test('missing, misspelt or excessive fields get 400 with the field, and nothing changes', async () => {
  const whole = { asset: 'TRX', address: own, resource: 'ENERGY', amount: 100 }
  for (const path of ['stake', 'unstake'] as const) {
    for (const field of ['asset', 'address', 'resource', 'amount'] as const) {
      const { [field]: _, ...rest } = whole
      await refused(path, rest, 'INVALID_REQUEST', field)
    }
    await refused(path, { ...whole, asset: 'USDT_TRX' }, 'INVALID_REQUEST', 'asset')
    await refused(path, { ...whole, asset: 'trx' }, 'INVALID_REQUEST', 'asset')
    await refused(path, { ...whole, resource: 'energy' }, 'INVALID_REQUEST', 'resource')
    await refused(
      path,
      { ...whole, address: `${own.slice(0, -1)}${own.endsWith('a') ? 'b' : 'a'}` },
      'INVALID_ADDRESS',
      'address',
    )
    await refused(
      path,
      { ...whole, address: '0x00000000000000000000000000000000000000ee' },
      'INVALID_ADDRESS',
      'address',
    )
    await refused(path, { ...whole, amount: '1.0000001' }, 'INVALID_AMOUNT', 'amount')
    await refused(path, { ...whole, amount: 0 }, 'INVALID_AMOUNT', 'amount')
    await refused(path, { ...whole, amount: -1 }, 'INVALID_REQUEST', 'amount')
    await refused(path, { ...whole, lock: true }, 'UNKNOWN_FIELD', 'lock')
  }
  assert.match(
    await refused('stake', { ...whole, amount: 0.999999 }, 'INVALID_AMOUNT', 'amount'),
    /at least 1 TRX/,
  )
  assert.match(
    await refused('stake', { ...whole, amount: 30000.000001 }, 'INSUFFICIENT_BALANCE', 'amount'),
    /spendable balance of 30000 TRX/,
  )
  await refused('unstake', whole, 'INSUFFICIENT_STAKE', 'amount')
  for (const field of ['asset', 'address'] as const)
    await refused(
      'release-unstaked',
      { asset: 'TRX', address: own, [field]: undefined },
      'INVALID_REQUEST',
      field,
    )
  await refused('release-unstaked', { asset: 'TRX', address: 'T1' }, 'INVALID_ADDRESS', 'address')
  await refused('release-unstaked', { asset: 'TRX', address: own }, 'NOTHING_TO_RELEASE', 'address')
  assert.match(
    await refused('stake', { ...whole, address: NEW }, 'INVALID_ADDRESS', 'address'),
    /never been activated/,
  )
  assert.match(
    await refused('stake', { ...whole, address: USDT }, 'INVALID_ADDRESS', 'address'),
    /contract/,
  )
  const reader = await platform.user('staking', { role: 'read-only' })
  assert.equal((await ask('stake', whole, reader)).status, 403)
  const poor = await platform.user('staking', { subAccount: 'no-wallet' })
  await refused('stake', whole, 'WALLET_MISSING', 'asset', poor)
  assert.deepEqual(
    await balance(user, 'TRX').then(({ balance: spendable, omnibus_balance }) => [
      spendable,
      omnibus_balance,
    ]),
    ['30000', '30000'],
  )
  assert.deepEqual(await staking(), {
    staked: { ENERGY: '0', BANDWIDTH: '0' },
    cooling: [],
    releasable: '0',
  })
})

test('a stake is deducted from the balance, and stays in the omnibus balance', async () => {
  const made = await done('stake', own, 100)
  assert.deepEqual(
    [
      made['type'],
      made.amount,
      made['source_id'],
      made['destination_id'],
      made['destination_type'],
    ],
    ['Stake', '100', own, own, 'STAKING'],
  )
  assert.deepEqual(await staking(), {
    staked: { ENERGY: '100', BANDWIDTH: '0' },
    cooling: [],
    releasable: '0',
  })
  const { balance: spendable, omnibus_balance: all } = await balance(user, 'TRX')
  assert.deepEqual([spendable, all, await frozen(own, 'ENERGY')], ['29900', '30000', 100_000_000])
  assert.deepEqual(await events(made.id), ['staking.staked'])
  const listed = (
    await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions?asset=TRX')
  ).body.data.find(({ id }) => id === made.id)
  assert.equal(listed?.hash, made.hash)
  assert.equal(
    (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions?type=stake')).body.total,
    '1',
  )
  assert.equal(
    (
      await node<{ ret: { contractRet: string }[] }>('wallet/gettransactionbyid', {
        value: made.hash,
      })
    ).ret[0]?.contractRet,
    'SUCCESS',
  )
  await done('stake', own, '1.5', 'BANDWIDTH')
  assert.deepEqual(
    [await frozen(own), (await staking()).staked],
    [1_500_000, { ENERGY: '100', BANDWIDTH: '1.5' }],
  )
  await audited()
})

test('staked energy lowers the fee of the next token transfer and the tank balance needed for it', async () => {
  const { user: rich, address } = await walletOf('main', '20000', 'staking-energy')
  await fundedWallet(platform, rich, 'USDT_TRX', '100')
  const send = async () => {
    const answer = await call<Transfer>(
      rich,
      'POST',
      '/dac/v1/transaction',
      transferBody('USDT_TRX', '1', TO),
    )
    assert.equal(answer.status, 200, answer.text)
    return terminal(rich, answer.body.id)
  }
  const tank = async () =>
    Math.round(
      Number(
        (
          await call<{ network: string; balance: string }[]>(rich, 'GET', '/dac/v1/gas-tanks')
        ).body.find(({ network }) => network === 'TRX')?.balance,
      ) * 1e6,
    )
  await send()
  const dear = await send()
  assert.ok(Number(dear.fee) > 6 && Number(dear.fee) < 7.5, dear.fee)
  await done('stake', address, 15000, 'ENERGY', {}, rich)
  const held = await tank()
  const cheap = await send()
  assert.equal(cheap.status, 'confirmed', cheap.failure_reason ?? '')
  assert.ok(Number(cheap.fee) <= 0.345, cheap.fee)
  assert.ok(held - (await tank()) < 1_000_000, `${held - (await tank())} sun for fuel`)
  console.log(
    `fee of one USDT_TRX transfer: ${dear.fee} TRX, with 15,000 TRX staked for energy ${cheap.fee} TRX; the tank gave ${held - (await tank())} sun`,
  )
  // Two concurrent transfers must not both rely on the same energy.
  const both = await Promise.all([send(), send()])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['confirmed', 'confirmed'],
  )
  await audited()
})

test('a stake for another address is frozen and delegated, and unstaking undelegates it first', async () => {
  const made = await done('stake', other, 50)
  assert.equal((await lent(own, other))['frozen_balance_for_energy'], 50_000_000)
  assert.deepEqual(
    [(await staking(other)).staked, (await staking()).staked],
    [
      { ENERGY: '50', BANDWIDTH: '0' },
      { ENERGY: '100', BANDWIDTH: '1.5' },
    ],
  )
  assert.deepEqual(await events(made.id), ['staking.staked'])
  const steps = await database.query<{ step: string; state: string }>(
    'select step, state from chain_transactions where transaction_id = $1 order by attempt',
    [made.id],
  )
  assert.deepEqual(steps, [
    { step: 'freeze', state: 'CONFIRMED' },
    { step: 'delegate', state: 'CONFIRMED' },
  ])
  assert.match(
    await refused(
      'unstake',
      { asset: 'TRX', address: other, resource: 'BANDWIDTH', amount: 1 },
      'RESOURCE_MISMATCH',
      'resource',
    ),
    /the stake for this address is for ENERGY/,
  )
  assert.match(
    await refused(
      'unstake',
      { asset: 'TRX', address: other, resource: 'ENERGY', amount: 50.000001 },
      'INSUFFICIENT_STAKE',
      'amount',
    ),
    /50 TRX staked for ENERGY/,
  )
  await refused(
    'unstake',
    { asset: 'TRX', address: own, resource: 'ENERGY', amount: 100.5 },
    'INSUFFICIENT_STAKE',
    'amount',
  )
  await audited()
  const back = await done('unstake', other, 20)
  assert.deepEqual(
    [
      back['type'],
      (await lent(own, other))['frozen_balance_for_energy'],
      await frozen(own, 'ENERGY'),
    ],
    ['Unstake', 30_000_000, 100_000_000],
  )
  const { staked, cooling, releasable } = await staking(other)
  assert.deepEqual(
    [staked, cooling.length, cooling[0]?.amount, cooling[0]?.confirmed, releasable],
    [{ ENERGY: '30', BANDWIDTH: '0' }, 1, '20', true, '0'],
  )
  assert.deepEqual(await events(back.id), ['staking.unstaked'])
  assert.deepEqual(
    await balance(user, 'TRX').then(({ balance: spendable, omnibus_balance }) => [
      spendable,
      omnibus_balance,
    ]),
    ['29848.5', '30000'],
  )
  await audited()
})

test('refuses to delegate bandwidth that the delegation itself uses', async () => {
  assert.match(
    await refused(
      'stake',
      { asset: 'TRX', address: other, resource: 'BANDWIDTH', amount: 5000 },
      'INVALID_AMOUNT',
      'amount',
    ),
    /a delegation itself consumes bandwidth/,
  )
})

test('refuses a stake for an address that the sub-account has frozen', async () => {
  const { user: wary } = await walletOf('aml', '50')
  const settings = await call(wary, 'POST', '/dac/v1/aml', {
    provider: 'CHAINALYSIS',
    aml_token: 'sandbox',
    aml_risk_levels: 'SEVERE, HIGH',
    aml_deposit: true,
    aml_withdrawal: true,
  })
  assert.equal(settings.status, 200, settings.text)
  await devnet({ command: 'risk', address: other, level: 'SEVERE' })
  const { body } = await call<Transfer>(
    wary,
    'POST',
    '/dac/v1/transaction',
    transferBody('TRX', '1', other),
  )
  await waitFor(
    'the freeze',
    async () =>
      (await call<Transfer>(wary, 'GET', `/dac/v1/transaction/${body.id}`)).body.sub_status ===
      'AML_HELD',
  )
  await refused(
    'stake',
    { asset: 'TRX', address: other, resource: 'ENERGY', amount: 5 },
    'ADDRESS_FROZEN',
    'address',
    wary,
    403,
  )
  assert.equal(
    (await call(wary, 'POST', '/dac/v1/unfreeze-address', { asset: 'TRX', address: other })).status,
    200,
  )
  await done('stake', other, 5, 'ENERGY', {}, wary)
})

test('one sequence_id creates one stake, and cannot be used for a transfer too', async () => {
  const body = { asset: 'TRX', address: own, resource: 'ENERGY', amount: 3, sequence_id: 'once' }
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask('stake', body)))
  assert.deepEqual(new Set(answers.map(({ text }) => text)).size, 1)
  assert.equal(
    answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length,
    3,
  )
  const { id } = (answers[0] as (typeof answers)[0]).body
  await assertConfirmed(user, id)
  const unlike = await ask('unstake', { ...body, amount: 2 })
  assert.deepEqual(
    [unlike.status, unlike.body.id, unlike.headers.get('idempotent-replayed')],
    [200, id, 'true'],
  )
  assert.match(unlike.headers.get('warning') ?? '', /another payload/)
  const transfer = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('TRX', '1', TO, { sequence_id: 'once' }),
  )
  assert.deepEqual([transfer.status, transfer.body.id], [200, id])
  assert.equal((await staking()).staked.ENERGY, '103')
  // A refused request does not use up its key.
  await refused(
    'stake',
    { ...body, amount: 1e6, sequence_id: 'later' },
    'INSUFFICIENT_BALANCE',
    'amount',
  )
  await done('stake', own, 2, 'ENERGY', { sequence_id: 'later' })
  await audited()
})

test('of two concurrent unstakes of the same stake, one succeeds', async () => {
  const answers = await Promise.all(
    [1, 2].map(() =>
      ask('unstake', { asset: 'TRX', address: own, resource: 'BANDWIDTH', amount: 1.5 }),
    ),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400])
  const passed = answers.find(({ status }) => status === 200) as (typeof answers)[0]
  await assertConfirmed(user, passed.body.id)
  await audited()
})

test('unstaked TRX returns only on request, and only after the cooldown', async () => {
  const held = Number((await balance(user, 'TRX')).balance)
  assert.match(
    await refused(
      'release-unstaked',
      { asset: 'TRX', address: other },
      'NOTHING_TO_RELEASE',
      'address',
    ),
    /cooldown .* ends 20/,
  )
  await refused('release-unstaked', { asset: 'TRX', address: TO }, 'NOTHING_TO_RELEASE', 'address')
  await moved(13)
  assert.equal((await staking(other)).releasable, '0')
  await refused(
    'release-unstaked',
    { asset: 'TRX', address: other },
    'NOTHING_TO_RELEASE',
    'address',
  )
  await moved(2)
  assert.equal((await staking(other)).releasable, '20')
  const id = (
    await database.query<{ transaction_id: string }>(
      'select transaction_id from cooldowns where address = $1',
      [other],
    )
  )[0]?.transaction_id as string
  await waitFor('staking.releasable', async () => (await events(id)).includes('staking.releasable'))
  assert.equal(Number((await balance(user, 'TRX')).balance), held)
  // The chain would pay out matured amounts with the next unstake; this must happen only when the
  // caller requests it.
  assert.match(
    await refused(
      'unstake',
      { asset: 'TRX', address: own, resource: 'ENERGY', amount: 1 },
      'RELEASE_FIRST',
      'address',
    ),
    /release it first/,
  )
  const answers = await Promise.all(
    [1, 2].map(() => ask('release-unstaked', { asset: 'TRX', address: other })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400])
  const released = await terminal(
    user,
    (answers.find(({ status }) => status === 200) as (typeof answers)[0]).body.id,
  )
  // The amount that was unstaked for another address is returned too, because the chain withdraws
  // everything that has matured.
  assert.deepEqual(
    [released.status, released['type'], released.amount],
    ['confirmed', 'Release', '21.5'],
  )
  assert.equal(Number((await balance(user, 'TRX')).balance), held + 21.5)
  assert.deepEqual(
    [(await staking(other)).cooling, (await account(own)).unfrozenV2 ?? []],
    [[], []],
  )
  assert.deepEqual(await events(released.id), ['staking.released'])
  await refused(
    'release-unstaked',
    { asset: 'TRX', address: other },
    'NOTHING_TO_RELEASE',
    'address',
  )
  await audited()
})

test('without prepaid fees, new stakes are refused; unstaking, releasing and replays work', async () => {
  const { user: broke, address } = await walletOf('main', '100', 'staking-prepaid')
  const first = { asset: 'TRX', address, resource: 'ENERGY', amount: 10, sequence_id: 'first' }
  const made = await ask('stake', first, broke)
  await assertConfirmed(broke, made.body.id)
  const { body: account } = await call<{ balance: string }>(
    broke,
    'POST',
    '/dac/v1/prepaid-fee',
    {},
  )
  await platform.operator('prepaid-fee adjust', {
    workspace: 'staking-prepaid',
    amount: `-${account.balance}`,
  })
  const refusal = await ask('stake', { ...first, sequence_id: 'second' }, broke)
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'PREPAID_FEE_EXHAUSTED'])
  assert.deepEqual(
    [(await ask('stake', first, broke)).text, (await balance(broke, 'TRX')).balance],
    [made.text, '90'],
  )
  await done('unstake', address, 4, 'ENERGY', {}, broke)
  await moved(15)
  await done('release-unstaked', address, 0, 'ENERGY', {}, broke)
  assert.equal((await balance(broke, 'TRX')).balance, '94')
  await audited()
})

test('refuses the 33rd unstake in cooldown', async () => {
  const { user: busy, address } = await walletOf('limit', '100')
  await done('stake', address, 40, 'ENERGY', {}, busy)
  for (let turn = 0; turn < 32; turn += 8) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        ask('unstake', { asset: 'TRX', address, resource: 'ENERGY', amount: 1 }, busy),
      ),
    )
    for (const { status, text, body } of answers) {
      assert.equal(status, 200, text)
      await assertConfirmed(busy, body.id)
    }
  }
  assert.match(
    await refused(
      'unstake',
      { asset: 'TRX', address, resource: 'ENERGY', amount: 1 },
      'UNSTAKE_LIMIT',
      'amount',
      busy,
    ),
    /at most 32/,
  )
  assert.deepEqual(
    [(await staking(address, busy)).staked.ENERGY, (await account(address)).unfrozenV2?.length],
    ['8', 32],
  )
  await audited()
})

test('a stake that the chain never accepts fails at its expiry, and its TRX is released', async () => {
  const { user: late, address } = await walletOf('late', '100')
  await done('stake', address, 10, 'ENERGY', {}, late)
  await devnet({ command: 'fault', network: 'TRX', mode: 'reject' })
  const dying = await ask('stake', { asset: 'TRX', address, resource: 'ENERGY', amount: 5 }, late)
  const state = async (id: string) =>
    (await call<Transfer>(late, 'GET', `/dac/v1/transaction/${id}`)).body.sub_status
  await waitFor('it is signed', async () =>
    ['BROADCASTING', 'FUELING'].includes(await state(dying.body.id)),
  )
  await waitFor(
    'it or its fuel is sent',
    async () =>
      (
        await database.query(
          `select 1 from chain_transactions c join transactions t on t.id = c.transaction_id
            where $1 in (t.id, t.parent_id) and c.state = 'SIGNED' and c.broadcast_at is not null`,
          [dying.body.id],
        )
      ).length > 0,
  )
  assert.equal((await platform.cli('devnet', 'clock', '+15m')).status, 0)
  const dead = await terminal(late, dying.body.id)
  assert.equal(dead.status, 'failed')
  assert.match(dead.failure_reason ?? '', /expired.*the amount was released/)
  await devnet({ command: 'fault', network: 'TRX', mode: 'heal' })
  assert.equal((await balance(late, 'TRX')).balance, '90')
  await audited()
  let half!: Awaited<ReturnType<typeof ask>>
  const isSent = async (step: string) =>
    (
      await database.query(
        `select 1 from chain_transactions where transaction_id = $1 and step = $2
          and broadcast_at is not null`,
        [half.body.id, step],
      )
    ).length > 0
  // The chain produces no blocks automatically, so the sent transaction is not final before the
  // next call would be refused.
  await platform.halted('TRX', async () => {
    half = await ask('stake', { asset: 'TRX', address: other, resource: 'ENERGY', amount: 7 }, late)
    await waitFor('the first call is sent', async () => {
      if (await isSent('freeze')) return true
      await devnet({ command: 'mine', network: 'TRX', blocks: 1 })
      return false
    })
    await devnet({ command: 'fault', network: 'TRX', mode: 'reject' })
  })
  await waitFor('the second is sent', () => isSent('delegate'))
  assert.equal((await platform.cli('devnet', 'clock', '+15m')).status, 0)
  const partial = await terminal(late, half.body.id)
  await devnet({ command: 'fault', network: 'TRX', mode: 'heal' })
  assert.deepEqual([partial.status, partial.sub_status], ['failed', 'PARTIAL'])
  assert.match(partial.failure_reason ?? '', /staked for ENERGY on the wallet's own address/)
  assert.deepEqual(
    [
      (await staking(address, late)).staked.ENERGY,
      (await staking(other, late)).staked.ENERGY,
      (await balance(late, 'TRX')).balance,
    ],
    ['17', '0', '83'],
  )
  await done('unstake', address, 17, 'ENERGY', {}, late)
  await audited()
})

test('stakes, delegates and unstakes once if the process is killed at any commit', async () => {
  const { user: steady, address } = await walletOf('kills', '500')
  const points = [
    'staking.created',
    'transaction.fuel-reserved',
    'transaction.built',
    'transaction.signed',
    'transaction.broadcast',
    'transaction.included',
    'transaction.settled',
  ]
  const ids: string[] = []
  for (const [turn, point] of points.entries()) {
    const body = {
      asset: 'TRX',
      address: other,
      resource: 'ENERGY',
      amount: 10,
      sequence_id: `kill-${turn}`,
    }
    // At this checkpoint a block is final after two more blocks, which may be too early for the
    // transaction to be processed before.
    const isSlow = point === 'transaction.included'
    const halt = (halted: boolean) =>
      platform.operator('devnet', { command: 'halt', network: 'TRX', halted })
    if (isSlow) await halt(true)
    await platform.dieAt(point, async () => {
      const response = await ask('stake', body, steady)
      if (isSlow) await platform.mineUntil('TRX', 'a death', async () => false)
      return response
    })
    if (isSlow) await halt(false)
    steady.base = platform.base
    user.base = platform.base
    const again = await ask('stake', body, steady)
    assert.equal(again.status, 200, again.text)
    await assertConfirmed(steady, again.body.id)
    // This request is in progress while the next iteration kills the process.
    const unstake = await ask(
      'unstake',
      { asset: 'TRX', address: other, resource: 'ENERGY', amount: 1 },
      steady,
    )
    assert.equal(unstake.status, 200, unstake.text)
    ids.push(unstake.body.id)
  }
  for (const id of ids) {
    const ended = await terminal(steady, id)
    assert.equal(ended.status, 'confirmed', `${ended.failure_reason ?? ''}`)
  }
  const total = points.length * 9
  assert.deepEqual(
    [
      (await staking(other, steady)).staked.ENERGY,
      (await lent(address, other))['frozen_balance_for_energy'],
    ],
    [String(total), total * 1_000_000],
  )
  assert.equal((await balance(steady, 'TRX')).balance, String(500 - points.length * 10))
  await audited()
})

testEmittedEvents(
  () => platform.database,
  [
    'staking.staked',
    'staking.unstaked',
    'staking.releasable',
    'staking.released',
    'transaction.failed',
  ],
)
