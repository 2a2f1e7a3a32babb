import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import { forwardRule } from '../auto-forwarding/forward.ts'
import type { RuleRow } from '../auto-forwarding/rule.ts'
import { setWallet, listWallets } from '../../server/operator/wallets.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, transferBody, type Transfer } from '../../../testing/harness.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
before(async () => {
  await api.started
  user = await api.user('wallets')
})

interface Wallet {
  id: string
  status: string
  omnibus_address: string
  path: string[]
  created_at: string
}
interface Address {
  id: string
  address: string
  address_tag: string | null
  label: string | null
  path: string[]
}
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const addresses = async (asset: string) =>
  (await call<Address[]>(user, 'GET', `/dac/v1/addresses?asset=${asset}`)).body

test('a new wallet lists its omnibus address, and the first requested address is the same', async () => {
  for (const asset of ['ETH', 'USDT_ETH', 'BTC', 'XRP', 'SOL']) {
    const wallet = (await call<Wallet>(user, 'POST', '/dac/v1/create-wallet', { asset })).body
    const [only, ...none] = await addresses(asset)
    assert.deepEqual(
      [only?.address, only?.path, only?.label, none.length],
      [wallet.omnibus_address, wallet.path, null, 0],
      asset,
    )
    const first = (await call<Address>(user, 'POST', '/dac/v1/address', { asset, label: 'shop' }))
      .body
    assert.deepEqual({ ...first, label: null }, only, asset)
    assert.deepEqual(await addresses(asset), [first], asset)
    const second = (await call<Address>(user, 'POST', '/dac/v1/address', { asset })).body
    assert.ok(
      second.address !== first.address || second.address_tag !== null,
      `${asset}: another place`,
    )
    assert.deepEqual(
      (await addresses(asset)).map(({ id }) => id),
      [first.id, second.id],
      asset,
    )
  }
  const events = await api.database.query<{ n: number }>(
    `select count(*)::int n from events where type = 'address.created' and workspace_id = $1`,
    [user.workspaceId],
  )
  assert.equal(events[0]?.n, 10, 'told of each address when it is handed out')
})

test('concurrent requests for the first address return different addresses', async () => {
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'LTC' })
  const answers = await Promise.all(
    Array.from({ length: 5 }, () =>
      call<Address>(user, 'POST', '/dac/v1/address', { asset: 'LTC' }),
    ),
  )
  assert.equal(new Set(answers.map(({ body }) => body.address)).size, 5)
  assert.equal((await addresses('LTC')).length, 5)
})

