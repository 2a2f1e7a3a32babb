import assert from 'node:assert/strict'
import { chmodSync, cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
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
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of a restore from an older backup of the database, while nodes and chains have advanced:
 * the platform recovers the later transactions from them.
 */
const platform = new TestPlatform({ server: 'own' })
const data = join(platform.home, 'postgres', 'data')
const backup = join(platform.home, 'backup')

const ASSETS: Record<string, { fund: string; amount: string; to: string }> = {
  BTC: { fund: '2', amount: '0.01', to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' },
  ETH: { fund: '5', amount: '0.02', to: '0x00000000000000000000000000000000000000AA' },
  USDT_ETH: { fund: '500', amount: '3', to: '0x00000000000000000000000000000000000000AA' },
  XRP: { fund: '500', amount: '2', to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh' },
  SOL: { fund: '20', amount: '0.3', to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin' },
  TRX: { fund: '800', amount: '4', to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY' },
  ADA: {
    fund: '300',
    amount: '5',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
  },
}
const NAMES = Object.keys(ASSETS)
const ROUNDS = 5

let user: User
let later: User
let receiver: User
/** Transfers by `sequence_id`: the user, the body and the outcome. */
const sent = new Map<string, { user: 'user' | 'later'; body: string; transfer: Transfer }>()

before(async () => {
  await platform.start()
  user = await platform.user('acme')
})
after(() => platform.remove())

async function send(who: 'user' | 'later', asset: string, sequence: string): Promise<void> {
  const { amount, to } = ASSETS[asset] as { amount: string; to: string }
  const body = transferBody(asset, amount, to, { sequence_id: sequence })
  const answer = await call<Transfer>(
    who === 'user' ? user : later,
    'POST',
    '/dac/v1/transaction',
    body,
  )
  assert.equal(answer.status, 200, `${asset}: ${answer.text}`)
  sent.set(sequence, { user: who, body, transfer: answer.body })
}

async function settled(): Promise<void> {
  for (const [sequence, each] of sent) {
    each.transfer = await terminal(each.user === 'user' ? user : later, each.transfer.id)
    assert.equal(each.transfer.status, 'confirmed', `${sequence}: ${JSON.stringify(each.transfer)}`)
  }
  await waitFor(
    'sweeps',
    async () =>
      !(await list(user)).some(
        ({ type, status, sub_status: state }) =>
          // The remainder of the fee of a native sweep stays at the address until it is worth a
          // sweep.
          type === 'Sweep' && status === 'pending' && state !== 'QUEUED',
      ),
  )
}

async function list(who: User): Promise<Transfer[]> {
  const answers = await Promise.all(
    ['', '&type=Sweep'].map((more) =>
      call<{ data: Transfer[] }>(who, 'GET', `/dac/v1/transactions?limit=500${more}`),
    ),
  )
  return answers.flatMap(({ status, text, body }) => {
    assert.equal(status, 200, text)
    return body.data
  })
}

/**
 * Makes the wallet stake and unstake, for itself and for another address; the gas tank stakes, and
 * lends its energy to a transfer.
 */
async function stake(): Promise<void> {
  const TRX = ASSETS['TRX'] as { to: string }
  const own = (await call<{ address: string }[]>(user, 'GET', '/dac/v1/addresses?asset=TRX'))
    .body[0]?.address as string
  const calls = [
    ['stake', own, 40],
    ['unstake', own, 15],
    ['stake', TRX.to, 20],
    ['unstake', TRX.to, 20],
  ] as const
  for (const [action, address, amount] of calls) {
    const answer = await call<Transfer>(user, 'POST', `/dav/v1/${action}`, {
      asset: 'TRX',
      address,
      resource: 'ENERGY',
      amount,
    })
    assert.equal(answer.status, 200, answer.text)
    await assertConfirmed(user, answer.body.id)
  }
  const tank = String(
    (await platform.operator('gas-tank address', { workspace: 'acme', network: 'TRX' }))['address'],
  )
  await platform.fund('TRX', tank, '40000')
  await waitFor(
    'the tank',
    async () =>
      Number(
        (
          await call<{ network: string; balance: string }[]>(user, 'GET', '/dac/v1/gas-tanks')
        ).body.find(({ network }) => network === 'TRX')?.balance,
      ) > 30_000,
  )
  const staked = await platform.cli(
    'gas-tank',
    'stake',
    '--workspace',
    'acme',
    '--network',
    'TRX',
    '--amount',
    '20000',
    '--resource',
    'ENERGY',
  )
  assert.equal(staked.status, 0, staked.stderr)
  await fundedWallet(platform, user, 'USDT_TRX', '50')
  const lent = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('USDT_TRX', '1', TRX.to),
  )
  await assertConfirmed(user, lent.body.id)
  const of = async (type: string) =>
    (await call<{ data: Transfer[] }>(user, 'GET', `/dac/v1/transactions?type=${type}`)).body.data
  await waitFor('the energy is back', async () =>
    (await of('EnergyReturn')).some(({ status }) => status === 'confirmed'),
  )
  assert.equal((await of('EnergyLoan')).length, 1)
}

const balances = async (who: User, names: readonly string[]) =>
  Object.fromEntries(
    await Promise.all(
      names.map(async (asset) => {
        const { balance: available, omnibus_balance: all } = await balance(who, asset)
        return [asset, { available, all }] as const
      }),
    ),
  )
const depositAddress = async (who: User, asset: string) =>
  (
    await call<{ address: string; address_tag: string | null }>(who, 'POST', '/dac/v1/address', {
      asset,
    })
  ).body
const deposits = (rows: readonly Transfer[]) =>
  rows
    .filter(({ type }) => type === 'Deposit')
    .map(
      ({ hash, asset, amount, destination_id: to }) =>
        `${String(asset)} ${amount} ${String(to)} ${hash}`,
    )
    .sort()
const paid = (rows: readonly Transfer[]) =>
  rows
    .filter(({ type }) => type === 'Withdraw')
    .map(
      ({ id, hash, asset, amount, fee, status, sequence_id: sequence }) =>
        `${id} ${String(asset)} ${amount} ${fee} ${status} ${String(sequence)} ${hash}`,
    )
    .sort()

async function restart(): Promise<void> {
  await platform.start()
  user = { ...user, base: platform.base }
  if (later) later = { ...later, base: platform.base }
  if (receiver) receiver = { ...receiver, base: platform.base }
}

test('a restored older database adds the transactions that nodes recorded and chains contain', async (t) => {
  const addresses: Record<string, string> = {}
  await Promise.all(
    NAMES.map(async (asset) => {
      addresses[asset] = await fundedWallet(
        platform,
        user,
        asset,
        (ASSETS[asset] as { fund: string }).fund,
      )
    }),
  )
  for (const asset of NAMES) await send('user', asset, `early-${asset}`)
  await settled()
  // These transfers were created, but not signed or not final, when the backup was taken.
  for (const asset of ['BTC', 'ETH', 'XRP']) await send('user', asset, `open-${asset}`)
  assert.equal(await platform.stop(), 0)
  cpSync(data, backup, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  chmodSync(backup, 0o700)
  await restart()

  later = await platform.user('acme', { subAccount: 'later' })
  // The receiver is a separate workspace that never sends anything.
  receiver = await platform.user('receiver')
  await fundedWallet(platform, receiver, 'BTC', '0.5')
  await fundedWallet(platform, later, 'ETH', '3')
  await fundedWallet(platform, later, 'BTC', '1')
  const depositOf = {
    ETH: await depositAddress(user, 'ETH'),
    BTC: await depositAddress(user, 'BTC'),
    TRX: await depositAddress(user, 'TRX'),
    XRP: await depositAddress(user, 'XRP'),
  }
  await depositAddress(user, 'ETH')
  for (const [asset, amount] of [
    ['ETH', '0.7'],
    ['BTC', '0.25'],
    ['TRX', '60'],
    ['SOL', '0'],
    ['ADA', '21'],
  ] as const) {
    if (amount !== '0')
      await platform.fund(
        asset,
        asset in depositOf ? depositOf[asset as 'ETH'].address : (addresses[asset] as string),
        amount,
      )
  }
  await platform.operator('devnet', {
    command: 'fund',
    asset: 'XRP',
    address: depositOf.XRP.address,
    amount: '11',
    tag: depositOf.XRP.address_tag,
  })
  for (let round = 0; round < ROUNDS; round++)
    for (const asset of NAMES) await send('user', asset, `late-${asset}-${round}`)
  await stake()
  await send('later', 'ETH', 'mine')
  await send('later', 'BTC', 'mine-too')
  await settled()
  await waitFor(
    'deposits',
    async () =>
      (await balance(user, 'XRP')).balance !== '0' &&
      (await list(user)).filter(({ type, status }) => type === 'Deposit' && status === 'confirmed')
        .length >=
        NAMES.length + 5,
  )
  await waitFor('the sweep of the deposit address', async () =>
    (await list(user)).some(
      ({ asset, type, status }) => asset === 'ETH' && type === 'Sweep' && status === 'confirmed',
    ),
  )
  await waitFor('the sweep on Tron', async () =>
    (await list(user)).some(
      ({ asset, type, status }) => asset === 'TRX' && type === 'Sweep' && status === 'confirmed',
    ),
  )
  assert.equal((await platform.cli('audit')).status, 0)
  const before = {
    balances: await balances(user, NAMES),
    later: await balances(later, ['ETH', 'BTC']),
    list: await list(user),
    laterList: await list(later),
  }
  assert.equal(await platform.stop(), 0)

  rmSync(data, { recursive: true })
  renameSync(backup, data)
  await restart()
  const ready = await fetch(`${platform.base}/readyz`)
  assert.equal(ready.status, 503)
  assert.match(
    ((await ready.json()) as { checks: Record<string, string> }).checks['records'] as string,
    /run: npx custody reconcile/,
  )
  const refused = await call(user, 'POST', '/dac/v1/transaction', sent.get('late-ETH-0')?.body)
  assert.deepEqual([refused.status, refused.body['code']], [503, 'UNAVAILABLE'])
  assert.equal((await call(user, 'POST', '/dac/v1/address', { asset: 'ETH' })).status, 503)
  assert.equal((await call(user, 'GET', '/dac/v1/wallets?asset=ETH')).status, 200)

  const planned = await platform.cli('reconcile', '--dry-run', '--json')
  assert.ok(
    (JSON.parse(planned.stdout) as { transactions: unknown[] }).transactions.length >=
      ROUNDS * NAMES.length + 2,
    planned.stdout,
  )
  assert.equal((await fetch(`${platform.base}/readyz`)).status, 503)

  const started = Date.now()
  const done = await platform.cli('reconcile', '--json')
  t.diagnostic(`reconciled in ${Date.now() - started} ms`)
  const report = JSON.parse(done.stdout || '{}') as {
    transactions: { id: string; hash: string; state: string; kind: string }[]
    users: { api_key: string }[]
    deposits: unknown[]
    unadopted: { matters: boolean }[]
    addresses: { address: string }[]
    waiting: string[]
  }
  assert.equal(
    done.status,
    0,
    `${done.stderr}\n${JSON.stringify({ ...report, transactions: report.transactions?.filter(({ state }) => state !== 'CONFIRMED') }, null, 1)}\n${platform.output.slice(-3000)}`,
  )
  assert.equal((await fetch(`${platform.base}/readyz`)).status, 200)
  assert.deepEqual(
    [report.users.map(({ api_key: key }) => key).sort(), report.waiting],
    [[later.apiKey, receiver.apiKey].sort(), []],
  )
  assert.ok(report.transactions.every(({ state, hash }) => state === 'CONFIRMED' && hash !== ''))
  assert.equal((await platform.cli('audit')).status, 0)

  const [mine, theirs] = [await list(user), await list(later)]
  assert.deepEqual(
    paid(mine),
    paid(before.list),
    'every transfer, with its hash, amount, fee and id',
  )
  assert.deepEqual(paid(theirs), paid(before.laterList))
  assert.deepEqual(deposits(mine), deposits(before.list), 'every deposit once')
  assert.deepEqual(deposits(theirs), deposits(before.laterList))
  // The tag was assigned after the backup, so its owner is unknown.
  const [waiting, ...others] = (await platform.operator('suspense list'))['suspense'] as {
    id: string
    amount: string
    address_tag: string
  }[]
  assert.deepEqual(
    [waiting?.amount, waiting?.address_tag, others.length],
    ['11', depositOf.XRP.address_tag, 0],
  )
  await platform.operator('suspense assign', { id: waiting?.id })
  assert.deepEqual(await balances(user, NAMES), before.balances)
  assert.deepEqual(await balances(later, ['ETH', 'BTC']), before.later)
  assert.equal((await balance(receiver, 'BTC')).balance, '0.5')

  for (const [sequence, { user: who, body, transfer }] of sent) {
    const again = await call<Transfer>(
      who === 'user' ? user : later,
      'POST',
      '/dac/v1/transaction',
      body,
    )
    assert.deepEqual(
      [again.status, again.body.id, again.headers.get('idempotent-replayed')],
      [200, transfer.id, 'true'],
      sequence,
    )
  }
  const next = await depositAddress(user, 'ETH')
  assert.ok(!before.list.some(({ destination_id: to }) => to === next.address))
  const twice = await platform.cli('reconcile', '--json')
  assert.equal(twice.status, 0, twice.stdout)
  const second = JSON.parse(twice.stdout) as Record<string, unknown[]>
  assert.deepEqual(
    ['users', 'transactions', 'wallets', 'deposits', 'unadopted'].map(
      (name) => second[name]?.length,
    ),
    [0, 0, 0, 0, 0],
  )

  // New transfers depend on the adopted data: coins, nonces and sequence numbers.
  for (const asset of NAMES) await send('user', asset, `after-${asset}`)
  await settled()
  await platform.atRest()
  assert.equal((await platform.cli('audit')).status, 0)
})
