import { evm as evmBuild, type Asset } from '@custody/chains'
import type { Evm } from './context.ts'

/** A nonce as long as any account's: the bytes are only measured. */
const LONG_NONCE = 0xffff_ffffn

/**
 * What a roll-up would charge for publishing a transfer, in wei; 0 elsewhere.
 * @param headroom for what is held for a transaction; an estimate has none
 */
export async function l1FeeOf(
  { network, client }: Evm, asset: Asset, o: { to: string; amount: bigint; gas: bigint; fee: evmBuild.EvmFee }, headroom = true,
): Promise<bigint> {
  if (network.l1_fee_oracle === undefined) return 0n
  return client.l1Fee(evmBuild.buildTransfer(network, { asset, ...o, nonce: LONG_NONCE, path: [] }), headroom)
}
