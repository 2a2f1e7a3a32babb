import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
} from '../../../testing/harness.ts'
import { APP } from './embedded-roles.ts'
import {
  INDEXES,
  looksById,
  namesWorkspace,
  nodesOf,
  notByWorkspace,
  type Index,
  type Plan,
} from '../../../testing/workspace-first.ts'

/**
 * Checks the plans of all statements that a platform sends, including those of its loops and
 * functions, as logged by PostgreSQL (auto_explain): none scans a whole table that grows.
 * Sequential scans have a very high cost setting, so PostgreSQL uses one only if there is no other
 * way, and a few rows are enough to show the behaviour with millions.
 */
const platform = new TestPlatform({ server: 'own' })
const OPTIONS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

/**
 * Tables with one row for each workspace, network, node or setting, and tables whose rows are
 * deleted regularly.
 */
const SMALL = new Set([
  'workspaces',
  'workspace_keys',
  'sub_accounts',
  'api_users',
  'contract_watches',
  'network_scans',
  'rescans',
  'processes',
  'installation',
  'migrations',
  'database_functions',
  'gas_tanks',
  'prepaid_accounts',
  'prepaid_volumes',
  'webhooks',
  'webhook_keys',
  'event_log',
  'exchange_accounts',
  'sweep_settings',
  'aml_settings',
  'invoice_settings',
  'list_deltas',
  'signing_accounts',
  'people',
  'sessions',
  'memberships',
  'invitations',
  'exchange_balances',
  'exchange_nonces',
  'sign_in_failures',
  'signer_marks',
])
/** Indices that contain only unfinished work. */
const SHORT =
  /_(work|due|open|waiting|unpublished|deep|pending|unplaced|unsigned|unfinished|expiring|tank_deposits|network_state|leased|fresh|again)$/

interface Explained {
  'Query Text': string
  Plan: Plan
}

/** Returns the plans in a server's log. */
function plansIn(log: string): Explained[] {
  return log.split(/^(?=\d{4}-\d\d-\d\d )/m).flatMap((entry) => {
    const at = entry.indexOf('plan:\n')
    return at === -1
      ? []
      : [JSON.parse(entry.slice(at + 'plan:\n'.length).replaceAll(/^\t/gm, '')) as Explained]
  })
}

/** Returns the tables and indices that a plan scans completely. */
const wholes = ({ Plan: plan }: Explained): string[] =>
  nodesOf(plan).flatMap((node) => {
    const table = node['Relation Name']
    const index = node['Index Name']
    if (node['Node Type'] === 'Seq Scan' && table !== undefined && !SMALL.has(table)) return [table]
    // The index part of a bitmap scan names no table.
    const isSmall = SMALL.has(table ?? '') || [...SMALL].some((small) => index === `${small}_pkey`)
    const isWhole =
      /^(?:Index Scan|Index Only Scan|Bitmap Index Scan)$/.test(node['Node Type']) &&
      node['Index Cond'] === undefined
    return isWhole && index !== undefined && !SHORT.test(index) && !isSmall ? [index] : []
  })

before(async () => {
  await platform.start()
  // Only a superuser may load the library, so the role of the platform's processes gets these
  // settings, and the platform connects again.
  for (const [name, value] of Object.entries(OPTIONS))
    await platform.database.query(`alter role ${APP} set ${name} = '${value}'`)
  await platform.stop()
  await platform.start()
})
after(() => platform.remove())

test('detects full scans of a table and of an index', () => {
  const seen = (plan: Plan) => wholes({ 'Query Text': '', Plan: plan })
  assert.deepEqual(
    seen({
      'Node Type': 'Limit',
      Plans: [{ 'Node Type': 'Seq Scan', 'Relation Name': 'transactions' }],
    }),
    ['transactions'],
  )
  assert.deepEqual(
    seen({
      'Node Type': 'Index Scan',
      'Relation Name': 'deposits',
      'Index Name': 'deposits_block',
    }),
    ['deposits_block'],
  )
  assert.deepEqual(
    seen({
      'Node Type': 'Index Scan',
      'Relation Name': 'deposits',
      'Index Name': 'x',
      'Index Cond': '(a = 1)',
    }),
    [],
  )
})

