import { LEAST_FEE, TemplateClient } from '@custody/chains/family/template'
import type { Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { chosenRate } from '../../engine/fee-rate.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { prepare, type Template } from './prepare.ts'

/** Connects the template chain. It queries the chain and returns values; only the engine writes. */
export const connectTemplate: Connect = (context, network, endpoints) =>
  templateChain(
    context,
    network,
    endpoints.client((endpoint, fetch) => new TemplateClient(network, endpoint, fetch)),
  )

/**
 * Creates the template chain from a client. It is separate from {@link connectTemplate}, so that a
 * test can pass another client.
 */
export function templateChain(
  context: ChainContext,
  network: Network,
  client: TemplateClient,
): Chain {
  const { environment } = context
  // Many callers need the rates at the same time, so they are queried at most once in ten seconds.
  const rates = cached(
    async () => {
      const fee = await client.fee()
      return { low: fee, medium: fee, high: fee }
    },
    RATES_FRESH_MS,
    () => environment.now(),
  )
  const chain: Template = { context, network, client, rates }
  return {
    network,
    client,
    rates: () => rates(),
    ratesReadAt: () => rates.readAt(),
    async estimate({ feeRate, level }) {
      // A transfer is accepted even while the chain is unreachable; the build reserves the fee of
      // that time.
      const fee = await chosenRate(chain, feeRate, level).catch(() => LEAST_FEE)
      return { fee, reserve: fee }
    },
    quote: async ({ rate }) => ({ fee: rate, basis: 'typical' }),
    // Every address can be paid any amount, and there is no chain reserve.
    unfit: () => null,
    refusal: async () => null,
    reserveOf: async () => 0n,
    // There are no tokens whose fees another wallet would pay.
    feeOfOtherWallet: () => 0n,
    prepare: (task) => prepare(chain, task),
    // The sending wallet pays its own fees; signed transactions cannot be replaced; wallets are
    // accounts; there is no staking.
    fuelled: null,
    replaceable: null,
    coins: null,
    stakes: null,
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
    nextNonce: async (account) => (await client.account(account)).sequence,
    balance: async (address) => (await client.account(address)).balance,
  }
}
