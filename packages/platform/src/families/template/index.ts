import { LEAST_FEE, TemplateClient } from '@custody/chains/family/template'
import type { Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { chosenRate } from '../../engine/fee-rate.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { prepare, type Template } from './prepare.ts'

/** It asks the chain and answers values. What is written, the engine writes. */
export const connectTemplate: Connect = (context, network, endpoints) =>
  templateChain(
    context,
    network,
    endpoints.client((endpoint, fetch) => new TemplateClient(network, endpoint, fetch)),
  )

/** Apart from {@link connectTemplate}, so that a test can put another client in. */
export function templateChain(
  context: ChainContext,
  network: Network,
  client: TemplateClient,
): Chain {
  const { environment } = context
  // Asked by many at once, and by each screen that shows it: one question in ten seconds is enough.
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
      // A transfer is taken while the chain is away, too; the build holds what the fee is then.
      const fee = await chosenRate(chain, feeRate, level).catch(() => LEAST_FEE)
      return { fee, reserve: fee }
    },
    quote: async ({ rate }) => ({ fee: rate, basis: 'typical' }),
    // Every address can be paid any amount, and nothing has to stay on an account.
    unfit: () => null,
    refusal: async () => null,
    kept: async () => 0n,
    // There are no tokens, whose fees another wallet would pay.
    feeOfOtherWallet: () => 0n,
    prepare: (task) => prepare(chain, task),
    // The sending wallet pays; what was signed stands until its end; wallets are accounts; nothing
    // is staked.
    fuelled: null,
    replaceable: null,
    coins: null,
    stakes: null,
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
    nextNonce: async (account) => (await client.account(account)).sequence,
    balance: async (address) => (await client.account(address)).balance,
  }
}
