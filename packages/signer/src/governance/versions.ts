import { documentHash, readDocument, readSigned } from '@custody/policy'
import type { Store } from '../store/index.ts'
import type { GovernanceEntry } from './items.ts'
import type { Policies } from './policies.ts'

interface Parts {
  policies: Policies
  store: Store
}

/** A document that was in force, and the signatures with which it came into force. */
export interface PolicyVersion {
  number: number
  hash: string
  /** How it came into force: by its operators as the first one, by people, or by all operators. */
  kind: 'first' | 'change' | 'reset'
  /** Canonical text. */
  document: string
  /** Unix seconds. */
  since: number
  /**
   * Who approved the change; of the first document and of a reset, who proved that they hold its
   * keys. `at`: Unix seconds; null for a proof, which has no time.
   */
  signed_by: { person: string; key: string; at: number | null }[]
}

/** The document that an entry brings, and the signed statements with it; null if it brings none. */
function broughtBy(
  entry: GovernanceEntry,
): { kind: PolicyVersion['kind']; text: string; signed: readonly string[] } | null {
  switch (entry.kind) {
    case 'policy-typed':
    case 'policy-begun':
      return { kind: 'first', text: entry.body.document, signed: entry.body.possessions }
    case 'policy-reset-begun':
      return { kind: 'reset', text: entry.body.document, signed: entry.body.possessions }
    case 'policy-change':
      return { kind: 'change', text: entry.body.document, signed: entry.body.approvals }
    default:
      return null
  }
}

function signersOf(signed: readonly string[]): PolicyVersion['signed_by'] {
  return signed.map((text) => {
    const { statement } = readSigned(text)
    return { person: statement.by, key: statement.key, at: 'at' in statement ? statement.at : null }
  })
}

/**
 * Returns the documents that were in force at this node, newest first. They are read from its record.
 * @param before only documents with a smaller number
 * @throws Refusal `RECORD_UNREADABLE`
 */
export function policyVersions(
  { policies, store }: Parts,
  workspace: string,
  { before = Infinity, limit }: { before?: number | undefined; limit: number },
): PolicyVersion[] {
  const { chain } = policies.held(workspace)
  const wanted = new Map(
    chain
      .map(({ hash, acts_at_s: since, resetBy }, at) => {
        const kind: PolicyVersion['kind'] = at === 0 ? 'first' : resetBy ? 'reset' : 'change'
        return { hash, kind, since, number: at + 1 }
      })
      .filter(({ number }) => number < before)
      .slice(-limit)
      .map((each) => [each.hash, each]),
  )
  const versions = new Map<number, PolicyVersion>()
  for (const height of store.state.policies.get(workspace) ?? []) {
    const brought = broughtBy(policies.entryAt(height))
    if (brought === null) continue
    const hash = documentHash(readDocument(brought.text))
    const version = wanted.get(hash)
    // The document of a reset may have been proposed as a change before, which did not come into force.
    if (version?.kind !== brought.kind || versions.has(version.number)) continue
    const signed_by = signersOf(brought.signed)
    versions.set(version.number, { ...version, document: brought.text, signed_by })
  }
  return [...versions.values()].sort((a, b) => b.number - a.number)
}
