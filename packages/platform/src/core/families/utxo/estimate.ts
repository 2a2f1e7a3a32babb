import { formatAmount, utxo, type Network, type UtxoClient, type UtxoParams } from '@custody/chains'
import type {
  Coins,
  Estimate,
  Payment,
  Question,
  Quote,
  QuoteQuestion,
  Refusal,
} from '../../engine/chain.ts'
import type { CoinChain } from '../coins/chain.ts'
import { isShort, quoteOf } from '../coins/quote.ts'
import { payableFrom, rateSoon } from '../coins/payable.ts'
import { largestCoins, spendableCoins } from './coins.ts'
import { fallbackRate, rateOf } from './rates.ts'

const paramsOf = (network: Network) => network.utxo as UtxoParams

/** Estimates the fee of a transfer from the wallet's own coins. */
export async function estimate(
  chain: CoinChain<UtxoClient>,
  question: Question,
): Promise<Estimate> {
  const { context, network } = chain
  const { owner, walletId, to, amount } = question
  const feeRate = await rateOf(chain, question.feeRate, question.level).catch(() =>
    fallbackRate(network),
  )
  const utxos = await spendableCoins(context.database, walletId, network, owner)
  const changeAddress = await context.addresses.change(network, owner)
  try {
    const { fee } = utxo.selectCoins(network, { utxos, to, amount, changeAddress, feeRate })
    return { fee, reserve: fee }
  } catch (error) {
    // Coins may be assigned to pending transfers: estimate with the available ones, or with one
    // input.
    if (!isShort(error)) throw error
    const fee = feeOf(
      network,
      Math.max(1, utxos.length),
      [to, changeAddress].map((each) => utxo.scriptOf(network, each).length),
      feeRate,
    )
    return { fee, reserve: fee }
  }
}

/**
 * Returns the result of POST /estimate-fee. The typical transfer has one input, a payment and
 * change.
 */
export async function quote(
  { context, network }: CoinChain<UtxoClient>,
  question: QuoteQuestion,
): Promise<Quote> {
  const output = paramsOf(network).script === 'p2wpkh' ? 22 : 25
  const typical = feeOf(network, 1, [output, output], question.rate)
  return quoteOf(context, network, question, typical, async (walletId, amount, own) => {
    const utxos = await spendableCoins(context.database, walletId, network, question.owner)
    return utxo.selectCoins(network, {
      utxos,
      to: own,
      amount,
      changeAddress: own,
      feeRate: question.rate,
    }).fee
  })
}

/** Returns the largest amount that one transfer can pay now, see `Coins.payable`. */
export async function payable(
  chain: CoinChain<UtxoClient>,
  { owner, walletId, free }: Parameters<Coins['payable']>[0],
): Promise<bigint | null> {
  const { context, network } = chain
  const rate = await rateSoon(chain)
  if (rate === null) return null
  const coins = await largestCoins(context.database, walletId, network, owner)
  return payableFrom(utxo.mostPayable(network, coins, rate), free)
}

/** Rejects amounts below the dust limit, which nodes do not relay. */
export function unfit(network: Network, { to, amount, asset }: Payment): Refusal | null {
  const least = utxo.dustLimit(paramsOf(network), utxo.scriptOf(network, to))
  if (amount >= least) return null
  const shown = `${formatAmount(least, asset.decimals)} ${asset.asset_name}`
  return {
    field: 'amount',
    reason: `must be at least ${shown}, the dust limit of this kind of address`,
  }
}

/**
 * Returns the fee of a transaction in satoshi.
 * @param scripts length of each output's script in bytes
 */
function feeOf(network: Network, inputs: number, scripts: number[], rate: bigint): bigint {
  return (BigInt(utxo.virtualSize(paramsOf(network), inputs, scripts)) * rate) / 1000n
}
