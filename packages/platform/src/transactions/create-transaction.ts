import { createHash } from 'node:crypto'
import { cardano, ChainError, formatAmount, parseAmount, solana, stellar, utxo as utxoBuild, validateAddress, type Asset, type Network } from '@custody/chains'
import { claimedNonceAndSubject, stringifyJson, transactionId } from '@custody/request-auth'
import { transferBody, type TransferBody } from '@custody/request-auth/bodies'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../errors.ts'
import { checkedFeeRate } from '../fees/check-fee-rate.ts'
import { endpoint, type Reply } from '../http/endpoint.ts'
import { refusalSoon } from '../engine/destination.ts'
import { chainReserve } from '../engine/reserve.ts'
import { isSamePayload } from '../recovery/payload.ts'
import { traitsOf } from '../engine/traits.ts'
import { exhausted, quotePlatformFee } from '../prepaid-fee/fees.ts'
import type { Services } from '../engine/services.ts'
import { collectReceipts } from '../signing/receipts.ts'
import { findWallet } from '../wallets/find-wallet.ts'
import { omnibusOf } from '../addresses/derive.ts'
import { estimateFee } from './estimate.ts'
import { presentTransaction, transactionShape } from './present.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/** No chain has more of anything. */
export const AMOUNT_MAX = (1n << 128n) - 1n

/** Creates an outgoing transfer, at most one per wallet and `sequence_id`. */
export const createTransaction = endpoint({
  method: 'POST', path: '/dac/v1/transaction', summary: 'Create an outgoing transfer', access: 'write',
  body: transferBody, response: transactionShape,
  async handler({ services, caller, body, signed }) {
    const { asset, network } = findAsset(services, body.asset)
    const wallet = await findWallet(services.database, caller.subAccountId, asset.asset_name)
    const payloadHash = hashPayload(body)
    // Looked up before balance and every other check that time may change: a replay answers as the first did.
    if (body.sequence_id !== undefined) {
      const known = await services.database.one<{ response: string; payload_hash: string }>(
        'select response, payload_hash from idempotency where wallet_id = $1 and sequence_id = $2', [wallet.id, body.sequence_id])
      if (known) return replay(known.response, isSamePayload(known.payload_hash, payloadHash))
    }
    const { amount, destination, addressTag } = checkTransfer(services, body, asset, network)
    if (wallet.status !== 'active') throw inactive(asset)
    const owner = { workspaceId: caller.workspaceId, subAccountId: caller.subAccountId, subAccountIndex: caller.subAccountIndex }
    const source = await omnibusOf(services, network, owner)
    if (traitsOf(network).accountRules) {
      if ((network.family === 'stellar' ? stellar.splitMuxed(destination)?.account ?? destination : destination) === source) throw new ApiError('INVALID_ADDRESS', 'destination_address: is the account that the transfer would leave from', { field: 'destination_address' })
      const refusal = await refusalSoon(services, network, { to: destination, tag: addressTag, amount, asset })
      if (refusal) throw new ApiError(refusal.field === 'amount' ? 'INVALID_AMOUNT' : 'INVALID_ADDRESS', `${refusal.field}: ${refusal.reason}`, { field: refusal.field })
    }
    const kept = await chainReserve(services, network, source, asset)
    const level = body.fee_level ?? null
    const { fee, reserve } = await estimateFee(services, caller, wallet.id, { asset, network, amount, to: destination, feeRate: body.fee_rate ?? null, level })
    await checkFeeWallet(services, caller.subAccountId, asset, network, source, fee)
    const platform = quotePlatformFee(services, wallet.prepaid_tier, asset, amount)
    const { nonce } = claimedNonceAndSubject(signed.token)
    const now = new Date(services.environment.now())
    const row: TransactionRow = {
      id: transactionId(caller.apiKey, nonce), kind: 'WITHDRAWAL', workspace_id: caller.workspaceId, sub_account_id: caller.subAccountId, wallet_id: wallet.id,
      parent_id: null, asset: asset.asset_name, network: network.code, amount: amount.toString(), fee: fee.toString(), fee_asset: asset.fee_asset,
      source_type: 'INTERNAL', source_id: source, destination_type: 'EXTERNAL', destination_id: destination, address_tag: addressTag,
      memo: body.memo ?? null, sequence_id: body.sequence_id ?? null, state: 'CREATED', status: 'pending', failure_reason: null, last_error: null,
      hash: null, confirmations: 0, request: { api_key: caller.apiKey, ...signed }, receipts: [], plan: {}, fee_rate: body.fee_rate ?? null, fee_level: level,
      created_at: now, updated_at: now, confirmed_at: null, attempts: 0, lease_token: null,
      amount_usd: platform.amountUsd?.toString() ?? null, platform_fee: platform.fee.toString(),
    }
    const response = stringifyJson(presentTransaction(row, services.registry))
    let answer: { replayed: boolean; response: string; payload_hash?: string }
    try {
      // The wallet's status once more: the operator may have changed it since.
      const result = await services.database.one<{ result: typeof answer }>(`select create_withdrawal($1) result from wallets where id = $2 and status = 'active'`, [JSON.stringify({
        ...row, plan: undefined, created_at: now.toISOString(), payload_hash: payloadHash, fee_reserve: reserve.toString(), chain_reserve: kept.toString(), platform_fee_least: platform.least.toString(), response,
      }), wallet.id])
      if (!result) throw inactive(asset)
      answer = result.result
    } catch (error) {
      if ((error as { code?: string }).code === 'P0002') throw await insufficient(services, wallet.id, asset, amount, reserve, kept)
      throw exhausted(error, platform.fee) ?? error
    }
    services.environment.checkpoint('transaction.created')
    if (answer.replayed) return replay(answer.response, isSamePayload(answer.payload_hash, payloadHash))
    services.database.tell({ type: 'transaction.created', workspace: caller.workspaceId, payload: answer.response })
    // Shown to the nodes so that the request stays usable beyond its short life; nobody waits for it.
    void collectReceipts(services, row.id, signed)
    return { text: answer.response }
  },
})

