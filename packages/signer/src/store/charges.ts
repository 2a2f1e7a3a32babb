import type { Body } from './entries/index.ts'
import type { PolicyCharges } from './entries/values.ts'
import { windowName, type Charged, type ChargedWindow } from './spending.ts'
import type { StepBody } from './state-content.ts'

/** Content of an entry that charges a transaction to windows of a policy. */
interface ChargedBody extends Pick<Body<'charged'>, 'step' | 'unsigned_hash'> {
  /** Required together with `policy`. */
  workspace?: string | undefined
  policy?: PolicyCharges | undefined
}

/** Returns what a recorded step charges to budgets. @param at Unix ms */
export function budgetChargesOf(body: StepBody, at: number): Charged[] {
  const charges = body.charges ?? (body.charge ? [body.charge] : [])
  return charges.map(({ budget, amount }) => ({
    budget,
    amount: BigInt(amount),
    at,
    step: body.step,
    transaction: body.unsigned_hash,
  }))
}

/** Returns what an entry charges to windows of a policy. @param at Unix ms */
export function windowChargesOf(
  { workspace, step, unsigned_hash: transaction, policy }: ChargedBody,
  at: number,
): ChargedWindow[] {
  if (!policy) return []
  return withAmounts(
    policy.charges.map(({ key, amounts }) => ({ window: windowName(workspace!, key), amounts })),
    { at, step, transaction },
  )
}

/**
 * Parses the amounts of a step's charges. Charges with equal amounts, which are almost all of a
 * step, share one map.
 */
export function withAmounts(
  charges: readonly { window: string; amounts: Readonly<Record<string, string>> }[],
  transaction: Pick<ChargedWindow, 'at' | 'step' | 'transaction'>,
): ChargedWindow[] {
  let [text, shared] = ['', new Map<string, bigint>()]
  return charges.map(({ window, amounts }) => {
    const own = JSON.stringify(amounts)
    if (own !== text) {
      text = own
      shared = new Map(Object.entries(amounts).map(([asset, units]) => [asset, BigInt(units)]))
    }
    return { window, amounts: shared, ...transaction }
  })
}
