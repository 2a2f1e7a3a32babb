import { readFileSync } from 'node:fs'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Held } from '../src/governance/held.ts'
import type { Row } from '../src/store/entries/index.ts'
import { Store } from '../src/store/index.ts'

/**
 * A record that an earlier version of the node has written, and what that version held after its last
 * entry. `now_s`: Unix seconds of the last reading.
 */
export interface PolicyRecord {
  readonly title: string
  readonly now_s: number
  readonly held: ReturnType<typeof summaryOf>
  readonly rows: readonly Row[]
}

const FOLDER = fileURLToPath(new URL('policy-records/', import.meta.url))

/** Names of the records of earlier versions in this folder. */
export const POLICY_RECORDS = [
  'followed',
  'late-items',
  'post-dated-stop',
  'reset',
  'uninstalled',
  'usual',
] as const

export const policyRecord = (name: (typeof POLICY_RECORDS)[number]): PolicyRecord =>
  JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as PolicyRecord

/** Opens a new record file with the given rows at a time in Unix seconds. */
export function storeOf(rows: readonly Row[], now_s: number): Store {
  const path = join(mkdtempSync(join(tmpdir(), 'policy-record-')), 'record.sqlite')
  const empty = new Store(path, () => 0)
  const insert = empty.record.database.prepare(
    'INSERT INTO record (height, at, kind, body, hash) VALUES (?, ?, ?, ?, ?)',
  )
  for (const { height, at, kind, body, hash } of rows) insert.run(height, at, kind, body, hash)
  empty.close()
  return new Store(path, () => now_s * 1000)
}

/** What a node holds, as JSON without compiled documents and signatures. */
export const summaryOf = ({
  governance,
  chain,
  typed,
  known,
  removed,
  reset,
  enteredResets,
  approved,
  enrolments,
}: Held) => ({
  number: governance?.policy.document.number ?? null,
  hash: governance?.policy.hash ?? null,
  next: governance?.next
    ? {
        hash: governance.next.policy.hash,
        seen_at_s: governance.next.seen_at_s,
        acts_at_s: governance.next.acts_at_s,
        approved_for_s: governance.next.approved_for_s,
        vetoedBy: governance.next.vetoedBy,
        confirmedBy: [...governance.next.confirmedBy],
      }
    : null,
  chain: chain.map(({ hash, seen_at_s, acts_at_s, before, resetBy }) => ({
    hash,
    seen_at_s,
    acts_at_s,
    before: before?.policy.hash ?? null,
    resetBy: resetBy?.map(({ node }) => node) ?? null,
  })),
  vetoed: [...(governance?.vetoed ?? [])].map(([hash, by]) => [hash, [...by]] as const),
  stops: [...(governance?.stops ?? [])],
  resumedUpTo: [...(governance?.resumedUpTo ?? [])],
  suspensions: [...(governance?.suspensions ?? [])],
  revoked: [...(governance?.revoked ?? [])],
  typed: typed?.hash ?? null,
  known: known && { ...known, chain: known.chain ?? null },
  removed: [...removed],
  reset: reset && { hash: reset.hash, complete_at_s: reset.complete?.at_s ?? null },
  enteredResets: [...enteredResets],
  approved: [...approved].map(([name, records]) => [name, [...records]] as const),
  enrolments: [...enrolments].map(([key, all]) => [key, [...all]] as const),
})
