import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { STILL_BUILT } from '../engine/stale.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { tableRows } from '../../../testing/documents.ts'
import {
  GLOBAL,
  HOT,
  INDEXES,
  looksById,
  namesWorkspace,
  nodesOf,
  notByWorkspace,
  textsIn,
  UNNAMED,
  writtenOfHot,
  type Index,
  type Plan,
} from '../../../testing/workspace-first.ts'

/**
 * Tests that the statements about tables and lists in docs/production/growing.md match the
 * database.
 */

const database = useDatabase()
const page = readFileSync(
  new URL('../../../../../docs/production/growing.md', import.meta.url),
  'utf8',
)

/** Returns the names in code format from one row of the page's table. */
function namesIn(row: string): string[] {
  const cells = tableRows(page).find(([first]) => first === row)
  assert.ok(cells !== undefined, `the page has no row "${row}"`)
  return [...cells.join(' ').matchAll(/`(\w+)`/g)].map(([, name]) => name as string).sort()
}

interface Table {
  name: string
  has: boolean
  leads: boolean
  others: string[]
}

/**
 * Returns all tables. `leads`: the primary key begins with the workspace. `others`: unique indexes
 * that do not.
 */
const tablesOf = () =>
  database.get().query<Table>(
    `with columns as (
     select c.oid, c.relname, (
       select a.attnum from pg_attribute a where a.attrelid = c.oid and a.attname = 'workspace_id'
         and not a.attisdropped) workspace
     from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace)
   select relname "name", workspace is not null "has",
     exists (select 1 from pg_index x where x.indrelid = t.oid and x.indisprimary
       and x.indkey[0] = workspace) leads,
     array(select i.relname::text from pg_index x join pg_class i on i.oid = x.indexrelid
       where x.indrelid = t.oid and x.indisunique and x.indkey[0] is distinct from workspace
         order by 1) others
   from columns t order by relname`,
  )

test('the page lists each table once, in the section that matches its keys', async () => {
  const tables = await tablesOf()
  const named = (is: (table: Table) => boolean) =>
    tables
      .filter(is)
      .map(({ name }) => name)
      .sort()
  assert.deepEqual(
    namesIn('first in every key'),
    named(({ leads, others }) => leads && others.length === 0),
  )
  assert.deepEqual(
    namesIn('first in the primary key'),
    named(({ leads, others }) => leads && others.length > 0),
  )
  assert.deepEqual(
    namesIn('beside the keys'),
    named(({ has, leads }) => has && !leads),
  )
  const none = named(({ has }) => !has)
  const said = [...namesIn('none: of a parent'), ...namesIn('none: of all workspaces')].sort()
  assert.deepEqual(said, none)
  const overAll = tables
    .filter(({ leads }) => leads)
    .flatMap(({ others }) => others)
    .sort()
  assert.deepEqual(
    overAll.filter((name) => namesIn(`\`${name}\``).length === 0),
    [],
    'each has a row with its reason',
  )
  assert.deepEqual(
    [...GLOBAL].filter((name) => name !== 'chain_addresses_pkey' && !overAll.includes(name)),
    [],
  )
  assert.deepEqual(
    HOT.filter((name) => !tables.some((table) => table.name === name && table.leads)),
    [],
    'every hot table leads',
  )
})

test("PostgreSQL refuses a reference to another workspace's row", async () => {
  const led = new Set((await tablesOf()).filter(({ leads }) => leads).map(({ name }) => name))
  const keys = await database
    .get()
    .query<{ of: string; at: string; name: string; mine: string; theirs: string }>(
      `select k.conrelid::regclass::text "of", k.confrelid::regclass::text "at", k.conname "name",
        a.attname mine, b.attname theirs
     from pg_constraint k
       join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
       join pg_attribute b on b.attrelid = k.confrelid and b.attnum = k.confkey[1]
         where k.contype = 'f'`,
    )
  const loose = keys.filter(
    ({ at, mine, theirs }) =>
      led.has(at) && !(mine === 'workspace_id' && theirs === 'workspace_id'),
  )
  assert.deepEqual(
    loose.map(({ of, name }) => `${of}: ${name}`),
    [],
  )
})

test('each statement on a hot table filters by workspace, or is a listed exception with a reason', () => {
  const written = writtenOfHot()
  assert.ok(written.length > 300, `only ${written.length} statements were found`)
  const unnamed = Map.groupBy(
    written.filter((each) => !namesWorkspace(each)),
    ({ file }) => file,
  )
  for (const [file, texts] of unnamed) {
    assert.equal(
      texts.length,
      UNNAMED[file]?.[0] ?? 0,
      `${file}:\n${texts.map(({ text }) => text).join('\n')}`,
    )
  }
  assert.deepEqual(
    Object.keys(UNNAMED).filter((file) => !unnamed.has(file)),
    [],
    'listed, and not there any more',
  )
})

