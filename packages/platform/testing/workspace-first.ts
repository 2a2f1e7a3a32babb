import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Rules of the schema about workspaces, which tests compare with the code and its query plans. */

/**
 * Tables whose rows grow with usage: every key begins with the workspace, and so does the condition
 * of every statement.
 */
export const HOT = [
  'transactions',
  'transaction_states',
  'chain_transactions',
  'replacements',
  'idempotency',
  'deposits',
  'utxos',
  'coin_settings',
  'coins_aside',
  'fuel_parts',
  'cooldowns',
  'wallets',
  'wallet_addresses',
  'wallet_status_changes',
  'ledger_accounts',
  'ledger_entries',
  'ledger_postings',
  'aml_settings',
  'aml_holds',
  'aml_screenings',
  'approval_requests',
  'approvals',
  'frozen_addresses',
  'forward_rules',
  'forward_deposits',
  'forwards',
  'invoice_payments',
  'invoice_refunds',
  'events',
  'webhooks',
  'webhook_deliveries',
  'orders',
  'order_fills',
  'conversions',
  'exchange_transfers',
  'invoices',
  'invoice_offers',
  'invoice_mempool',
] as const

/**
 * Columns that are unique over all workspaces, as safety requires. A statement that selects by one
 * of them finds the row of any owner.
 */
export const GLOBAL = [
  'chain_addresses_pkey',
  'chain_transactions_nonce',
  'chain_transactions_hash',
  'deposits_identity',
  'utxos_coin',
  'wallet_addresses_tag',
  'orders_client_id_key',
  'exchange_transfers_client_id_key',
  'invoice_offers_place',
  'invoices_public',
] as const

const SRC = join(import.meta.dirname, '../src')
const NAMES_TABLE = new RegExp(`\\b(?:from|join|into|update)\\s+(?:${HOT.join('|')})\\b`, 'i')
/**
 * Matches a comparison of the workspace with a value, not only as a join condition of two tables.
 */
