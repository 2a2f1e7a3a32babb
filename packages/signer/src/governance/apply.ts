import {
  canonicalText,
  compile,
  firstInForce,
  PolicyError,
  readDocument,
  withEffect,
  withPolicy,
  type Policy,
  type PolicyRegistry,
} from '@custody/policy'
import { withEnrolment } from './enrolments.ts'
import { governanceOf, heldAt, knownByPeers, NOTHING_HELD, type Held } from './held.ts'
import type { Judged, JudgedOf } from './items.ts'
import { withStanding } from './standing.ts'

/** Kinds whose entries are complete without an effect. */
type Plain = 'policy-known' | 'policy-uninstalled'
/** An entry with its effect. */
type WithEffect<K extends Exclude<Judged['kind'], Plain>> = {
  [Each in K]: {
    kind: Each
    body: JudgedOf<Each>['body'] & { effect: NonNullable<JudgedOf<Each>['body']['effect']> }
  }
}[K]

/** Returns whether an entry is complete without an effect. */
export const isPlain = (entry: Judged): entry is JudgedOf<Plain> =>
  entry.kind === 'policy-known' || entry.kind === 'policy-uninstalled'

/**
 * Returns what a node holds after an entry that was judged before: live, and whenever the record is
 * read. Nothing else changes what a node holds, except time ({@link heldAt}). No statement is verified
 * and no rule is applied, so a later version with stricter rules reads the same.
 * @throws PolicyError if the entry cannot be read by this version, or belongs to another document
 */
export function applied(before: Held, entry: Judged, registry: PolicyRegistry): Held {
  if (isPlain(entry)) return withPlain(before, entry)
  const { effect } = entry.body
  if (effect === undefined) throw new PolicyError('FORMAT', 'effect', 'is missing')
  const held = heldAt(before, effect.now_s)
  const inForce = held.governance?.policy.hash ?? null
  if (inForce !== effect.in_force)
    throw new PolicyError(
      'OTHER_POLICY',
      'effect.in_force',
      `is ${effect.in_force}, and ${inForce} is in force`,
    )
  return withoutEndedReset(changed(held, entry as WithEffect<typeof entry.kind>, registry))
}

function withPlain(before: Held, entry: JudgedOf<Plain>): Held {
  if (entry.kind === 'policy-uninstalled') return { ...NOTHING_HELD, removed: entry.body.removed }
  const { first, number, hash, chain } = entry.body
  // A restoration that is repeated with an older file does not replace the later policy.
  if (before.known !== null && before.known.number >= number) return before
  return { ...before, known: { first, number, hash, chain } }
}

/**
 * A change that comes into force, or that will, ends a reset: enough people are left to change the
 * policy.
 */
function withoutEndedReset(held: Held): Held {
  const { reset, governance } = held
  if (reset === null) return held
  const isOpen = governance?.next === null && governance.policy.hash === reset.previous
  return isOpen ? held : { ...held, reset: null }
}

/** Returns the compiled document of an entry. @throws PolicyError */
function policyOf({ document }: { document: string }, registry: PolicyRegistry): Policy {
  return compile(readDocument(document), registry)
}

function changed(
  held: Held,
  entry: WithEffect<Exclude<Judged['kind'], Plain>>,
  registry: PolicyRegistry,
): Held {
  switch (entry.kind) {
    case 'policy-typed': {
      const { document, possessions, effect } = entry.body
      const { hash } = effect
      const removed = held.removed.filter((each) => each !== hash)
      return { ...held, removed, typed: { hash, document, possessions } }
    }
    case 'policy-begun': {
      const { at_s, effect } = entry.body
      const governance = firstInForce(policyOf(entry.body, registry))
      const chain = [{ hash: effect.hash, seen_at_s: at_s, acts_at_s: at_s, before: null }]
      return { ...held, governance, chain }
    }
    case 'policy-change':
    case 'policy-statement':
    case 'policy-resumed':
    case 'policy-confirmed': {
      const next = entry.kind === 'policy-change' ? policyOf(entry.body, registry) : null
      const { effect } = entry.body
      return { ...held, governance: withEffect(governanceOf(held), effect, next, effect.now_s) }
    }
    case 'policy-approved': {
      const { effect, node } = entry.body
      return effect.type === 'enrolment'
        ? { ...held, enrolments: withEnrolment(held.enrolments, effect) }
        : { ...held, approved: withStanding(held.approved, effect, node) }
    }
    case 'policy-followed': {
      const { chain, effect } = entry.body
      const known = knownByPeers(chain)
      const first = held.chain[effect.kept]
      if (first === undefined) return { ...held, known }
      return { ...held, governance: first.before, chain: held.chain.slice(0, effect.kept), known }
    }
    case 'policy-reset-typed':
    case 'policy-reset-complete':
    case 'policy-reset-withdrawn':
      return withReset(held, entry)
    case 'policy-reset-begun': {
      const { at_s, words, effect } = entry.body
      const governance = governanceOf(held)
      const before = { ...governance, next: null }
      const inForce = { hash: effect.hash, seen_at_s: at_s, acts_at_s: at_s, before }
      return {
        ...held,
        governance: withPolicy(governance, policyOf(entry.body, registry), effect.now_s),
        chain: [...held.chain, { ...inForce, resetBy: words }],
      }
    }
  }
}

type OfReset = 'policy-reset-typed' | 'policy-reset-complete' | 'policy-reset-withdrawn'

function withReset(held: Held, { kind, body }: WithEffect<OfReset>): Held {
  if (kind === 'policy-reset-typed') {
    const { document, possessions, at_s, effect } = body
    const { hash, number, previous } = effect
    const text = canonicalText(readDocument(document))
    const common = { hash, number, previous, document: text, possessions }
    const reset = { ...common, given_at_s: at_s, complete: null }
    return { ...held, reset, enteredResets: [...held.enteredResets, hash] }
  }
  if (held.reset?.hash !== body.hash) return held
  if (kind === 'policy-reset-withdrawn') return { ...held, reset: null }
  return { ...held, reset: { ...held.reset, complete: { at_s: body.at_s, words: body.words } } }
}
