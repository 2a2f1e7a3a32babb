import { formatAmount, type Asset, type Network } from '@custody/chains'
import {
  claimedNonceAndSubject,
  stringifyJson,
  transactionId,
  type SignedRequest,
} from '@custody/request-auth'
import { transferBody, type TransferBody } from '@custody/request-auth/bodies'
import { notePart } from '@custody/tracing'
import { findAsset } from '../assets/find-asset.ts'
import { SQL_ERRORS, sqlErrorOf } from '../database/sql-errors.ts'
import { ApiError } from '../errors.ts'
import { endpoint, type Caller, type Repeated, type Reply } from '../http/endpoint.ts'
import { hashPayload, isSamePayload, UNREADABLE_PAYLOAD } from '../engine/payload.ts'
import { checkExchangeDestination } from '../exchange-transfers/destination.ts'
import { exhausted, quotePlatformFee } from '../prepaid-fee/fees.ts'
import type { Services } from '../engine/services.ts'
import type { KnownWallet } from '../assets/find-wallet.ts'
import {
  checkFeeWallet,
  checkTransfer,
  isOwnAccount,
  refusalError,
  refusalSoon,
} from './payment.ts'
import { presentTransaction, transactionShape } from '../engine/present.ts'
import {
  answeredBefore,
  answeredInWallet,
  sequenceIdIn,
  madeOnce,
  onceOnly,
  replayedTransaction,
} from '../http/replay.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import type { Written } from './write-withdrawal.ts'

/** Creates an outgoing transfer, at most one per wallet and `sequence_id`. */
export const createTransaction = endpoint({
  id: 'createTransaction',
  tag: 'Transactions',
  description:
    'Pays from the wallet to an address or to a linked exchange account. The response is sent when the amount and the fees are reserved; screening, signing by two of three signer nodes and broadcast follow, and are reported by events. Send a `sequence_id`: if the request is repeated after a lost response, the same transfer is returned and the payment is made once.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'PREPAID_FEE_EXHAUSTED',
    'PRICE_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
    'NOT_FOUND',
    'EXCHANGE_ADDRESS_CHANGED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/transaction',
  summary: 'Create an outgoing transfer',
  access: 'write',
  body: transferBody,
  response: transactionShape,
  handler: (asked) => createTransfer(asked),
  earlier: (request) => earlierTransfer(request),
})

/**
 * Returns the original response of the transfer that was created with the same asset and
 * `sequence_id`, or null if there is none.
 * @param invoice as in {@link createTransfer}
 */
export function earlierTransfer(
  { services, caller, fields, body }: Repeated<TransferBody>,
  invoice: string | null = null,
): Promise<Reply | null> {
  const payloadHash = body === undefined ? UNREADABLE_PAYLOAD : hashTransfer(body, invoice)
  return answeredInWallet(
    services.database,
    caller,
    fields['asset'],
    sequenceIdIn(fields['sequence_id']),
    payloadHash,
  )
}

/**
 * Creates the transfer that a caller's signed request asks for.
 * @param invoice id of the invoice whose payments the transfer refunds; it is checked and linked in
 *   the same commit
 */
export async function createTransfer(
  { services, caller, body, signed }: Asked,
  invoice: string | null = null,
): Promise<Reply> {
  const { asset, network } = findAsset(services, body.asset)
  const payloadHash = hashTransfer(body, invoice)
  for (let again = false; ; again = true) {
    const wallet = await services.knownWallets.find(caller, asset.asset_name, again)
    const answered = () =>
      answeredBefore(
        services.database,
        caller.workspaceId,
        wallet.id,
        body.sequence_id,
        payloadHash,
      )
    const make = () =>
      create({ services, caller, body, signed }, { asset, network, wallet, payloadHash, invoice })
    try {
      // If no external service is called, the commit itself finds an earlier response.
      return body.destination_type === 'EXCHANGE'
        ? await onceOnly(answered, make)
        : await madeOnce(answered, make)
    } catch (error) {
      // The fee was quoted for a tier that the workspace no longer has. Try once more with the
      // current tier.
      if (again || sqlErrorOf(error).code !== SQL_ERRORS.tierChanged) throw error
    }
  }
}

interface Asked {
  services: Services
  caller: Caller
  body: TransferBody
  signed: SignedRequest
}
interface Found {
  asset: Asset
  network: Network
  wallet: KnownWallet
  payloadHash: string
  invoice: string | null
}

