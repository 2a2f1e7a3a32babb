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
  coins_aside: 'all',
  conversions: 'all',
  cooldowns: 'update',
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

const wantedOf = ({ name, kind }: Granted): readonly string[] =>
  kind === 'sequence' ? SEQUENCE_PRIVILEGES : PRIVILEGES[TABLE_RIGHTS[name] as TableRight]

/** Quotes an identifier for a statement. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Returns the tables and sequences on which a role has other privileges than it should have. */
async function differing(tx: Queryable, role: string): Promise<Granted[]> {
  const all = await tx.query<Granted>(GRANTED, [role, Object.keys(TABLE_RIGHTS)])
  return all.filter((each) => wantedOf(each).join() !== each.granted.join())
}

/** Returns whether a role has exactly the rights of {@link TABLE_RIGHTS}. Reads only. */
export const hasTableRights = async (tx: Queryable, role: string): Promise<boolean> =>
  (await differing(tx, role)).length === 0

/**
 * Grants a role exactly the rights of {@link TABLE_RIGHTS}. Must be called as the owner of the
 * tables, after the migrations.
 * @returns the tables and sequences whose privileges were changed
 */
export async function applyTableRights(tx: Queryable, role: string): Promise<string[]> {
  const changed = await differing(tx, role)
  for (const each of changed) {
    const target = `${each.kind} ${quoted(each.name)}`
    await tx.query(`revoke all on ${target} from ${quoted(role)}`)
    await tx.query(`grant ${wantedOf(each).join(', ')} on ${target} to ${quoted(role)}`)
  }
  return changed.map(({ name }) => name)
}

/** The role of a connection, and what it can do beyond {@link TABLE_RIGHTS}. */
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
      .filter(({ name, can }) => {
        const right = TABLE_RIGHTS[name]
        return right !== undefined && can.some((each) => !PRIVILEGES[right].includes(each))
      })
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
