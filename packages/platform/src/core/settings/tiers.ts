import { ChainError } from '@custody/chains/basics'
import { parseUsd } from '../decimals.ts'

/** A subscription tier. Amounts in millionths of a USD. */
export interface Tier {
  name: string
  /** 30-day volume from which it applies. */
  from: bigint
  /** Fee as a fraction of a transfer's value, in hundredths of a percent. */
  basisPoints: bigint
  /** Minimum fee of one transfer. */
  least: bigint
  /** Subscription fee for a calendar month. */
  monthly: bigint
}

/**
 * Default tiers, each as NAME:volume from which it applies:basis points:minimum fee:monthly
 * subscription, in USD.
 */
export const DEFAULT_TIERS =
  'STARTER:0:25:0.50:0,GROWTH:1000000:15:0.30:499,BUSINESS:10000000:8:0.20:1499,ENTERPRISE:50000000:4:0.10:0'

const BASIS_POINTS = 10_000n

/**
 * Parses the tiers of an installation.
 * @throws Error with a sentence that describes the format
 */
export function readTiers(text: string): readonly Tier[] {
  const wrong = (why: string) =>
    new Error(
      `${why}; a tier is NAME:VOLUME:BASIS_POINTS:LEAST_FEE:MONTHLY in USD, as in ${DEFAULT_TIERS.split(',')[1]}`,
    )
  const tiers = text.split(',').map((part) => {
    const [name = '', from = '', points = '', least = '', monthly = '', ...more] = part
      .trim()
      .split(':')
    if (!/^[A-Z][A-Z0-9_]{0,30}$/.test(name) || !/^\d{1,5}$/.test(points) || more.length > 0)
      throw wrong(`"${part.trim()}" is not a tier`)
    try {
      return {
        name,
        from: parseUsd(from),
        basisPoints: BigInt(points),
        least: parseUsd(least),
        monthly: parseUsd(monthly),
      }
    } catch (error) {
      if (error instanceof ChainError) throw wrong(`"${part.trim()}": an amount ${error.message}`)
      throw error
    }
  })
  if (tiers[0]?.from !== 0n) throw wrong('the first tier must apply from a volume of 0')
  if (tiers.some((tier, at) => at > 0 && tier.from <= (tiers[at - 1] as Tier).from))
    throw wrong('volumes must increase from tier to tier')
  if (new Set(tiers.map(({ name }) => name)).size !== tiers.length)
    throw wrong('a name appears twice')
  if (tiers.some(({ basisPoints }) => basisPoints > BASIS_POINTS))
    throw wrong('the basis points must be at most 10000')
  return tiers
}

/**
 * Returns a tier by its name; a tier that the installation no longer has is replaced by the first
 * one.
 */
export function tierNamed(tiers: readonly Tier[], name: string | null): Tier {
  return tiers.find((tier) => tier.name === name) ?? (tiers[0] as Tier)
}

/** Returns the tier for a 30-day volume. */
export function tierOfVolume(tiers: readonly Tier[], volume: bigint): Tier {
  return tiers.findLast((tier) => volume >= tier.from) ?? (tiers[0] as Tier)
}

/** Returns the fee of a transfer of this value, rounded up to a millionth of a USD. */
export function feeOf(tier: Tier, amountUsd: bigint): bigint {
  const share = (amountUsd * tier.basisPoints + BASIS_POINTS - 1n) / BASIS_POINTS
  return share > tier.least ? share : tier.least
}
