import { RECEIPTS_MAX } from '@custody/request-auth'
import { z } from 'zod'
import { signBytes } from '../canonical.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { signedRequestSchema } from '../intent/request.ts'
import { isTimely, receiptBytes } from '../policy/age.ts'
import { standingRule } from '../policy/forward.ts'
import { assertOneMeaning } from '../policy/identity.ts'
import type { Judge } from '../policy/judge.ts'
import type { NewEntry } from '../store/entries/index.ts'
import { State } from '../store/state.ts'
import { shaped } from '../transport/body.ts'
import type { NodeContext } from '../node-context.ts'

export const receiptBodySchema = z.strictObject({ request: signedRequestSchema })
/** Each request is parsed separately, so that a malformed one is rejected alone. */
export const receiptsBodySchema = z.strictObject({
  requests: z.array(z.unknown()).min(1).max(RECEIPTS_MAX),
})

type Understood = Awaited<ReturnType<Judge['understand']>>

/** Rule 3: returns this node's signed receipt that it has seen the request before its expiry. */
export async function receipt(
  parts: NodeContext,
  { request }: z.infer<typeof receiptBodySchema>,
): Promise<unknown> {
  const [outcome] = await seen(parts, [() => parts.judge.understand(request)])
  return (outcome as () => unknown)()
}

/**
 * Returns the receipts of several requests, which are recorded by one disk flush.
 * @returns for each request, in the same order, the status and body that a single request would get
 */
export async function receipts(
  parts: NodeContext,
  { requests }: z.infer<typeof receiptsBodySchema>,
): Promise<unknown> {
  const outcomes = await seen(
    parts,
    requests.map(
      (request) => async () => parts.judge.understand(shaped(signedRequestSchema, request)),
    ),
  )
  return {
    answers: outcomes.map((outcome) => {
      try {
        return { status: 200, body: outcome() }
      } catch (error) {
        return errorAnswer(error)
      }
    }),
  }
}

/**
 * Records the requests.
 * @returns for each request a function that returns its receipt, or throws the reason why there is
 *   none
 */
async function seen(
  parts: NodeContext,
  requests: readonly (() => Promise<Understood>)[],
): Promise<(() => unknown)[]> {
  const read = await Promise.allSettled(requests.map((understand) => understand()))
  const outcomes = new Map<number, () => unknown>()
  const refused = (error: unknown) => () => {
    throw error
  }
  let left: { at: number; understood: Understood }[] = []
  for (const [at, each] of read.entries()) {
    if (each.status === 'fulfilled') left.push({ at, understood: each.value })
    else outcomes.set(at, refused(each.reason))
  }
  // No await between the check of the record and the write. Requests about the same intent are
  // recorded one after the other, so that each is checked against all earlier ones.
  while (left.length > 0) {
    const named = new Set<string>()
    const later: typeof left = []
    const entries: NewEntry[] = []
    for (const each of left) {
      const names = namesOf(each.understood)
      if (names.some((name) => named.has(name))) {
        later.push(each)
        continue
      }
      for (const name of names) named.add(name)
      try {
        entries.push(...entriesOf(parts, each.understood))
        outcomes.set(each.at, () => receiptOf(parts, each.understood))
      } catch (error) {
        outcomes.set(each.at, refused(error))
      }
    }
    if (entries.length > 0) parts.store.appendAll(entries)
    left = later
  }
  return read.map((_, at) => outcomes.get(at) as () => unknown)
}

const namesOf = ({ proven, want }: Understood): string[] => [
  State.requestKey(proven.enrolment.api_key, proven.nonce),
  JSON.stringify(['intent', want.key]),
]

/**
 * Returns the entries to be recorded for a request that is seen for the first time.
 * @throws Refusal
 */
function entriesOf({ store }: NodeContext, { proven, want }: Understood): NewEntry[] {
  const { enrolment, nonce, iat, exp, transaction_id } = proven
  assertOneMeaning(store.state, enrolment.api_key, nonce, want.key, want.content)
  if (store.state.seen.get(State.requestKey(enrolment.api_key, nonce))) return []
  if (!isTimely(exp, store.seconds())) throw new Refusal('TOO_OLD', 'The request has expired')
  const body = {
    api_key: enrolment.api_key,
    nonce,
    intent: want.key,
    content: want.content,
    transaction_id,
    iat,
    exp,
    timely: true,
  }
  // A standing rule is recorded and remains valid from now on, even when its request has become old
  // (rule 13).
  return [
    { kind: 'seen', body },
    ...(want.action === 'forward'
      ? [{ kind: 'rule' as const, body: standingRule(proven, want) }]
      : []),
  ]
}

function receiptOf(
  { store, config }: NodeContext,
  { proven: { enrolment, nonce }, want }: Understood,
): unknown {
  const seen = store.state.seen.get(State.requestKey(enrolment.api_key, nonce))!
  if (!seen.timely) throw new Refusal('TOO_OLD', 'This node received the request too late')
  const reported = {
    node: config.node,
    api_key: enrolment.api_key,
    nonce,
    intent: want.content,
    seen_at: seen.seen_at,
  }
  return { receipt: reported, signature: signBytes(config.identity, receiptBytes(reported)) }
}
