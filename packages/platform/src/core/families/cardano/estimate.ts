import {
  cardano,
  formatAmount,
  type CardanoClient,
  type Network,
  type UtxoTokens,
} from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
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
import { cardanoCoins, largestCoins } from './coins.ts'
import { parametersSoon, rateOf } from './parameters.ts'

/** Estimates the fee of a transfer from the wallet's own coins. */
export async function estimate(
  { context, network, client }: CoinChain<CardanoClient>,
  question: Question,
): Promise<Estimate> {
  const { owner, walletId, to, amount, feeRate } = question
  const parameters = await parametersSoon(client)
  const rate = rateOf(network, parameters, feeRate)
  const coins = await cardanoCoins(context.database, walletId, network, owner)
  const changeAddress = await context.addresses.change(network, owner)
  try {
    const { fee } = cardano.selectCoins(network, {
      coins,
      to,
      amount,
      changeAddress,
      rate,
      ttl: cardano.NOMINAL_END,
      parameters,
    })
    return { fee, reserve: fee }
  } catch (error) {
    // The available coins may not be sufficient because others are assigned to pending transfers;
    // the fee of a typical transfer is used.
    if (!isShort(error)) throw error
    const fee = cardano.typicalFee(rate, parameters)
    return { fee, reserve: fee }
  }
}

/**
 * Returns the result of POST /estimate-fee. The typical transfer has one input, a payment and
 * change.
 */
export async function quote(
  { context, network, client }: CoinChain<CardanoClient>,
  question: QuoteQuestion,
): Promise<Quote> {
  const { owner, rate } = question
  const parameters = await parametersSoon(client)
  return quoteOf(
    context,
    network,
    question,
    cardano.typicalFee(rate, parameters),
    async (walletId, amount, own) => {
      const coins = await cardanoCoins(context.database, walletId, network, owner)
      return cardano.selectCoins(network, {
        coins,
        to: own,
        amount,
        changeAddress: own,
        rate,
        ttl: cardano.NOMINAL_END,
        parameters,
      }).fee
    },
  )
}

/** Returns the largest amount that one transfer can pay now, see `Coins.payable`. */
export async function payable(
  chain: CoinChain<CardanoClient>,
  { owner, walletId, free }: Parameters<Coins['payable']>[0],
): Promise<bigint | null> {
  const { context, network, client } = chain
  const rate = await rateSoon(chain)
  if (rate === null) return null
  const parameters = await parametersSoon(client)
  const coins = await largestCoins(context.database, walletId, network, owner)
  return payableFrom(cardano.mostPayable(coins, rate, parameters), free)
}

/** Rejects an amount below the ledger's minimum for an output of its size. */
export function unfit(network: Network, { to, amount, asset }: Payment): Refusal | null {
  const least = cardano.leastPayment(network, to, amount)
  if (amount >= least) return null
  const shown = `${formatAmount(least, asset.decimals)} ${asset.asset_name}`
  return {
    field: 'amount',
    reason: `must be at least ${shown}, the minimum that the chain requires in an output to this type of address`,
  }
}

/**
 * Returns the lovelace that must stay with the native tokens of a wallet's coins, whichever amount
 * is sent.
 * @param address one of the wallet's addresses
 */
export async function reserveOf(
  database: Queryable,
  network: Network,
  address: string,
): Promise<bigint> {
  const coins = await database.query<{ riders: UtxoTokens }>(
    `select u.riders from chain_addresses c
       join wallets w on w.workspace_id = c.workspace_id and w.sub_account_id = c.sub_account_id
       join utxos u on u.workspace_id = w.workspace_id and u.wallet_id = w.id
         and u.network = c.network
     where c.network = $1 and c.address = $2 and u.riders is not null and u.spendable
       and u.spent_by is null`,
    [network.code, address],
  )
  return cardano.keptWith(coins)
}
