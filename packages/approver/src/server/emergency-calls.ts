import { LIMITS, type Passkey, type Policy, type Statement } from '@custody/policy'
import { ApproverError } from '../errors.ts'
import {
  asStated,
  keysOf,
  pendingViews,
  policyOf,
  rightsOf,
  stopView,
  unstatedReason,
} from '../verify/emergency.ts'
import type { ChallengeView, EmergencyView } from '../views.ts'
import { Attempts, changed, Reviews } from './attempts.ts'
import {
  APPROVAL_S,
  assertionOf,
  assertSigned,
  challengeView,
  textOf,
  type Call,
  type Pending,
  type Services,
} from './call-parts.ts'

type Emergency = Extract<Statement, { kind: 'stop' | 'resume' | 'veto' }>
type Input = Record<string, unknown>

const HASH = /^[0-9a-f]{64}$/
const REASON_MAX = 200

function hashOf(input: Input): string {
  const hash = textOf(input, 'hash')
  if (!HASH.test(hash)) throw new ApproverError('INPUT', 'hash must be 64 lower-case hex digits')
  return hash
}

function stopFields(input: Input): { sub_account: string | null; reason: string } {
  const name = textOf(input, 'sub_account')
  const reason = textOf(input, 'reason').trim()
  if (reason.length < 1 || reason.length > REASON_MAX)
    throw new ApproverError('INPUT', `reason must have 1 to ${REASON_MAX} characters`)
  return { sub_account: name === '' ? null : name, reason }
}

/** What the view "Emergency" displayed. */
interface Reviewed {
  policy: Policy
  /** Hashes of the stops that were verified. */
  stops: ReadonlySet<string>
  /** Hashes of the pending documents. */
  pending: ReadonlySet<string>
}

/**
 * Returns the fields of the statement by which a displayed stop ends or a displayed change is vetoed.
 * @throws ApproverError
 */
function fieldsOf(act: string, hash: string, { policy, stops, pending }: Reviewed): object {
  const inForce = { number: policy.document.number, hash: policy.hash }
  if (act === 'veto') {
    if (!pending.has(hash)) throw new ApproverError('INPUT', 'hash is of no displayed change')
    return { kind: 'veto', policy: inForce, next: { number: inForce.number + 1, hash } }
  }
  if (!stops.has(hash))
    throw new ApproverError('STOP', 'the stop was not verified on this page: its file ends it')
  return { kind: 'resume', policy: inForce, stop: hash }
}

/** Returns what the view "Emergency" displays. `review` stores it and returns its handle. */
async function viewOf(
  { config, place, trust, platform, now }: Services,
  review: (reviewed: Reviewed) => string,
): Promise<EmergencyView> {
  const state = await platform.policy()
  const policy = policyOf(place, state)
  const now_s = Math.floor(now() / 1000)
  const unstated = unstatedReason(place, trust, state, now_s)
  const returned = await Promise.all(
    state.stops.map(async ({ hash }) => {
      const view = stopView(policy, hash, await platform.stopText(hash), now_s)
      return { ...view, refusal: view.refusal ?? unstated }
    }),
  )
  const stops = asStated(place, trust, { state, policy, now_s }, returned)
  const pending = pendingViews(place, policy, state)
  const verified = stops.filter(({ refusal }) => refusal === null)
  return {
    review: review({
      policy,
      stops: new Set(verified.map(({ hash }) => hash)),
      pending: new Set(pending.map(({ hash }) => hash)),
    }),
    ...rightsOf(policy, config.person),
    number: policy.document.number,
    hash: policy.hash,
    stops,
    pending,
    keys: keysOf(policy, config.person, config.origin).map(({ id, alg, credential }) => ({
      id,
      alg,
      credential,
    })),
  }
}

/** Calls of the view "Emergency": stop, the end of a stop, and veto. */
export function emergencyCalls(services: Services): Record<string, Call> {
  const { config, place, platform, now } = services
  const { person, origin } = config
  const attempts = new Attempts<Pending<Emergency>>(now)
  const reviews = new Reviews<Reviewed>(now)
  const nowS = () => Math.floor(now() / 1000)
  /** Returns what an act signs. A stop contains only what the person has typed. */
  const actOf = async (act: string, input: Input): Promise<{ policy: Policy; fields: object }> => {
    if (act === 'stop')
      return {
        policy: policyOf(place, await platform.policy()),
        fields: { kind: 'stop', ...stopFields(input) },
      }
    if (act !== 'resume' && act !== 'veto')
      throw new ApproverError('INPUT', 'act must be stop, resume or veto')
    const hash = hashOf(input)
    const reviewed = reviews.read(textOf(input, 'review'))
    const fields = fieldsOf(act, hash, reviewed)
    if (policyOf(place, await platform.policy()).hash !== reviewed.policy.hash) changed()
    return { policy: reviewed.policy, fields }
  }
  return {
    emergency: () => viewOf(services, (reviewed) => reviews.add(reviewed)),
    async 'emergency-challenge'(input): Promise<ChallengeView> {
      const act = textOf(input, 'act')
      const { policy, fields } = await actOf(act, input)
      const key = keyOf(policy, textOf(input, 'key'), { person, origin })
      const { mode, workspace, nodes } = policy.document
      const at = nowS()
      const statement = {
        v: 1,
        mode,
        workspace,
        nodes,
        by: person,
        key: key.id,
        at,
        expires: at + (act === 'resume' ? APPROVAL_S : LIMITS.statementS),
        ...fields,
      } as Emergency
      return challengeView(attempts.open({ statement, policy }), statement, key)
    },
    async 'emergency-send'(input): Promise<{ text: string }> {
      const { statement, policy } = attempts.take(textOf(input, 'attempt'))
      const passkey = assertionOf(input)
      assertSigned(policy, statement, passkey, nowS())
      const { by, key, at, expires } = statement
      const signer = { by, key, at, expires, passkey }
      if (statement.kind === 'stop') {
        const { sub_account, reason } = statement
        const { stopped } = await platform.stop({ ...signer, sub_account, reason })
        return { text: `Signing is stopped at the signer nodes ${stopped.join(', ')}.` }
      }
      if (statement.kind === 'veto') {
        const { vetoed } = await platform.veto({ ...signer, hash: statement.next.hash })
        return { text: `The change is vetoed at the signer nodes ${vetoed.join(', ')}.` }
      }
      const { state, needs } = await platform.resume({ ...signer, stop: statement.stop })
      const so = needs.map(({ group, k, have }) => `${have} of ${k} of ${group}`).join(' and ')
      return {
        text: state === 'resumed' ? 'The stop has ended.' : `Approvals of its end so far: ${so}.`,
      }
    },
  }
}

/** Returns the person's passkey with an ID. @throws ApproverError `NO_PASSKEY` */
function keyOf(policy: Policy, id: string, own: { person: string; origin: string }): Passkey {
  const found = keysOf(policy, own.person, own.origin).find((key) => key.id === id)
  if (found) return found
  throw new ApproverError(
    'NO_PASSKEY',
    `the policy document has no passkey ${id} of ${own.person} for this page`,
  )
}
