import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { SeenRequest } from './order.ts'

/**
 * Rule 4: a pair (sub, nonce) permanently has one meaning; an intent has one meaning from its first
 * step on.
 */
export function assertOneMeaning(
  state: State,
  apiKey: string,
  nonce: string,
  intent: string,
  content: string,
): void {
  const seen = state.seen.get(State.requestKey(apiKey, nonce))
  if (seen && (seen.intent !== intent || seen.content !== content)) {
    throw new Refusal('INTENT_CONFLICT', 'This API key used the nonce for another request')
  }
  const existing = state.intents.get(intent)
  if (existing?.content && existing.content !== content)
    throw new Refusal('INTENT_CONFLICT', 'The same sequence_id was used for another payment')
}

/** Makes the same check among requests that are evaluated together and may not be on record yet. */
export function assertMeaningsAgree(seen: readonly SeenRequest[]): void {
  const meanings = new Map<string, SeenRequest>()
  for (const request of seen) {
    const name = State.requestKey(request.api_key, request.nonce)
    const existing = meanings.get(name) ?? request
    if (existing.intent !== request.intent || existing.content !== request.content) {
      throw new Refusal('INTENT_CONFLICT', 'Two requests of this API key have the same nonce')
    }
    meanings.set(name, existing)
  }
}

/** Rule 14: returns the name under which a request is voided. */
export const voidNameOfRequest = (apiKey: string, nonce: string): string =>
  JSON.stringify(['request', apiKey, nonce])

/**
 * Returns the name of a rule's deletion, as requested by its own sub-account. It only needs the
 * rule's ID, so it is known to a node that never saw the rule.
 */
export const endNameOfRule = (workspace: string, subAccount: number, ruleId: string): string =>
  JSON.stringify(['rule', workspace, subAccount, ruleId])
/**
 * Returns the name of one forward of a rule, which is used for its intent, its step and its void.
 */
export const forwardName = (ruleId: string, id: string): string =>
  JSON.stringify(['forward', ruleId, id])

export function assertNotVoided(state: State, names: readonly string[]): void {
  for (const name of names)
    if (state.voids.has(name)) throw new Refusal('VOIDED', 'The intent was voided')
}
