import { Refusal } from '../errors.ts'
import type { AmendIntent } from '../intent/amend.ts'
import { intentOf, type Intent } from '../intent/index.ts'
import { prove, type Proven } from '../intent/request.ts'
import { assertAge, isTimely } from './age.ts'
import type { Context } from './context.ts'
import type { Order, Receipt, SeenRequest, Signed, Verdict } from './order.ts'

/** The parts of a verdict that are derived from the callers' own requests. */
export type CallerContext = Pick<Verdict, 'intent' | 'seen' | 'callers' | 'assertAge' | 'voidNames'>

/** A signed request about an earlier one: a speed-up, a cancellation, or the deletion of a rule. */
export interface Amender {
  amend: Pick<AmendIntent, 'key' | 'fee_rate'>
  seen: SeenRequest
  assertAge: () => void
}

/**
 * Verifies and parses a caller's request.
 * @param revokedToo whether a request of a revoked caller is accepted, as for a void or a
 *   cancellation
 */
export async function understand(
  context: Context,
  request: Signed['request'],
  revokedToo = false,
): Promise<{ proven: Proven; want: Intent }> {
  const { store, registry } = context
  const proven = await prove(store.state, request, store.seconds(), revokedToo)
  return { proven, want: intentOf(registry, proven) }
}

/** Returns a request in the form in which it is recorded. */
export function seenOf(
  { store }: Context,
  { enrolment, nonce, iat, exp, transaction_id }: Proven,
  want: Intent,
): SeenRequest {
  const { api_key } = enrolment
  return {
    api_key,
    nonce,
    intent: want.key,
    content: want.content,
    transaction_id,
    iat,
    exp,
    timely: isTimely(exp, store.seconds()),
  }
}

/** Rule 3: returns the check of the age, which must run synchronously with the write. */
export function ageOf(
  { store, identities }: Context,
  proven: Proven,
  content: string,
  receipts: readonly Receipt[] = [],
): () => void {
  return () => {
    const now = store.seconds()
    assertAge({ state: store.state, identities, proven, content, receipts, now })
  }
}

/**
 * Checks that the order is for the caller's workspace.
 * @throws Refusal if it is not
 */
export function assertWorkspace(proven: Proven, order: Order): void {
  if (proven.enrolment.workspace !== order.workspace)
    throw new Refusal('WORKSPACE_MISMATCH', 'The caller belongs to another workspace')
}

/** Returns whether two requests come from callers of the same sub-account. */
export function isSameOwner({ enrolment: a }: Proven, { enrolment: b }: Proven): boolean {
  return a.workspace === b.workspace && a.sub_account === b.sub_account
}

/** Returns a signed request about a payment, by a caller of the same sub-account. */
export async function amender(
  context: Context,
  signed: Signed,
  about: Proven,
  action: AmendIntent['action'],
): Promise<Amender & { amend: AmendIntent }> {
  const { proven, want } = await understand(context, signed.request)
  if (want.action !== action || want.transaction_id !== about.transaction_id) {
    throw new Refusal(
      'ACTION_NOT_ALLOWED',
      `The signed request is not for a ${action} of this payment`,
    )
  }
  if (!isSameOwner(proven, about))
    throw new Refusal('WORKSPACE_MISMATCH', 'The caller belongs to another sub-account')
  return {
    amend: want,
    seen: seenOf(context, proven, want),
    assertAge: ageOf(context, proven, want.content, signed.receipts),
  }
}
