import { z } from 'zod'
import { signBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { signedRequestSchema } from '../intent/request.ts'
import { isTimely, receiptBytes } from '../policy/age.ts'
import { standingRule } from '../policy/forward.ts'
import { assertOneMeaning } from '../policy/identity.ts'
import type { NewEntry } from '../store/entries/index.ts'
import { State } from '../store/state.ts'
import type { Parts } from '../parts.ts'

export const receiptBodySchema = z.strictObject({ request: signedRequestSchema })

/** Rule 3: this node saw the request while it was live, and says so under its name. */
export async function receipt({ judge, store, config }: Parts, body: z.infer<typeof receiptBodySchema>): Promise<unknown> {
  const { proven, want } = await judge.understand(body.request)
  const { enrolment, nonce, iat, exp, transaction_id } = proven
  const { state } = store
  assertOneMeaning(state, enrolment.api_key, nonce, want.key, want.content)
  const name = State.requestKey(enrolment.api_key, nonce)
  if (!state.seen.get(name)) {
    if (!isTimely(exp, store.seconds())) throw new Refusal('TOO_OLD', 'The request is not live any more')
    const seen = { api_key: enrolment.api_key, nonce, intent: want.key, content: want.content, transaction_id, iat, exp, timely: true }
    // A standing rule is held from here on, whatever the age of its request (rule 13).
    const entries: NewEntry[] = [{ kind: 'seen', body: seen }]
    if (want.action === 'forward') entries.push({ kind: 'rule', body: standingRule(proven, want) })
    store.appendAll(entries)
  }
  const seen = state.seen.get(name)!
  if (!seen.timely) throw new Refusal('TOO_OLD', 'This node saw the request too late')
  const told = { node: config.node, api_key: enrolment.api_key, nonce, intent: want.content, seen_at: seen.seen_at }
  return { receipt: told, signature: signBytes(config.identity, receiptBytes(told)) }
}
