import { decisionStatement, type VerifiedPayment } from '@custody/client/approvals/parts'
import {
  compile,
  statementHash,
  type Passkey,
  type PolicyDocument,
  type PolicyFile,
  type StatementOf,
} from '@custody/policy'
import { randomBytes } from 'node:crypto'
import { rpIdOf } from '../config.ts'
import { ApproverError } from '../errors.ts'
import { detailView, listedView, passkeysOf, verifyApproval } from '../verify/approval.ts'
import { keyOfCreation, type Creation } from '../verify/creation.ts'
import { documentView, possessionStatement, withPossession } from '../verify/document.ts'
import { judged } from '../verify/judged.ts'
import { fileText, parseFile } from '../verify/policy-file.ts'
import type { ChallengeView, CreationView, DecisionView, StateView } from '../views.ts'
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
import { changeCalls } from './change-calls.ts'
import { emergencyCalls } from './emergency-calls.ts'

const CHALLENGE_BYTES = 32

/** Returns a hash of everything that a decision about a transfer signs, except its signer. */
const fingerprintOf = (verified: VerifiedPayment): string =>
  statementHash(
    decisionStatement(verified, { by: '', key: '', decision: 'approve', at: 0, expires: 0 }),
  )

/** Returns the person's passkey with an ID. @throws ApproverError `NO_PASSKEY` */
function passkeyOf({ config }: Services, document: PolicyDocument, id: string): Passkey {
  const own = passkeysOf(document, config.person, config.origin)
  const found = own.find((key) => key.id === id)
  if (found) return found
  throw new ApproverError(
    'NO_PASSKEY',
    `policy document ${document.number} has no passkey ${id} of ${config.person} for ${config.origin}`,
  )
}

/** Calls of the view "Approvals". */
function approvalCalls(services: Services): Record<string, Call> {
  const { config, place, documents, platform, now } = services
  const attempts = new Attempts<Pending<StatementOf<'approval'>>>(now)
  const reviews = new Reviews<VerifiedPayment>(now)
  const review = (verified: VerifiedPayment) => reviews.add(verified)
  const nowS = () => Math.floor(now() / 1000)
  /** Reads a transfer, and the document in force if it is not known. */
  const read = async (id: string) => {
    const detail = await platform.read(id)
    if (documents.find(detail.statement.policy.hash) === undefined)
      documents.add(await platform.document())
    return detail
  }
  return {
    async approvals(input) {
      const after = input['after'] === undefined ? undefined : textOf(input, 'after')
      const { data, next } = await platform.list(after)
      return { data: data.map((each) => listedView(place, each)), next }
    },
    async approval(input) {
      const id = idOf(input)
      const { person, origin } = config
      return detailView(place, documents, id, await read(id), {
        person,
        origin,
        now_s: nowS(),
        review,
      })
    },
    async challenge(input): Promise<ChallengeView> {
      const id = idOf(input)
      const decision = textOf(input, 'decision')
      if (decision !== 'approve' && decision !== 'reject')
        throw new ApproverError('INPUT', 'decision must be approve or reject')
      const verified = reviews.read(textOf(input, 'review'))
      const detail = await read(id)
      // Only what the page displayed is signed, whatever the platform returns now.
      const present = verifyApproval(place, documents, id, detail)
      if (fingerprintOf(present) !== fingerprintOf(verified)) changed()
      if (detail.state !== 'open')
        throw new ApproverError('APPROVAL_CLOSED', `the transfer is ${detail.state}`)
      const key = passkeyOf(services, verified.document, textOf(input, 'key'))
      const at = nowS()
      const fields = { by: config.person, key: key.id, decision, at, expires: at + APPROVAL_S }
      const statement = decisionStatement(verified, fields as never)
      return challengeView(attempts.open({ statement, policy: verified.policy }), statement, key)
    },
    async decide(input): Promise<DecisionView> {
      const { statement, policy } = attempts.take(textOf(input, 'attempt'))
      const passkey = assertionOf(input)
      assertSigned(policy, statement, passkey, nowS())
      const { id, by, key, decision, at, expires } = statement
      const given = await platform.give(id, { by, key, decision, at, expires, passkey })
      return { state: given.state, needs: given.needs }
    },
  }
}

/** Calls of the view "My passkey". */
function passkeyCalls({ config, now }: Services): Record<string, Call> {
  const attempts = new Attempts<string>(now)
  const rpId = rpIdOf(config)
  return {
    async creation(): Promise<CreationView> {
      const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
      return {
        attempt: attempts.open(challenge),
        challenge,
        rp: { id: rpId, name: 'Custody approver' },
        user_id: randomBytes(CHALLENGE_BYTES).toString('base64url'),
        user_name: config.person,
      }
    },
    async created(input) {
      const challenge = attempts.take(textOf(input, 'attempt'))
      const { origin } = config
      const creation: Creation = {
        id: textOf(input, 'id'),
        credential: textOf(input, 'credential'),
        spki: textOf(input, 'spki'),
        algorithm: Number(input['algorithm']),
        client_data: textOf(input, 'client_data'),
        authenticator_data: textOf(input, 'authenticator_data'),
      }
      return keyOfCreation(creation, { challenge, origin, rpId })
    },
  }
}

/** Calls of the view "Sign a document". */
function documentCalls(services: Services): Record<string, Call> {
  const { config, place, documents, now } = services
  const attempts = new Attempts<Pending>(now)
  const nowS = () => Math.floor(now() / 1000)
  const view = (file: PolicyFile) =>
    documentView(place, file, { person: config.person, origin: config.origin, now_s: nowS() })
  /** Reads a file whose document may be signed or kept. @throws ApproverError */
  const readUsable = (input: Record<string, unknown>) => {
    const file = parseFile(textOf(input, 'text'))
    const { refusal, hash } = view(file)
    if (refusal !== null) throw new ApproverError('DOCUMENT', refusal)
    return { file, hash }
  }
  return {
    document: async (input) => view(parseFile(textOf(input, 'text'))),
    async keep(input) {
      const { file, hash } = readUsable(input)
      documents.store(file.document)
      return { hash }
    },
    async possession(input): Promise<ChallengeView> {
      const { file, hash } = readUsable(input)
      const key = passkeyOf(services, file.document, textOf(input, 'key'))
      const statement = possessionStatement(file.document, hash, config.person, key.id)
      const policy = judged(() => compile(file.document, place.registry))
      return challengeView(attempts.open({ statement, policy, file }), statement, key)
    },
    async signed(input) {
      const { statement, policy, file } = attempts.take(textOf(input, 'attempt'))
      const passkey = assertionOf(input)
      assertSigned(policy, statement, passkey, nowS())
      const next = withPossession(file as PolicyFile, { statement, passkey })
      return { text: fileText(next), document: view(next) }
    },
  }
}

/** Returns all calls of the page, by name. */
export function callsOf(services: Services): Map<string, Call> {
  const { config, place } = services
  const state = async (): Promise<StateView> => ({
    person: config.person,
    origin: config.origin,
    rp_id: rpIdOf(config),
    platform: config.platform,
    workspace: place.workspace,
    sub_account: place.sub_account,
    mode: place.mode,
  })
  return new Map(
    Object.entries({
      state,
      ...approvalCalls(services),
      ...changeCalls(services),
      ...emergencyCalls(services),
      ...passkeyCalls(services),
      ...documentCalls(services),
    }),
  )
}
