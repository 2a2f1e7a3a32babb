import { cardano, ChainError, formatAmount, parseAmount, solana, tron as tronBuild, utxo as utxoBuild, validateAddress, type Asset, type Network } from '@custody/chains'
import { z } from 'zod'
import { changeOf, omnibusOf } from '../addresses/derive.ts'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../errors.ts'
import { endpoint, type Caller } from '../http/endpoint.ts'
import { assetName, decimal, exact, text } from '../http/schemas.ts'
import type { Services } from '../engine/services.ts'
import { traitsOf } from '../engine/traits.ts'
import { cardanoCoins, cardanoParameters } from '../families/cardano/coins.ts'
import { feeRateInteger, spendableCoins } from '../transactions/estimate.ts'
import { l1FeeOf } from '../families/evm/l1-fee.ts'
import { activationOf } from '../families/tron/price.ts'

/** One input, payment and change: what stands in where there is no wallet or it holds too little. */
const TYPICAL_INPUTS = 1
const NATIVE_GAS = 21_000n
const TOKEN_GAS = 65_000n

/** `fee`: all that the transfer pays. `extra`: the part of it that a receiver without an account costs. */
interface FeeEstimate { fee: bigint; basis: 'wallet' | 'typical'; l1Fee?: bigint; extra?: { name: 'rent' | 'activation'; amount: bigint } }

/** What a transfer would cost at a fee rate, in the network's native coin. */
export const estimateFeeEndpoint = endpoint({
  method: 'POST', path: '/dac/v1/estimate-fee', summary: 'Estimate a network fee', access: 'read',
  body: z.strictObject({ asset: assetName, fee_rate: decimal, amount: decimal.optional(), destination_address: text(500).optional().meta({ description: 'Where it is known, rent and activation are exact, and so is what a token’s contract takes' }) }),
  response: z.object({
    asset: z.string(), fee: z.number().meta({ description: 'All that the transfer pays, in the network’s native coin; `rent`, `activation` and `l1_fee` are parts of it' }), fee_rate: z.number(), fee_rate_unit: z.string(), fee_asset: z.string(),
    basis: z.enum(['wallet', 'typical']).meta({ description: '`wallet`: from the caller’s own coins; `typical`: one input and two outputs, or usual gas' }),
    rent: z.number().optional().meta({ description: 'Part of `fee`: deposit of the receiver’s token account (Solana) where it has none; without a destination_address it is assumed to have none' }),
    activation: z.number().optional().meta({ description: 'Part of `fee`: what creating the receiver’s account costs (Tron), likewise; it takes the place of bandwidth' }),
    l1_fee: z.number().optional().meta({ description: 'Part of `fee` that a roll-up pays to the chain below' }),
  }),
  async handler({ services, caller, body }) {
    const { asset, network } = findAsset(services, body.asset)
    const native = services.registry.asset(network.native_asset) as Asset
    let rate: bigint
    try {
      rate = feeRateInteger(network, body.fee_rate)
    } catch {
      throw new ApiError('INVALID_REQUEST', `fee_rate: must be a decimal in ${network.fee_rate_unit} with at most ${traitsOf(network).feeRateDecimals} decimals`, { field: 'fee_rate' })
    }
    if (rate === 0n) throw new ApiError('INVALID_REQUEST', 'fee_rate: must be greater than zero', { field: 'fee_rate' })
    let amount: bigint | null = null
    try {
      if (body.amount !== undefined) amount = parseAmount(body.amount, asset.decimals)
    } catch (error) {
      throw new ApiError('INVALID_AMOUNT', `amount: ${error instanceof Error ? error.message : 'is not valid'}`, { field: 'amount' })
    }
    if (amount === 0n) throw new ApiError('INVALID_AMOUNT', 'amount: must be greater than zero', { field: 'amount' })
    let to: string | null = null
    if (body.destination_address !== undefined) {
      const checked = validateAddress(services.registry, asset.asset_name, body.destination_address, asset.requires_tag ? '0' : null)
      if (!checked.valid) throw new ApiError('INVALID_ADDRESS', `destination_address: ${checked.reason}`, { field: 'destination_address' })
      to = checked.address
    }
    const estimate = await estimateOf(services, caller, asset, network, rate, amount, to)
    const { extra } = estimate
    return {
      body: {
        asset: asset.asset_name, fee: exact(formatAmount(estimate.fee, native.decimals)), fee_rate: exact(body.fee_rate), fee_rate_unit: network.fee_rate_unit,
        fee_asset: asset.fee_asset, basis: estimate.basis, ...(extra === undefined ? {} : { [extra.name]: exact(formatAmount(extra.amount, native.decimals)) }),
        ...(estimate.l1Fee === undefined ? {} : { l1_fee: exact(formatAmount(estimate.l1Fee, native.decimals)) }),
      },
    }
  },
})

