import type { Queryable } from './pool.ts'

/**
 * What the platform's processes may do with the rows of a table. They never create, change or
 * truncate a table: its owner does, who applies the migrations.
 *
 * - `read`: read.
 * - `add`: also insert. For evidence: a row is never changed and never deleted.
 * - `replace`: also insert and delete.
 * - `update`: also insert and update, but never delete.
 * - `all`: insert, update and delete.
 */
export type TableRight = 'read' | 'add' | 'replace' | 'update' | 'all'

const PRIVILEGES: Record<TableRight, readonly string[]> = {
  read: ['SELECT'],
  add: ['INSERT', 'SELECT'],
  replace: ['DELETE', 'INSERT', 'SELECT'],
  update: ['INSERT', 'SELECT', 'UPDATE'],
  all: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
}

/** Rights of the platform's processes, by table. Every table of the migrations is listed; others in the
 * same schema are left alone. */
export const TABLE_RIGHTS: Readonly<Record<string, TableRight>> = {
  aml_holds: 'all',
  aml_pace: 'update',
  aml_screenings: 'add',
  aml_settings: 'update',
  api_user_requests: 'update',
  api_users: 'update',
  approval_requests: 'update',
  approvals: 'update',
  audit_heads: 'update',
  audit_log: 'add',
  audits: 'add',
  blocks: 'all',
  chain_addresses: 'add',
  chain_transactions: 'all',
  coin_settings: 'update',
  coins_aside: 'all',
  contract_watches: 'update',
  conversions: 'all',
  cooldowns: 'all',
  database_functions: 'read',
  deposits: 'update',
  event_log: 'update',
  event_objects: 'update',
  events: 'all',
  exchange_accounts: 'update',
  exchange_addresses: 'update',
  exchange_balances: 'replace',
  exchange_nonces: 'update',
  exchange_transfers: 'update',
  forward_deposits: 'update',
  forward_rules: 'update',
  forwards: 'update',
  frozen_addresses: 'update',
  fuel_parts: 'update',
  gas_tanks: 'update',
  idempotency: 'replace',
  installation: 'update',
  invitations: 'update',
  invoice_mempool: 'update',
  invoice_offers: 'update',
  invoice_payments: 'update',
  invoice_refunds: 'add',
  invoice_settings: 'update',
  invoices: 'update',
  // The balances; the entries and postings from which they follow are only added.
  ledger_accounts: 'update',
  ledger_entries: 'add',
  ledger_postings: 'add',
  list_counts: 'update',
  list_deltas: 'all',
  memberships: 'all',
  migrations: 'read',
  network_scans: 'update',
  order_fills: 'add',
  orders: 'update',
  passkeys: 'all',
  people: 'update',
  policy_change_statements: 'update',
  policy_changes: 'update',
  policy_resumes: 'update',
  policy_stops: 'update',
  prepaid_accounts: 'update',
  prepaid_volumes: 'update',
  processes: 'all',
  rate_windows: 'all',
  recovery_codes: 'all',
  refused_keys: 'all',
  replacements: 'update',
  request_nonces: 'replace',
  rescans: 'update',
  reserve_leaves: 'add',
  reserve_snapshots: 'add',
  saved_views: 'replace',
  sessions: 'all',
  sign_in_failures: 'all',
  sign_in_steps: 'all',
  signer_marks: 'update',
  signing_accounts: 'update',
  sub_accounts: 'update',
  sweep_settings: 'update',
  transaction_states: 'add',
  transactions: 'update',
  unadopted_steps: 'all',
  unrecorded_transfers: 'all',
  utxos: 'all',
  wallet_addresses: 'update',
  wallet_status_changes: 'add',
  wallets: 'update',
  webhook_deliveries: 'all',
  webhook_keys: 'add',
  webhooks: 'all',
  workspace_keys: 'add',
  workspaces: 'update',
}

/** Role of processes that only serve the API (`CUSTODY_ROLE=api`), if it exists. */
export const API_ROLE = 'custody_api'
/** Role of processes that only scan the chains (`CUSTODY_ROLE=scanner`), if it exists. */
export const SCANNER_ROLE = 'custody_scanner'

type Restrictions = Readonly<Record<string, TableRight | 'none'>>

/** Sets the same right on several tables. */
const on = (right: TableRight | 'none', ...tables: string[]): Restrictions =>
  Object.fromEntries(tables.map((name) => [name, right]))

/**
 * Rights of the two optional roles, where they differ from {@link TABLE_RIGHTS}. The API serves
 * strangers' requests, and cannot write what the chains, the signer nodes and the operator state. The
 * scanner reads strangers' blocks, and cannot read or write people, credentials, policies and the
 * audit log.
 */
const RESTRICTIONS: Readonly<Record<string, Restrictions>> = {
  [API_ROLE]: {
    // The block at which a network's scan starts, when its first address is created.
    ...on('add', 'blocks'),
    ...on(
      'read',
      'audits',
      'coins_aside',
      'contract_watches',
      'rescans',
      'reserve_leaves',
      'reserve_snapshots',
      'unadopted_steps',
      'unrecorded_transfers',
    ),
  },
  [SCANNER_ROLE]: on(
    'none',
    'api_user_requests',
    'api_users',
    'audit_heads',
    'audit_log',
    'exchange_accounts',
    'exchange_nonces',
    'idempotency',
    'invitations',
    'memberships',
    'passkeys',
    'people',
    'policy_change_statements',
    'policy_changes',
    'policy_resumes',
    'rate_windows',
    'recovery_codes',
    'refused_keys',
    'request_nonces',
    'reserve_leaves',
    'reserve_snapshots',
    'saved_views',
    'sessions',
    'sign_in_failures',
    'sign_in_steps',
  ),
}

