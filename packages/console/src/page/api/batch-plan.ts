// Determines which lines of a batch file were ordered earlier, and the sequence_id of each line.
// Sends no request.
import type { Earlier, AssetInfo, Line, Standing } from './batch-line.ts'
import { units } from './decimal.ts'
import { sha256 } from './keys.ts'

/**
 * Earlier transfers. Those of the open sub-account are complete; of others at least the last days.
 */
export interface History {
  /** The open sub-account, in which a `sequence_id` is unique. */
  subAccount: string
  /** Returns transfers of an asset to an address. */
  to(asset: string, address: string): readonly Earlier[]
  /**
   * Returns transfers whose `sequence_id` is a reference, or its further attempts (`reference#2`).
   */
  named(reference: string): readonly Earlier[]
}

/** @param own transfers that belong to this line and to no other */
type Settle = (
  line: Line,
  standing: Standing,
  earlier: readonly Earlier[],
  sequence: string,
  own?: readonly Earlier[],
) => void

export const RECENT_DAYS = 7
const RECENT_MS = RECENT_DAYS * 86_400_000
const HASH_LENGTH = 32
const SHOWN_MAX = 3

const isFailed = ({ status }: Earlier): boolean => status === 'failed'
const newestFirst = (a: Earlier, b: Earlier): number => b.created_at.localeCompare(a.created_at)
/** Returns the `sequence_id` of a further attempt of a reference. */
export const attemptOf = (reference: string, attempt: number): string =>
  attempt === 1 ? reference : `${reference}#${attempt}`

/**
 * Sets the `plan` of each line without a problem. A reference that was used for another payment is
 * a problem of its line.
 */
export async function planBatch(
  lines: readonly Line[],
  assets: ReadonlyMap<string, AssetInfo>,
  history: History,
  nowMs: number,
): Promise<void> {
  const good = lines.filter(({ problems }) => problems.length === 0)
  const amountOf = (asset: string, text: string) => units(text, assets.get(asset)?.decimals ?? 0)
  /**
   * Matches an equal payment, whatever its tag: correcting a tag must not cause a second payment
   * automatically.
   */
  const isAlike = (line: Line, each: Earlier) =>
    each.asset === line.asset &&
    each.destination_id === line.payee.address &&
    amountOf(line.asset, each.amount) === amountOf(line.asset, line.amount)
  const isSame = (line: Line, each: Earlier) =>
    isAlike(line, each) && (each.address_tag ?? '') === line.payee.tag
  /** Transfers that already belong to a line of this file, so that none is used for two. */
  const taken = new Set<string>()
  const settle: Settle = (line, standing, earlier, sequence_id, own = []) => {
    for (const { id } of own) taken.add(id)
    line.plan = { standing, earlier: [...earlier].sort(newestFirst), sequence_id }
  }

  for (const line of good.filter(({ reference }) => reference !== '')) {
    const attempts = history
      .named(line.reference)
      .filter(({ sub_account: sub }) => sub === history.subAccount)
    const other = attempts.find((each) => !isSame(line, each))
    const next = attemptOf(line.reference, attempts.length + 1)
    if (other !== undefined) {
      line.problems.push('reference: names another payment that was ordered before')
      line.plan = { standing: 'paid', earlier: [other], sequence_id: '' }
    } else if (attempts.length === 0) settle(line, 'new', [], next)
    else if (attempts.every(isFailed)) settle(line, 'failed', attempts, next)
    else {
      const live = attempts.filter((each) => !isFailed(each))
      settle(line, 'sent', live, next, live)
    }
  }

  for (const [content, group] of groupsOf(
    good.filter(({ reference }) => reference === ''),
    amountOf,
  )) {
    const prefix = `batch-${(await sha256(content)).slice(0, HASH_LENGTH)}-`
    const [first] = group as [Line]
    const made = occurrencesOf(history, first, prefix, isSame)
    planGroup(group, made, (occurrence) => prefix + occurrence, settle)
  }

  for (const line of good) {
    if (line.plan?.standing !== 'new') continue
    const equal = [
      ...history.to(line.asset, line.payee.address),
      ...(line.reference === '' ? [] : history.named(line.reference)),
    ].filter(
      (each, at, all) =>
        isAlike(line, each) &&
        !isFailed(each) &&
        !taken.has(each.id) &&
        (each.sequence_id === line.reference || nowMs - Date.parse(each.created_at) < RECENT_MS) &&
        all.findIndex(({ id }) => id === each.id) === at,
    )
    if (equal.length > 0) settle(line, 'paid', equal, line.plan.sequence_id)
  }
  for (const { plan } of good) plan?.earlier.splice(SHOWN_MAX)
}

/** Returns the transfers of a group of lines, by their occurrence in its `sequence_id`. */
function occurrencesOf(
  history: History,
  line: Line,
  prefix: string,
  isSame: (line: Line, each: Earlier) => boolean,
): Map<number, Earlier> {
  const made = new Map<number, Earlier>()
  for (const each of history.to(line.asset, line.payee.address)) {
    const occurrence =
      each.sequence_id?.startsWith(prefix) === true
        ? Number(each.sequence_id.slice(prefix.length))
        : NaN
    if (
      each.sub_account === history.subAccount &&
      Number.isSafeInteger(occurrence) &&
      isSame(line, each)
    )
      made.set(occurrence, each)
  }
  return made
}

/**
 * Groups lines of the same payment: asset, amount, address and tag. Memo and fee level are ignored.
 */
function groupsOf(
  lines: readonly Line[],
  amountOf: (asset: string, text: string) => bigint | null,
): Map<string, Line[]> {
  const groups = new Map<string, Line[]>()
  for (const line of lines) {
    const content = JSON.stringify([
      line.asset,
      String(amountOf(line.asset, line.amount)),
      line.payee.address,
      line.payee.tag,
    ])
    groups.set(content, [...(groups.get(content) ?? []), line])
  }
  return groups
}

/**
 * Distributes the earlier orders of one payment over the lines that order it: first each line's own
 * occurrence, then the rest, such as that of a line which is no longer in the file. Only the
 * remaining lines are ordered.
 */
function planGroup(
  group: readonly Line[],
  made: ReadonlyMap<number, Earlier>,
  sequenceOf: (occurrence: number) => string,
  settle: Settle,
): void {
  let next = Math.max(group.length, ...made.keys())
  const another = () => sequenceOf(++next)
  const live = [...made.values()].filter((each) => !isFailed(each))
  const rest = [...made]
    .filter(([occurrence, each]) => !isFailed(each) && occurrence > group.length)
    .map(([, each]) => each)
  for (const [at, line] of group.entries()) {
    const mine = made.get(at + 1)
    const stands = mine !== undefined && !isFailed(mine) ? mine : rest.shift()
    if (stands !== undefined) settle(line, 'sent', live, another(), [stands])
    else if (mine !== undefined) settle(line, 'failed', [mine], another())
    else settle(line, 'new', [], sequenceOf(at + 1))
  }
}
