import { ChainError, type Asset, type Network, type UnsignedTransaction } from '../types.ts'

/** Pure: everything that must be asked of the chain comes in as a parameter. */
export function buildTransfer(
  network: Network, _o: { asset: Asset; to: string; tag: string | null; amount: bigint; path: number[] }
): UnsignedTransaction {
  throw new ChainError('TEMPLATE', `${network.code}: building is to be written`)
}