async function estimateOf(services: Services, caller: Caller, asset: Asset, network: Network, rate: bigint, amount: bigint | null, to: string | null): Promise<FeeEstimate> {
  if (network.family === 'utxo') return ofUtxo(services, caller, network, rate, amount)
  if (network.family === 'cardano') return ofCardano(services, caller, network, rate, amount)
  if (network.family === 'evm') return ofEvm(services, caller, asset, network, rate, amount, to)
  if (network.family === 'tron') return ofTron(services, caller, asset, network, rate, amount, to)
  // One payment is one operation: the rate is its price.
  if (traitsOf(network).deposits === 'tagged') return { fee: rate, basis: 'typical' }
  if (network.family === 'solana') {
    if (asset.type !== 'token') return { fee: rate, basis: 'typical' }
    const rent = await rentOf(services, network, asset, to)
    return { fee: rate + rent, basis: 'typical', extra: { name: 'rent', amount: rent } }
  }
  throw new ApiError('INVALID_REQUEST', `asset: fee estimates of ${network.name} are not available yet`, { field: 'asset' })
}

async function rentOf(services: Services, network: Network, asset: Asset, to: string | null): Promise<bigint> {
  const account = to === null ? null : await services.networks.solana(network.code).account(solana.tokenAccountOf(to, asset.contract_address as string)).catch(() => null)
  return account ? 0n : solana.TOKEN_ACCOUNT_RENT
}

const ownerOf = (caller: Caller) => ({ workspaceId: caller.workspaceId, subAccountId: caller.subAccountId, subAccountIndex: caller.subAccountIndex })

async function ofUtxo(services: Services, caller: Caller, network: Network, rate: bigint, amount: bigint | null): Promise<FeeEstimate> {
  const params = network.utxo as NonNullable<Network['utxo']>
  const wallet = await services.database.one<{ id: string }>('select id from wallets where sub_account_id = $1 and asset = $2', [caller.subAccountId, network.native_asset])
  if (wallet && amount !== null) {
    const own = await changeOf(services, network, ownerOf(caller))
    try {
      const coins = await spendableCoins(services.database, wallet.id, network, caller.subAccountIndex)
      return { fee: utxoBuild.selectCoins(network, { utxos: coins, to: own, amount, changeAddress: own, feeRate: rate }).fee, basis: 'wallet' }
    } catch (error) {
      // Too few coins, or an amount that is dust: the typical size still tells what the network asks.
      if (!(error instanceof ChainError)) throw error
    }
  }
  const output = params.script === 'p2wpkh' ? 22 : 25
  return { fee: (BigInt(utxoBuild.virtualSize(params, TYPICAL_INPUTS, [output, output])) * rate) / 1000n, basis: 'typical' }
}

async function ofCardano(services: Services, caller: Caller, network: Network, rate: bigint, amount: bigint | null): Promise<FeeEstimate> {
  const wallet = await services.database.one<{ id: string }>('select id from wallets where sub_account_id = $1 and asset = $2', [caller.subAccountId, network.native_asset])
  const parameters = await cardanoParameters(services, network)
  if (wallet && amount !== null) {
    const own = await changeOf(services, network, ownerOf(caller))
    try {
      const coins = await cardanoCoins(services.database, wallet.id, network, caller.subAccountIndex)
      return { fee: cardano.selectCoins(network, { coins, to: own, amount, changeAddress: own, rate, ttl: cardano.NOMINAL_END, parameters }).fee, basis: 'wallet' }
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
    }
  }
  return { fee: cardano.typicalFee(rate, parameters), basis: 'typical' }
}

async function ofEvm(services: Services, caller: Caller, asset: Asset, network: Network, rate: bigint, amount: bigint | null, to: string | null): Promise<FeeEstimate> {
  const whole = 10n ** BigInt(asset.decimals)
  if (asset.type === 'native') return withL1Fee(services, network, asset, amount ?? whole, NATIVE_GAS, rate, 'typical')
  const balance = await tokenBalance(services, caller, asset)
  if (balance === null) return withL1Fee(services, network, asset, amount ?? whole, TOKEN_GAS, rate, 'typical')
  const omnibus = await omnibusOf(services, network, ownerOf(caller))
  try {
    // Where the receiver is not known, one that holds none: the dearer and usual case of a first payment.
    const moved = amount !== null && amount < balance ? amount : balance
    const gas = await services.networks.evm(network.code).gasUsed({ asset, from: omnibus, to: to ?? UNUSED_ADDRESS, amount: moved })
    return await withL1Fee(services, network, asset, moved, gas, rate, 'wallet')
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    return withL1Fee(services, network, asset, amount ?? whole, TOKEN_GAS, rate, 'typical')
  }
}

