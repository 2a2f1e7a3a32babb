import { createHash } from 'node:crypto'
import type { Asset, Network, TronResource, Registry } from '@custody/chains'
import {
  claimedNonceAndSubject,
  stringifyJson,
  transactionId,
  type SignedRequest,
} from '@custody/request-auth'
import { STAKED_ASSET } from '@custody/request-auth/bodies'
import { findAsset } from '../assets/find-asset.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Caller, Repeated, Reply } from '../../core/http/endpoint.ts'
import { UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { withPlainDecimals } from '../../core/http/idempotency/payload.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import { answeredBefore, answeredInWallet, sequenceIdIn, onceOnly } from '../../core/http/replay.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { lockCounting } from '../../core/engine/counted.ts'
import type { StakingKind } from './steps.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
}

/** Common data of all staking requests. */
export interface StakingContext {
  asset: Asset
  network: Network
  wallet: Awaited<ReturnType<typeof findWallet>>
  /** The wallet's own address, which stakes. */
  account: string
  payloadHash: string
}

type StakingBody = { sequence_id?: string | undefined }

const hashStaking = (kind: StakingKind, body: StakingBody): string =>
  createHash('sha256')
    .update(JSON.stringify([kind, withPlainDecimals(body)], Object.keys(body).sort()))
    .digest('hex')

/**
 * Returns the original response of the staking request with the same `sequence_id`, or null. All
 * staking requests of a TRX wallet share its idempotency keys.
 */
export const earlierStaking =
  (kind: StakingKind) =>
  (
    { caller, fields, body }: Repeated<StakingBody>,
    services: Pick<Services, 'database'>,
  ): Promise<Reply | null> =>
    answeredInWallet(
      services.database,
      caller,
      STAKED_ASSET,
      sequenceIdIn(fields['sequence_id']),
      body ? hashStaking(kind, body) : UNREADABLE_PAYLOAD,
    )

/**
 * Executes a staking request at most once.
 * @param make executes the request with the caller's TRX wallet
 */
export async function once(
  services: Services,
  caller: Caller,
  kind: StakingKind,
  body: StakingBody,
  make: (context: StakingContext) => Promise<Reply>,
): Promise<Reply> {
  const { asset, network } = findAsset(services, STAKED_ASSET)
  const wallet = await findWallet(services.database, caller, asset.asset_name)
  const payloadHash = hashStaking(kind, body)
  return onceOnly(
    () =>
      answeredBefore(
        services.database,
        caller.workspaceId,
        wallet.id,
        body.sequence_id,
        payloadHash,
      ),
    async () =>
      make({
        asset,
        network,
        wallet,
        account: await services.addresses.omnibus(network, caller),
        payloadHash,
      }),
  )
}

/**
 * Source type and destination type of each staking transaction, as the API shows them. The wallet's
 * own account always signs.
 */
const TYPES: Record<StakingKind, [source: string, destination: string]> = {
  STAKE: ['INTERNAL', 'STAKING'],
  UNSTAKE: ['STAKING', 'STAKING'],
  RELEASE: ['STAKING', 'INTERNAL'],
}

interface NewStaking extends StakingContext {
  kind: StakingKind
  caller: Caller
  signed: SignedRequest
  address: string
  resource: TronResource | null
  amount: bigint
  /** Maximum fee of the chain calls in sun. */
  fee: bigint
  sequenceId: string | undefined
  plan: Record<string, string>
  /**
   * Reserves the amount that the request moves, or throws. Called in the same database transaction
   * as the other writes.
   */
  reserve(tx: Queryable, id: string): Promise<void>
  /** Called last, after every other lock. */
  lastly?(tx: Queryable, id: string): Promise<void>
}

/** Writes the idempotency row, the reservation, the transaction and the event in one commit. */
export async function create(services: Services, request: NewStaking): Promise<Reply> {
  const row = stakingRow(request, new Date(services.environment.now()))
  const response = stringifyJson({ id: row.id, status: row.status, hash: row.hash })
  const earlier = await services.database.transaction((tx) =>
    writeStaking(services, tx, request, row, response),
  )
  if (earlier) return earlier
  services.environment.checkpoint('staking.created')
  // The signer nodes' receipts keep the request usable after its short lifetime; the response does
  // not wait for them.
  void services.receipts.collect(row.workspace_id, row.id, request.signed)
  return { text: response }
}

/** Returns the row of a new staking transaction. */
function stakingRow(request: NewStaking, now: Date): TransactionRow {
  const { kind, caller, asset, network, signed, resource } = request
  const [sourceType, destinationType] = TYPES[kind]
  return {
    id: transactionId(caller.apiKey, claimedNonceAndSubject(signed.token).nonce),
    kind,
    workspace_id: caller.workspaceId,
    sub_account_id: caller.subAccountId,
    wallet_id: request.wallet.id,
    parent_id: null,
    asset: asset.asset_name,
    network: network.code,
    amount: request.amount.toString(),
    fee: request.fee.toString(),
    fee_asset: asset.fee_asset,
    source_type: sourceType,
    source_id: request.account,
    destination_type: destinationType,
    destination_id: request.address,
    address_tag: null,
    memo: null,
    sequence_id: request.sequenceId ?? null,
    state: 'QUEUED',
    status: 'pending',
    failure_reason: null,
    last_error: null,
    hash: null,
    confirmations: 0,
    request: { api_key: caller.apiKey, ...signed },
    receipts: [],
    plan: { ...request.plan, ...(resource === null ? {} : { resource }) },
    fee_rate: null,
    fee_level: null,
    created_at: now,
    updated_at: now,
    confirmed_at: null,
    attempts: 0,
    lease_token: null,
    amount_usd: null,
    platform_fee: null,
  }
}

/** Writes a staking transaction; returns the original response if its `sequence_id` was used. */
async function writeStaking(
  services: Services,
  tx: Queryable,
  { wallet, payloadHash, sequenceId, amount, fee, reserve, lastly }: NewStaking,
  row: TransactionRow,
  response: string,
): Promise<Reply | null> {
  if (sequenceId !== undefined) {
    const inserted = await tx.query(
      `insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash,
         response)
         values ($6, $1, $2, $3, $4, $5) on conflict do nothing returning 1`,
      [wallet.id, sequenceId, row.id, payloadHash, response, row.workspace_id],
    )
    const original =
      inserted.length === 0
        ? await answeredBefore(tx, row.workspace_id, wallet.id, sequenceId, payloadHash)
        : null
    if (original) return original
  }
  await insertTransaction(tx, {
    id: row.id,
    kind: row.kind,
    state: 'QUEUED',
    workspace_id: row.workspace_id,
    sub_account_id: row.sub_account_id,
    wallet_id: row.wallet_id,
    asset: row.asset,
    network: row.network,
    amount,
    fee,
    fee_asset: row.fee_asset,
    source_type: row.source_type,
    source_id: row.source_id,
    destination_type: row.destination_type,
    destination_id: row.destination_id,
    sequence_id: row.sequence_id,
    request: row.request,
    plan: row.plan,
    created_at: row.created_at,
    next_run_at: row.created_at,
  })
  await lockCounting(tx, row)
  await reserve(tx, row.id)
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    'transaction.created',
    stringifyJson(presentTransaction(row, services.registry)),
  )
  await lastly?.(tx, row.id)
  return null
}