test('detects a statement without a workspace, whatever surrounds its text', () => {
  const isReported = (text: string) => namesWorkspace({ file: '', text })
  assert.deepEqual(
    textsIn("f(`select ${g('a') } from utxos`, 'b') // 'c'\n/* `d` */ x('it''s')").filter((text) =>
      text.includes('utxos'),
    ),
    ["select ${g('a') } from utxos"],
  )
  assert.equal(isReported('select 1 from transactions where id = $1'), false)
  assert.equal(
    isReported(
      'select 1 from utxos u join wallets w on w.workspace_id = u.workspace_id where u.txid = $1',
    ),
    false,
  )
  assert.equal(isReported('select 1 from transactions where workspace_id = $2 and id = $1'), true)
  assert.equal(isReported('insert into utxos (network, workspace_id) values ($1, $2)'), true)
  assert.equal(isReported('insert into utxos (network, txid) values ($1, $2)'), false)
})

/** Conditions and orders of the lists, each with its owner. */
const LISTS = {
  approval_requests:
    "workspace_id = $1 and sub_account_id = $1 and state = 'open' order by created_at desc, transaction_id desc limit 50",
  coins_aside: 'workspace_id = $1 and sub_account_id = $1 order by found_at desc, id desc limit 50',
  transactions:
    'workspace_id = $1 and sub_account_id = $1 order by created_at desc, id desc limit 50',
  invoices: 'workspace_id = $1 and sub_account_id = $1 order by created_at desc, id desc limit 50',
  orders: 'workspace_id = $1 and sub_account_id = $1 order by created_at desc, id desc limit 50',
  exchange_transfers:
    'workspace_id = $1 and sub_account_id = $1 order by created_at desc, id desc limit 50',
  exchange_accounts: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  forward_rules:
    'workspace_id = $1 and sub_account_id = $1 order by created_at desc, id desc limit 50',
  webhook_deliveries:
    'workspace_id = $1 and webhook_id = $1 order by created_at desc, id desc limit 50',
  events: 'workspace_id = $1 and position > 0 order by position limit 50',
  audit_log: 'workspace_id = $1 order by seq desc limit 50',
  policy_changes: 'workspace_id = $1 order by created_at desc, id desc limit 50',
  utxos:
    'workspace_id = $1 and wallet_id = $1 and spent_by is null order by value desc, txid, vout limit 50',
  wallets: 'workspace_id = $1 and sub_account_id = $1',
} as const

test('each list query uses an index that begins with its owner, without full scans or sorts', async () => {
  assert.deepEqual(namesIn('lists'), Object.keys(LISTS).sort())
  for (const [table, rest] of Object.entries(LISTS)) {
    const nodes: Plan[] = []
    const collect = (plan: Plan): void => {
      nodes.push(plan)
      for (const each of plan.Plans ?? []) collect(each)
    }
    await database.get().transaction(async (tx) => {
      // The planner would read empty tables completely. With this setting, a full scan remains only
      // where no index can be used.
      await tx.query('set local enable_seqscan = off')
      await tx.query('set local enable_bitmapscan = off')
      const owner = '00000000-0000-0000-0000-000000000000'
      const rows = await tx.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `explain (format json) select * from ${table} where ${rest.replaceAll('$1', `'${owner}'`)}`,
      )
      for (const { Plan: plan } of rows.flatMap((row) => row['QUERY PLAN'])) collect(plan)
    })
    const kinds = nodes.map((node) => node['Node Type'])
    assert.ok(
      !kinds.some((kind) => kind === 'Seq Scan' || kind === 'Sort'),
      `${table}: ${kinds.join(', ')}`,
    )
    const column = /^(\w+)/.exec(rest)?.[1] as string
    assert.ok(
      nodes.some((node) => node['Index Cond']?.includes(`${column} =`)),
      `${table}: ${JSON.stringify(nodes)}`,
    )
  }
})

test('each statement with a workspace uses a matching index, and lookups by id the primary key', async () => {
  const indexes = await database.get().query<Index>(INDEXES)
  const whole = writtenOfHot()
    .filter(
      (each) => namesWorkspace(each) && /^(?:select|update|delete|insert|with) /.test(each.text),
    )
    .map(({ file, text }) => ({ file, text: text.replace('${STILL_BUILT}', STILL_BUILT) }))
    .filter(({ file, text }) => file.endsWith('.ts') && !text.includes('${'))
  assert.ok(whole.length > 180, `only ${whole.length} statements stand as a whole`)
  const [names, looks]: [string[], string[]] = [[], []]
  await database.get().transaction(async (tx) => {
    for (const option of ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'])
      await tx.query(`set local ${option} = off`)
    for (const { file, text } of whole) {
      const [row] = await tx.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `explain (generic_plan, format json) ${text}`,
      )
      const plan = row?.['QUERY PLAN'][0]?.Plan as Plan
      names.push(...notByWorkspace(plan, indexes).map((name) => `${name}: ${file}: ${text}`))
      const table = looksById(text)
      if (table === null) continue
      looks.push(table)
      const by = nodesOf(plan).filter(
        (node) => node['Relation Name'] === table && node['Index Name'] !== undefined,
      )
      const name = by[0]?.['Index Name']
      if (name !== `${table}_pkey`) names.push(`${name}, not the primary key: ${file}: ${text}`)
    }
  })
  assert.deepEqual(names, [])
  assert.ok(looks.length > 35, `only ${looks.length} looks by id`)
})
