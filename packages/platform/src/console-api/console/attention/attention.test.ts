// Each cause of "Needs attention" appears when something has it, and disappears when nothing does.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { canonicalText } from '@custody/policy'
import { allow, policyWith } from '../../../../../policy/testing/documents.ts'
import { useApi } from '../../../../testing/api-support.ts'
import { join, type Somebody } from '../../../../testing/console-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { PUBLIC_KEY, type User } from '../../../../testing/harness.ts'
import { NodeUnavailable, type SignerNodes } from '../../../core/signing/nodes.ts'
import { CAUSES, itemsOf, type Item } from './causes.ts'
import type { Facts } from './facts.ts'

const HOUR_MS = 3_600_000
const clock = new ManualClock()
const api = useApi({}, [], clock)
let acme: User & { workspaceId: string; subAccountId: string }
let viewer: Somebody

before(async () => {
  await api.started
  acme = await api.user('acme')
  viewer = await join(api, acme.workspaceId, 'viewer')
})

/** Reads the items of the panel. */
async function items(): Promise<Item[]> {
  const { status, body, text } = await viewer.browser.ask<{ items: Item[] }>(
    'GET',
    '/workspaces/acme/sub-accounts/main/attention',
  )
  assert.equal(status, 200, text)
  return body.items
}
/** Reads the counts of the navigation. */
const counts = async () =>
  (await viewer.browser.ask<object>('GET', '/workspaces/acme/sub-accounts/main/waiting')).body

/** Returns the texts of a cause's items, with their numbers. */
const textsOf = async (cause: keyof typeof CAUSES) =>
  (await items()).flatMap((item) =>
    item.cause === cause ? [`${item.count} ${item.tone} ${item.text}`] : [],
  )

const NONE: Facts = {
  alerts: [],
  waiting: { transfers: 0, rules: 0, changes: 0, expiring: 0 },
  counts: { pending: 0, held: 0, failed_24h: 0, frozen: 0 },
  apiUserRequests: 0,
  tanks: [],
  prepaid: { status: 'ok', balance: 10 },
  pausedNetworks: [],
  policy: { windows: [], suspended: [], stops: [] },
  hasOnlyPasskey: false,
}
const alert = (level: 'warning' | 'critical', code: string) => ({
  alerts: [{ level, code, message: `message of ${code}` }],
})
const policy = (fields: Partial<NonNullable<Facts['policy']>>) => ({
  policy: { windows: [], suspended: [], stops: [], ...fields },
})

/** For each cause: facts that have it, and the item. Other facts are those of {@link NONE}. */
const CASES: Record<keyof typeof CAUSES, [Partial<Facts>, string]> = {
  database_held: [alert('critical', 'HELD'), 'bad Message of HELD: /health'],
  disk_full: [alert('critical', 'DISK_FULL'), 'bad Message of DISK_FULL: /health'],
  nothing_signs: [alert('critical', 'NOTHING_SIGNS'), 'bad Message of NOTHING_SIGNS: /health'],
  node_away: [alert('warning', 'NODE_AWAY'), 'warn Message of NODE_AWAY: /health'],
  node_banned: [alert('critical', 'NODE_BANNED'), 'bad Message of NODE_BANNED: /health'],
  chain_contradicted: [
    alert('critical', 'CHAIN_CONTRADICTED'),
    'bad Message of CHAIN_CONTRADICTED: /health',
  ],
  chain_behind: [alert('warning', 'CHAIN_BEHIND'), 'warn Message of CHAIN_BEHIND: /health'],
  queue_old: [alert('warning', 'QUEUE_OLD'), 'warn Message of QUEUE_OLD: /health'],
  webhooks_disabled: [
    alert('warning', 'WEBHOOK_DISABLED'),
    'warn Message of WEBHOOK_DISABLED: /webhooks',
  ],
  policy_stopped: [
    policy({ stops: [{ sub_account: null, by: 'alice' }] }),
    'bad alice stopped signing for the workspace: /policy',
  ],
  approvals_expiring: [
    { waiting: { ...NONE.waiting, expiring: 1 } },
    'bad 1 request for approvals will expire within a day: /approvals',
  ],
  approvals_open: [
    { waiting: { ...NONE.waiting, transfers: 2, rules: 1 } },
    'warn 2 transfers and 1 forwarding rule wait for approvals: /approvals',
  ],
  policy_changes_open: [
    { waiting: { ...NONE.waiting, changes: 1 } },
    'warn 1 policy change waits for approvals or proofs: /approvals',
  ],
  keys_suspended: [
    policy({ suspended: ['alice/k1', 'bob/k2'] }),
    'warn Keys of people are suspended: alice/k1; bob/k2: /policy',
  ],
  policy_windows: [
    policy({ windows: ['pay, day'] }),
    'warn More than 80 % of time windows of the policy is used: pay, day: /policy',
  ],
  api_user_requests: [
    { apiUserRequests: 1 },
    'warn 1 request for an API user waits for the operators for more than a day: /api-users',
  ],
  prepaid: [
    { prepaid: { status: 'empty', balance: 0 } },
    'bad The prepaid fee account is empty: $0.00 left: /prepaid',
  ],
  gas_tanks: [
    { tanks: [{ network: 'ETH', status: 'low' }] },
    'warn The ETH gas tank is low: /tanks/ETH',
  ],
  contract_payments_paused: [
    { pausedNetworks: ['ETH'] },
    'warn Payments of contracts are not credited now on ETH: /transactions',
  ],
  transactions_failed: [
    { counts: { ...NONE.counts, failed_24h: 2 } },
    'bad 2 transactions failed in 24 hours: /transactions?status=failed',
  ],
  transactions_held: [
    { counts: { ...NONE.counts, held: 1 } },
    'frozen 1 transaction is held by screening: /aml',
  ],
  addresses_frozen: [
    { counts: { ...NONE.counts, frozen: 2 } },
    'frozen 2 addresses are frozen: /aml',
  ],
  transactions_pending: [
    { counts: { ...NONE.counts, pending: 1 } },
    'info 1 transaction is on the way: /transactions?status=pending',
  ],
  only_passkey: [
    { hasOnlyPasskey: true },
    'warn Your only way to sign in is one passkey: make recovery codes, or add another passkey: /console/account',
  ],
}

