import { NONCE_LENGTH_MAX, transactionId as transactionIdOf } from '@custody/request-auth'
import { z } from 'zod'
import { canonicalBytes, signBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { intentOf } from '../intent/index.ts'
import { prove, signedRequestSchema } from '../intent/request.ts'
import { endNameOfRule, forwardName, voidNameOfRequest } from '../policy/identity.ts'
import { uuidSchema } from '../policy/order.ts'
import type { NodeContext } from '../node-context.ts'
import type { Enrolment, StandingRule, StepEntry } from '../store/state.ts'

export const voidBodySchema = z
  .strictObject({
    request: signedRequestSchema.optional(),
    transaction_id: z.string().max(64).optional(),
    forward: z.strictObject({ rule: uuidSchema, id: uuidSchema }).optional(),
    name: z
      .strictObject({
        api_key: z.string().min(1).max(256),
        nonce: z.string().min(1).max(NONCE_LENGTH_MAX),
      })
      .optional(),
    force: z.boolean().optional(),
  })
  .refine(
    ({ request, transaction_id: id, forward, name }) =>
      [request, id, forward, name].filter((each) => each !== undefined).length === 1,
    'exactly one of request, transaction_id, forward and name',
  )

const VOID_KEYS = [
  'node',
  'intent',
  'transaction_id',
  'rule',
  'height',
  'voided_at',
  'signed',
  'unfinished',
] as const
/**
 * Maximum number of a rule's forwards that are returned, newest first; the total number is returned
 * too.
 */
const NAMED_MAX = 1000
/** Steps of an intent that transfer coins or energy only to the workspace's own address. */
const OWN_STEPS = new Set(['fuel', 'lend'])
const isOwn = (step: string): boolean => OWN_STEPS.has((JSON.parse(step) as string[])[0] as string)

/**
 * Rule 14: voids an intent permanently; any valid request may do so. Existing signatures cannot be
 * revoked: the response names them, and without `force` nothing is voided then. By transaction_id,
 * only an intent that this node knows can be voided, because it could not recognise it later. By
 * name, any request can be voided, whatever its content: a request that no node can parse must be
 * stoppable too, and is recognised by its name. The signed deletion of a standing rule is also
 * processed here, always permanently: it voids the rule and every forward that is not signed yet.
 * The response names transactions that were signed under the rule and may still be broadcast, so
 * that the rule's owner can monitor them.
 */
export async function voidIntent(
  { store, registry, config }: NodeContext,
  body: z.infer<typeof voidBodySchema>,
): Promise<unknown> {
  const { state } = store
  store.flush()
  let names: string[]
  let transactionId: string
  let key: string | undefined
  let ended: string | null = null
  if (body.request) {
    const proven = await prove(state, body.request, store.seconds(), true)
    names = [voidNameOfRequest(proven.enrolment.api_key, proven.nonce)]
    transactionId = proven.transaction_id
    try {
      const want = intentOf(registry, proven)
      if (want.action === 'end-forward') {
        names = [
          endNameOfRule(proven.enrolment.workspace, proven.enrolment.sub_account, want.rule_id),
        ]
        // This deletion does not apply to a rule of another sub-account, and nothing is returned
        // about it.
        if (
          !state.rules.has(want.rule_id) ||
          isOwnRule(state.rules.get(want.rule_id)!, proven.enrolment)
        )
          ended = want.rule_id
      } else key = want.key
    } catch (error) {
      // The request could never be signed here; the request itself is voided anyway.
      if (!(error instanceof Refusal)) throw error
      // Method and query are not part of the signature, so the request is identified by an earlier
      // valid form of it.
      key = state.intentOfTransaction.get(transactionId)
    }
  } else if (body.forward) {
    key = forwardName(body.forward.rule, body.forward.id)
    transactionId = body.forward.id
    names = []
  } else if (body.name) {
    names = [voidNameOfRequest(body.name.api_key, body.name.nonce)]
    transactionId = transactionIdOf(body.name.api_key, body.name.nonce)
    key = state.intentOfTransaction.get(transactionId)
  } else {
    transactionId = body.transaction_id!
    key = state.intentOfTransaction.get(transactionId)
    if (!key)
      throw new Refusal(
        'UNKNOWN_INTENT',
        'This node has not received the request of that transaction; send the request itself',
      )
    names = []
  }
  if (key) names.push(key)
  const steps = key ? [...(state.intents.get(key)?.steps ?? [])] : []
  const forwards = ended === null ? [] : (state.forwards.get(ended) ?? [])
  const entries = ended === null ? steps.flatMap(([, list]) => list) : forwards
  const hashesOf = (list: readonly StepEntry[]): string[] =>
    list.flatMap((entry) => (entry.signed ? [entry.signed.hash] : []))
  const signedHashes = hashesOf(entries)
  const unfinished = entries.filter((entry) => !entry.signed).length
  const done = names.every((name) => state.voids.has(name))
  const paying =
    ended === null ? steps.flatMap(([step, list]) => (isOwn(step) ? [] : list)) : forwards
  if (!done && entries.length > 0 && body.force !== true && ended === null) {
    const reported = {
      hash: signedHashes.at(-1) ?? null,
      signed_hashes: signedHashes,
      unfinished,
      paying_hashes: hashesOf(paying),
    }
    throw new Refusal(
      'ALREADY_SIGNED',
      'A transaction of this intent was already signed, or entered signing',
      reported,
    )
  }
  if (!done)
    store.append('void', {
      keys: names,
      transaction_id: transactionId,
      signed_hashes: signedHashes.slice(-NAMED_MAX),
    })
  const first = state.voids.get(names[0]!)!
  // The list of existing signatures is part of the signed response. Without it, a void that was
  // forced after a signature would seem to prove that nothing was paid.
  const result = {
    node: config.node,
    intent: key ?? names[0]!,
    transaction_id: transactionId,
    rule: body.forward?.rule ?? ended,
    height: first.height,
    voided_at: Math.floor(first.at / 1000),
    signed: hashesOf(paying).slice(-NAMED_MAX),
    unfinished: paying.filter((entry) => !entry.signed).length,
  }
  return {
    voided: true,
    record: result,
    signature: signBytes(config.identity, canonicalBytes('void', VOID_KEYS, result)),
    signed_hashes: signedHashes.slice(-NAMED_MAX),
    unfinished,
  }
}

const isOwnRule = (rule: StandingRule, { workspace, sub_account }: Enrolment): boolean =>
  rule.workspace === workspace && rule.sub_account === sub_account
