import { evm as evmBuild, type Asset } from '@custody/chains'
import type { Evm } from './context.ts'

/** A nonce at least as long as any real one, because only the size of the bytes matters. */
const LONG_NONCE = 0xffff_ffffn

/**
 * Returns the fee in wei that an OP Stack rollup charges in addition to gas: publishing the
 * transfer on L1, and the operator fee on its gas limit. 0 on other networks.
 * @param headroom whether to add a margin, for reservations; estimates have none
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