/** TRX: bandwidth at the rate; where the receiver has no account, creating it takes the place of that. A token: energy at the rate, and bandwidth at the chain's price. */
async function ofTron(services: Services, caller: Caller, asset: Asset, network: Network, rate: bigint, amount: bigint | null, to: string | null): Promise<FeeEstimate> {
  if (asset.type === 'native') {
    const active = to !== null && await services.networks.tron(network.code).isActivated(to).catch(() => false)
    const activation = active ? 0n : await services.networks.tronParameters(network.code).then(activationOf, () => null)
    if (activation === null) return { fee: tronBuild.TRANSFER_BANDWIDTH * rate, basis: 'typical' }
    const { bandwidth } = active ? await burnt(services, caller, network, { bandwidth: tronBuild.TRANSFER_BANDWIDTH, energy: 0n }) : { bandwidth: 0n }
    return { fee: bandwidth * rate + activation, basis: 'typical', extra: { name: 'activation', amount: activation } }
  }
  const bandwidthSun = await services.networks.tronParameters(network.code).then((parameters) => parameters.bandwidthSun, () => tronBuild.BANDWIDTH_SUN)
  const balance = await tokenBalance(services, caller, asset)
  if (balance !== null) {
    const omnibus = await omnibusOf(services, network, ownerOf(caller))
    try {
      const energy = await services.networks.tron(network.code).energy({ asset, from: omnibus, to: to ?? UNUSED_TRON_ADDRESS, amount: amount !== null && amount < balance ? amount : balance })
      const points = await burnt(services, caller, network, { bandwidth: tronBuild.TOKEN_BANDWIDTH, energy })
      return { fee: points.energy * rate + points.bandwidth * bandwidthSun, basis: 'wallet' }
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
    }
  }
  return { fee: tronBuild.TOKEN_ENERGY * rate + tronBuild.TOKEN_BANDWIDTH * bandwidthSun, basis: 'typical' }
}

/** What of a transaction's resources is paid for: staked energy and free or staked bandwidth of the caller's account cost nothing. Bandwidth is free as a whole or not at all. */
async function burnt(services: Services, caller: Caller, network: Network, needs: { bandwidth: bigint; energy: bigint }): Promise<{ bandwidth: bigint; energy: bigint }> {
  const client = services.networks.tron(network.code)
  const omnibus = await omnibusOf(services, network, ownerOf(caller))
  // An account that its fuel will bring to life begins with the free bandwidth of a day.
  if (!await client.isActivated(omnibus)) return { bandwidth: 0n, energy: needs.energy }
  const { energyLeft, stakedBandwidthLeft, freeBandwidthLeft } = await client.resources(omnibus)
  return {
    bandwidth: stakedBandwidthLeft >= needs.bandwidth || freeBandwidthLeft >= needs.bandwidth ? 0n : needs.bandwidth,
    energy: energyLeft >= needs.energy ? 0n : needs.energy - energyLeft,
  }
}

/** What the caller's wallet can spend of a token; null: nothing, or no wallet. */
async function tokenBalance(services: Services, caller: Caller, asset: Asset): Promise<bigint | null> {
  const wallet = await services.database.one<{ balance: string }>(
    `select a.balance::text from wallets w join ledger_accounts a on a.wallet_id = w.id and a.asset = w.asset and a.kind = 'available' where w.sub_account_id = $1 and w.asset = $2 and a.balance > 0`,
    [caller.subAccountId, asset.asset_name])
  return wallet ? BigInt(wallet.balance) : null
}

/** Roll-ups also charge for publishing the transaction; where that cannot be asked, the estimate says only the rest. */
async function withL1Fee(services: Services, network: Network, asset: Asset, amount: bigint, gas: bigint, rate: bigint, basis: FeeEstimate['basis']): Promise<FeeEstimate> {
  const l1Fee = await l1FeeOf(services, network, asset, { to: UNUSED_ADDRESS, amount, gas, fee: { maxFeePerGas: rate, maxPriorityFeePerGas: rate } }, false).catch(() => 0n)
  return { fee: gas * rate + l1Fee, basis, ...(l1Fee > 0n ? { l1Fee } : {}) }
}

/** Nobody's: the first twenty bytes of SHA-256("custody"). */
const UNUSED_ADDRESS = '0x21a7f61c15cef4ddedae076d6b7393f1d3d4a9b5'
const UNUSED_TRON_ADDRESS = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
