import { formatAmount, type Asset, type Network, type Registry } from '@custody/chains'
import {
  claimedNonceAndSubject,
  stringifyJson,
  transactionId,
  type SignedRequest,
} from '@custody/request-auth'
import { transferBody, type TransferBody } from '@custody/request-auth/bodies'
import { notePart } from '@custody/tracing'
import { asRequestError } from '../assets/coin-refusal.ts'
import { assertUnfrozen } from '../assets/frozen-coins.ts'
import { findAsset } from '../assets/find-asset.ts'
import { SQL_ERRORS, sqlErrorOf } from '../../core/database/sql-errors.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller, type Repeated, type Reply } from '../../core/http/endpoint.ts'
import { isSamePayload, UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import type { ExchangeDestination, ExchangeDestinations } from './exchange-destinations.ts'
import { exhausted, quotePlatformFee } from '../prepaid-fee/fees.ts'
import type { Chain, Estimate, Payment } from '../../core/engine/chain.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { assertNotDenied } from '../approvals/assert-not-denied.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Prices } from '../prices/prices.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import type { KnownWallet, KnownWallets } from '../assets/find-wallet.ts'
import {
  checkFeeWallet,
  checkTransfer,
  isOwnAccount,
  refusalError,
  refusalSoon,
} from './payment.ts'
import { presentTransaction, transactionShape } from '../../core/engine/present.ts'
import {
  answeredBefore,
  answeredInWallet,
  sequenceIdIn,
  madeOnce,
  onceOnly,
  replayedTransaction,
} from '../../core/http/replay.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Written, Withdrawals } from './write-withdrawal.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers' | 'prices'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
  knownWallets: KnownWallets
  withdrawals: Withdrawals
  exchangeDestinations: ExchangeDestinations
  prices: Prices
  policies: WorkspacePolicies
}

/** Creates an outgoing transfer, at most one per wallet and `sequence_id`. */
export const createTransaction = endpoint({
  id: 'createTransaction',
  tag: 'Transactions',
  description:
    'Pays from the wallet to an address or to a linked exchange account. The response is sent when the amount and the fees are reserved; screening, the policy of the workspace with the approvals that it requires, signing by two of three signer nodes and broadcast follow, and are reported by events. A transfer that waits for people has `sub_status` `APPROVAL`; one that the policy certainly denies is answered 403 `POLICY_DENIED` and creates nothing; one that people reject, or do not approve in time, ends `failed`. Send a `sequence_id`: if the request is repeated after a lost response, the same transfer is returned and the payment is made once.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'CONSOLIDATE_FIRST',
    'PREPAID_FEE_EXHAUSTED',
    'PRICE_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
    'POLICY_DENIED',
    'NOT_FOUND',
    'EXCHANGE_ADDRESS_CHANGED',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/transaction',
  summary: 'Create an outgoing transfer',
  access: 'write',
  audit: {
    not: 'the transfer stores the request and its key, and an entry for each would serialize the transfers of a workspace',
  },
  body: transferBody,
  response: transactionShape,
  handler: (request, services: Services) => createTransfer(services, request),
  earlier: (request, services: Pick<Services, 'database'>) => earlierTransfer(services, request),
})

/**
 * Returns the original response of the transfer that was created with the same asset and
 * `sequence_id`, or null if there is none.
 * @param invoice as in {@link createTransfer}
 */
export function earlierTransfer(
  services: Pick<Services, 'database'>,
  { caller, fields, body }: Repeated<TransferBody>,
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
  services: Services,
  { caller, body, signed }: TransferRequest,
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
      create(services, { caller, body, signed }, { asset, network, wallet, payloadHash, invoice })
    try {
      // If no external service is called, the commit itself finds an earlier response.
      return body.destination_type === 'EXCHANGE'
        ? await onceOnly(answered, make)
        : await madeOnce(answered, make)
    } catch (error) {
      // The fee was quoted for a tier that the workspace no longer has. The request is tried once
      // more with the current tier.
      if (again || sqlErrorOf(error).code !== SQL_ERRORS.tierChanged) throw error
    }
  }
}

interface TransferRequest {
  caller: Caller
  body: TransferBody
  signed: SignedRequest
}

/** The wallet that pays a transfer. `payloadHash`: hash of the request's fields. */
interface TransferSource {
  asset: Asset
  network: Network
  wallet: KnownWallet
  payloadHash: string
  invoice: string | null
}