const inactive = (asset: Asset) => new ApiError('WALLET_INACTIVE', `asset: the ${asset.asset_name} wallet is inactive and sends no transfers`, { field: 'asset' })

function replay(response: string, same: boolean): Reply {
  return {
    text: response,
    headers: { 'idempotent-replayed': 'true', ...(same ? {} : { warning: '299 custody "sequence_id was used before with another payload; the first transfer is answered and nothing new was done"' }) },
  }
}

/** What the transfer means, whatever its spelling; old clients' extra fields do not count. */
function hashPayload({ type: _type, ts: _ts, ...body }: TransferBody): string {
  return createHash('sha256').update(JSON.stringify(body, Object.keys(body).sort())).digest('hex')
}

/** What can be said of a transfer without asking anybody: its amount, destination, tag and fee rate. */
export function checkTransfer(services: Services, body: TransferBody, asset: Asset, network: Network): { amount: bigint; destination: string; addressTag: string | null } {
  let amount: bigint
  try {
    amount = parseAmount(body.amount, asset.decimals)
  } catch (error) {
    if (error instanceof ChainError) throw new ApiError('INVALID_AMOUNT', `amount: ${error.message}`, { field: 'amount' })
    throw error
  }
  if (amount === 0n) throw new ApiError('INVALID_AMOUNT', 'amount: must be greater than zero', { field: 'amount' })
  if (amount > AMOUNT_MAX) throw new ApiError('INVALID_AMOUNT', `amount: must be at most ${formatAmount(AMOUNT_MAX, asset.decimals)} ${asset.asset_name}`, { field: 'amount' })
  if (amount < parseAmount(asset.min_withdrawal, asset.decimals)) throw new ApiError('INVALID_AMOUNT', `amount: must be at least ${asset.min_withdrawal} ${asset.asset_name}`, { field: 'amount' })
  const validation = validateAddress(services.registry, asset.asset_name, body.destination_address, body.address_tag ?? null)
  if (!validation.valid) {
    const field = /address_tag/.test(validation.reason) ? 'address_tag' : 'destination_address'
    throw new ApiError('INVALID_ADDRESS', `${field}: ${validation.reason}`, { field })
  }
  if (network.family === 'utxo') {
    const limit = utxoBuild.dustLimit(network.utxo as NonNullable<Network['utxo']>, utxoBuild.scriptOf(network, validation.address))
    if (amount < limit) throw new ApiError('INVALID_AMOUNT', `amount: must be at least ${formatAmount(limit, asset.decimals)} ${asset.asset_name}, the dust limit of this kind of address`, { field: 'amount' })
  }
  if (network.family === 'cardano') {
    const least = cardano.leastPayment(network, validation.address, amount)
    if (amount < least) throw new ApiError('INVALID_AMOUNT', `amount: must be at least ${formatAmount(least, asset.decimals)} ${asset.asset_name}, which the chain wants in an output to this kind of address`, { field: 'amount' })
  }
  if ((network.family === 'evm' || network.family === 'tron') && asset.type === 'token' && validation.address === asset.contract_address) {
    throw new ApiError('INVALID_ADDRESS', 'destination_address: is the token’s own contract; tokens sent there are lost', { field: 'destination_address' })
  }
  if (body.fee_rate !== undefined) {
    if (body.fee_level !== undefined) throw new ApiError('INVALID_REQUEST', 'fee_level: give either fee_rate or fee_level, not both', { field: 'fee_level' })
    checkedFeeRate(body.fee_rate, network, services.registry)
  }
  return { amount, destination: validation.address, addressTag: validation.address_tag }
}

