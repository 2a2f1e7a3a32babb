import { text } from '@custody/request-auth/bodies'
import { canonicalJson } from '@custody/request-auth/web'
import { base64urlnopad } from '@scure/base'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { z } from 'zod'
import {
  mode,
  name,
  seconds,
  sha256Hex,
  subAccountName,
  workspaceName,
} from '../document/fields.ts'
import { ACTIONS } from '../document/rules.ts'
import { actFacts, enrolmentFacts, orderFacts, type OrderFacts } from '../facts.ts'

const number = z.int().min(1).max(1_000_000_000)
const policy = z.strictObject({ number, hash: sha256Hex })

/** Fields of every statement: where it applies, and who signs it with which key. */
const common = {
  v: z.literal(1),
  mode,
  workspace: workspaceName,
  nodes: sha256Hex,
  by: name,
  key: name,
}
/** Times in Unix seconds. */
const timed = { ...common, at: seconds, expires: seconds }

/** Orders of operators about gas tanks that people approve. */
export type OrderAction = 'drain' | 'tank-stake'

const approvalFields = {
  kind: z.literal('approval'),
  ...timed,
  /** Document in force. An approval does not hold under another one. */
  policy,
  /** Public ID of the transfer, API key or order. */
  id: text(100),
  /** Hash of the signed request's content. */
  subject: sha256Hex,
  decision: z.enum(['approve', 'reject']),
}

/** Returns whether an order about a gas tank has the facts of its action, and no others. */
function isOrder(action: OrderAction, { amount, to, tag, resource }: OrderFacts): boolean {
  const isDrain = action === 'drain'
  return (
    (amount === null) === isDrain &&
    (to !== null) === isDrain &&
    (resource === null) === isDrain &&
    (isDrain || tag === null)
  )
}

const approval = z
  .discriminatedUnion('action', [
    z.strictObject({ ...approvalFields, action: z.enum(ACTIONS), facts: actFacts }),
    z.strictObject({ ...approvalFields, action: z.literal('enrolment'), facts: enrolmentFacts }),
    z.strictObject({ ...approvalFields, action: z.literal('drain'), facts: orderFacts }),
    z.strictObject({ ...approvalFields, action: z.literal('tank-stake'), facts: orderFacts }),
  ])
  .refine((value) => {
    if (value.action === 'enrolment') return true
    if (value.action === 'drain' || value.action === 'tank-stake')
      return isOrder(value.action, value.facts)
    const { amount, standing, fee_max, resource } = value.facts
    const isForward = value.action === 'forward'
    return (
      (standing !== null) === isForward &&
      (amount === null) === isForward &&
      (fee_max === null) === isForward &&
      (resource !== null) === (value.action === 'stake')
    )
  }, 'must have the facts of its action')

/** Proves that the holder of a new key agrees to a document. It never expires. */
const possession = z.strictObject({
  kind: z.literal('possession'),
  ...common,
  policy,
})

/** Approves the next document. */
const change = z.strictObject({
  kind: z.literal('change'),
  ...timed,
  policy,
  next: policy,
  /** Unix seconds at which the next document comes into force. */
  acts_at: seconds,
})

/** Ends a proposed change before it comes into force. */
const veto = z.strictObject({ kind: z.literal('veto'), ...timed, policy, next: policy })

/**
 * Stops signing, for the whole workspace or one sub-account. It does not name a document, so it can
 * be presented after a change.
 */
const stop = z.strictObject({
  kind: z.literal('stop'),
  ...timed,
  /** Null: the whole workspace. */
  sub_account: subAccountName.nullable(),
  reason: text(200),
})

/** Approves the end of a stop, which it names by its hash. A later stop holds. */
const resume = z.strictObject({ kind: z.literal('resume'), ...timed, policy, stop: sha256Hex })

/** A person and one of their keys. */
const target = z.strictObject({ person: name, key: name })

/** Suspends another person's key for seven days. */
const suspend = z.strictObject({ kind: z.literal('suspend'), ...timed, target, reason: text(200) })

/** Revokes one of the signer's own keys. */
const revoke = z.strictObject({ kind: z.literal('revoke'), ...timed, target })

/** Every statement that people sign. */
export const statement = z.union([
  approval,
  possession,
  change,
  veto,
  stop,
  resume,
  suspend,
  revoke,
])
export type Statement = z.output<typeof statement>
export type StatementKind = Statement['kind']
export type StatementOf<Kind extends StatementKind> = Extract<Statement, { kind: Kind }>

export const SHAPES: Readonly<Record<StatementKind, z.ZodType<Statement>>> = {
  approval,
  possession,
  change,
  veto,
  stop,
  resume,
  suspend,
  revoke,
}

/** First line of the bytes of each kind. No domain begins with another one. */
export const DOMAINS: Readonly<Record<StatementKind, string>> = {
  approval: 'custody/approval/v1\n',
  possession: 'custody/policy-possession/v1\n',
  change: 'custody/policy-change/v1\n',
  veto: 'custody/policy-veto/v1\n',
  stop: 'custody/policy-stop/v1\n',
  resume: 'custody/policy-resume/v1\n',
  suspend: 'custody/policy-suspend/v1\n',
  revoke: 'custody/policy-revoke/v1\n',
}

/**
 * Returns the bytes that are signed: the domain of the kind, and the canonical JSON (RFC 8785) of
 * all other fields.
 */
export function statementBytes({ kind, ...fields }: Statement): Uint8Array {
  return utf8ToBytes(DOMAINS[kind] + canonicalJson(fields))
}

/** Returns the name of a statement: lower-case hex SHA-256 of its bytes. */
export const statementHash = (statement: Statement): string =>
  bytesToHex(sha256(statementBytes(statement)))

/**
 * Returns the challenge by which a passkey signs a statement: the SHA-256 of its bytes, as
 * `clientDataJSON` contains it (base64url without padding).
 */
export const challengeOf = (statement: Statement): string =>
  base64urlnopad.encode(sha256(statementBytes(statement)))
