import { addressAt, type FamilyName, type Network } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { FEE_RATE_DECIMALS } from '../intent/pay.ts'
import { assertFeeCap } from './cap.ts'
import type { Fuel, Subject } from './order.ts'

/** Families whose fees come from the workspace's gas tank. */
export const FUELLED = new Set(['evm', 'tron'])

/** Prices are in the chain's smallest unit, a caller's rate is in the family's: gwei or Sun. */
const RATE_DECIMALS: Partial<Record<FamilyName, number>> = { evm: 9, tron: 0 }

/** Part of the fee cap that publishing on the chain below may cost, where a network has an oracle for it. */
const L1_SHARE = 10n
/** Tron: bandwidth of a token transfer, or what brings an account to life, 1.1 TRX; room for dearer parameters. In sun. */
const TRON_EXTRA = 5_000_000n

/** What may come on top of gas and price; elsewhere there is no such thing. */
function extraMost(network: Network): bigint {
  if (network.family === 'tron') return TRON_EXTRA
  return network.l1_fee_oracle === undefined ? 0n : BigInt(network.fee_cap) / L1_SHARE
}

/**
 * Rule 11: native coin to the source address of one intent or token sweep, no more than it can cost with head-room. Tron:
 * `gas` is energy (tokens) or bandwidth (TRX), `l1_fee` what comes on top.
 * @returns the most that the fuel may bring
 */
export function assertFuels(subject: Subject, fuel: Fuel, source: readonly number[], callerRate: string | null): bigint {
  const { decoded, network, key } = subject
  if (decoded.asset !== network.native_asset) throw new Refusal('ASSET_MISMATCH', 'Fuel is the native coin')
  const [payment, more] = decoded.payments
  if (!payment || more) throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  if (payment.address !== addressAt(network, key, source)) {
    throw new Refusal('DESTINATION_MISMATCH', 'Fuel goes to the source address of its intent only')
  }
  if (payment.tag !== null) throw new Refusal('TAG_MISMATCH', 'Fuel carries no tag')
  const cap = BigInt(network.fee_cap)
  const price = BigInt(fuel.max_fee_per_gas)
  const cost = BigInt(fuel.gas) * price
  const l1 = BigInt(fuel.l1_fee ?? '0')
  if (cost + l1 > cap) throw new Refusal('FUEL_TOO_LARGE', `The fee to be fuelled is above the cap ${cap}`)
  if (l1 > extraMost(network)) {
    throw new Refusal(
      'FUEL_TOO_LARGE', `${network.code} takes no more than ${extraMost(network)} beside gas and price, and l1_fee is ${l1}`
    )
  }
  if (callerRate !== null && price * 10n ** BigInt(FEE_RATE_DECIMALS - (RATE_DECIMALS[network.family] ?? 0)) > BigInt(callerRate)) {
    throw new Refusal('FEE_RATE', "The price to be fuelled is above the caller's fee_rate")
  }
  const most = (cost * 12n) / 10n + l1
  if (payment.amount > most) throw new Refusal('FUEL_TOO_LARGE', `The fuel ${payment.amount} is more than ${most}`)
  assertFeeCap(subject)
  return most
}

