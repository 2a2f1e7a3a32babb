import { formatAmount, traitsOf, type Asset, type Network, type Registry } from '@custody/chains'
import { claimedNonceAndSubject, transactionId, type SignedRequest } from '@custody/request-auth'
import { consolidateBody, type ConsolidateBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import type { Database, Queryable } from '../../core/database/pool.ts'
import { DEFAULT_LEVEL, type Chain, type Consolidation } from '../../core/engine/chain.ts'
import { checkedFeeRate } from '../../core/engine/check-fee-rate.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { transactionShape } from '../../core/engine/present.ts'
import type { Environment } from '../../core/environment.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller, type Repeated, type Reply } from '../../core/http/endpoint.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import { answeredBefore, onceOnly, sequenceIdIn } from '../../core/http/replay.ts'
import { pathId } from '../../core/http/schemas.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import { findAsset } from '../assets/find-asset.ts'
import { readAmount } from '../assets/read-amount.ts'
import { writeConsolidation, type Requested } from './write-consolidation.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
}

/** Merges coins of a wallet in one transaction. */
export const consolidateCoins = endpoint({
  id: 'consolidateCoins',
  tag: 'Wallets',
  description:
    'Merges the smallest confirmed coins of a wallet into one coin at the wallet’s change address, so that a later transfer needs fewer coins. BTC, LTC, DOGE, DASH and BCH only. One request makes one transaction with 10 to 200 inputs: as many as bring the number of free coins down to `target_coins`, without coins that are frozen, reserved, held, unconfirmed, below `min_value`, or not worth more than the fee of their own input. Only the network fee leaves the wallet, at the current rate of the level `medium`; there is no platform fee. Unconfirmed consolidations contain at most half of the wallet’s balance, and a merged coin is spent only after its confirmation. The transaction publicly links the addresses of its coins. It is not listed by `GET /dac/v1/transactions` unless `type=Consolidation` is given; read it by its id.',
  errors: [
    'UNSUPPORTED_ASSET',
    'NOT_FOUND',
    'WALLET_INACTIVE',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'NOTHING_TO_CONSOLIDATE',
    'CONSOLIDATION_PENDING',
    'FEE_RATE_ABOVE_MAXIMUM',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  example: { asset: 'BTC', max_fee_rate: '3', target_coins: 50, sequence_id: 'merge-7' },
  method: 'POST',
  path: '/dac/v1/wallets/{id}/consolidate',
  summary: 'Merge coins of a wallet',
  access: 'write',
  audit: { not: 'the consolidation stores the request and its key' },
  params: z.strictObject({ id: pathId }),
  body: consolidateBody,
  response: transactionShape,
  earlier: (
    { caller, fields, body, params: { id = '' } }: Repeated<ConsolidateBody>,
    { database }: Pick<Services, 'database'>,
  ) =>
    answeredIn(database, caller, id, {
      sequenceId: sequenceIdIn(fields['sequence_id']),
      payloadHash: body ? hashOf(id, body) : UNREADABLE_PAYLOAD,
    }),
  async handler({ caller, params, body, signed }, services: Services) {
    const wallet = await walletOf(services.database, caller, params.id)
    if (
      body.asset !== undefined &&
      findAsset(services, body.asset).asset.asset_name !== wallet.asset
    )
      throw new ApiError(
        'INVALID_REQUEST',
        `asset: must be ${wallet.asset}, the asset of the wallet`,
        { field: 'asset' },
      )
    const { asset, network } = findAsset(services, wallet.asset)
    const chain = services.networks.get(network.code)
    if (!chain.coins?.consolidation)
      throw new ApiError(
        'UNSUPPORTED_ASSET',
        `id: the coins of a wallet of ${asset.asset_name} cannot be merged; BTC, LTC, DOGE, DASH and BCH are possible`,
        { field: 'id' },
      )
    const { consolidation } = chain.coins
    const payloadHash = hashOf(params.id, body)
    return onceOnly(
      () =>
        answeredBefore(
          services.database,
          caller.workspaceId,
          wallet.id,
          body.sequence_id,
          payloadHash,
        ),
      () =>
        create(
          services,
          { caller, body, signed },
          { asset, network, wallet, payloadHash, chain, consolidation },
        ),
    )
  },
})

/** Returns the hash of the payload. The wallet determines the asset. */
function hashOf(wallet: string, body: ConsolidateBody): string {
  const { asset, ...named } = body
  return hashRequest({
    ...(asset === undefined ? body : named),
    consolidates: wallet.toLowerCase(),
  })
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

interface OwnWallet {
  id: string
  status: string
  asset: string
}

/** Returns a wallet of the caller's sub-account, if there is one with this ID. */
async function ownWallet(
  database: Queryable,
  { workspaceId, subAccountId }: Caller,
  input: string,
): Promise<OwnWallet | undefined> {
  const id = input.toLowerCase()
  if (!UUID.test(id)) return undefined
  return database.one<OwnWallet>(
    `select id, status, asset from wallets
     where workspace_id = $1 and sub_account_id = $2 and id = $3`,
    [workspaceId, subAccountId, id],
  )
}

async function answeredIn(
  database: Queryable,
  caller: Caller,
  id: string,
  { sequenceId, payloadHash }: { sequenceId: string | undefined; payloadHash: string },
): Promise<Reply | null> {
  const wallet = sequenceId === undefined ? undefined : await ownWallet(database, caller, id)
  return wallet
    ? answeredBefore(database, caller.workspaceId, wallet.id, sequenceId, payloadHash)
    : null
}

/**
 * Returns a wallet of the caller's sub-account.
 * @throws ApiError `NOT_FOUND`
 */
async function walletOf(database: Queryable, caller: Caller, input: string): Promise<OwnWallet> {
  const wallet = await ownWallet(database, caller, input)
  if (!wallet)
    throw new ApiError(
      'NOT_FOUND',
      `id: wallet ${input.slice(0, 100)} does not exist in this sub-account; see GET /dac/v1/wallets`,
      { field: 'id' },
    )
  return wallet
}

interface ConsolidateRequest {
  caller: Caller
  body: ConsolidateBody
  signed: SignedRequest
}

/** The wallet whose coins are merged, and the chain's operations for it. */
interface Source {
  asset: Asset
  network: Network
  wallet: { id: string; status: string }
  payloadHash: string
  chain: Chain
  consolidation: Consolidation
}

/**
 * Checks a consolidation and writes it.
 * @throws ApiError if a check fails; then nothing is stored under the `sequence_id`
 */
async function create(
  services: Services,
  { caller, body, signed }: ConsolidateRequest,
  { asset, network, wallet, payloadHash, chain, consolidation }: Source,
): Promise<Reply> {
  const rateMost = checkedFeeRate(body.max_fee_rate, network, services.registry, 'max_fee_rate')
  const least = body.min_value === undefined ? 0n : readAmount(body.min_value, asset, 'min_value')
  if (body.min_value !== undefined && least === 0n)
    throw new ApiError('INVALID_AMOUNT', 'min_value: must be greater than zero', {
      field: 'min_value',
    })
  if (wallet.status !== 'active')
    throw new ApiError(
      'WALLET_INACTIVE',
      `id: the ${asset.asset_name} wallet is inactive; its coins cannot be merged`,
      { field: 'id' },
    )
  const feeRate = await currentRate(chain, asset)
  if (feeRate > rateMost) throw tooExpensive(network, feeRate, body.max_fee_rate)
  const request: Requested = {
    id: transactionId(caller.apiKey, claimedNonceAndSubject(signed.token).nonce),
    caller,
    asset,
    network,
    walletId: wallet.id,
    payloadHash,
    signed,
    sequenceId: body.sequence_id,
    maxFeeRate: body.max_fee_rate,
    feeRate,
    target: body.target_coins,
    least,
    source: await services.addresses.omnibus(network, caller),
    changeAddress: await consolidation.address(caller),
  }
  const { reply, isNew } = await writeConsolidation(services, consolidation, request)
  services.environment.checkpoint('transaction.created')
  // The signer nodes' receipts keep the request usable after its short lifetime; the response does
  // not wait for them.
  if (isNew) void services.receipts.collect(caller.workspaceId, request.id, signed)
  return reply
}

/**
 * Returns the fee rate of the level `medium`, in the chain's integer unit.
 * @throws ApiError `NETWORK_UNAVAILABLE`
 */
async function currentRate(chain: Chain, asset: Asset): Promise<bigint> {
  try {
    return (await chain.rates(asset))[DEFAULT_LEVEL]
  } catch {
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `the fee rate of ${chain.network.code} cannot be read now; nothing was created`,
    )
  }
}

/** Returns the error of a request while the network's rate is above its maximum. */
function tooExpensive(network: Network, rate: bigint, most: string): ApiError {
  const now = formatAmount(rate, traitsOf(network).feeRateDecimals)
  return new ApiError(
    'FEE_RATE_ABOVE_MAXIMUM',
    `max_fee_rate: the current rate of the level medium is ${now} ${network.fee_rate_unit}, above the maximum of ${most}; nothing was created`,
    { field: 'max_fee_rate' },
  )
}
