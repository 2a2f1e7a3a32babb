import { ChainError, type Asset, type Network, type UnsignedTransaction } from '../types.ts'
import { canonical } from './address.ts'
import { write, type Envelope, type Hex } from './envelope.ts'
import { TRANSFER_SELECTOR } from './transaction.ts'

export * from './gas.ts'
/** Numerator of the ratio of fuel to gas × price. */
export const FUEL_NUMERATOR = 12n
export const FUEL_DENOMINATOR = 10n

/** Maximum fee of an EVM transaction, in wei per gas. */
export interface EvmFee {
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
  legacy?: boolean
}

/** Returns the call data of an ERC-20 transfer. */
export function transferData(to: string, amount: bigint): Hex {
  return `${TRANSFER_SELECTOR}${canonical(to).slice(2).toLowerCase().padStart(64, '0')}${amount.toString(16).padStart(64, '0')}` as Hex
}

/**
 * Builds an unsigned transfer of a native coin or an ERC-20 token.
 *
 * @param o.amount smallest unit of the asset
 * @param o.path path of the sending address
 * @throws ChainError `CHAIN_ID`, `ADDRESS`
 */
export function buildTransfer(
  network: Network,
  o: {
    asset: Asset
    to: string
    amount: bigint
    nonce: bigint
    gas: bigint
    fee: EvmFee
    path: number[]
  },
): UnsignedTransaction {
  if (!network.chain_id) throw new ChainError('CHAIN_ID', `${network.code} has no chain id`)
  const token = o.asset.type === 'token'
  const body = {
    chainId: network.chain_id,
    nonce: o.nonce,
    gas: o.gas,
    to: canonical(token ? (o.asset.contract_address as string) : o.to),
    value: token ? 0n : o.amount,
    ...(token ? { data: transferData(o.to, o.amount) } : {}),
  }
  const transaction: Envelope = o.fee.legacy
    ? { ...body, type: 'legacy', gasPrice: o.fee.maxFeePerGas }
    : {
        ...body,
        type: 'eip1559',
        maxFeePerGas: o.fee.maxFeePerGas,
        maxPriorityFeePerGas: o.fee.maxPriorityFeePerGas,
      }
  return { network: network.code, bytes: write(transaction).slice(2), inputs: [{ path: o.path }] }
}

/**
 * Returns the native coin in wei that an address needs for one transaction, with a margin for a
 * rising base fee.
 */
export function fuelFor(gas: bigint, maxFeePerGas: bigint, l1Fee = 0n): bigint {
  return (gas * maxFeePerGas * FUEL_NUMERATOR) / FUEL_DENOMINATOR + l1Fee
}
