import { LIMITS, type Passkey, type Policy, type Statement } from '@custody/policy'
import { ApproverError } from '../errors.ts'
import {
  keysOf,
  pendingViews,
  policyOf,
  rightsOf,
  stopView,
  verifiedStop,
} from '../verify/emergency.ts'
import type { ChallengeView, EmergencyView } from '../views.ts'
import { Attempts } from './attempts.ts'
import type { Platform } from './platform.ts'
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

/** Returns the fields of the statement that an act signs. @throws ApproverError */
async function fieldsOf(
  platform: Platform,
  act: string,
  input: Input,
  policy: Policy,
): Promise<object> {
  const inForce = { number: policy.document.number, hash: policy.hash }
  if (act === 'stop') return { kind: 'stop', ...stopFields(input) }
  const hash = hashOf(input)
  if (act === 'veto')
    return { kind: 'veto', policy: inForce, next: { number: inForce.number + 1, hash } }
  if (act !== 'resume') throw new ApproverError('INPUT', 'act must be stop, resume or veto')
  const signed = await platform.stopText(hash)
  if (signed === null)
    throw new ApproverError('STOP', 'the stop was not sent over the API, so its file ends it')
  verifiedStop(policy, hash, signed)
  return { kind: 'resume', policy: inForce, stop: hash }
}

/** Returns what the view "Emergency" displays. */
async function viewOf({ config, place, platform }: Services): Promise<EmergencyView> {
  const state = await platform.policy()
  const policy = policyOf(place, state)
  const stops = await Promise.all(
    state.stops.map(async ({ hash }) => stopView(policy, hash, await platform.stopText(hash))),
  )
  return {
    ...rightsOf(policy, config.person),
    number: policy.document.number,
    hash: policy.hash,
    stops,
    pending: pendingViews(place, policy, state),
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
  const nowS = () => Math.floor(now() / 1000)
  return {
    emergency: () => viewOf(services),
    async 'emergency-challenge'(input): Promise<ChallengeView> {
      const act = textOf(input, 'act')
      const policy = policyOf(place, await platform.policy())
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
        ...(await fieldsOf(platform, act, input, policy)),
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
