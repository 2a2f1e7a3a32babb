import type { PolicyDocument } from '../document/shape.ts'
import { compile, type Policy } from '../evaluation/compile.ts'
import type { Finding, LintContext } from './finding.ts'
import { findAmountFaults } from './lint-amounts.ts'
import { findUnapplied } from './lint-applied.ts'
import { findFeeFaults } from './lint-fees.ts'
import { findChainFaults, findOperationalFaults, findUnchecked } from './lint-context.ts'
import { findPeopleFaults, findQuorumFaults } from './lint-people.ts'
import { findRuleFaults } from './lint-rules.ts'
import { findSpellingFaults } from './lint-spelling.ts'

/**
 * Checks a document for everything that its shape cannot state.
 * @param document from `readDocument`
 * @returns all findings, errors first
 */
export function lint(document: PolicyDocument, context: LintContext): Finding[] {
  const early = [
    ...findPeopleFaults(document, context),
    ...findAmountFaults(document, context.registry),
    ...findSpellingFaults(document, context.registry),
    ...findChainFaults(document, context),
  ]
  let policy: Policy | null = null
  if (!early.some(({ severity }) => severity === 'error'))
    policy = compile(document, context.registry)
  const late = policy
    ? [
        ...findQuorumFaults(policy),
        ...findRuleFaults(policy),
        ...findFeeFaults(document, context.registry),
        ...findUnapplied(document),
        ...findOperationalFaults(policy, context),
        ...findUnchecked(document, context),
      ]
    : []
  const all = [...early, ...late]
  return [
    ...all.filter(({ severity }) => severity === 'error'),
    ...all.filter(({ severity }) => severity !== 'error'),
  ]
}