test('without any cause there is no item, also if the signer nodes do not respond', () => {
  assert.deepEqual(itemsOf(NONE, '/home'), [])
  assert.deepEqual(itemsOf({ ...NONE, policy: null }, '/home'), [])
})

for (const [cause, [facts, expected]] of Object.entries(CASES))
  test(`facts with the cause ${cause} have exactly its item`, () => {
    const found = itemsOf({ ...NONE, ...facts }, '/home')
    assert.deepEqual(
      found.map((item) => [
        item.cause,
        `${item.tone} ${item.text}: ${item.link.replace('/home', '')}`,
      ]),
      [[cause, expected]],
    )
  })

test('items are ordered by urgency', () => {
  const counts = { pending: 1, held: 1, failed_24h: 1, frozen: 0 }
  const waiting = { ...NONE.waiting, transfers: 1 }
  assert.deepEqual(
    itemsOf({ ...NONE, counts, waiting }, '').map(({ tone }) => tone),
    ['bad', 'warn', 'frozen', 'info'],
  )
})

/** Adds a request for approvals of a transfer that does not exist, and returns its ID. */
async function openRequest(expiresInMs: number): Promise<string> {
  const id = randomUUID()
  await api.admin.query(
    `insert into transactions (id, workspace_id, sub_account_id, kind, asset, network, amount, fee_asset,
       source_type, destination_type, state, status, created_at, updated_at)
     values ($1, $2, $3, 'WITHDRAWAL', 'ETH', 'ETH', 1, 'ETH', 'INTERNAL',
       'EXTERNAL', 'APPROVAL', 'pending', $4, $4)`,
    [id, acme.workspaceId, acme.subAccountId, new Date(clock.now())],
  )
  await api.database.query(
    `insert into approval_requests (workspace_id, transaction_id, sub_account_id, state, statement,
       needs, expires_at, created_at) values ($1, $2, $3, 'open', '{}', '[]', $4, $5)`,
    [
      acme.workspaceId,
      id,
      acme.subAccountId,
      new Date(clock.now() + expiresInMs),
      new Date(clock.now()),
    ],
  )
  return id
}

test('open requests for approvals are counted until they are closed, and urgent on their last day', async () => {
  const id = await openRequest(25 * HOUR_MS)
  assert.deepEqual(await textsOf('approvals_open'), ['1 warn 1 transfer waits for approvals'])
  assert.deepEqual(await textsOf('approvals_expiring'), [])
  // A transfer that waits for approvals is not on the way.
  assert.deepEqual(await textsOf('transactions_pending'), [])
  assert.deepEqual(await counts(), { transfers: 1, rules: 0, changes: 0 })
  await clock.advance(2 * HOUR_MS)
  assert.deepEqual(await textsOf('approvals_expiring'), [
    '1 bad 1 request for approvals will expire within a day',
  ])
  await api.database.query(
    `update approval_requests set state = 'approved' where workspace_id = $1 and transaction_id = $2`,
    [acme.workspaceId, id],
  )
  assert.deepEqual(await textsOf('approvals_open'), [])
  assert.deepEqual(await counts(), { transfers: 0, rules: 0, changes: 0 })
  assert.deepEqual(await textsOf('approvals_expiring'), [])
})

test('policy changes are counted while they wait for approvals or proofs', async () => {
  await api.database.query(
    `insert into policy_changes (workspace_id, id, state, number, hash, previous, document, changes,
       warnings, comment, acts_at, needs, missing, expires_at, created_at)
     values ($1, gen_random_uuid(), 'open', 2, $2, $2, '{}', '[]', '[]', 'why', 1, '[]', '[]', $3, $4)`,
    [
      acme.workspaceId,
      'cd'.repeat(32),
      new Date(clock.now() + 12 * HOUR_MS),
      new Date(clock.now()),
    ],
  )
  assert.deepEqual(await textsOf('policy_changes_open'), [
    '1 warn 1 policy change waits for approvals or proofs',
  ])
  assert.equal((await textsOf('approvals_expiring')).length, 1)
  await api.database.query(`update policy_changes set state = 'held' where workspace_id = $1`, [
    acme.workspaceId,
  ])
  assert.deepEqual(await textsOf('policy_changes_open'), [])
})