/** Solana: a token's fee comes from the sub-account's own wallet of the native coin. The worker takes it; this only answers early. */
export async function checkFeeWallet(services: Services, subAccountId: string, asset: Asset, network: Network, source: string, fee: bigint): Promise<void> {
  if (network.family !== 'solana' || asset.type !== 'token') return
  const native = services.registry.asset(network.native_asset) as Asset
  const row = await services.database.one<{ balance: string }>(
    `select a.balance::text from wallets w join ledger_accounts a on a.wallet_id = w.id and a.asset = w.asset and a.kind = 'available' where w.sub_account_id = $1 and w.asset = $2`, [subAccountId, native.asset_name])
  const kept = await chainReserve(services, network, source, native)
  const left = BigInt(row?.balance ?? '0') - kept
  // What the receiver's account may cost is held back until the transfer is done, and given back where it was not needed.
  const rent = fee > solana.TOKEN_ACCOUNT_RENT ? 0n : solana.TOKEN_ACCOUNT_RENT
  const show = (value: bigint) => `${formatAmount(value < 0n ? 0n : value, native.decimals)} ${native.asset_name}`
  if (left < fee + rent) throw new ApiError('INSUFFICIENT_BALANCE', `asset: the network fee of up to ${show(fee + rent)} is paid from the sub-account's ${native.asset_name} wallet, which has ${show(left)} beside the ${show(kept)} that must stay on the account`, { field: 'asset' })
}

async function insufficient(services: Services, walletId: string, asset: Asset, amount: bigint, reserve: bigint, kept: bigint): Promise<ApiError> {
  const row = await services.database.one<{ balance: string }>(`select balance::text from ledger_accounts where wallet_id = $1 and asset = $2 and kind = 'available'`, [walletId, asset.asset_name])
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  const balance = BigInt(row?.balance ?? '0') - kept
  const chain = kept > 0n ? ` (${show(kept)} must stay on the account)` : ''
  const fee = reserve > 0n ? ` plus a network fee of about ${show(reserve)}` : ''
  return new ApiError('INSUFFICIENT_BALANCE', `amount: ${show(amount)}${fee} is more than the wallet's spendable balance of ${show(balance < 0n ? 0n : balance)}${chain}`, { field: 'amount' })
}