const NAMES_WORKSPACE =
  /\bworkspace_id(?:\s*=\s*(?:any\()?(?:\$|p_workspace|workspace\b|new\.)|\s+in\b)|insert into \w+(?: as \w)? \([^)]*\bworkspace_id\b/i

/** A statement, or a part of one, in the code: its position, and its text in one line. */
export interface Written {
  file: string
  text: string
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(
      (each) =>
        each.isFile() && (each.name.endsWith('.ts') || each.parentPath.endsWith('functions')),
    )
    .map((each) => join(each.parentPath, each.name))
    .sort()

/**
 * Returns the texts of a program: strings and templates, without comments. An expression in `${…}`
 * is part of the template around it.
 */
export function textsIn(source: string): string[] {
  const texts: string[] = []
  for (let at = 0; at < source.length; at++) {
    if (source.startsWith('//', at)) at = source.indexOf('\n', at)
    else if (source.startsWith('/*', at)) at = source.indexOf('*/', at) + 1
    else if (source[at] === '"' || source[at] === "'" || source[at] === '`') {
      const end = endOf(source, at)
      texts.push(source.slice(at + 1, end))
      at = end
    }
    if (at < 0) break
  }
  return texts
}

function endOf(source: string, from: number): number {
  const quote = source[from]
  let depth = 0
  for (let at = from + 1; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (quote === '`' && source.startsWith('${', at)) depth++
    else if (depth > 0 && source[at] === '}') depth--
    else if (depth === 0 && source[at] === quote) return at
  }
  return source.length
}

/** Returns the statements of a database function, separated by semicolons. */
const statementsIn = (sql: string): string[] =>
  sql.replaceAll(/--.*$/gm, '').split(/;|\bloop\b|\bthen\b|\bbegin\b/)

/** Returns all statements in the code that use the tables of {@link HOT}. */
export function writtenOfHot(): Written[] {
  return filesIn(SRC).flatMap((file) => {
    const source = readFileSync(file, 'utf8')
    if (/migrations|\.test\.ts$/.test(file)) return []
    return (file.endsWith('.sql') ? statementsIn(source) : textsIn(source))
      .filter(
        (text) => NAMES_TABLE.test(text) && /\b(?:select|insert|update|delete|join)\b/i.test(text),
      )
      .map((text) => ({ file: relative(SRC, file), text: text.trim().replaceAll(/\s+/g, ' ') }))
  })
}

export const namesWorkspace = ({ text }: Written): boolean => NAMES_WORKSPACE.test(text)

const SCAN = 'the scan of a network asks of all workspaces, by the network'
const AUDIT = 'the audit holds the books of all workspaces against the chains'
const QUEUE = 'a queue of workers, of all workspaces'
const LOG = 'the log has one order, of all workspaces'
const OPERATOR = 'the operator’s command names an id, and no workspace, or wants those of all'
const RECOVERY = 'the nodes’ records are of all workspaces, and name ids and bytes alone'
const PAYER = 'a payer knows an invoice by its id alone, which nobody guesses'
const PART = 'by a condition or a row beside it, which names it'
const ANOTHERS = 'whether an id is another workspace’s: 403'
const SHOWN = 'metrics and reserves are sums over all workspaces'

/** Number of statements of a file that do not name a workspace, and the reason. */
export const UNNAMED: Readonly<Record<string, readonly [count: number, why: string]>> = {
  'server/app/assemble.ts': [1, 'what a run that was killed holds, of all workspaces'],
  'server/app/health/collectors/accounts.ts': [1, SHOWN],
  'server/app/housekeeping.ts': [
    1,
    'what was quoted and nobody ordered is forgotten, of all workspaces',
  ],
  'server/app/health/collectors/events.ts': [3, SHOWN],
  'server/app/health/collectors/queues.ts': [4, SHOWN],
  'server/audit/audit.ts': [5, AUDIT],
  'server/audit/staking.ts': [2, AUDIT],
  'server/audit/utxo.ts': [4, AUDIT],
  'custody/auto-forwarding/end-rules.ts': [2, QUEUE],
  'custody/coins/coin.ts': [1, PART],
  'custody/auto-forwarding/judge-rules.ts': [1, QUEUE],
  'custody/auto-forwarding/list-rules.ts': [2, PART],
  'custody/auto-forwarding/loop.ts': [2, QUEUE],
  'custody/auto-forwarding/rule.ts': [
    3,
    'rules whose time is over, of all; of a rule, its own; whether an id is another workspace’s: 403',
  ],
  'console-api/console/export-transactions.ts': [1, PART],
  'commerce/invoices/awaited-addresses.ts': [1, SCAN],
  'custody/contract-payments/addresses.ts': [1, SCAN],
  'custody/contract-payments/look.ts': [2, SCAN],
  'custody/deposits/adopted.ts': [
    1,
    'transfers of any workspace may be on their way to an address',
  ],
  'custody/deposits/coin-heights.ts': [2, SCAN],
  'custody/deposits/coins-aside.ts': [1, SCAN],
  'custody/deposits/record.ts': [1, SCAN],
  'custody/deposits/utxo-tokens.ts': [1, SCAN],
  'custody/deposits/confirmed-by-quorum.ts': [1, SCAN],
  'custody/deposits/compare-blocks.ts': [2, SCAN],
  'custody/deposits/credit-ready.ts': [2, SCAN],
  'custody/deposits/contradiction.ts': [1, SCAN],
  'custody/deposits/scanner.ts': [3, SCAN],
  'custody/deposits/sweeps.ts': [1, QUEUE],
  'core/engine/lease.ts': [3, QUEUE],
  'core/engine/nonce-order.ts': [2, PART],
  'core/engine/outcomes/undo.ts': [1, SCAN],
  'core/engine/run.ts': [1, QUEUE],
  'events/events/forget.ts': [2, 'what is too old is forgotten, of all workspaces'],
  'events/events/publish.ts': [4, LOG],
  'core/families/cardano/estimate.ts': [
    1,
    'the chain knows an address alone: whose it is stands in chain_addresses',
  ],
  'core/families/coins/choosable.ts': [1, PART],
  'core/families/coins/previous.ts': [
    1,
    'the chain knows a hash alone, which is unique over all workspaces',
  ],
  'core/families/tagged/prepare.ts': [
    1,
    'two creations of one account exclude each other, whosever they are',
  ],
  'custody/approvals/approval-request.ts': [1, PART],
  'custody/gas-tanks/ensure-tank.ts': [1, PART],
  'custody/gas-tanks/shared-fuel.ts': [2, PART],
  'custody/gas-tanks/watch-tanks.ts': [1, QUEUE],
  'commerce/invoices/frame-ancestors.ts': [1, PAYER],
  'commerce/invoices/invoice.ts': [1, PAYER],
  'commerce/invoices/loop.ts': [3, QUEUE],
  'commerce/invoices/mempool.ts': [4, SCAN],
  'core/ledger/feed.ts': [1, LOG],
  'server/operator/aml-release.ts': [1, OPERATOR],
  'server/operator/events/events.ts': [1, OPERATOR],
  'server/operator/policy/approvals.ts': [2, OPERATOR],
  'server/operator/gas-tanks/gas-tanks.ts': [1, OPERATOR],
  'server/operator/books/suspense.ts': [2, OPERATOR],
  'server/operator/sweeps.ts': [2, OPERATOR],
  'server/operator/waiting.ts': [1, OPERATOR],
  'server/operator/wallets.ts': [2, OPERATOR],
  'custody/prepaid-fee/account.ts': [1, PART],
  'server/recovery/adopt.ts': [3, RECOVERY],
  'server/recovery/history.ts': [1, RECOVERY],
  'server/recovery/compare-records.ts': [1, RECOVERY],
  'server/recovery/reconcile.ts': [5, RECOVERY],
  'server/recovery/window.ts': [2, RECOVERY],
  'server/reserves/books.ts': [5, SHOWN],
  'server/reserves/chains.ts': [1, SHOWN],
  'custody/staking/watch-releasable.ts': [3, QUEUE],
  'custody/transactions/find-transaction.ts': [1, ANOTHERS],
  'events/webhooks/delivery.ts': [1, ANOTHERS],
  'events/webhooks/queues.ts': [5, QUEUE],
  'events/webhooks/webhook.ts': [1, ANOTHERS],
}

/** A node of a query plan in the output of EXPLAIN. */
export interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

export const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** An index: its table and its first column. */
export interface Index {
  name: string
  of: string
  first: string | null
}

export const INDEXES = `select i.relname "name", t.relname "of", a.attname "first" from pg_index x
  join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
  left join pg_attribute a on a.attrelid = t.oid and a.attnum = x.indkey[0]
    where t.relnamespace = 'public'::regnamespace`

const IS_HOT: ReadonlySet<string> = new Set(HOT)
const IS_GLOBAL: ReadonlySet<string> = new Set(GLOBAL)
/**
 * Indices that are searched by a lease's random token, or by an id as text together with the
 * workspace.
 */
const BY_VALUE: ReadonlySet<string> = new Set(['transactions_leased', 'transactions_text'])

/**
 * Returns the nodes of a plan that read a hot table without an index that begins with the workspace
 * or is unique over all workspaces.
 */
export const notByWorkspace = (plan: Plan, indexes: readonly Index[]): string[] =>
  nodesOf(plan).flatMap((node) => {
    const { 'Node Type': kind, 'Relation Name': table, 'Index Name': name } = node
    if (kind === 'Seq Scan') return table !== undefined && IS_HOT.has(table) ? [table] : []
    const index = indexes.find((each) => each.name === name)
    if (
      !index ||
      !IS_HOT.has(index.of) ||
      index.first === 'workspace_id' ||
      IS_GLOBAL.has(index.name) ||
      BY_VALUE.has(index.name)
    )
      return []
    return [index.name]
  })

/**
 * Returns the hot table that a statement queries by a row's id, or null if it does not, or queries
 * by a lease's token, which identifies one row too. Few frozen addresses and rules are in force,
 * and a separate index contains these.
 */
export function looksById(text: string): string | null {
  const [, table] =
    /\b(?:update|from) (\w+)(?: set [^()]*| t)? where (?:t\.)?workspace_id = \$\d+ and (?:t\.)?id = \$\d+/.exec(
      text,
    ) ?? []
  if (
    table === undefined ||
    /\blease_token = \$/.test(text) ||
    table === 'frozen_addresses' ||
    table === 'forward_rules'
  )
    return null
  return IS_HOT.has(table) ? table : null
}
