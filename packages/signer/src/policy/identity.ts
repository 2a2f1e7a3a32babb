import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { SeenRequest } from './order.ts'

/**
 * Rule 4: one (sub, nonce) has one meaning for ever; one intent has one meaning from its first step
 * on.
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
  const known = state.intents.get(intent)
  if (known?.content && known.content !== content)
    throw new Refusal('INTENT_CONFLICT', 'The same sequence_id was used for another payment')
}

/** The same among requests that are judged together, none of which the record may know yet. */
export function assertMeaningsAgree(seen: readonly SeenRequest[]): void {
  const meanings = new Map<string, SeenRequest>()
  for (const request of seen) {
    const name = State.requestKey(request.api_key, request.nonce)
    const known = meanings.get(name) ?? request
    if (known.intent !== request.intent || known.content !== request.content) {
      throw new Refusal('INTENT_CONFLICT', 'One nonce of an API key was used for two requests')
    }
    meanings.set(name, known)
  }
}

/** Rule 14. */
export const voidNameOfRequest = (apiKey: string, nonce: string): string =>
  JSON.stringify(['request', apiKey, nonce])

/**
 * A rule's end, as its own sub-account asks for it: known by the rule's id, also at a node that
 * never saw the rule.
 */
export const endNameOfRule = (workspace: string, subAccount: number, ruleId: string): string =>
  JSON.stringify(['rule', workspace, subAccount, ruleId])
/** One forward of a rule: the name of its intent, of its step and of its void. */
export const forwardName = (ruleId: string, id: string): string =>
  JSON.stringify(['forward', ruleId, id])

export function assertNotVoided(state: State, names: readonly string[]): void {
  for (const name of names)
    if (state.voids.has(name)) throw new Refusal('VOIDED', 'The intent was voided')
}
