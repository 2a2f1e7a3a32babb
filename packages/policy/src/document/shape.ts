import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { distinct, mode, name, sha256Hex, workspaceName } from './fields.ts'
import { approvals, person } from './people.ts'
import { rule } from './rules.ts'

/** Adds an issue for each repetition in a list. */
function refuseRepeated(
  context: z.RefinementCtx,
  what: string,
  found: readonly { value: string; path: PropertyKey[] }[],
): void {
  const seen = new Set<string>()
  for (const { value, path } of found) {
    if (seen.has(value))
      context.addIssue({
        code: 'custom',
        path,
        message: `must not be the ${what} of another entry`,
      })
    seen.add(value)
  }
}

/**
 * A policy document. All fields are in the canonical text, and therefore in the hash.
 *
 * `nodes` is the SHA-256 of the identities of the three signer nodes. Two installations, for
 * example the production system and a recovery drill, therefore never share a document.
 *
 * `fees` is the meaning of windows in earlier documents: only fees that the paying wallet itself pays
 * count. Absent: every fee counts in the windows that name the native coin.
 */
export const policyDocument = z
  .strictObject({
    kind: z.literal('custody-policy'),
    v: z.literal(1, 'must be 1: this version of the software reads no other version'),
    mode,
    workspace: workspaceName,
    number: z.int().min(1).max(1_000_000_000),
    previous: sha256Hex,
    nodes: sha256Hex,
    people: z.array(person).min(1).max(LIMITS.people, `must have at most ${LIMITS.people} people`),
    groups: z
      .record(name, distinct(name, LIMITS.people))
      .refine(
        (value) => Object.keys(value).length <= LIMITS.groups,
        `must have at most ${LIMITS.groups} groups`,
      )
      .meta({ maxProperties: LIMITS.groups }),
    change: z.strictObject({
      approvals,
      delay_s: z.int().min(0).max(LIMITS.delayS),
      veto: name,
    }),
    stop: z.strictObject({ group: name }),
    resume: z.strictObject({ approvals }),
    enrolment: z.strictObject({ approvals }).optional(),
    orders: z.strictObject({ approvals }).optional(),
    fees: z.literal('wallet', 'must be "wallet", or absent').optional(),
    rules: z.array(rule).max(LIMITS.rules, `must have at most ${LIMITS.rules} rules`),
  })
  .superRefine((document, context) => {
    const { people, rules } = document
    refuseRepeated(
      context,
      'id',
      people.map(({ id }, at) => ({ value: id, path: ['people', at, 'id'] })),
    )
    refuseRepeated(
      context,
      'id',
      rules.map(({ id }, at) => ({ value: id, path: ['rules', at, 'id'] })),
    )
    const apiKeys = people.flatMap((each, at) =>
      each.api_keys.map((value, key) => ({ value, path: ['people', at, 'api_keys', key] })),
    )
    refuseRepeated(context, 'API key', apiKeys)
    const keys = people.flatMap((each, at) =>
      each.keys.map((key, number) => ({ ...key, path: ['people', at, 'keys', number] })),
    )
    for (const each of people)
      refuseRepeated(
        context,
        'id',
        each.keys.map(({ id }, key) => ({
          value: id,
          path: ['people', people.indexOf(each), 'keys', key, 'id'],
        })),
      )
    refuseRepeated(
      context,
      'public key',
      keys.map(({ spki, path }) => ({ value: spki, path: [...path, 'spki'] })),
    )
    refuseRepeated(
      context,
      'credential',
      keys.flatMap((key) =>
        key.kind === 'passkey'
          ? [{ value: key.credential, path: [...key.path, 'credential'] }]
          : [],
      ),
    )
    const ofLimits = rules.reduce(
      (sum, each) => sum + (each.effect === 'limit' ? each.windows.length : 0),
      0,
    )
    if (ofLimits > LIMITS.windowsOfLimits)
      context.addIssue({
        code: 'custom',
        path: ['rules'],
        message: `must have at most ${LIMITS.windowsOfLimits} windows in all limit rules together`,
      })
    if ((document.number === 1) !== /^0{64}$/.test(document.previous))
      context.addIssue({
        code: 'custom',
        path: ['previous'],
        message: 'must be 64 zeros in document 1, and the hash of the previous document otherwise',
      })
  })

export type PolicyDocument = z.output<typeof policyDocument>
