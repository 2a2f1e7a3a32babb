import { cardano, CHANGE_INDEX, ChainError, parseAmount, pathOf, solana, tron as tronBuild, utxo as utxoBuild, type Asset, type Network } from '@custody/chains'
import { changeOf } from '../addresses/derive.ts'
import { ApiError } from '../errors.ts'
import { activationOf, priceOf } from '../families/tron/price.ts'
import type { Caller } from '../http/endpoint.ts'
import type { Queryable } from '../database/pool.ts'
import { traitsOf } from '../engine/traits.ts'
import type { Services } from '../engine/services.ts'
import { cardanoCoins, cardanoParameters } from '../families/cardano/coins.ts'
import { l1FeeOf } from '../families/evm/l1-fee.ts'

/** Gas of a token transfer where the chain cannot be asked. */
const TOKEN_GAS = 65_000n
const NATIVE_GAS = 21_000n
/** sat/kvB where no estimate has ever been read. */
const FALLBACK_RATE = 20_000n
/** Where a network's floor is higher, twice its floor. */
const fallbackRate = (network: Network): bigint => {
  const floor = BigInt(network.utxo?.min_fee_rate ?? 1) * 2000n
  return floor > FALLBACK_RATE ? floor : FALLBACK_RATE
}

export type FeeLevel = 'low' | 'medium' | 'high'
export const DEFAULT_LEVEL: FeeLevel = 'medium'

/** Caller's fee rate in the chain's own integer: sat/kvB (UTXO) or wei per gas (EVM). Throws ChainError on surplus decimals. */
export function feeRateInteger(network: Network, text: string): bigint {
  return parseAmount(text, traitsOf(network).feeRateDecimals)
}

/** Coins that a wallet may spend now. */
export async function spendableCoins(database: Queryable, walletId: string, network: Network, subAccountIndex: number): Promise<utxoBuild.Utxo[]> {
  const rows = await database.query<{ txid: string; vout: number; value: string; path_index: number; address: string }>(
    `select txid, vout, value::text, path_index, address from utxos where wallet_id = $1 and spent_by is null and spendable
     order by (origin = 'change' and block_height is null), value desc limit 2000`, [walletId])
  return rows.map((row) => ({ txid: row.txid, vout: row.vout, value: BigInt(row.value), path: pathOf(network, subAccountIndex, row.path_index), address: row.address }))
}

/** Fee rate in sat/kvB: the caller's, else the level's, else a fallback while the chain cannot be reached. */
export async function utxoRate(services: Services, network: Network, feeRate: string | null, level: FeeLevel | null): Promise<bigint> {
  if (feeRate !== null) return feeRateInteger(network, feeRate)
  return (await services.networks.utxoFeeRates(network.code))[level ?? DEFAULT_LEVEL]
}

/** Fee of one payment on a network with tags: the caller's, else the level's. */
export async function taggedFee(services: Services, network: Network, feeRate: string | null, level: FeeLevel | null): Promise<bigint> {
  if (feeRate !== null) return feeRateInteger(network, feeRate)
  return (await services.networks.taggedFeeRates(network.code))[level ?? DEFAULT_LEVEL]
}

/** Lamports of one transfer, without rent: at most the caller's, else by the level's price of compute units. */
export async function solanaFee(services: Services, network: Network, asset: Asset, feeRate: string | null, level: FeeLevel | null, signatures = 1): Promise<{ fee: bigint; unitPrice: bigint }> {
  const units = solana.unitsOf(asset.type === 'token')
  const unitPrice = feeRate === null ? (await services.networks.solanaUnitPrices(network.code))[level ?? DEFAULT_LEVEL] : solana.unitPriceFor(feeRateInteger(network, feeRate), units)
  return { fee: solana.feeOf(units, unitPrice, signatures), unitPrice }
}

/** What a transfer of a token costs beside its fee: the rent of the receiver's token account, unless there is one. */
async function tokenAccountRent(services: Services, network: Network, asset: Asset, to: string): Promise<bigint> {
  if (asset.type !== 'token') return 0n
  const exists = await services.networks.solana(network.code).account(solana.tokenAccountOf(to, asset.contract_address as string)).catch(() => null)
  return exists ? 0n : solana.TOKEN_ACCOUNT_RENT
}

export interface Estimate { /** Smallest native unit. */ fee: bigint; /** What the sender's wallet must hold beyond the amount. */ reserve: bigint }

