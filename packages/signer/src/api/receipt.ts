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
/** Each request is looked at by itself: one that has another shape is refused alone. */
export const receiptsBodySchema = z.strictObject({
  requests: z.array(z.unknown()).min(1).max(RECEIPTS_MAX),
})

type Understood = Awaited<ReturnType<Judge['understand']>>

/** Rule 3: this node saw the request while it was live, and says so under its name. */
export async function receipt(
  parts: NodeContext,
  { request }: z.infer<typeof receiptBodySchema>,
): Promise<unknown> {
  const [outcome] = await seen(parts, [() => parts.judge.understand(request)])
  return (outcome as () => unknown)()
}

/**
 * The same of several requests, written down by one flush.
 * @returns for each, in their order, the status and body that it would be answered alone
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

/** @returns for each what answers its receipt, or throws why there is none */
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
  // From here on nothing happens between what the record is asked and what is written. Requests
  // that speak of the same are written after each other, so that each is held against all before
  // it.
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
        outcomes.set(each.at, () => told(parts, each.understood))
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

/** What is written down of a request that is seen for the first time. @throws Refusal */
function entriesOf({ store }: NodeContext, { proven, want }: Understood): NewEntry[] {
  const { enrolment, nonce, iat, exp, transaction_id } = proven
  assertOneMeaning(store.state, enrolment.api_key, nonce, want.key, want.content)
  if (store.state.seen.get(State.requestKey(enrolment.api_key, nonce))) return []
  if (!isTimely(exp, store.seconds())) throw new Refusal('TOO_OLD', 'The request is no longer live')
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
  // A standing rule is held from here on, whatever the age of its request (rule 13).
  return [
    { kind: 'seen', body },
    ...(want.action === 'forward'
      ? [{ kind: 'rule' as const, body: standingRule(proven, want) }]
      : []),
  ]
}

function told(
  { store, config }: NodeContext,
  { proven: { enrolment, nonce }, want }: Understood,
): unknown {
  const seen = store.state.seen.get(State.requestKey(enrolment.api_key, nonce))!
  if (!seen.timely) throw new Refusal('TOO_OLD', 'This node received the request too late')
  const told = {
    node: config.node,
    api_key: enrolment.api_key,
    nonce,
    intent: want.content,
    seen_at: seen.seen_at,
  }
  return { receipt: told, signature: signBytes(config.identity, receiptBytes(told)) }
}
