import { combineUses, sumOfUses, type Use, type WindowSum } from '@custody/policy'
import type { Body } from '../../store/entries/index.ts'
import type { PolicyCharges } from '../../store/entries/values.ts'
import { largestAmounts } from '../../store/running-sum.ts'
import { SLACK_MS, windowName, type ChargedWindow, type Spending } from '../../store/spending.ts'
import type { OtherCharges } from '../budget.ts'
import type { Verdict, VerdictPolicy, WindowCharge } from '../order.ts'
import type { AheadWindows } from '../run.ts'

/**
 * Age in milliseconds from which a recorded charge does not cover another signature. A signature is
 * made at most this time and the timeout of a session after its charge, which together are less
 * than the slack of a window.
 */
const COVERS_MS = 30_000

/**
 * Number of charges on both records from which a running sum is kept. Most windows per destination
 * have few charges, which are added up faster than a running sum is found.
 */
const RUNNING_MIN = 32

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

/** A sum to which an act is charged. */
type SumOf = Pick<WindowCharge, 'key' | 'hours'>

/** Returns the time after which charges count in a window, in Unix ms. Ages are rounded down. */
const countsAfter = (hours: number, clockMs: number): number =>
  clockMs - (hours * 3_600_000 + SLACK_MS + 1000)

/** Returns the age in seconds of a charge; a charge of a clock that was set back has the age 0. */
const ageOf = (at: number, clockMs: number): number =>
  Math.max(0, Math.floor((clockMs - at) / 1000))

/** Returns the charges of the transactions of a run that are judged before. */
const chargesAhead = (
  { ahead }: Pick<WindowRecords, 'ahead'>,
  key: string,
): { step: string; amounts: Use['amounts'] }[] =>
  ahead.flatMap(({ step, policy }) =>
    policy.charges.filter((charge) => charge.key === key).map(({ amounts }) => ({ step, amounts })),
  )

/**
 * Returns what counts in a sum of a policy: on this node's record, on the partner's, in sessions in
 * progress, and in the same run. Each step counts once, with the larger amounts and the smaller age.
 * The step that is judged may be among them.
 */
export function usesOf(records: WindowRecords, { key, hours }: SumOf): Use[] {
  const { own, other, workspace, clockMs } = records
  const name = windowName(workspace, key)
  const useOf = ({
    step,
    at,
    amounts,
  }: { step: string; at: number } & Pick<Use, 'amounts'>): Use => ({
    step,
    age_s: ageOf(at, clockMs),
    amounts,
  })
  const after = countsAfter(hours, clockMs)
  const counts = ({ at }: { at: number }): boolean => at > after
  const recorded = own.chargesTo(name).charges.filter(counts).map(useOf)
  const others = [
    ...other.recorded.chargesTo(name).charges.filter(isNot(other.judged)),
    ...other.inProgress(name),
  ]
    .filter(counts)
    .map(useOf)
  for (const charge of chargesAhead(records, key)) others.push({ ...charge, age_s: 0 })
  return combineUses(recorded, others, hours)
}

/** Returns whether a charge is of none of some transactions. */
const isNot =
  (judged: OtherCharges['judged']) =>
  ({ step, transaction }: ChargedWindow): boolean =>
    !judged.some((each) => each.step === step && each.transaction === transaction)

/**
 * Adds up what {@link usesOf} returns, by a running sum. Only the steps whose charges differ from
 * those on the two records are added up again: those of sessions in progress and of the same run, and
 * those that are judged.
 * @param step of the act that is judged
 * @returns valid until a charge is recorded
 */
export function sumOf(records: WindowRecords, { key, hours }: SumOf, step: string): WindowSum {
  const { own, other, workspace, clockMs } = records
  const name = windowName(workspace, key)
  const recorded =
    own.chargesTo(name).charges.length + other.recorded.chargesTo(name).charges.length
  if (recorded < RUNNING_MIN) return sumOfUses(usesOf(records, { key, hours }), step, hours)
  const after = countsAfter(hours, clockMs)
  const running = own.runningSum(other.recorded, name, after)
  const added = [
    ...other.inProgress(name).filter(({ at }) => at > after),
    ...chargesAhead(records, key).map((charge) => ({ ...charge, at: clockMs })),
  ]
  const judged = other.judged.map((each) => each.step)
  const isDifferent = added.length > 0 || [step, ...judged].some((each) => running.chargesOf(each))
  /** Steps whose charges differ from those on the two records. */
  const different: { at: number; amounts: Use['amounts'] }[] = []
  const changed = isDifferent
    ? new Set([step, ...judged, ...added.map((charge) => charge.step)])
    : new Set<string>()
  const leavingAge: WindowSum['leavingAge'] = (asset, excess) => {
    const at = running.leavingAt(asset, excess, changed, different)
    return at === null ? null : ageOf(at, clockMs)
  }
  // Almost every act is new, so its sum is that of the records.
  if (!isDifferent) return { used: running.totals, count: running.count, own: null, leavingAge }
  const used = new Map(running.totals)
  let { count } = running
  const add = (amounts: Use['amounts'] | null, sign: 1 | -1): void => {
    if (amounts === null) return
    count += sign
    for (const [asset, units] of amounts)
      used.set(asset, (used.get(asset) ?? 0n) + (sign === 1 ? units : -units))
  }
  const isOther = isNot(other.judged)
  let mine: WindowSum['own'] = null
  for (const each of changed) {
    const charges = running.chargesOf(each) ?? { own: [], other: [] }
    add(largestAmounts([...charges.own, ...charges.other]), -1)
    const counted = [
      ...charges.own,
      ...charges.other.filter(isOther),
      ...added.filter((charge) => charge.step === each),
    ]
    const amounts = largestAmounts(counted)
    if (each === step) mine = amounts
    else add(amounts, 1)
    if (each === step || amounts === null) continue
    different.push({ at: Math.max(...counted.map(({ at }) => at)), amounts })
  }
  return { used, count, own: mine, leavingAge }
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
