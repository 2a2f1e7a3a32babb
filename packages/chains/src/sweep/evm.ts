import { z } from 'zod'
import { buildTransfer, type EvmFee } from '../evm/build.ts'
import { NATIVE_GAS } from '../evm/gas.ts'
import { EvmClient } from '../evm/rpc.ts'
import type { Asset } from '../types.ts'
import { planRound, type FundedAddress } from './fee-paying-addresses.ts'
import { digits, holder, sweeper } from './schemas.ts'
import { usedPlaces } from './address-scan.ts'

/** `gas`: gas of a transfer to the destination, by asset. */
const account = holder.extend({ nonce: digits, gas: z.record(z.string(), digits) })
type Account = z.infer<typeof account>
/**
 * `price`: wei per gas; the tip is equal to it, so that the price is exact. `fuel_gas`: gas of a
 * payment from one address to another that needs fuel for its tokens; files of earlier versions
 * lack it.
 */
const shape = z.strictObject({
  accounts: z.array(account),
  legacy: z.boolean(),
  l1: z.strictObject({ native: digits, token: digits }),
  price: digits,
  fuel_gas: digits.optional(),
})

/** Largest nonce of any account, used where only the size of the bytes matters. */
const LONG_NONCE = 0xffff_ffffn
/** Ratio of fuel to the cost of a token transfer. */
const HEADROOM = 2n

export const evm = sweeper(shape, {
  life: 'while the price applies and no other transaction of the account is mined',
  client: (registry, network, endpoint, fetch) =>
    new EvmClient(network, registry.assetsOf(network.code), endpoint, fetch),
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
        const held = BigInt(balances[asset.asset_name] ?? '0')
        // One wei: an address without native coin can still be estimated with it, and it is enough
        // to include the cost of a first payment.
        const amount = asset.type === 'native' && held > 0n ? 1n : held
        if (asset.type === 'native' || amount > 0n) {
          gas[asset.asset_name] = (
            await client.gasLimit({ asset, from: place.address, to: ask.to, amount })
          ).toString()
        }
      }
      return nonce === 0n && Object.keys(balances).length === 0
        ? null
        : { ...place, nonce: nonce.toString(), balances, gas }
    })
    const { maxFeePerGas, legacy = false } = (await client.feeRates()).high
    const fuelGas = await fuelGasOf(client, native, accounts)
    const gasMost = (type: Asset['type']): bigint =>
      accounts
        .flatMap(({ gas }) =>
          assets.flatMap((asset) =>
            asset.type === type && gas[asset.asset_name] !== undefined
              ? [BigInt(gas[asset.asset_name] as string)]
              : [],
          ),
        )
        .reduce((most, each) => (each > most ? each : most), fuelGas)
    const l1Of = async (asset: Asset): Promise<string> =>
      (
        (await client.l1Fee(
          buildTransfer(ask.network, {
            asset,
            to: ask.to,
            amount: 10n ** BigInt(asset.decimals + 3),
            nonce: LONG_NONCE,
            gas: 1_000_000n,
            path: [],
            fee: feeOf(maxFeePerGas, legacy),
          }),
          true,
        )) + (await client.operatorFee(gasMost(asset.type), true))
      ).toString()
    const token = assets.find(({ type }) => type === 'token')
    return {
      accounts,
      price: maxFeePerGas.toString(),
      legacy,
      l1: { native: await l1Of(native), token: token ? await l1Of(token) : '0' },
      fuel_gas: fuelGas.toString(),
    }
  },
  plan({ registry, network, scan, to }) {
    const { accounts, price, legacy, l1 } = scan
    const fuelGas = BigInt(scan.fuel_gas ?? NATIVE_GAS)
    const fee = feeOf(BigInt(price), legacy)
    const gasOf = (holder: FundedAddress, asset: Asset): bigint =>
      BigInt((holder as Account).gas[asset.asset_name] ?? NATIVE_GAS)
    const native = registry.asset(network.native_asset) as Asset
    return planRound({
      network,
      assets: registry.assetsOf(network.code),
      holders: accounts,
      to,
      reserve: 0n,
      tokenCost: (holder, asset) =>
        HEADROOM * (gasOf(holder, asset) * fee.maxFeePerGas + BigInt(l1.token)),
      nativeCost: (holder, fuel) =>
        (fuel ? fuelGas : gasOf(holder, native)) * fee.maxFeePerGas + BigInt(l1.native),
      build: ({ holder, asset, to: address, amount, at }) =>
        buildTransfer(network, {
          asset,
          to: address,
          amount,
          nonce: BigInt((holder as Account).nonce) + BigInt(at),
          fee,
          path: holder.path,
          gas: address === to ? gasOf(holder, asset) : fuelGas,
        }),
    })
  },
})

/**
 * Returns the gas of a payment of native coin from the address with the largest balance to any
 * address that has tokens.
 */
async function fuelGasOf(
  client: EvmClient,
  native: Asset,
  accounts: readonly Account[],
): Promise<bigint> {
  const held = ({ balances }: Account): bigint => BigInt(balances[native.asset_name] ?? '0')
  const [richest] = [...accounts].sort((a, b) => (held(a) > held(b) ? -1 : 1))
  let most = NATIVE_GAS
  if (!richest || held(richest) === 0n) return most
  for (const { address, balances } of accounts) {
    if (
      address === richest.address ||
      !Object.keys(balances).some((name) => name !== native.asset_name)
    )
      continue
    const gas = await client.gasLimit({
      asset: native,
      from: richest.address,
      to: address,
      amount: 1n,
    })
    if (gas > most) most = gas
  }
  return most
}

const feeOf = (price: bigint, legacy: boolean): EvmFee => ({
  maxFeePerGas: price,
  maxPriorityFeePerGas: price,
  ...(legacy ? { legacy } : {}),
})
