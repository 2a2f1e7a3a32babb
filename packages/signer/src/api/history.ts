import { z } from 'zod'
import { entryOf, type Entry, type Kind } from '../store/entries/index.ts'
import { RecordStore } from '../store/record.ts'
import type { NodeContext } from '../node-context.ts'

export const historyBodySchema = z.strictObject({
  from: z.int().min(1),
  limit: z.int().min(1).max(2000).optional(),
})

const ROWS = 500
/** Maximum size of a response in bytes. One transaction with 400 inputs has about 100 kB. */
const BYTES_MAX = 4 * 1024 * 1024

/**
 * Fields that are returned, by kind. A platform that recovers does not need sessions, heads,
 * partners, budgets and epochs of shares.
 */
const TOLD: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  step: ['step', 'purpose', 'workspace', 'intent', 'transaction_id', 'unsigned'],
  signed: ['step_height', 'signatures', 'hash'],
  void: ['keys', 'transaction_id'],
  rule: ['rule', 'workspace', 'sub_account', 'asset', 'destination'],
  enrol: ['api_key', 'public_key_pem', 'role', 'workspace', 'sub_account', 'sub_account_name'],
  revoke: ['api_key'],
  allocate: ['workspace', 'curve'],
}

interface HistoryEntry {
  height: number
  at: number
  kind: string
  body: Record<string, unknown>
}

function presentEntry(entry: Entry): HistoryEntry | null {
  const { at, kind, body } = entry.kind === 'imported' ? entry.body : entry
  const fields = TOLD[kind]
  const values: Record<string, unknown> = body
  // A restored node may have copied this step from a peer that omitted the transaction; that peer
  // returns it.
  if (!fields || (kind === 'step' && !values['unsigned'])) return null
  const shown = fields
    .filter((name) => values[name] !== undefined)
    .map((name) => [name, values[name]])
  return { height: entry.height, at, kind, body: Object.fromEntries(shown) }
}

/**
 * Returns the transactions that this node has signed and the requests that they belong to, page by
 * page, for a platform whose database was restored from an older backup. `before` is the hash of
 * the entry before the page; the platform uses it to detect a different record. The response
 * authorises nothing: it contains signatures and the signed data, and no data from which a new
 * signature could be created.
 */
export function history(
  { config, store }: NodeContext,
  { from, limit = ROWS }: z.infer<typeof historyBodySchema>,
): unknown {
  store.flush()
  const { record, state } = store
  const entries: HistoryEntry[] = []
  let [next, bytes] = [from, 0]
  for (const row of record.page(from, limit)) {
    const entry = presentEntry(entryOf(row))
    const size = entry ? JSON.stringify(entry).length : 0
    if (bytes + size > BYTES_MAX && entries.length > 0) break
    if (entry) entries.push(entry)
    bytes += size
    next = row.height + 1
  }
  const last = next - 1
  return {
    node: config.node,
    generation: state.generation,
    height: record.height,
    before: record.hashAt(from - 1),
    entries,
    next,
    hash: last === 0 ? RecordStore.genesis : record.hashAt(last),
  }
}
