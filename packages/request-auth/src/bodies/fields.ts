import { z } from 'zod'
import { JsonNumber } from '../json.ts'

const DECIMAL_LENGTH_MAX = 100
/**
 * Larger amounts are rejected when they are parsed: the database stores 78 digits of the smallest
 * unit.
 */
const DECIMAL_MAX = 1e78
const DECIMAL = /^\d+(\.\d+)?([eE][+-]?\d{1,3})?$/
/** The same without zero: there must be a digit other than 0 before the exponent. */
const POSITIVE = /^(?=[0.]*[1-9])\d+(\.\d+)?([eE][+-]?\d{1,3})?$/

/**
 * Returns the JSON Schema of {@link decimal}: a number, or its digits as a string, for clients that
 * read numbers as doubles.
 * @param description what the decimal is
 */
export const decimalSchema = (description: string) => ({
  anyOf: [
    { type: 'number', minimum: 0, maximum: DECIMAL_MAX },
    { type: 'string', pattern: DECIMAL.source, maxLength: DECIMAL_LENGTH_MAX },
  ],
  description,
})

/**
 * Returns the JSON Schema of an amount that must be greater than zero, which the code that parses
 * it checks.
 */
export const positiveSchema = (description: string) => ({
  anyOf: [
    { type: 'number', exclusiveMinimum: 0, maximum: DECIMAL_MAX },
    { type: 'string', pattern: POSITIVE.source, maxLength: DECIMAL_LENGTH_MAX },
  ],
  description,
})

const NOT_DECIMAL = 'must be a decimal number'
const NATIVE = 'Exact decimal in the asset’s native unit; a number or a string'

/**
 * A decimal with the digits of the raw JSON text, because a double cannot hold 18 decimals; a
 * decimal string is accepted too.
 */
export const decimal = z
  .custom<JsonNumber | string>(
    (value) => value instanceof JsonNumber || typeof value === 'string',
    NOT_DECIMAL,
  )
  .transform((value, context): string => {
    const text = value instanceof JsonNumber ? value.text : value
    if (DECIMAL.test(text) && text.length <= DECIMAL_LENGTH_MAX) return text
    const isLong = typeof value === 'string' && text.length > DECIMAL_LENGTH_MAX
    const message = text.startsWith('-')
      ? 'must not be negative'
      : isLong
        ? `must have at most ${DECIMAL_LENGTH_MAX} characters`
        : NOT_DECIMAL
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })
  .meta(decimalSchema(NATIVE))

/**
 * A {@link decimal} that the document describes as greater than zero; the code that parses the
 * amount rejects zero.
 */
export const positive = decimal.meta(positiveSchema(NATIVE))

/**
 * Returns the number of Unicode code points, as JSON Schema's maxLength counts characters: an emoji
 * outside of the first plane is one, not two.
 */
const charactersOf = (value: string): number => [...value].length

/** Pattern for a text without control characters. */
const CONTROL_FREE = String.raw`^[^\u0000-\u001f\u007f]*$`

/** Returns the JSON Schema of {@link text}. */
export const textSchema = (max: number) => ({ minLength: 1, maxLength: max, pattern: CONTROL_FREE })

/** A text without control characters, of 1 to `max` characters. */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => value !== '', 'must not be empty')
    .refine(
      (value) => value.length <= max || charactersOf(value) <= max,
      `must have at most ${max} characters`,
    )
    // oxlint-disable-next-line no-control-regex
    .refine((value) => !/[\u0000-\u001f\u007f]/.test(value), 'must not contain control characters')
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .meta(textSchema(max))

export const assetName = text(64).meta({
  ...textSchema(64),
  description: 'An `asset_name` from `GET /assets`; case-sensitive',
  examples: ['BTC', 'USDT_ETH'],
})

/** A field that may be left out; `null` has the same meaning. */
export const optional = <T extends z.ZodType>(schema: T) =>
  schema
    .nullable()
    .transform((value) => value ?? undefined)
    .optional()

/** A destination address as the caller writes it; its network family interprets it. */
export const address = text(256)

/** A destination tag or memo. Clients that store it as a number send a number. */
export const tag = z
  .custom<JsonNumber | string>(
    (value) =>
      typeof value === 'string' || (value instanceof JsonNumber && /^\d{1,20}$/.test(value.text)),
    'must be a string',
  )
  .transform((value) => (value instanceof JsonNumber ? value.text : value))
  .pipe(text(200))
  .meta({
    type: 'string',
    ...textSchema(200),
    description: 'Destination tag or memo, for networks that have one',
  })

export const feeLevel = z.enum(['low', 'medium', 'high'], 'must be low, medium or high')

/** Idempotency key, unique within the wallet. */
export const sequenceId = text(200)

/**
 * Mode of an installation. That of a rehearsal contains the chain id of its private EVM chain, which is
 * below 10^15.
 */
export const networkMode = z
  .union(
    [
      z.enum(['local', 'mainnet']),
      z
        .templateLiteral(['regtest-', z.int()])
        .refine((text) => /^regtest-[1-9]\d{0,14}$/.test(text))
        .meta({ maxLength: 23, pattern: '^regtest-[1-9]\\d{0,14}$' }),
    ],
    'must be local, mainnet or regtest-CHAIN_ID',
  )
  .meta({ description: 'Mode of the installation' })
