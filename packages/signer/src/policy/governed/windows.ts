import { combineUses, type Use } from '@custody/policy'
import type { Body } from '../../store/entries/index.ts'
import type { PolicyCharges } from '../../store/entries/values.ts'
import { SLACK_MS, windowName, type Spending } from '../../store/spending.ts'
import type { OtherCharges } from '../budget.ts'
import type { Verdict, VerdictPolicy, WindowCharge } from '../order.ts'
import type { AheadWindows } from '../run.ts'

/**
 * Age in milliseconds from which a recorded charge does not cover another signature. A signature is
 * made at most this time and the timeout of a session after its charge, which together are less
 * than the slack of a window.
 */
const COVERS_MS = 30_000

/** The records by which a node measures the windows of one workspace. */
export interface WindowRecords {
  /** Charges on this node's record (`state.spending`). */
  own: Spending
  other: OtherCharges
  /** Transactions of the same run that are judged before; all of them, also if they are on record. */
  ahead: readonly AheadWindows[]
  workspace: string
  /** The node's clock. */
  clockMs: number
}

/**
 * Returns what counts in a sum of a policy: on this node's record, on the partner's, in sessions in
 * progress, and in the same run. Each step counts once, with the larger amounts and the smaller age.
 * The step that is judged may be among them.
 */
export function usesOf(
  { own, other, ahead, workspace, clockMs }: WindowRecords,
  { key, hours }: Pick<WindowCharge, 'key' | 'hours'>,
): Use[] {
  const name = windowName(workspace, key)
  const useOf = ({
    step,
    at,
    amounts,
  }: { step: string; at: number } & Pick<Use, 'amounts'>): Use => ({
    step,
    age_s: Math.max(0, Math.floor((clockMs - at) / 1000)),
    amounts,
  })
  // An age is rounded down to seconds, so this includes all that `combineUses` counts.
  const since = clockMs - (hours * 3_600_000 + SLACK_MS + 1000)
  const recorded = own.windowSince(name, since).map(useOf)
  const others = other.window(name, since).map(useOf)
  for (const { step, policy } of ahead)
    for (const charge of policy.charges)
      if (charge.key === key) others.push({ step, age_s: 0, amounts: charge.amounts })
  return combineUses(recorded, others, hours)
}

/**
 * Returns the charges of a verdict that this node's record does not cover. A transaction that is on
 * record may be signed under another rule of the policy, and again when its charges have left their
 * windows. Then these charges are judged, and recorded by an entry `charged` ({@link chargedBy}),
 * before the signature. Empty if the verdict has no policy.
 */
export function uncoveredCharges(
  { own, workspace, clockMs }: Pick<WindowRecords, 'own' | 'workspace' | 'clockMs'>,
  { step, policy }: Pick<Verdict, 'step' | 'policy'>,
): WindowCharge[] {
  return (policy?.charges ?? []).filter(
    ({ key, amounts }) =>
      !own
        .windowSince(windowName(workspace, key), clockMs - COVERS_MS)
        .some(
          (charged) =>
            charged.step === step &&
            [...amounts].every(([asset, units]) => (charged.amounts.get(asset) ?? -1n) >= units),
        ),
  )
}

/** Returns the field `policy` of a recorded step. */
export const recordedPolicy = ({ number, hash, via, charges }: VerdictPolicy): PolicyCharges => ({
  number,
  hash,
  via,
  charges: charges.map(({ key, hours, amounts }) => ({
    key,
    hours,
    amounts: digitsOf(amounts),
  })),
})

/**
 * Returns the entry that charges a recorded transaction again.
 * @param charges of the verdict's policy, those that the record does not cover
 */
export const chargedBy = (
  {
    step,
    unsignedHash,
    order: { workspace },
  }: Pick<Verdict, 'step' | 'unsignedHash'> & { order: Pick<Verdict['order'], 'workspace'> },
  policy: VerdictPolicy,
  charges: readonly WindowCharge[],
): Body<'charged'> => ({
  step,
  unsigned_hash: unsignedHash,
  workspace,
  policy: recordedPolicy({ ...policy, charges }),
})

/** Returns amounts in smallest units as decimal text. */
export const digitsOf = (amounts: ReadonlyMap<string, bigint>): Record<string, string> =>
  Object.fromEntries([...amounts].map(([asset, units]) => [asset, units.toString()]))