test('an inactive wallet refuses addresses, transfers and rules, replays requests, and is listed', async () => {
  await api.fund(user, 'BTC', 100_000_000n)
  const order = transferBody('BTC', '0.1', TO, { sequence_id: 'before' })
  const made = await call<Transfer>(user, 'POST', '/dac/v1/transaction', order)
  assert.equal(made.status, 200, made.text)
  const [wallet] = (await call<Wallet[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body as [Wallet]
  const set = (status: unknown, more: Record<string, unknown> = { id: wallet.id }) =>
    setWallet(api.services, { status, ...more })
  assert.deepEqual(
    await set('inactive', {
      workspace: 'wallets',
      sub_account: 'main',
      asset: 'BTC',
      reason: 'under review',
    }),
    {
      id: wallet.id,
      workspace: 'wallets',
      sub_account: 'main',
      asset: 'BTC',
      network: 'BTC',
      status: 'inactive',
      changed: true,
    },
  )
  assert.equal((await set('inactive'))['changed'], false)
  assert.equal(
    (await call<Wallet[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body[0]?.status,
    'inactive',
  )
  const rule = {
    asset: 'BTC',
    min_amount: 0.1,
    destination_address: TO,
    daily_cap: 1,
    expires_at: '2099-01-01T00:00:00Z',
  }
  for (const [path, body] of [
    ['/dac/v1/address', { asset: 'BTC' }],
    ['/dac/v1/transaction', transferBody('BTC', '0.1', TO)],
    ['/dac/v1/auto-forwarding', rule],
  ] as const) {
    const refused = await call<Problem>(user, 'POST', path, body)
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.field],
      [400, 'WALLET_INACTIVE', 'asset'],
      path,
    )
  }
  const replayed = await call<Transfer>(user, 'POST', '/dac/v1/transaction', order)
  assert.deepEqual(
    [replayed.status, replayed.body.id, replayed.headers.get('idempotent-replayed')],
    [200, made.body.id, 'true'],
  )
  assert.equal((await call(user, 'GET', `/dac/v1/transaction/${made.body.id}`)).status, 200)
  assert.equal((await addresses('BTC')).length, 2)

  assert.equal((await set('active'))['changed'], true)
  assert.equal(
    (await call(user, 'POST', '/dac/v1/transaction', transferBody('BTC', '0.1', TO))).status,
    200,
  )
  const { wallets } = (await listWallets(api.services, { workspace: 'wallets' })) as {
    wallets: { id: string; status: string; changes: { status: string; reason: string | null }[] }[]
  }
  assert.deepEqual(
    wallets
      .find(({ id }) => id === wallet.id)
      ?.changes.map(({ status, reason }) => [status, reason]),
    [
      ['inactive', 'under review'],
      ['active', null],
    ],
  )
  for (const attempt of [
    'update wallet_status_changes set reason = null',
    'delete from wallet_status_changes',
  ])
    await assert.rejects(api.database.query(attempt), /permission denied/)
  await assert.rejects(
    api.admin.query('update wallet_status_changes set reason = null'),
    /only added/,
  )
  const events = await api.database.query<{ status: string }>(
    `select payload->>'status' status from events where type = 'wallet.updated'
      and workspace_id = $1 order by id`,
    [user.workspaceId],
  )
  assert.deepEqual(
    events.map(({ status }) => status),
    ['inactive', 'active'],
  )

  for (const [status, more, said] of [
    ['closed', { id: wallet.id }, /--status: must be active or inactive/],
    ['active', {}, /either --id, or --workspace/],
    [
      'active',
      { id: 'none' },
      /--id: wallet none does not exist; "custody wallet list" lists all wallets/,
    ],
    ['active', { workspace: 'wallets', sub_account: 'main', asset: 'TRX' }, /has no TRX wallet/],
    ['active', { id: wallet.id, reason: 'x'.repeat(501) }, /--reason/],
  ] as const)
    await assert.rejects(set(status, more), said)
})

test('a standing rule waits while its wallet is inactive, and continues when it is active again', async (t) => {
  const [wallet] = (await call<Wallet[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body as [Wallet]
  const nowMs = Date.now()
  t.after(() => {
    api.now = Date.now
  })
  api.now = () => nowMs
  const request = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body: '{}',
  })
  const id = randomUUID()
  await api.database.query(
    `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
       min_amount, daily_cap, destination,
       expires_at, state, request, waiting, next_run_at, created_at)
     values ($1, $2, $3, $4, 'BTC', 'BTC', 1000000, 100000000, $5, '2099-01-01', 'ACTIVE', $6,
       10000000, $7, $7)`,
    [
      id,
      user.workspaceId,
      user.subAccountId,
      wallet.id,
      TO,
      JSON.stringify(request),
      new Date(nowMs),
    ],
  )
  const rule = async () =>
    (await api.database.one<RuleRow & { forwards: number }>(
      `select r.*, (select count(*)::int from forwards where rule_id = r.id) forwards
        from forward_rules r where id = $1`,
      [id],
    )) as RuleRow & { forwards: number }
  await setWallet(api.services, { id: wallet.id, status: 'inactive' })
  await forwardRule(api.services, await rule())
  const waits = await rule()
  assert.deepEqual(
    [waits.forwards, waits.waiting, waits.last_error],
    [0, '10000000', 'the wallet is inactive'],
  )
  assert.ok(waits.next_run_at !== null && waits.next_run_at.getTime() > nowMs + 10_000)
  await setWallet(api.services, { id: wallet.id, status: 'active' })
  const woken = await rule()
  assert.equal(woken.next_run_at?.getTime(), nowMs, 'it is looked at again at once')
  // The wallet becomes inactive after it was checked and before the commit.
  const { database } = api
  const transaction = database.transaction.bind(database)
  Object.assign(database, {
    transaction: async (work: Parameters<typeof transaction>[0]) => {
      Object.assign(database, { transaction })
      await setWallet(api.services, { id: wallet.id, status: 'inactive' })
      return transaction(work)
    },
  })
  await forwardRule(api.services, woken)
  assert.deepEqual([(await rule()).forwards, (await rule()).waiting], [0, '10000000'])
  await setWallet(api.services, { id: wallet.id, status: 'active' })
  await forwardRule(api.services, await rule())
  assert.deepEqual([(await rule()).forwards, (await rule()).waiting], [1, '0'])
})

testEmittedEvents(() => api.database, ['wallet.updated'])
