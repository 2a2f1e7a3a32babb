import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { apiKey, distinct, name } from './fields.ts'

const alg = z.enum(['Ed25519', 'ES256'], 'must be Ed25519 or ES256')
const spki = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64 of a SubjectPublicKeyInfo')

/** A key that signs statements itself: a file, a hardware token, or a machine. */
const signingKey = z.strictObject({ id: name, kind: z.literal('key'), alg, spki })

/**
 * A passkey. `device_bound` requires assertions without the flag "backup eligible". This is the
 * authenticator's word: it prevents synchronization by mistake, and not a forged authenticator.
 */
const passkey = z.strictObject({
  id: name,
  kind: z.literal('passkey'),
  alg,
  spki,
  credential: z
    .string()
    .regex(/^[A-Za-z0-9_-]{16,1366}$/, 'must be base64url of a credential ID')
    .meta({ maxLength: 1366 }),
  rp_id: z
    .string()
    .regex(/^[a-z0-9.-]{1,253}$/, 'must be a domain in lower case')
    .meta({ maxLength: 253 }),
  origins: distinct(
    z
      .string()
      .max(300)
      .regex(
        /^(?:https:\/\/[a-z0-9.-]+|http:\/\/localhost)(?::[1-9]\d{0,4})?$/,
        'must be an https origin, or http://localhost with a port',
      ),
    5,
  ),
  device_bound: z.boolean(),
})

/** Public key of a person. */
export const personKey = z.discriminatedUnion('kind', [signingKey, passkey])

/** A person, or a machine that has keys of its own. */
export const person = z.strictObject({
  id: name,
  name: text(100),
  machine: z.literal(true).optional(),
  api_keys: distinct(apiKey, LIMITS.apiKeysOfPerson, 0),
  keys: z
    .array(personKey)
    .max(LIMITS.keysOfPerson, `must have at most ${LIMITS.keysOfPerson} keys`),
})

/** A quorum: `k` distinct people of a group. */
const approval = z.strictObject({ group: name, k: z.int().min(1).max(LIMITS.approvals) })

/** Quorums that must all be reached. Each person counts for one group only. */
export const approvals = z
  .array(approval)
  .min(1, 'must not be empty')
  .max(LIMITS.approvalGroups, `must have at most ${LIMITS.approvalGroups} groups`)
  .refine(
    (value) => new Set(value.map(({ group }) => group)).size === value.length,
    'must not name a group twice',
  )
  .refine(
    (value) => value.reduce((sum, { k }) => sum + k, 0) <= LIMITS.approvals,
    `must need at most ${LIMITS.approvals} people in total`,
  )

export type PersonKey = z.output<typeof personKey>
export type Person = z.output<typeof person>
export type Approvals = z.output<typeof approvals>