async function create(
  { services, caller, body, signed }: Asked,
  { asset, network, wallet, payloadHash, invoice }: Found,
): Promise<Reply> {
  const { amount, destination, addressTag } = checkTransfer(services, body, asset, network)
  const exchange = await checkExchangeDestination(services, caller, body, {
    asset,
    network,
    amount,
  })
  const chain = services.networks.get(network.code)
  const source = await services.addresses.omnibus(network, caller)
  if (isOwnAccount(chain, destination, source)) {
    throw refusalError({
      field: 'destination_address',
      reason: 'is the account from which the transfer would be sent',
    })
  }
  const refusal = await refusalSoon(services, chain, {
    to: destination,
    tag: addressTag,
    amount,
    asset,
  })
  if (refusal) throw refusalError(refusal)
  const kept = await chain.kept(source, asset)
  const level = body.fee_level ?? null
  const question = {
    asset,
    amount,
    to: destination,
    owner: caller,
    walletId: wallet.id,
    feeRate: body.fee_rate ?? null,
    level,
  }
  const { fee, reserve } = await chain.estimate(question)
  await checkFeeWallet(services, caller, asset, chain, source, fee)
  const platform = quotePlatformFee(services, wallet.prepaid_tier, asset, amount)
  const { nonce } = claimedNonceAndSubject(signed.token)
  const now = new Date(services.environment.now())
  const row: TransactionRow = {
    id: transactionId(caller.apiKey, nonce),
    kind: 'WITHDRAWAL',
    workspace_id: caller.workspaceId,
    sub_account_id: caller.subAccountId,
    wallet_id: wallet.id,
    parent_id: null,
    asset: asset.asset_name,
    network: network.code,
    amount: amount.toString(),
    fee: fee.toString(),
    fee_asset: asset.fee_asset,
    source_type: 'INTERNAL',
    source_id: source,
    destination_type: body.destination_type,
    destination_id: destination,
    address_tag: addressTag,
    memo: body.memo ?? null,
    sequence_id: body.sequence_id ?? null,
    state: 'CREATED',
    status: 'pending',
    failure_reason: null,
    last_error: null,
    hash: null,
    confirmations: 0,
    request: { api_key: caller.apiKey, ...signed },
    receipts: [],
    plan: {},
    fee_rate: body.fee_rate ?? null,
    fee_level: level,
    created_at: now,
    updated_at: now,
    confirmed_at: null,
    attempts: 0,
    lease_token: null,
    amount_usd: platform.amountUsd?.toString() ?? null,
    platform_fee: platform.fee.toString(),
  }
  const response = stringifyJson(presentTransaction(row, services.registry))
  let answer: Written
  try {
    answer = await services.withdrawals.write(wallet.id, {
      ...row,
      plan: { fee_reserve: reserve.toString() },
      next_run_at: now,
      payload_hash: payloadHash,
      fee_reserve: reserve.toString(),
      chain_reserve: kept.toString(),
      platform_fee_least: platform.least.toString(),
      prepaid_tier: wallet.prepaid_tier,
      response,
      invoice_id: invoice,
      exchange_transfer: exchange?.row ?? null,
      exchange_shown: exchange?.shown ?? null,
    })
  } catch (error) {
    const { code, detail } = sqlErrorOf(error)
    if (code === SQL_ERRORS.walletInactive) {
      throw new ApiError(
        'WALLET_INACTIVE',
        `asset: the ${asset.asset_name} wallet is inactive; no transfer can be sent from it`,
        { field: 'asset' },
      )
    }
    if (code === SQL_ERRORS.refundTooEarly) {
      const reason =
        'inv_id: the invoice is open and its payments count; cancel it, or wait until it is paid or expired'
      throw new ApiError('INVALID_REQUEST', reason, { field: 'inv_id' })
    }
    if (code === SQL_ERRORS.refundExceeds) {
      const left = `${formatAmount(BigInt(detail ?? '0'), asset.decimals)} ${asset.asset_name}`
      throw new ApiError(
        'INVALID_AMOUNT',
        `amount: exceeds the ${left} that were paid for the invoice and have not been refunded`,
        {
          field: 'amount',
        },
      )
    }
    if (code === SQL_ERRORS.accountUnlinked) {
      throw new ApiError(
        'NOT_FOUND',
        'destination_id: the exchange account was unlinked; nothing was created',
        { field: 'destination_id' },
      )
    }
    if (code === SQL_ERRORS.walletShort)
      throw await insufficient(services, row, asset, amount, reserve, kept)
    throw exhausted(error, platform.fee) ?? error
  }
  services.environment.checkpoint('transaction.created')
  if (!answer.replayed) {
    const told = { kind: row.kind, asset: row.asset, network: row.network }
    notePart(row.id, 'request', told, now.getTime(), services.environment.now())
  }
  if (answer.replayed)
    return replayedTransaction(answer.response, isSamePayload(answer.payload_hash, payloadHash))
  services.database.tell({
    type: 'transaction.created',
    workspace: caller.workspaceId,
    payload: response,
  })
  if (exchange)
    services.database.tell({
      type: 'exchange_transfer.created',
      workspace: caller.workspaceId,
      payload: exchange.shown,
    })
  // The signer nodes' receipts keep the request usable after its short lifetime; the response does
  // not wait for them.
  void services.receipts.collect(row.workspace_id, row.id, signed)
  return { text: response }
}

/**
 * Hashes the meaning of the transfer, independent of the order of its fields; extra fields of old
 * clients are ignored.
 */
const hashTransfer = (
  { type: _type, ts: _ts, ...given }: TransferBody,
  invoice: string | null,
): string => hashPayload(invoice === null ? given : { ...given, invoice_id: invoice })

async function insufficient(
  services: Services,
  { workspace_id: workspace, wallet_id: wallet }: TransactionRow,
  asset: Asset,
  amount: bigint,
  reserve: bigint,
  kept: bigint,
): Promise<ApiError> {
  const row = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where workspace_id = $3 and wallet_id = $1 and asset = $2 and kind = 'available'`,
    [wallet, asset.asset_name, workspace],
  )
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  const balance = BigInt(row?.balance ?? '0') - kept
  const chain = kept > 0n ? ` (${show(kept)} must stay on the account)` : ''
  const fee = reserve > 0n ? ` plus a network fee of about ${show(reserve)}` : ''
  return new ApiError(
    'INSUFFICIENT_BALANCE',
    `amount: ${show(amount)}${fee} exceeds the wallet's spendable balance of ${show(balance < 0n ? 0n : balance)}${chain}`,
    { field: 'amount' },
  )
}
