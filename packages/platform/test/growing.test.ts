import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { useDatabase } from './deposits-support.ts'

/** What docs/production/growing.md says of tables and lists is what the database has. */

const database = useDatabase()
const page = readFileSync(new URL('../../../docs/production/growing.md', import.meta.url), 'utf8')

/** The names in code of a row of the page's table. */
function namesIn(row: string): string[] {
  const line = page.split('\n').find((each) => each.startsWith(`| ${row} |`))
  assert.ok(line !== undefined, `the page has a row "${row}"`)
  return [...line.matchAll(/`(\w+)`/g)].map(([, name]) => name as string).sort()
}

test('tables whose unique keys hold the workspace, have it beside them, or have none, are those that the page names', async () => {
  const tables = await database.get().query<{ name: string; has: boolean; leads: boolean }>(
    `with columns as (
       select c.oid, c.relname, (select a.attnum from pg_attribute a where a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped) workspace
       from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace)
     select relname "name", workspace is not null "has",
       workspace is not null and not exists (
         select 1 from pg_index x where x.indrelid = t.oid and x.indisunique and not t.workspace = any(x.indkey::int2[])) leads
     from columns t order by relname`)
  const named = (is: (table: { has: boolean; leads: boolean }) => boolean) => tables.filter(is).map(({ name }) => name).sort()
  assert.deepEqual(namesIn('in every unique key'), named(({ leads }) => leads))
  assert.deepEqual(namesIn('beside the keys'), named(({ has, leads }) => has && !leads))
  const none = named(({ has }) => !has)
  const said = [...namesIn('none: of a parent'), ...namesIn('none: of all workspaces')].sort()
  assert.deepEqual(said, none)
})

/** Lists as they are asked for, each by its owner. */
const LISTS = {
  transactions: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  invoices: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  orders: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  exchange_transfers: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  exchange_accounts: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  forward_rules: 'sub_account_id = $1 order by created_at desc, id desc limit 50',
  webhook_deliveries: 'webhook_id = $1 order by created_at desc, id desc limit 50',
  events: 'workspace_id = $1 and position > 0 order by position limit 50',
  audit_log: 'workspace_id = $1 order by seq desc limit 50',
  wallets: 'sub_account_id = $1',
} as const

interface Plan { 'Node Type': string; 'Index Cond'?: string; 'Plans'?: Plan[] }

test('each list is read by an index that begins with its owner: nothing is gone through whole, and nothing sorted', async () => {
  assert.deepEqual(namesIn('lists'), Object.keys(LISTS).sort())
  for (const [table, rest] of Object.entries(LISTS)) {
    const nodes: Plan[] = []
    const collect = (plan: Plan): void => {
      nodes.push(plan)
      for (const each of plan.Plans ?? []) collect(each)
    }
    await database.get().transaction(async (tx) => {
      // Of empty tables the planner would read all; without it, what is left is what has no index.
      await tx.query('set local enable_seqscan = off')
      await tx.query('set local enable_bitmapscan = off')
      const owner = '00000000-0000-0000-0000-000000000000'
      const rows = await tx.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(`explain (format json) select * from ${table} where ${rest.replace('$1', `'${owner}'`)}`)
      for (const { Plan: plan } of rows.flatMap((row) => row['QUERY PLAN'])) collect(plan)
    })
    const kinds = nodes.map((node) => node['Node Type'])
    // Deliveries of one and the same moment are sorted among themselves.
    assert.ok(!kinds.some((kind) => kind === 'Seq Scan' || kind === 'Sort'), `${table}: ${kinds.join(', ')}`)
    const column = /^(\w+)/.exec(rest)?.[1] as string
    assert.ok(nodes.some((node) => node['Index Cond']?.includes(`${column} =`)), `${table}: ${JSON.stringify(nodes)}`)
  }
})