test('requests for API users need attention after a day, until they are withdrawn', async () => {
  await api.database.query(
    `insert into api_user_requests (id, workspace_id, sub_account, role, public_key_pem,
       key_fingerprint, requested_by, created_at)
     values (gen_random_uuid(), $1, 'main', 'full', $2, 'f', $3, $4)`,
    [acme.workspaceId, PUBLIC_KEY, viewer.id, new Date(clock.now())],
  )
  assert.deepEqual(await textsOf('api_user_requests'), [])
  await clock.advance(25 * HOUR_MS)
  // The session of the viewer has ended.
  viewer = await join(api, acme.workspaceId, 'viewer')
  assert.equal((await textsOf('api_user_requests')).length, 1)
  await api.database.query('update api_user_requests set withdrawn_at = created_at')
  assert.deepEqual(await textsOf('api_user_requests'), [])
})

test('payments of contracts that are not credited are reported to the workspace', async () => {
  const pause = (workspace: string) =>
    api.database.query(
      `insert into contract_watches (network, paused) values ('ETH', $1)
       on conflict (network) do update set paused = excluded.paused`,
      [JSON.stringify([{ workspace, reason: 'why' }])],
    )
  await pause(acme.workspaceId)
  assert.equal((await textsOf('contract_payments_paused')).length, 1)
  await pause(randomUUID())
  assert.deepEqual(await textsOf('contract_payments_paused'), [])
})

test('a person with one passkey and no other factor is warned', async () => {
  assert.deepEqual(await textsOf('only_passkey'), [])
  await api.admin.query('delete from recovery_codes where person_id = $1', [viewer.id])
  await api.admin.query('update people set password_hash = null where id = $1', [viewer.id])
  await api.admin.query(
    `insert into passkeys (id, person_id, credential_id, public_key, counter, name, created_at)
     values (gen_random_uuid(), $1, 'c', '\\x00', 0, 'p', now())`,
    [viewer.id],
  )
  assert.equal((await textsOf('only_passkey')).length, 1)
})

/** Replaces the signer nodes by nodes that return the given responses; null: no response. */
function useNodes(responses: { policy: object; windows: object } | null): { calls: number } {
  const counter = { calls: 0 }
  const signers = {
    peers: [1, 2, 3].map((node) => ({ node })),
    isPenalised: () => false,
    async call(node: number, _method: string, path: string) {
      counter.calls++
      if (responses === null || path === '/status') throw new NodeUnavailable(node, 'no response')
      return path === '/policy' ? responses.policy : responses.windows
    },
  }
  Object.assign(api.services, { signers: signers as object as SignerNodes })
  return counter
}

test('nodes report stops, suspended keys and used windows, and are queried again after 15 seconds', async () => {
  const { document, hash } = policyWith([allow('pay')], { mode: 'local' })
  const policyOf = (fields: object) => ({
    number: document.number,
    hash,
    document: canonicalText(document),
    ...fields,
  })
  const windowsOf = (used: string) => ({
    policy: { number: document.number, hash },
    windows: [
      {
        rule: 'pay',
        window: 'day',
        per: 'workspace',
        of: [],
        hours: 24,
        readings: [{ asset: null, used, max: '10' }],
      },
    ],
    left_off: false,
  })
  const stop = (sub_account: string, digit: string) => ({
    hash: digit.repeat(64),
    sub_account,
    by: 'bob',
    at: 1,
  })
  useNodes({
    policy: policyOf({
      stops: [stop('main', 'a'), stop('other', 'b')],
      suspensions: [{ target: { person: 'alice', key: 'k1' } }],
    }),
    windows: windowsOf('9'),
  })
  assert.deepEqual(await textsOf('policy_stopped'), [
    '1 bad bob stopped signing for this sub-account',
  ])
  assert.deepEqual(await textsOf('keys_suspended'), [
    '1 warn Keys of people are suspended: alice/k1',
  ])
  assert.equal((await textsOf('policy_windows')).length, 1)
  const counter = useNodes({ policy: policyOf({}), windows: windowsOf('8') })
  assert.deepEqual(await textsOf('policy_windows'), [])
  assert.deepEqual(await textsOf('policy_stopped'), [])
  assert.deepEqual(await textsOf('keys_suspended'), [])
  // Status, policy and windows of three nodes, once for all three reads.
  assert.equal(counter.calls, 9)
  await clock.advance(16_000)
  await items()
  assert.equal(counter.calls, 18)
})

test('facts of nodes that do not respond are left out, and the others are returned', async () => {
  await openRequest(100 * HOUR_MS)
  useNodes(null)
  assert.deepEqual(await textsOf('policy_windows'), [])
  assert.equal((await textsOf('nothing_signs')).length, 1)
  assert.equal((await textsOf('approvals_open')).length, 1)
})
