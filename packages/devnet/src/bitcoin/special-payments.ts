import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import type { SpecialOrder } from '../local-chain.ts'
import { isCapability, type Token } from './cash-tokens.ts'
import type { BitcoinChain } from './chain.ts'
import type { UtxoNetwork } from './networks.ts'

/**
 * A kind of payment that only one chain has: Dash's `asset-unlock`, Bitcoin Cash's `token`,
 * Litecoin's `mweb`.
 */
type SpecialKind = 'asset-unlock' | 'token' | 'mweb'

export function specialKindOf({
  specialTransactions,
  cashTokens,
  extensionBlocks,
}: UtxoNetwork): SpecialKind | null {
  return specialTransactions
    ? 'asset-unlock'
    : cashTokens
      ? 'token'
      : extensionBlocks
        ? 'mweb'
        : null
}

/** @returns the hash of the transaction */
export function paySpecial(chain: BitcoinChain, kind: SpecialKind, order: SpecialOrder): string {
  if (order.kind !== kind)
    throw new RequestError(
      `kind ${JSON.stringify(order.kind)} is unknown on ${chain.network.code}: only ${kind}`,
    )
  const isPlain =
    order.tokens === undefined && order.nft === undefined && order.commitment === undefined
  if (kind !== 'token' && !isPlain)
    throw new RequestError(`tokens, nft and commitment are not supported on ${chain.network.code}`)
  switch (kind) {
    case 'asset-unlock':
      return chain.unlock(chain.outputOf(order.address, order.amount))
    case 'token':
      return chain.issue(chain.outputOf(order.address, order.amount), tokenOf(order))
    case 'mweb':
      return chain.extend(
        order.address === undefined ? undefined : chain.outputOf(order.address, order.amount),
      )
  }
}

const COMMITMENT_BYTES_MAX = 40
const AMOUNT_MAX = (1n << 63n) - 1n

function tokenOf({ tokens, nft, commitment = '' }: SpecialOrder): Omit<Token, 'category'> {
  const amount = tokens === undefined ? 0n : parseAmount(tokens, 0)
  if (amount > AMOUNT_MAX)
    throw new RequestError(`tokens ${amount} is too large: at most ${AMOUNT_MAX}`)
  if (nft !== undefined && !isCapability(nft))
    throw new RequestError(`nft ${JSON.stringify(nft)} must be none, mutable or minting`)
  if (
    typeof commitment !== 'string' ||
    !/^(?:[0-9a-f]{2})*$/.test(commitment) ||
    commitment.length > 2 * COMMITMENT_BYTES_MAX
  ) {
    throw new RequestError(`commitment must be at most ${COMMITMENT_BYTES_MAX} bytes in hex`)
  }
  if (nft === undefined && commitment !== '') throw new RequestError('commitment requires nft')
  if (amount === 0n && nft === undefined) throw new RequestError('tokens or nft is required')
  return {
    amount,
    nft: nft === undefined ? null : { capability: nft, commitment: Buffer.from(commitment, 'hex') },
  }
}
