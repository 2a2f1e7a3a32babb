import { RpcUnavailable, type EndpointHead } from '@custody/chains'

/** What the platform itself knows of a network, by which answers of its endpoints are judged. */
export interface KnownOfNetwork {
  /** Height of the newest block that was read for deposits; null: none yet. */
  scanned: number | null
  /** Time until which the operator trusts endpoints of the network that seem to be behind. */
  trustedUntil: Date | null
  /** A final block of which an endpoint returned another one; null: there is none. */
  contradiction: Contradiction | null
}

/** A final block, and the one that an endpoint returns at its height instead. `since`: ISO time. */
export interface Contradiction {
  height: number
  known: string
  other: string
  since: string
}

/** Returns what a contradiction is, and how it ends. */
export const contradictionText = (
  network: string,
  { height, known, other }: Contradiction,
): string =>
  `an endpoint returns ${other} as block ${height}, and ${known} was final; nothing is credited, settled or paid until the endpoint returns ${known} again, or another one decides, or the operator accepts the other chain: npx custody chain accept-reorg ${network} ${height} ${other}`

/**
 * No endpoint is current. Answers that would end a transfer or price it are then not used; blocks,
 * inclusion and finality are read regardless.
 */
export class NoCurrentEndpoint extends RpcUnavailable {}

/** Number of networks whose newest blocks must seem wrong alike before the clock is suspected. */
const ALIKE_NETWORKS = 3
const ALIKE_MS = 60_000

/** The ages of the newest blocks of all networks of a process, to recognise a wrong clock. */
export class BlockAges {
  readonly #ages = new Map<string, number>()

  /**
   * Notes the age of a network's newest block. `isWrong`: it is stale, or in the future.
   * @returns whether so many networks seem equally wrong that this host's clock must be
   */
  note(network: string, ageMs: number, isWrong: boolean): boolean {
    if (!isWrong) {
      this.#ages.delete(network)
      return false
    }
    this.#ages.set(network, ageMs)
    const alike = [...this.#ages.values()].filter((each) => Math.abs(each - ageMs) <= ALIKE_MS)
    return alike.length >= ALIKE_NETWORKS
  }
}

/** Returns a duration as a person says it. */
function spoken(ms: number): string {
  const units: [unit: string, ms: number][] = [
    ['days', 86_400_000],
    ['hours', 3_600_000],
    ['minutes', 60_000],
  ]
  const [unit, size] = units.find(([, each]) => ms >= 2 * each) ?? ['seconds', 1000]
  return `${Math.floor(ms / size)} ${unit}`
}

/**
 * Returns why answers of an endpoint may be about an old state; null if its newest block is recent
 * and not below the blocks that were already read.
 * @param o.blocks number of blocks that it may be below
 */
export function doubtOf(
  { height, timeMs, lacks }: EndpointHead,
  network: { code: string; stale_after_s?: number },
  {
    scanned,
    now,
    ages,
    blocks = 0,
  }: { scanned: number | null; now: number; ages: BlockAges; blocks?: number },
): string | null {
  if (lacks !== null) return lacks
  const staleMs = (network.stale_after_s ?? Number.POSITIVE_INFINITY) * 1000
  const ageMs = timeMs === null ? 0 : now - timeMs
  const isWrong = Math.abs(ageMs) > staleMs
  const isClock = ages.note(network.code, ageMs, isWrong)
  if (isClock)
    return `CLOCK: the newest blocks of several networks are equally ${ageMs > 0 ? 'old' : 'far in the future'} (${spoken(Math.abs(ageMs))}): correct the clock of this host`
  if (isWrong)
    return ageMs > 0
      ? `it is behind: its newest block ${height} is ${spoken(ageMs)} old`
      : `its newest block ${height} is ${spoken(-ageMs)} in the future by the clock of this host`
  if (scanned !== null && height < scanned - blocks)
    return `it is behind: its newest block is ${height}, and block ${scanned} was already read`
  return null
}

/** A rate of an endpoint, as any family returns it. */
type Rates = Readonly<Record<string, unknown>>

/** Sums the amounts of an answer, so that answers of the same form can be ordered. */
const sumOf = (value: unknown): bigint => {
  if (typeof value === 'bigint') return value
  if (typeof value !== 'object' || value === null) return 0n
  return Object.values(value).reduce<bigint>((sum, each) => sum + sumOf(each), 0n)
}

/** Largest factor between the rates of two endpoints at which the higher one is used. */
const APART_MAX = 3n

/**
 * Returns the rates to use of those of several endpoints: the median; of two the higher one, unless
 * they differ so much that one of them must be wrong. Then null.
 */
export function agreedRates<T extends Rates>(answers: readonly T[]): T | null {
  const sorted = answers
    .map((answer) => ({ answer, sum: sumOf(answer) }))
    .sort((a, b) => (a.sum < b.sum ? -1 : a.sum > b.sum ? 1 : 0))
  if (sorted.length === 2) {
    const [low, high] = sorted as [(typeof sorted)[0], (typeof sorted)[0]]
    return high.sum > low.sum * APART_MAX ? null : high.answer
  }
  return sorted[Math.floor(sorted.length / 2)]?.answer ?? null
}
