import { z } from 'zod'
import {
  ACCOUNT_RENT,
  buildTransfer,
  feeOf,
  TOKEN_ACCOUNT_RENT,
  unitPriceOf,
  unitsOf,
} from '../solana/build.ts'
import { SolanaClient } from '../solana/rpc.ts'
import { planRound, type FundedAddress } from './fee-paying-addresses.ts'
import { digits, holder, sweeper } from './schemas.ts'
import { usedPlaces } from './address-scan.ts'

const shape = z.strictObject({
  accounts: z.array(holder),
  unitPrice: digits,
  blockhash: z.string().min(32).max(44),
})

export const solana = sweeper(shape, {
  life: '150 blocks, about a minute: gather, plan, sign and send without a pause',
  client: (registry, network, endpoint, fetch) =>
    new SolanaClient(network, registry.assetsOf(network.code), endpoint, fetch),
  async look(ask) {
    const assets = ask.registry.assetsOf(ask.network.code)
    const client = new SolanaClient(ask.network, assets, ask.endpoint, ask.fetch)
    await client.probe()
    const accounts = await usedPlaces(ask, async (place): Promise<FundedAddress | null> => {
      const balances: Record<string, string> = {}
      for (const asset of assets) {
        const amount = await client.balance(place.address, asset)
        if (amount > 0n) balances[asset.asset_name] = amount.toString()
      }
      return Object.keys(balances).length === 0 ? null : { ...place, balances }
    })
    const unitPrice = unitPriceOf(await client.unitPrices(), 'high', unitsOf(true)).toString()
    return { accounts, unitPrice, blockhash: (await client.lifetime()).blockhash }
  },
  plan({ registry, network, publicKeyAt, scan, to }) {
    const { accounts, unitPrice: reported, blockhash } = scan
    const unitPrice = BigInt(reported)
    const cost = (token: boolean): bigint => feeOf(unitsOf(token), unitPrice)
    return planRound({
      network,
      assets: registry.assetsOf(network.code),
      holders: accounts,
      to,
      reserve: ACCOUNT_RENT,
      // The destination may have no token account yet.
      tokenCost: () => cost(true) + TOKEN_ACCOUNT_RENT,
      nativeCost: () => cost(false),
      build: ({ holder, asset, to: address, amount }) =>
        buildTransfer(network, {
          asset,
          to: address,
          amount,
          blockhash,
          unitPrice,
          publicKey: publicKeyAt(holder.path),
          path: holder.path,
        }),
    })
  },
})
