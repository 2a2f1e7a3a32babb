import { CoinRefusal, type Network } from '@custody/chains'
import type { ChainContext, Quote, QuoteQuestion } from '../../engine/chain.ts'

/**
 * Whether coins could not be selected for lack of them, or for an amount below the dust limit: the fee of
 * a typical transfer is still useful then. A payment that needs too many coins costs more than that.
 */
export const isShort = (error: unknown): error is CoinRefusal =>
  error instanceof CoinRefusal && error.code !== 'TOO_MANY_INPUTS'

/**
 * Returns the fee of a payment from the wallet's own coins, or of a typical one.
 * @param feeOf selects coins and returns their fee; one of the wallet's own addresses is used as
 *   the destination. It throws CoinRefusal
 */
export async function quoteOf(
  { database, addresses }: ChainContext,
  network: Network,
  { owner, amount }: QuoteQuestion,
  typical: bigint,
  feeOf: (walletId: string, amount: bigint, own: string) => Promise<bigint>,
): Promise<Quote> {
  const wallet =
    amount === null
      ? undefined
      : await database.one<{ id: string }>(
          'select id from wallets where workspace_id = $3 and sub_account_id = $1 and asset = $2',
          [owner.subAccountId, network.native_asset, owner.workspaceId],
        )
  if (wallet && amount !== null) {
    const own = await addresses.change(network, owner)
    try {
      return { fee: await feeOf(wallet.id, amount, own), basis: 'wallet' }
    } catch (error) {
      if (!isShort(error)) throw error
    }
  }
  return { fee: typical, basis: 'typical' }
}
