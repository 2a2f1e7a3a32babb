import {
  install,
  judgeChange,
  judgeConfirmation,
  judgeReinstatement,
  judgeResume,
  judgeStatement,
  PolicyError,
  readDocument,
  readSigned,
  verifyStatement,
  type Place,
  type Policy,
  type PolicyRegistry,
  type Present,
  type ProvenDocument,
  type SignedStatement,
} from '@custody/policy'
import { isPlain } from './apply.ts'
import { isOfEnrolment, judgeEnrolment } from './enrolments.ts'
import {
  assertNotAnother,
  governanceOf,
  isBehindKnown,
  isOfBackup,
  keptBy,
  knownByPeers,
  type Held,
} from './held.ts'
import type { Judged, JudgedOf } from './items.ts'
import { isSignedNatively } from './native-verify.ts'
import { hashOfText, isReady, resetOf, resetPolicy } from './reset-rules.ts'
import { judgeStanding } from './standing.ts'

/** What a node needs to judge entries. */
export interface Rules {
  readonly registry: PolicyRegistry
  readonly place: Omit<Place, 'workspace'>
}

const verify: NonNullable<Present['verify']> = (policy, signed, context) =>
  verifyStatement(policy, signed, { ...context, isSigned: isSignedNatively })

const signedOf = (texts: readonly string[]): SignedStatement[] => texts.map(readSigned)

const provenOf = (body: { document: string; possessions: readonly string[] }): ProvenDocument => ({
  document: readDocument(body.document),
  possessions: signedOf(body.possessions),
})

/**
 * Judges an entry before it is recorded.
 * @param held what the node holds at `now_s`
 * @param now_s Unix seconds. The statements of the entry are judged by its own time `at_s`, which is
 *   earlier if a peer saw them before they expired
 * @returns the entry with its effect; null if it changes nothing
 * @throws PolicyError if it is refused
 */
export function judge(held: Held, entry: Judged, rules: Rules, now_s: number): Judged | null {
  if (isPlain(entry)) return entry
  const effect = effectOf(held, entry, rules)
  if (effect === null) return null
  const by = { now_s, in_force: held.governance?.policy.hash ?? null }
  return { ...entry, body: { ...entry.body, effect: { ...by, ...effect } } } as Judged
}

/** Returns the effect of an entry, or null if it changes nothing. @throws PolicyError */
function effectOf(
  held: Held,
  entry: Exclude<Judged, JudgedOf<'policy-known' | 'policy-uninstalled'>>,
  rules: Rules,
): object | null {
  switch (entry.kind) {
    case 'policy-typed':
    case 'policy-begun':
      return firstEffect(held, entry, rules)
    case 'policy-change':
      return changeEffect(held, entry.body, rules)
    case 'policy-statement':
      return judgeStatement(governanceOf(held), readSigned(entry.body.signed), {
        now_s: entry.body.at_s,
        verify,
      })
    case 'policy-resumed': {
      const { stop, approvals, at_s } = entry.body
      const signed = { stopped: readSigned(stop), approvals: signedOf(approvals) }
      const present = { now_s: at_s, verify }
      return judgeResume(governanceOf(held), signed, present, earlierPolicies(held))
    }
    case 'policy-confirmed':
      return judgeConfirmation(governanceOf(held), entry.body.hash, entry.body.node)
    case 'policy-approved': {
      const documents = { governance: governanceOf(held), chain: held.chain }
      return isOfEnrolment(entry.body.approvals)
        ? judgeEnrolment(documents, held.enrolments, entry.body, verify)
        : judgeStanding(documents, held.approved, entry.body, verify)
    }
    case 'policy-followed': {
      const { chain } = entry.body
      const kept = keptBy(held, chain)
      const isSame = kept === held.chain.length
      const isMissing =
        isBehindKnown(held) || isBehindKnown({ ...held, known: knownByPeers(chain) })
      return isSame && !isMissing ? null : { kept }
    }
    default:
      return resetEffect(held, entry, rules)
  }
}

/** Returns the documents before the one in force, the first one first. */
const earlierPolicies = ({ chain }: Held): Policy[] =>
  chain.flatMap(({ before }) => before?.policy ?? [])

function firstEffect(
  held: Held,
  { kind, body }: JudgedOf<'policy-typed' | 'policy-begun'>,
  { registry, place }: Rules,
): object | null {
  if (held.governance !== null) {
    if (held.chain[0]?.hash === hashOfText(body.document)) return null
    throw new PolicyError('PENDING', '', 'Another first document is in force')
  }
  const { workspace, at_s: now_s } = body
  const where = { ...place, workspace }
  const { policy } = install(provenOf(body), where, { registry }, { now_s, verify })
  const isTyped = kind === 'policy-typed' && held.typed?.hash === policy.hash
  return isTyped ? null : { hash: policy.hash }
}

function changeEffect(
  held: Held,
  body: JudgedOf<'policy-change'>['body'],
  { registry }: Rules,
): object | null {
  assertNotAnother(held, body.document)
  const proposal = { ...provenOf(body), approvals: signedOf(body.approvals) }
  const present = { now_s: body.at_s, verify }
  const governance = governanceOf(held)
  return isOfBackup(held, body.document)
    ? judgeReinstatement(governance, proposal, { registry }, present)
    : judgeChange(governance, proposal, { registry }, present, body.witnesses)
}

type OfReset = JudgedOf<
  'policy-reset-typed' | 'policy-reset-complete' | 'policy-reset-withdrawn' | 'policy-reset-begun'
>

/** Returns the effect of an entry about a reset, or null if it changes nothing. @throws PolicyError */
function resetEffect(held: Held, { kind, body }: OfReset, rules: Rules): object | null {
  const governance = governanceOf(held)
  if (kind === 'policy-reset-begun') return resetBegunEffect(held, body, rules)
  if (kind === 'policy-reset-typed') {
    if (isBehindKnown(held))
      throw new PolicyError('OTHER_POLICY', '', 'This node does not have its latest policy yet')
    const { hash, number, previous } = resetOf(governance, body, { ...rules, verify }, body.at_s)
    return held.reset?.hash === hash ? null : { hash, number, previous }
  }
  if (held.reset?.hash !== body.hash)
    throw new PolicyError('OTHER_POLICY', 'hash', 'is not the hash of the reset entered here')
  return kind === 'policy-reset-complete' && held.reset.complete !== null ? null : {}
}

/**
 * Judges the document of a reset that comes into force: seven days after the statements of all three
 * nodes, or at once if this node must have it.
 * @returns null if it was in force here already
 * @throws PolicyError `NOT_ALLOWED` if neither is true
 */
function resetBegunEffect(
  held: Held,
  body: JudgedOf<'policy-reset-begun'>['body'],
  rules: Rules,
): object | null {
  const { at_s, is_known } = body
  const hash = hashOfText(body.document)
  if (held.chain.some((each) => each.hash === hash)) return null
  const { reset } = held
  const isAllowed = is_known
    ? isOfBackup(held, body.document)
    : reset?.hash === hash && isReady(reset, at_s)
  if (!isAllowed)
    throw new PolicyError(
      'NOT_ALLOWED',
      '',
      'The operators of all nodes have not entered this reset',
    )
  resetPolicy(governanceOf(held), body, { ...rules, verify }, at_s)
  return { hash }
}