/** Amounts that a transfer pays, in the smallest unit of its asset. */
interface TransferAmounts {
  amount: bigint
  /** Expected network fee. */
  fee: bigint
  /** Amount that is reserved in the wallet for the network fee. */
  reserve: bigint
  /** Amount that must stay on the account. */
  chainReserve: bigint
  platform: ReturnType<typeof quotePlatformFee>
}

/**
 * Checks a transfer, quotes its fees, writes it and publishes its events.
 * @throws ApiError if a check fails or the wallet's balance is too low
 */
async function create(
  services: Services,
  request: TransferRequest,
  from: TransferSource,
): Promise<Reply> {
  const { caller, body, signed } = request
  const { asset, network, wallet, payloadHash } = from
  const { amount, destination, addressTag } = checkTransfer(services, body, asset, network)
  const exchange = await services.exchangeDestinations.check(caller, body, {
    asset,
    network,
    amount,
  })
  const chain = services.networks.get(network.code)
  const source = await services.addresses.omnibus(network, caller)
  await checkDestination(services, chain, source, {
    to: destination,
    tag: addressTag,
    amount,
    asset,
  })
  const chainReserve = await chain.reserveOf(source, asset)
  const { fee, reserve } = await estimateFee(services, request, from, { amount, destination })
  await checkFeeWallet(services, chain, { owner: caller, asset, source, fee })
  await assertNotDenied(services, {
    workspace: caller.workspaceId,
    signed,
    network: network.code,
    address: destination,
    tag: addressTag,
  })
  const platform = quotePlatformFee(services, wallet.prepaid_tier, asset, amount)
  const amounts = { amount, fee, reserve, chainReserve, platform }
  const row = withdrawalRow(services, request, from, amounts, { source, destination, addressTag })
  const response = stringifyJson(presentTransaction(row, services.registry))
  const written = await writeWithdrawal(services, from, row, { amounts, response, exchange })
  services.environment.checkpoint('transaction.created')
  if (!written.replayed) {
    const attributes = { kind: row.kind, asset: row.asset, network: row.network }
    notePart(row.id, 'request', attributes, row.created_at.getTime(), services.environment.now())
  }
  if (written.replayed)
    return replayedTransaction(written.response, isSamePayload(written.payload_hash, payloadHash))
  services.database.emit({
    type: 'transaction.created',
    workspace: caller.workspaceId,
    payload: response,
  })
  if (exchange)
    services.database.emit({
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
 * Rejects a payment to the sending account itself, and one that the chain refuses now.
 * @throws ApiError `INVALID_ADDRESS` or `INVALID_AMOUNT`
 */
async function checkDestination(
  services: Services,
  chain: Chain,
  source: string,
  payment: Payment,
): Promise<void> {
  if (isOwnAccount(chain, payment.to, source)) {
    throw refusalError({
      field: 'destination_address',
      reason: 'is the account from which the transfer would be sent',
    })
  }
  const refusal = await refusalSoon(services, chain, payment)
  if (refusal) throw refusalError(refusal)
}

/** Returns the row of a new transfer. Its ID is derived from the API key and the request's nonce. */
function withdrawalRow(
  services: Services,
  { caller, body, signed }: TransferRequest,
  { asset, network, wallet }: TransferSource,
  { amount, fee, platform }: TransferAmounts,
  {
    source,
    destination,
    addressTag,
  }: { source: string; destination: string; addressTag: string | null },
): TransactionRow {
  const { nonce } = claimedNonceAndSubject(signed.token)
  const now = new Date(services.environment.now())
  return {
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
    fee_level: body.fee_level ?? null,
    created_at: now,
    updated_at: now,
    confirmed_at: null,
    attempts: 0,
    lease_token: null,
    amount_usd: platform.amountUsd?.toString() ?? null,
    platform_fee: platform.fee.toString(),
  }
}

/**
 * Writes the transfer and reserves its amount and fees, in one commit.
 * @throws ApiError if the wallet is inactive, the balance or the prepaid fee is too low, the
 *   exchange account was unlinked, or the invoice does not allow the refund
 */
async function writeWithdrawal(
  services: Services,
  { asset, wallet, payloadHash, invoice }: TransferSource,
  row: TransactionRow,
  {
    amounts,
    response,
    exchange,
  }: {
    amounts: TransferAmounts
    response: string
    exchange: ExchangeDestination | null
  },
): Promise<Written> {
  const { reserve, chainReserve, platform } = amounts
  try {
    return await services.withdrawals.write(wallet.id, {
      ...row,
      plan: { fee_reserve: reserve.toString() },
      next_run_at: row.created_at,
      payload_hash: payloadHash,
      fee_reserve: reserve.toString(),
      chain_reserve: chainReserve.toString(),
      platform_fee_least: platform.least.toString(),
      prepaid_tier: wallet.prepaid_tier,
      response,
      invoice_id: invoice,
      exchange_transfer: exchange?.row ?? null,
      exchange_shown: exchange?.shown ?? null,
    })
  } catch (error) {
    throw await writeError(services, error, row, { asset, amounts })
  }
}

/** Converts an error of the commit to the API's error; returns any other error unchanged. */
async function writeError(
  services: Services,
  error: unknown,
  row: TransactionRow,
  { asset, amounts }: { asset: Asset; amounts: TransferAmounts },
): Promise<unknown> {
  const { code, detail } = sqlErrorOf(error)
  if (code === SQL_ERRORS.walletInactive) {
    return new ApiError(
      'WALLET_INACTIVE',
      `asset: the ${asset.asset_name} wallet is inactive; no transfer can be sent from it`,
      { field: 'asset' },
    )
  }
  if (code === SQL_ERRORS.refundTooEarly) {
    const reason =
      'inv_id: the invoice is open and its payments count; cancel it, or wait until it is paid or expired'
    return new ApiError('INVALID_REQUEST', reason, { field: 'inv_id' })
  }
  if (code === SQL_ERRORS.refundExceeds) {
    const refundable = `${formatAmount(BigInt(detail ?? '0'), asset.decimals)} ${asset.asset_name}`
    return new ApiError(
      'INVALID_AMOUNT',
      `amount: exceeds the ${refundable} that were paid for the invoice and have not been refunded`,
      {
        field: 'amount',
      },
    )
  }
  if (code === SQL_ERRORS.accountUnlinked) {
    return new ApiError(
      'NOT_FOUND',
      'destination_id: the exchange account was unlinked; nothing was created',
      { field: 'destination_id' },
    )
  }
  if (code === SQL_ERRORS.walletShort) return insufficient(services, row, asset, amounts)
  return exhausted(error, amounts.platform.fee) ?? error
}

/**
 * Hashes the meaning of the transfer, independent of the order of its fields and of the spelling of
 * its numbers; extra fields of old clients are ignored.
 */
const hashTransfer = (
  { type: _type, ts: _ts, ...fields }: TransferBody,
  invoice: string | null,
): string => hashRequest(invoice === null ? fields : { ...fields, invoice_id: invoice })

/**
 * Estimates the network fee of a transfer, and checks that the wallet can pay both without frozen coins.
 * @throws ApiError `CONSOLIDATE_FIRST`, `INSUFFICIENT_BALANCE`
 */
async function estimateFee(
  services: Services,
  { caller, body }: TransferRequest,
  { asset, network, wallet }: TransferSource,
  { amount, destination }: { amount: bigint; destination: string },
): Promise<Estimate> {
  const chain = services.networks.get(network.code)
  const estimate = await chain
    .estimate({
      asset,
      amount,
      to: destination,
      owner: caller,
      walletId: wallet.id,
      feeRate: body.fee_rate ?? null,
      level: body.fee_level ?? null,
    })
    .catch((error: unknown) => {
      throw asRequestError(error, asset)
    })
  const { workspaceId } = caller
  const payment = { amount, reserve: estimate.reserve }
  if (chain.coins) await assertUnfrozen(services.database, workspaceId, wallet.id, asset, payment)
  return estimate
}

/** Returns the error of a transfer whose amount and network fee exceed the wallet's balance. */
async function insufficient(
  services: Services,
  { workspace_id: workspace, wallet_id: wallet }: TransactionRow,
  asset: Asset,
  { amount, reserve, chainReserve }: TransferAmounts,
): Promise<ApiError> {
  const row = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where workspace_id = $3 and wallet_id = $1
      and asset = $2 and kind = 'available'`,
    [wallet, asset.asset_name, workspace],
  )
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  const balance = BigInt(row?.balance ?? '0') - chainReserve
  const chain = chainReserve > 0n ? ` (${show(chainReserve)} must stay on the account)` : ''
  const fee = reserve > 0n ? ` plus a network fee of about ${show(reserve)}` : ''
  return new ApiError(
    'INSUFFICIENT_BALANCE',
    `amount: ${show(amount)}${fee} exceeds the wallet's spendable balance of ${show(balance < 0n ? 0n : balance)}${chain}`,
    { field: 'amount' },
  )
}
