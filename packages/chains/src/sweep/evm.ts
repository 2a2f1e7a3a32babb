import { z } from 'zod'
import { buildTransfer, NATIVE_GAS, type EvmFee } from '../evm/build.ts'
import { EvmClient } from '../evm/rpc.ts'
import type { Asset } from '../types.ts'
import { planRound, type Holder } from './fuelled.ts'
import { digits, holder, sweeper } from './shape.ts'
import { usedPlaces } from './walk.ts'

/** `gas`: of a transfer to the destination, by asset. */
const account = holder.extend({ nonce: digits, gas: z.record(z.string(), digits) })
type Account = z.infer<typeof account>
/** `price`: wei per gas; the tip is the whole of it, so that the price is exact. */
const shape = z.strictObject({
  accounts: z.array(account), legacy: z.boolean(), l1: z.strictObject({ native: digits, token: digits }), price: digits,
})

/** A nonce as long as any account's: the bytes are only measured. */
const LONG_NONCE = 0xffff_ffffn
/** Head-room of fuel over what a token's transfer may cost. */
const HEADROOM = 2n

export const evm = sweeper(shape, {
  life: 'as long as the price lasts and no other transaction of the account is mined',
  client: (registry, network, endpoint, fetch) => new EvmClient(network, registry.assetsOf(network.code), endpoint, fetch),
  async look(ask) {
    const assets = ask.registry.assetsOf(ask.network.code)
    const client = new EvmClient(ask.network, assets, ask.endpoint, ask.fetch)
    await client.probe()
    const native = assets.find(({ type }) => type === 'native') as Asset
    const accounts = await usedPlaces(ask, async (place): Promise<Account | null> => {
      const nonce = await client.nonce(place.address)
      const balances: Record<string, string> = {}
      for (const asset of assets) {
        const amount = await client.balance(place.address, asset)
        if (amount > 0n) balances[asset.asset_name] = amount.toString()
      }
      const gas: Record<string, string> = {}
      for (const asset of assets) {
        const amount = asset.type === 'native' ? 0n : BigInt(balances[asset.asset_name] ?? '0')
        if (asset.type === 'native' || amount > 0n) {
          gas[asset.asset_name] = (await client.gasLimit({ asset, from: place.address, to: ask.to, amount })).toString()
        }
      }
      return nonce === 0n && Object.keys(balances).length === 0 ? null : { ...place, nonce: nonce.toString(), balances, gas }
    })
    const { maxFeePerGas, legacy = false } = (await client.feeRates()).high
    const l1Of = async (asset: Asset): Promise<string> => (await client.l1Fee(buildTransfer(ask.network, {
      asset, to: ask.to, amount: 10n ** BigInt(asset.decimals + 3), nonce: LONG_NONCE, gas: 1_000_000n, path: [],
      fee: feeOf(maxFeePerGas, legacy),
    }), true)).toString()
    const token = assets.find(({ type }) => type === 'token')
    return {
      accounts, price: maxFeePerGas.toString(), legacy, l1: { native: await l1Of(native), token: token ? await l1Of(token) : '0' },
    }
  },
  plan({ registry, network, found, to }) {
    const { accounts, price, legacy, l1 } = found
    const fee = feeOf(BigInt(price), legacy)
    const gasOf = (holder: Holder, asset: Asset): bigint => BigInt((holder as Account).gas[asset.asset_name] ?? NATIVE_GAS)
    const native = registry.asset(network.native_asset) as Asset
    return planRound({
      network, assets: registry.assetsOf(network.code), holders: accounts, to, kept: 0n,
      tokenCost: (holder, asset) => HEADROOM * (gasOf(holder, asset) * fee.maxFeePerGas + BigInt(l1.token)),
      nativeCost: (holder, fuel) => (fuel ? NATIVE_GAS : gasOf(holder, native)) * fee.maxFeePerGas + BigInt(l1.native),
      build: ({ holder, asset, to: address, amount, at }) => buildTransfer(network, {
        asset, to: address, amount, nonce: BigInt((holder as Account).nonce) + BigInt(at), fee, path: holder.path,
        gas: address === to ? gasOf(holder, asset) : NATIVE_GAS,
      }),
    })
  },
})

const feeOf = (price: bigint, legacy: boolean): EvmFee => ({
  maxFeePerGas: price, maxPriorityFeePerGas: price, ...(legacy ? { legacy } : {}),
})
