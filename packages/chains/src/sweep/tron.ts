import { z } from 'zod'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { ACTIVATION_SUN, buildTransfer, feeLimitFor, transferBandwidth } from '../tron/build.ts'
import { TronClient } from '../tron/rpc.ts'
import type { Asset } from '../types.ts'
import { planRound, type FundedAddress } from './fee-paying-addresses.ts'
import { digits, holder, sweeper } from './schemas.ts'
import type { Left } from './types.ts'
import { usedPlaces } from './address-scan.ts'

/** `energy`: points by token. */
const account = holder.extend({
  energy: z.record(z.string(), digits),
  bandwidth: digits,
  staked: digits,
})
type Account = z.infer<typeof account>
const shape = z.strictObject({
  accounts: z.array(account),
  energySun: digits,
  bandwidthSun: digits,
  activates: z.boolean(),
  reference: z.strictObject({
    bytes: z.string().regex(/^[0-9a-f]{4}$/),
    hash: z.string().regex(/^[0-9a-f]{16}$/),
    expiration: z.int(),
    timestamp: z.int(),
  }),
})

export const tron = sweeper(shape, {
  life: 'ten minutes',
  client: (registry, network, endpoint, fetch) =>
    new TronClient(network, registry.assetsOf(network.code), endpoint, fetch),
  async look(ask) {
    const assets = ask.registry.assetsOf(ask.network.code)
    const client = new TronClient(ask.network, assets, ask.endpoint, ask.fetch)
    await client.probe()
    const accounts = await usedPlaces(ask, async (place): Promise<Account | null> => {
      const state = await client.account(place.address)
      const balances: Record<string, string> = {}
      const energy: Record<string, string> = {}
      if (state && state.balance > 0n) balances[ask.network.native_asset] = state.balance.toString()
      for (const asset of assets.filter(({ type }) => type === 'token')) {
        const amount = await client.balance(place.address, asset)
        if (amount === 0n) continue
        balances[asset.asset_name] = amount.toString()
        energy[asset.asset_name] = (
          await client.energy({ asset, from: place.address, to: ask.to, amount })
        ).toString()
      }
      if (!state && Object.keys(balances).length === 0) return null
      const { freeBandwidthLeft = 0n, stakedBandwidthLeft = 0n } = state
        ? await client.resources(place.address)
        : {}
      const staked = state
        ? state.unfreezing.reduce(
            (sum, each) => sum + each.amount,
            state.staked.ENERGY + state.staked.BANDWIDTH,
          )
        : 0n
      const bandwidth = (
        freeBandwidthLeft > stakedBandwidthLeft ? freeBandwidthLeft : stakedBandwidthLeft
      ).toString()
      return { ...place, balances, energy, bandwidth, staked: staked.toString() }
    })
    const { energySun, bandwidthSun } = await client.parameters()
    const activates = !(await client.isActivated(ask.to))
    const { refBlockBytes, refBlockHash, expiration, timestamp } = await client.reference()
    return {
      accounts,
      energySun: energySun.toString(),
      bandwidthSun: bandwidthSun.toString(),
      activates,
      reference: {
        bytes: bytesToHex(refBlockBytes),
        hash: bytesToHex(refBlockHash),
        expiration,
        timestamp,
      },
    }
  },
  plan({ registry, network, publicKeyAt, scan, to }) {
    const { accounts, energySun, bandwidthSun, activates, reference } = scan
    const limitOf = (holder: FundedAddress, asset: Asset): bigint =>
      feeLimitFor(BigInt((holder as Account).energy[asset.asset_name] as string), BigInt(energySun))
    const plan = planRound({
      network,
      assets: registry.assetsOf(network.code),
      holders: accounts,
      to,
      reserve: 0n,
      tokenCost: (holder, asset) =>
        limitOf(holder, asset) + transferBandwidth(limitOf(holder, asset)) * BigInt(bandwidthSun),
      nativeCost: (holder, fuel) => {
        // An address that has received only tokens is activated by its first TRX.
        if (activates || fuel) return ACTIVATION_SUN
        const points = transferBandwidth(0n)
        return BigInt((holder as Account).bandwidth) >= points ? 0n : points * BigInt(bandwidthSun)
      },
      build: ({ holder, asset, to: address, amount, at }) =>
        buildTransfer(network, {
          asset,
          to: address,
          amount,
          publicKey: publicKeyAt(holder.path),
          path: holder.path,
          ...(asset.type === 'token' ? { feeLimit: limitOf(holder, asset) } : {}),
          reference: {
            refBlockBytes: hexToBytes(reference.bytes),
            refBlockHash: hexToBytes(reference.hash),
            expiration: reference.expiration,
            // The timestamp distinguishes two equal payments of an account.
            timestamp: reference.timestamp - at,
          },
        }),
    })
    const staked: Left[] = accounts
      .filter((each) => each.staked !== '0')
      .map(({ address, staked: amount }) => ({
        address,
        asset: network.native_asset,
        amount,
        why: 'staked or in cooldown: a recovery does not move it',
      }))
    return { ...plan, left: [...plan.left, ...staked] }
  },
})
