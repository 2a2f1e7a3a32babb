import { isBeyondWorth, type Asset, type Registry } from '@custody/chains'

/** The fee cap of a network is about a thousand times what a payment usually costs there. */
const USUAL_SHARE = 1000n

/**
 * Returns what one sweep usually costs, in the smallest unit of the asset's network coin. It depends on
 * no price and no current fee rate, so that it never changes between two answers.
 */
export const usualSweepCost = (registry: Registry, asset: Asset): bigint =>
  BigInt(registry.networkOf(asset).fee_cap) / USUAL_SHARE

/**
 * Whether an amount is less than one sweep of the asset usually costs, so that anyone can send it for
 * almost nothing, and collecting it would cost more. A token is compared with the cost at the bounds of
 * the registry's `usd_range` that make the token worth most.
 * @param amount in the smallest unit of the asset
 */
export const isDust = (registry: Registry, asset: Asset, amount: bigint): boolean =>
  amount > 0n && isBeyondWorth(registry, asset, amount, usualSweepCost(registry, asset))
