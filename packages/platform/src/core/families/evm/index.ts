import { EvmClient, type Asset, type Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import type { Evm } from './context.ts'
import { estimate, expectedPrice, quote, usualNativeGas } from './estimate.ts'
import { prepare } from './prepare.ts'
import { drain, fuelAgain, price } from './price.ts'
import { replaceableOf } from './replace.ts'

/**
 * Amount of a local gas tank's first funding, in whole coins, and the divisor of one coin that
 * gives the balance below which any tank is low.
 */
const FIRST_FILL_COINS = 10n
const THRESHOLD_DIVISOR = 100n

/**
 * EVM: accounts with nonces, fees paid by the workspace's gas tank, sweeps, replacement by a
 * transaction with the same nonce and a higher fee.
 */
export const connectEvm: Connect = (context, network, endpoints) =>
  evmChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new EvmClient(network, context.registry.assetsOf(network.code), endpoint, fetch, {
          report: context.report,
          now: () => context.environment.now(),
        }),
    ),
  )

export function evmChain(context: ChainContext, network: Network, client: EvmClient): Chain {
  const native = context.registry.asset(network.native_asset) as Asset
  const feeRates = cached(
    () => client.feeRates(),
    RATES_FRESH_MS,
    () => context.environment.now(),
  )
  const nativeGas = cached(
    () => usualNativeGas(client, native),
    RATES_FRESH_MS,
    () => context.environment.now(),
  )
  const evm: Evm = { ...context, network, client, native, feeRates, nativeGas }
  const coin = 10n ** BigInt(native.decimals)
  return {
    network,
    client,
    coins: null,
    stakes: null,
    replaceable: replaceableOf(evm),
    fuelled: {
      price: (task, most) => price(evm, task, most),
      drain: (o) => drain(evm, o),
      again: (failed) => fuelAgain(evm, failed),
      firstFill: FIRST_FILL_COINS * coin,
      threshold: coin / THRESHOLD_DIVISOR,
    },
    async rates() {
      const { low, medium, high } = await feeRates()
      return { low: expectedPrice(low), medium: expectedPrice(medium), high: expectedPrice(high) }
    },
    ratesReadAt: feeRates.readAt,
    estimate: (question) => estimate(evm, question),
    quote: (question) => quote(evm, question),
    unfit: () => null,
    refusal: async () => null,
    reserveOf: async () => 0n,
    feeOfOtherWallet: () => 0n,
    prepare: (task) => prepare(evm, task),
    nextNonce: (account) => client.nonce(account),
    balance: (address, asset) => client.balance(address, asset),
    balances: (addresses, asset, height) => client.balances(addresses, asset, height),
  }
}