test('no statement of a transfer, deposit, list or loop scans a growing table', async () => {
  const user = await platform.user('plans')
  const address = await fundedWallet(platform, user, 'XRP', '200')
  await call(user, 'POST', '/dac/v1/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })
  const sent = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('XRP', '5', 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', {
      sequence_id: 's1',
      memo: 'rent',
    }),
  )
  assert.equal(sent.status, 200, sent.text)
  const ended = await terminal(user, sent.body.id)
  assert.equal(ended.status, 'confirmed')
  // The first transfer of a wallet is not batched, because one of its accounts is new.
  const next = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('XRP', '5', 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'),
  )
  assert.equal(next.status, 200, next.text)
  const invoice = await call<{ id: string }>(user, 'POST', '/dac/v1/invoices', {
    amount: '5',
    currency: 'XRP',
    assets: ['XRP'],
  })
  const filters = [
    '',
    'page=3&limit=7',
    'asset=XRP',
    'status=failed',
    'status=pending',
    'status=confirmed&asset=XRP',
    'type=Deposit',
    'type=Stake',
    'source_type=EXTERNAL',
    'dest_type=OMNIBUS',
    'before=2000000000&after=1000000000&page=2',
    `source_id=${address}`,
    `dest_id=${address}`,
    `address=${address}`,
    `address=${address}&type=Deposit&page=2`,
    `id=${sent.body.id}`,
    `id=${'ab'.repeat(32)}`,
    'sequence_id=s1',
    'memo=rent',
    'memo_begins=Re',
    'memo_begins=re&type=Deposit&page=2',
  ]
  const paths = [
    ...filters.map((filter) => `/dac/v1/transactions?${filter}`),
    `/dac/v1/transaction/${sent.body.id}`,
    '/dac/v1/wallets?asset=XRP',
    '/dac/v1/addresses?asset=XRP',
    '/dac/v1/events',
    '/dac/v1/webhooks',
    '/dac/v1/invoices',
    '/dac/v1/invoices?status=Paid&page=2',
    '/dac/v1/invoices?order_id=1',
    `/dac/v1/invoices/${invoice.body.id}`,
    '/dac/v1/orders',
    '/dac/v1/orders?status=open',
    '/dac/v1/orders?id=1',
    '/dac/v1/orders?sequence_id=1',
    '/dac/v1/exchange-transfers',
    '/dac/v1/exchange-transfers?status=pending',
    '/dac/v1/frozen-addresses',
    '/dac/v1/gas-tanks',
    '/dac/v1/gas-tanks/ETH/entries',
    '/dac/v1/prepaid-fee/entries',
    '/dac/v1/auto-forwarding',
    '/dac/v1/supported-assets',
    '/dac/v1/keys',
  ]
  for (const path of paths) {
    const answer = await call(user, 'GET', path)
    assert.ok(answer.status < 500, `${path}: ${answer.text}`)
  }
  const plans = plansIn(readFileSync(join(platform.home, 'postgres.log'), 'utf8'))
  assert.ok(plans.length > 200, `only ${plans.length} plans were logged`)
  const scans = new Map(
    plans.flatMap((explained) =>
      wholes(explained).map((whole) => [
        `${whole}: ${explained['Query Text'].replaceAll(/\s+/g, ' ').slice(0, 700)}`,
        whole,
      ]),
    ),
  )
  assert.deepEqual([...scans.keys()].sort(), [])
})

test('each statement with a workspace uses a matching index, and lookups by id the primary key', async () => {
  const indexes = await platform.database.query<Index>(INDEXES)
  const plans = plansIn(readFileSync(join(platform.home, 'postgres.log'), 'utf8'))
    .map(({ 'Query Text': text, Plan: plan }) => ({
      text: text.replaceAll(/\s+/g, ' ').trim(),
      plan,
    }))
    .filter(({ text }) => namesWorkspace({ file: '', text }))
  assert.ok(new Set(plans.map(({ text }) => text)).size > 60, `only ${plans.length} plans`)
  const scans = new Set(
    plans.flatMap(({ text, plan }) =>
      notByWorkspace(plan, indexes).map((name) => `${name}: ${text}`),
    ),
  )
  assert.deepEqual([...scans], [])
  const looks = plans.flatMap(({ text, plan }) => {
    const table = looksById(text)
    const node = nodesOf(plan).find(
      (each) =>
        table !== null && each['Relation Name'] === table && each['Index Name'] !== undefined,
    )
    return node ? [{ text, isByKey: node['Index Name'] === `${table}_pkey` }] : []
  })
  assert.ok(looks.length > 5, `only ${looks.length} looks by id`)
  assert.deepEqual(
    [...new Set(looks.filter(({ isByKey }) => !isByKey).map(({ text }) => text))],
    [],
  )
})
