import { NONCE_LENGTH_MAX, transactionId as transactionIdOf } from '@custody/request-auth'
import { z } from 'zod'
import { canonicalBytes, signBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { intentOf } from '../intent/index.ts'
import { prove, signedRequestSchema, type Proven } from '../intent/request.ts'
import { endNameOfRule, forwardName, voidNameOfRequest } from '../policy/identity.ts'
import { uuidSchema } from '../policy/order.ts'
import type { NodeContext } from '../node-context.ts'
import type { Enrolment, StandingRule, State, StepEntry } from '../store/state.ts'

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
    'exactly one of the fields request, transaction_id, forward and name is required',
  )

type VoidBody = z.infer<typeof voidBodySchema>

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

/** The intent or rule that a void applies to. */
interface Target {
  /** Names to void, without the intent's key. */
  names: string[]
  transactionId: string
  /** Key of the intent, if this node can derive it. */
  key: string | undefined
  /** ID of the standing rule that the request deletes, if it may be reported to the caller. */
  deletedRule: string | null
}

/** Returns the target of a void that contains a signed request. */
function targetOfRequest({ store, registry }: NodeContext, proven: Proven): Target {
  const { state } = store
  const { enrolment, nonce, transaction_id: transactionId } = proven
  const names = [voidNameOfRequest(enrolment.api_key, nonce)]
  try {
    const want = intentOf(registry, proven)
    if (want.action !== 'end-forward')
      return { names, transactionId, key: want.key, deletedRule: null }
    const rule = state.rules.get(want.rule_id)
    return {
      names: [endNameOfRule(enrolment.workspace, enrolment.sub_account, want.rule_id)],
      transactionId,
      key: undefined,
      // This deletion does not apply to a rule of another sub-account, and nothing is returned
      // about it.
      deletedRule: !rule || isOwnRule(rule, enrolment) ? want.rule_id : null,
    }
  } catch (error) {
    // The request could never be signed here; the request itself is voided anyway.
    if (!(error instanceof Refusal)) throw error
    // Method and query are not part of the signature, so the request is identified by an earlier
    // valid form of it.
    const key = state.intentOfTransaction.get(transactionId)
    return { names, transactionId, key, deletedRule: null }
  }
}

/**
 * Returns the target of a void without a signed request.
 * @throws Refusal UNKNOWN_INTENT
 */
function targetOfName({ intentOfTransaction }: State, body: VoidBody): Target {
  if (body.forward) {
    const { rule, id } = body.forward
    return { names: [], transactionId: id, key: forwardName(rule, id), deletedRule: null }
  }
  if (body.name) {
    const { api_key: apiKey, nonce } = body.name
    const transactionId = transactionIdOf(apiKey, nonce)
    return {
      names: [voidNameOfRequest(apiKey, nonce)],
      transactionId,
      key: intentOfTransaction.get(transactionId),
      deletedRule: null,
    }
  }
  const transactionId = body.transaction_id!
  const key = intentOfTransaction.get(transactionId)
  if (!key)
    throw new Refusal(
      'UNKNOWN_INTENT',
      'This node has not received the request of that transaction; send the request itself',
    )
  return { names: [], transactionId, key, deletedRule: null }
}

/**
 * Returns the recorded transactions of an intent or of a deleted rule: all of them, and those that
 * pay others.
 */
function transactionsOf(
  { intents, forwards }: State,
  { key, deletedRule }: Target,
): { all: readonly StepEntry[]; paying: readonly StepEntry[] } {
  if (deletedRule !== null) {
    const all = forwards.get(deletedRule) ?? []
    return { all, paying: all }
  }
  const steps = key ? [...(intents.get(key)?.steps ?? [])] : []
  return {
    all: steps.flatMap(([, list]) => list),
    paying: steps.flatMap(([step, list]) => (isOwn(step) ? [] : list)),
  }
}

const hashesOf = (list: readonly StepEntry[]): string[] =>
  list.flatMap((entry) => (entry.signed ? [entry.signed.hash] : []))
const countUnfinished = (list: readonly StepEntry[]): number =>
  list.filter((entry) => !entry.signed).length

/**
 * Rule 14: voids an intent permanently; any valid request may do so. Existing signatures cannot be
 * revoked: the response names them, and without `force` nothing is voided then. A void by
 * transaction_id requires an intent that this node knows, because it could not recognise an unknown
 * intent later. A void by name is accepted for any request, whatever its content: a request that no
 * node can parse must be stoppable too, and is recognised by its name. The signed deletion of a
 * standing rule is also processed here, always permanently: it voids the rule and every forward
 * that is not signed yet. The response names transactions that were signed under the rule and may
 * still be broadcast, so that the rule's owner can monitor them.
 * @throws Refusal if the request is not proven, UNKNOWN_INTENT or ALREADY_SIGNED
 */
export async function voidIntent(context: NodeContext, body: VoidBody): Promise<unknown> {
  const { store, config } = context
  const { state } = store
  store.flush()
  const target = body.request
    ? targetOfRequest(context, await prove(state, body.request, store.seconds(), true))
    : targetOfName(state, body)
  const { transactionId, key, deletedRule } = target
  const names = key ? [...target.names, key] : target.names
  const { all, paying } = transactionsOf(state, target)
  const signedHashes = hashesOf(all)
  const unfinished = countUnfinished(all)
  const done = names.every((name) => state.voids.has(name))
  if (!done && all.length > 0 && body.force !== true && deletedRule === null) {
    const reported = {
      hash: signedHashes.at(-1) ?? null,
      signed_hashes: signedHashes,
      unfinished,
      paying_hashes: hashesOf(paying),
    }
    throw new Refusal(
      'ALREADY_SIGNED',
      'A transaction of this intent was already signed, or its signing has begun',
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
    rule: body.forward?.rule ?? deletedRule,
    height: first.height,
    voided_at: Math.floor(first.at / 1000),
    signed: hashesOf(paying).slice(-NAMED_MAX),
    unfinished: countUnfinished(paying),
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
