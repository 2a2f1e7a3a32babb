import { statementHash, type Passkey, type Statement } from '@custody/policy'
import { ApproverError } from '../errors.ts'
import { passkeysOf } from '../verify/approval.ts'
import {
  changeStatement,
  changeView,
  CHOICES,
  newPasskeysOf,
  verifyChange,
  type Choice,
  type VerifiedChange,
} from '../verify/change.ts'
import type { ChallengeView, ChangeView, DecisionView } from '../views.ts'
import { Attempts, changed, Reviews } from './attempts.ts'
import {
  APPROVAL_S,
  assertionOf,
  assertSigned,
  challengeView,
  idOf,
  textOf,
  type Call,
  type Pending,
  type Services,
} from './call-parts.ts'

/** What the page is about to sign about a change. */
interface PendingChange extends Pending {
  id: string
  choice: Choice
}

/** Returns a hash of both documents and the time of a change. */
const fingerprintOf = (verified: VerifiedChange): string =>
  statementHash(changeStatement(verified, 'approve', { by: '', key: '', at: 0, expires: 0 }))

const isChoice = (value: string): value is Choice => (CHOICES as readonly string[]).includes(value)

/** States in which a person can still do something. */
const OPEN: Record<Choice, readonly string[]> = {
  approve: ['open'],
  reject: ['open', 'approved', 'held'],
  prove: ['open'],
}

/** Calls of the view of a policy change. */
export function changeCalls(services: Services): Record<string, Call> {
  const { config, place, documents, platform, now } = services
  const { person, origin } = config
  const attempts = new Attempts<PendingChange>(now)
  const reviews = new Reviews<VerifiedChange>(now)
  const review = (verified: VerifiedChange) => reviews.add(verified)
  const own = () => ({ person, origin, now_s: Math.floor(now() / 1000), review })
  /** Reads a change, and the document in force if it is not known. */
  const read = async (id: string) => {
    const detail = await platform.change(id)
    if (documents.find(detail.statement.policy.hash) === undefined)
      documents.add(await platform.document())
    return detail
  }
  return {
    async change(input): Promise<ChangeView> {
      const id = idOf(input)
      return changeView(place, documents, id, await read(id), own())
    },
    async 'change-challenge'(input): Promise<ChallengeView> {
      const id = idOf(input)
      const choice = textOf(input, 'choice')
      if (!isChoice(choice))
        throw new ApproverError('INPUT', `choice must be ${CHOICES.join(', ')}`)
      const verified = reviews.read(textOf(input, 'review'))
      const detail = await read(id)
      // Only what the page displayed is signed, whatever the platform returns now.
      const present = verifyChange(place, documents, id, detail)
      if (fingerprintOf(present) !== fingerprintOf(verified)) changed()
      if (!OPEN[choice].includes(detail.state))
        throw new ApproverError('APPROVAL_CLOSED', `the change is ${detail.state}`)
      const { inForce, next } = verified
      const keys =
        choice === 'prove'
          ? newPasskeysOf(verified, own())
          : passkeysOf(inForce.document, person, origin)
      const name = textOf(input, 'key')
      const key = keys.find((each) => each.id === name) ?? noPasskey(name, person)
      const at = own().now_s
      const signer = { by: person, key: key.id, at, expires: at + APPROVAL_S }
      const statement = changeStatement(verified, choice, signer)
      const policy = choice === 'prove' ? next : inForce
      return challengeView(attempts.open({ statement, policy, id, choice }), statement, key)
    },
    async 'change-decide'(input): Promise<DecisionView> {
      const { statement, policy, id, choice } = attempts.take(textOf(input, 'attempt'))
      const passkey = assertionOf(input)
      assertSigned(policy, statement, passkey, own().now_s)
      const { by, key } = statement
      if (choice === 'prove') return platform.prove(id, { by, key, passkey })
      const { at, expires } = statement as Extract<Statement, { expires: number }>
      return platform.give(id, { by, key, decision: choice, at, expires, passkey })
    },
  }
}

function noPasskey(name: string, person: string): Passkey {
  throw new ApproverError(
    'NO_PASSKEY',
    `the policy document has no passkey ${name} of ${person} for this page`,
  )
}