/** Network fee of a transfer, for the answer and the reservation. Never fails because a chain is away. */
export async function estimateFee(services: Services, caller: Caller, walletId: string, o: { asset: Asset; network: Network; amount: bigint; to: string; feeRate: string | null; level: FeeLevel | null }): Promise<Estimate> {
  const { network } = o
  if (network.family === 'utxo') {
    const rate = await utxoRate(services, network, o.feeRate, o.level).catch(() => fallbackRate(network))
    const coins = await spendableCoins(services.database, walletId, network, caller.subAccountIndex)
    const changeAddress = await changeOf(services, network, { workspaceId: caller.workspaceId, subAccountId: caller.subAccountId, subAccountIndex: caller.subAccountIndex })
    try {
      const { fee } = utxoBuild.selectCoins(network, { utxos: coins, to: o.to, amount: o.amount, changeAddress, feeRate: rate })
      return { fee, reserve: fee }
    } catch (error) {
      // Coins may be bound by transfers under way: one input and two outputs stand in for the real selection.
      if (!(error instanceof ChainError) || error.code !== 'INSUFFICIENT') throw error
      const scripts = [utxoBuild.scriptOf(network, o.to).length, utxoBuild.scriptOf(network, changeAddress).length]
      const fee = (BigInt(utxoBuild.virtualSize(network.utxo as NonNullable<Network['utxo']>, Math.max(1, coins.length), scripts)) * rate) / 1000n
      return { fee, reserve: fee }
    }
  }
  if (network.family === 'cardano') {
    const parameters = await cardanoParameters(services, network)
    const rate = o.feeRate === null ? parameters.feePerByte : feeRateInteger(network, o.feeRate)
    const coins = await cardanoCoins(services.database, walletId, network, caller.subAccountIndex)
    const changeAddress = await changeOf(services, network, { workspaceId: caller.workspaceId, subAccountId: caller.subAccountId, subAccountIndex: caller.subAccountIndex })
    try {
      const { fee } = cardano.selectCoins(network, { coins, to: o.to, amount: o.amount, changeAddress, rate, ttl: cardano.NOMINAL_END, parameters })
      return { fee, reserve: fee }
    } catch (error) {
      // Coins may be bound by transfers under way.
      if (!(error instanceof ChainError)) throw error
      const fee = cardano.typicalFee(rate, parameters)
      return { fee, reserve: fee }
    }
  }
  if (network.family === 'solana') {
    const { fee } = await solanaFee(services, network, o.asset, o.feeRate, o.level).catch(() => ({ fee: 2n * solana.SIGNATURE_FEE }))
    const whole = fee + await tokenAccountRent(services, network, o.asset, o.to)
    return { fee: whole, reserve: o.asset.type === 'native' ? whole : 0n }
  }
  if (traitsOf(network).deposits === 'tagged') {
    const fee = await taggedFee(services, network, o.feeRate, o.level).catch(() => 10n * traitsOf(network).leastRate(network))
    return { fee, reserve: fee }
  }
  if (network.family === 'tron') return { fee: await tronFee(services, o), reserve: 0n }
  const gas = o.asset.type === 'native' ? NATIVE_GAS : TOKEN_GAS
  const price = o.feeRate !== null
    ? feeRateInteger(network, o.feeRate)
    : await services.networks.evmFeeRates(network.code).then((rates) => (rates[o.level ?? DEFAULT_LEVEL].maxFeePerGas + rates[o.level ?? DEFAULT_LEVEL].maxPriorityFeePerGas) / 2n, () => 0n)
  const l1Fee = await l1FeeOf(services, network, o.asset, { to: o.to, amount: o.amount, gas, fee: { maxFeePerGas: price, maxPriorityFeePerGas: price } }, false).catch(() => 0n)
  return { fee: gas * price + l1Fee, reserve: 0n }
}

/** The usual cost at the chain's price, which a caller's rate must allow. */
async function tronFee(services: Services, o: { asset: Asset; network: Network; to: string; feeRate: string | null }): Promise<bigint> {
  const { code } = o.network
  const parameters = await services.networks.tronParameters(code).catch(() => null)
  if (!parameters) return 0n
  const price = priceOf(o.asset, parameters)
  if (o.feeRate !== null && feeRateInteger(o.network, o.feeRate) < price) throw new ApiError('INVALID_REQUEST', `fee_rate: is below the network's price of ${price} Sun, which is the same for everybody`, { field: 'fee_rate' })
  if (o.asset.type === 'token') return tronBuild.TOKEN_ENERGY * price + tronBuild.TOKEN_BANDWIDTH * parameters.bandwidthSun
  const isThere = await services.networks.tron(code).isActivated(o.to).catch(() => true)
  return isThere ? tronBuild.TRANSFER_BANDWIDTH * price : activationOf(parameters)
}

export { CHANGE_INDEX }
