import { LIMITS } from '@custody/policy'
import { z } from 'zod'

const KEYS_MAX = LIMITS.people * LIMITS.keysOfPerson
const name = (description: string) => z.string().max(64).meta({ description })

/** Keys whose holders have not proved that they hold them. */
export const missingShape = z
  .array(
    z
      .object({
        person: name('ID of the person in the proposed document'),
        key: name('ID of a key of that person'),
      })
      .meta({ id: 'PolicyKey', examples: [{ person: 'dave', key: 'k1' }] }),
  )
  .max(KEYS_MAX)
  .meta({ description: 'New keys whose holders have not proved that they hold them' })

const policyRef = z.strictObject({
  number: z.int().min(1).max(1_000_000_000),
  hash: z.string().max(64),
})

/** What every approval of a change signs, without the fields of its signer. */
export const changeStatementShape = z
  .strictObject({
    v: z.literal(1),
    mode: z.string().max(20),
    workspace: z.string().max(128),
    nodes: z
      .string()
      .max(64)
      .meta({ description: 'Hash of the identity keys of the signer nodes' }),
    policy: policyRef,
    next: policyRef,
    acts_at: z.int().min(0).max(9_999_999_999).meta({
      description: 'Time that all approvals name, in Unix seconds',
    }),
  })
  .meta({ id: 'PolicyChangeStatement' })