/**
 * Returns the privileges of a role on a table. A role of any name but {@link API_ROLE} and
 * {@link SCANNER_ROLE} has those of {@link TABLE_RIGHTS}.
 */
export function privilegesOf(role: string, table: string): readonly string[] {
  const right = RESTRICTIONS[role]?.[table] ?? TABLE_RIGHTS[table]
  return right === undefined || right === 'none' ? [] : PRIVILEGES[right]
}

/** A table or sequence of the schema `public`, and the privileges that a role has been granted. */
interface Granted {
  name: string
  kind: 'table' | 'sequence'
  granted: string[]
}

/** Selects the listed tables, and the sequences of their columns. */
const GRANTED = `
  select c.relname "name", case c.relkind when 'S' then 'sequence' else 'table' end kind,
    coalesce((select array_agg(distinct a.privilege_type::text order by a.privilege_type::text)
      from aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee where r.rolname = $1), '{}') granted
  from pg_class c where c.relnamespace = current_schema()::regnamespace
    and (c.relkind in ('r', 'p') and c.relname = any($2)
      or c.relkind = 'S' and exists (select 1 from pg_depend d join pg_class t on t.oid = d.refobjid
        where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i')
          and t.relname = any($2)))
  order by 1`

/** Privileges on a sequence: its values are read and taken, and never set. */
const SEQUENCE_PRIVILEGES = ['SELECT', 'USAGE']

const wantedOf = (role: string, { name, kind }: Granted): readonly string[] =>
  kind === 'sequence' ? SEQUENCE_PRIVILEGES : privilegesOf(role, name)

/** Quotes an identifier for a statement. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Returns the tables and sequences on which a role has other privileges than it should have. */
async function differing(tx: Queryable, role: string): Promise<Granted[]> {
  const all = await tx.query<Granted>(GRANTED, [role, Object.keys(TABLE_RIGHTS)])
  return all.filter((each) => wantedOf(role, each).join() !== each.granted.join())
}

/** Returns the role of a process, and those of the two optional roles that the server has. */
async function withOptionalRoles(tx: Queryable, role: string): Promise<string[]> {
  const present = await tx.query<{ name: string }>(
    'select rolname::text "name" from pg_roles where rolname = any($1)',
    [Object.keys(RESTRICTIONS)],
  )
  return [...new Set([role, ...present.map(({ name }) => name)])]
}

/**
 * Returns whether a role and the two optional roles, as far as they exist, have exactly the rights of
 * {@link privilegesOf}. Reads only.
 */
export async function hasTableRights(tx: Queryable, role: string): Promise<boolean> {
  for (const each of await withOptionalRoles(tx, role))
    if ((await differing(tx, each)).length > 0) return false
  return true
}

/**
 * Grants a role and the two optional roles, as far as they exist, exactly the rights of
 * {@link privilegesOf}. Must be called as the owner of the tables, after the migrations.
 * @returns the tables and sequences whose privileges were changed
 */
export async function applyTableRights(tx: Queryable, role: string): Promise<string[]> {
  const names: string[] = []
  for (const grantee of await withOptionalRoles(tx, role))
    for (const each of await differing(tx, grantee)) {
      const target = `${each.kind} ${quoted(each.name)}`
      const wanted = wantedOf(grantee, each)
      await tx.query(`revoke all on ${target} from ${quoted(grantee)}`)
      if (wanted.length > 0)
        await tx.query(`grant ${wanted.join(', ')} on ${target} to ${quoted(grantee)}`)
      names.push(each.name)
    }
  return [...new Set(names)]
}

/** The role of a connection, and what it can do beyond {@link privilegesOf}. */
export interface RoleFacts {
  role: string
  /** Whether it is a superuser, which can also read files and run programs of the server's host. */
  superuser: boolean
  /** Tables that it owns, so that it can remove their triggers and change their rows. */
  owned: number
  /** Tables on which it has more rights than it needs, or can truncate. */
  beyond: string[]
}

/** Returns what the role of a connection can do. Reads only. */
export async function roleFacts(database: Queryable): Promise<RoleFacts> {
  const row = (await database.one<Pick<RoleFacts, 'role' | 'superuser'>>(
    'select rolname::text "role", rolsuper superuser from pg_roles where rolname = current_user',
  )) as Pick<RoleFacts, 'role' | 'superuser'>
  const tables = await database.query<{ name: string; owned: boolean; can: string[] }>(
    `select c.relname "name", pg_has_role(c.relowner, 'usage') owned,
       array(select p from unnest(array['DELETE', 'INSERT', 'SELECT', 'UPDATE', 'TRUNCATE']) p
         where has_table_privilege(c.oid, p)) can
     from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
     order by 1`,
  )
  return {
    ...row,
    owned: tables.filter(({ owned }) => owned).length,
    beyond: tables
      .filter(
        ({ name, can }) =>
          name in TABLE_RIGHTS && can.some((each) => !privilegesOf(row.role, name).includes(each)),
      )
      .map(({ name }) => name),
  }
}

/**
 * Returns what a role can do that the platform's processes need not do, as a sentence; null if
 * nothing.
 */
export function excessOf({ role, superuser, owned, beyond }: RoleFacts): string | null {
  if (superuser) return `the role ${role} is a superuser`
  if (owned > 0) return `the role ${role} owns ${owned} tables`
  return beyond.length > 0
    ? `the role ${role} has more rights than it needs on ${beyond.join(', ')}`
    : null
}
