/** Deposit addresses of a sub-account on a network that belong to it without an announcement. */
export const ADDRESSES_DEFAULT = 100
/** Greatest number of them. */
export const ADDRESSES_MOST = 100_000
/** Greatest number that is added within a day. */
const RAISED_DAILY_MAX = 10_000
const DAY_MS = 86_400_000

interface Mark {
  below: number
  /** Unix ms at which the current day of raises began, and the mark at that time. */
  since: number
  before: number
}

/**
 * Number of deposit addresses of each sub-account on each network, as the platform has announced it.
 * A mark only rises: an announced address stays an own address.
 */
export class AddressMarks {
  readonly #marks = new Map<string, Mark>()

  get(workspace: string, network: string, sub: number, initial = ADDRESSES_DEFAULT): number {
    return Math.max(initial, this.#marks.get(keyOf(workspace, network, sub))?.below ?? 0)
  }

  /** Returns the greatest mark that may be recorded now. @param at Unix ms */
  most(workspace: string, network: string, sub: number, at: number): number {
    const mark = this.#marks.get(keyOf(workspace, network, sub))
    const before = !mark ? 0 : at - mark.since < DAY_MS ? mark.before : mark.below
    return Math.min(ADDRESSES_MOST, Math.max(before, ADDRESSES_DEFAULT) + RAISED_DAILY_MAX)
  }

  raise(
    {
      workspace,
      network,
      sub_account: sub,
      below,
    }: {
      workspace: string
      network: string
      sub_account: number
      below: number
    },
    at: number,
  ): void {
    const name = keyOf(workspace, network, sub)
    const mark = this.#marks.get(name)
    if (mark && below <= mark.below) return
    const isSameDay = mark && at - mark.since < DAY_MS
    this.#marks.set(name, {
      below,
      since: isSameDay ? mark.since : at,
      before: isSameDay ? mark.before : (mark?.below ?? 0),
    })
  }
}

const keyOf = (workspace: string, network: string, sub: number): string =>
  JSON.stringify([workspace, network, sub])
