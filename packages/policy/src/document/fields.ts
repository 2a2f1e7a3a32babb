import { networkMode, text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { AMOUNT } from '../amounts.ts'
import { LIMITS } from '../limits.ts'

/** Identifier that the author of a document chooses: of a person, key, group, rule or window. */
export const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/, 'must be 1 to 64 of a-z, 0-9, ".", "_", "-"')
  .meta({ maxLength: 64 })

/** Lower-case hexadecimal SHA-256. */
export const sha256Hex = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits')
  .meta({ maxLength: 64 })

/** Name of a workspace. */
export const workspaceName = text(200)

/** Name of a sub-account. It may contain any printable character, "/" included. */
export const subAccountName = text(200)

export const mode = networkMode

/** An API key: the identifier by which a caller's requests name it. */
export const apiKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 of A-Z, a-z, 0-9, "_", "-"')
  .meta({ maxLength: 100 })

export const assetName = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, "_", ".", "-"')
  .meta({ maxLength: 64 })
export const networkCode = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,32}$/, 'must be 1 to 32 of A-Z, a-z, 0-9, "_", ".", "-"')
  .meta({ maxLength: 32 })

/**
 * An address or contract: visible characters of ASCII without spaces, so that it cannot imitate the
 * rest of a sentence.
 */
export const addressText = z
  .string()
  .regex(/^[!-~]{1,256}$/, 'must be 1 to 256 visible ASCII characters without spaces')
  .meta({ maxLength: 256 })

/** Decimal amount in the asset's unit. */
const amount = z.string().max(80).regex(AMOUNT, 'must be a decimal number as text, such as "0.5"')

/** Amounts by asset. */
export const amounts = z
  .record(assetName, amount)
  .refine((value) => Object.keys(value).length > 0, 'must name at least one asset')
  .refine(
    (value) => Object.keys(value).length <= LIMITS.amounts,
    `must name at most ${LIMITS.amounts} assets`,
  )
  .meta({ minProperties: 1, maxProperties: LIMITS.amounts })

/** Unix time in whole seconds. */
export const seconds = z.int().min(0).max(9_999_999_999)

/** A list without repetitions. */
export const distinct = <T extends z.ZodType<string>>(element: T, max: number, min = 1) =>
  z
    .array(element)
    .min(min, min === 1 ? 'must not be empty' : `must have at least ${min} entries`)
    .max(max, `must have at most ${max} entries`)
    .refine((value) => new Set(value).size === value.length, 'must not name an entry twice')
