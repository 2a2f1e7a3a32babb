import { evm as evmBuild, type Asset } from '@custody/chains'
import type { Evm } from './context.ts'

/** A nonce as long as any account's: the bytes are only measured. */
const LONG_NONCE = 0xffff_ffffn

/**
 * What a roll-up of the OP Stack would charge on top of gas and price, in wei; 0 elsewhere:
 * publishing the transfer on the chain below, and the operator's fee on its gas limit.
 * @param headroom for what is held for a transaction; an estimate has none
 */
export async function l1FeeOf(
  { network, client }: Evm,
  asset: Asset,
  o: { to: string; amount: bigint; gas: bigint; fee: evmBuild.EvmFee },
  headroom = true,
): Promise<bigint> {
  if (network.l1_fee_oracle === undefined) return 0n
  const unsigned = evmBuild.buildTransfer(network, { asset, ...o, nonce: LONG_NONCE, path: [] })
  const [published, operator] = await Promise.all([
    client.l1Fee(unsigned, headroom),
    client.operatorFee(o.gas, headroom),
  ])
  return published + operator
}
