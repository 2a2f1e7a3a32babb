import {
  addressAt,
  TANK_SUB_ACCOUNT,
  traitsOf,
  type DecodedTransaction,
  type Network,
} from '@custody/chains'
import { Refusal } from '../errors.ts'
import { FEE_RATE_DECIMALS } from '../intent/pay.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, FuelPart, Subject } from './order.ts'

/**
 * One of the transactions that a fuel pays for. `callerRate`: its caller's limit per unit; null:
 * only the node's cap applies.
 */
export interface Fuelling {
  part: FuelPart
  callerRate: string | null
  /** Native coin that the source address has for the transaction already, from earlier fuel. */
  present: bigint
}

/** Rule 11: native coin to the source address of one or several intents or of one token sweep. */
export function assertFuels(
  subject: Subject,
  source: readonly number[],
): asserts subject is Covered {
  const { network, key } = subject
  assertCovered(subject, {
    payer: TANK_SUB_ACCOUNT,
    does: {
      asset: network.native_asset,
      address: addressAt(network, key, source),
      payee: 'the source address of the transfer that it is for',
      tag: null,
      amount: null,
    },
  })
}

/**
 * Rule 11: checks that a fuel is at most the sum of what each transaction alone can cost, with
 * head-room.
 * @returns the maximum amount of the fuel
 */
export function assertFuelAmount(
  { decoded, network }: Covered,
  fuellings: readonly Fuelling[],
): bigint {
  const [payment] = decoded.payments as [DecodedTransaction['payments'][number]]
  const most = fuellings.reduce((sum, each) => sum + mostOf(network, each), 0n)
  if (payment.amount > most)
    throw new Refusal(
      'FUEL_TOO_LARGE',
      `The fuel amount ${payment.amount} exceeds the allowed ${most}`,
    )
  return most
}

/**
 * Returns the maximum amount for one transaction. `gas` and its price are in the chain's own units
 * (Tron: energy for tokens, bandwidth for TRX), `l1_fee` is added.
 */
function mostOf(network: Network, { part, callerRate, present }: Fuelling): bigint {
  const cap = BigInt(network.fee_cap)
  const price = BigInt(part.max_fee_per_gas)
  const cost = BigInt(part.gas) * price
  const l1 = l1Of(part)
  const { surchargeMost, feeRateDecimals, gasMost } = traitsOf(network)
  if (gasMost !== undefined && BigInt(part.gas) > gasMost(network)) {
    throw new Refusal(
      'FUEL_TOO_LARGE',
      `The gas ${part.gas} that the fuel pays for is above ${gasMost(network)}, the maximum for one transfer`,
    )
  }
  if (costOf(part) > cap)
    throw new Refusal('FUEL_TOO_LARGE', `The fee that the fuel pays for is above the cap ${cap}`)
  if (l1 > surchargeMost(network)) {
    throw new Refusal(
      'FUEL_TOO_LARGE',
      `${network.code} allows at most ${surchargeMost(network)} in addition to gas and price, and l1_fee is ${l1}`,
    )
  }
  // The price is in the chain's smallest unit, a caller's rate in the usual unit, such as gwei.
  if (
    callerRate !== null &&
    price * 10n ** BigInt(FEE_RATE_DECIMALS - feeRateDecimals) > BigInt(callerRate)
  ) {
    throw new Refusal(
      'FEE_RATE',
      "The fee rate that the fuel pays for is above the caller's fee_rate",
    )
  }
  const most = (cost * 12n) / 10n + l1
  return most > present ? most - present : 0n
}

const l1Of = ({ l1_fee }: FuelPart): bigint => BigInt(l1_fee ?? '0')

/** Returns the largest fee of a transaction that a fuel pays for, in the smallest native unit. */
export const costOf = (part: FuelPart): bigint =>
  BigInt(part.gas) * BigInt(part.max_fee_per_gas) + l1Of(part)
