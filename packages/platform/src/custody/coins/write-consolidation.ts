import { formatAmount, type Asset, type Network, type Registry } from '@custody/chains'
import { stringifyJson, type SignedRequest } from '@custody/request-auth'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Consolidation, Merge } from '../../core/engine/chain.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { lockCoins } from '../../core/engine/wallet-lock.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller, Reply } from '../../core/http/endpoint.ts'
import { answeredBefore } from '../../core/http/replay.ts'
import { emit, lockedBalance, post } from '../../core/ledger/post.ts'

interface Services {
  database: Database
  registry: Registry
}

/** A consolidation whose request was checked. Amounts in the smallest unit. */
export interface Requested {
  /** ID of the transaction, derived from the API key and the request's nonce. */
  id: string
  caller: Caller
  asset: Asset
  network: Network
  walletId: string
  payloadHash: string
  signed: SignedRequest
  sequenceId: string
  /** As in the request. */
  maxFeeRate: string
  /** Current rate in the chain's integer unit, at most that of the request. */
  feeRate: bigint
  target: number
  least: bigint
  /** Omnibus address of the wallet. */
  source: string
  changeAddress: string
}

/**
 * The wallet's balance, and the part of it that unconfirmed consolidations contain. `isChoosing`: one of
 * them has not chosen its coins yet.
 */
interface Shares {
  balance: bigint
  pending: bigint
  isChoosing: boolean
}

/**
 * Chooses the coins of a consolidation and writes it, with the reservation of its fee, in one commit.
 * @returns the response; that of the earlier request if its `sequence_id` was used
 * @throws ApiError `NOTHING_TO_CONSOLIDATE`, `CONSOLIDATION_PENDING` or `INSUFFICIENT_BALANCE`
 */
export const writeConsolidation = (
  services: Services,
  consolidation: Consolidation,
  request: Requested,
): Promise<{ reply: Reply; isNew: boolean }> =>
  services.database
    .transaction(async (tx) => {
      const { caller, walletId } = request
      // Other consolidations of the wallet are counted under the same lock as its coins are chosen.
      await lockCoins(tx, walletId)
      const shares = await sharesOf(tx, request)
      if (shares.isChoosing)
        throw new ApiError(
          'CONSOLIDATION_PENDING',
          'id: an earlier consolidation of the wallet has not chosen its coins yet; try again in a few seconds',
          { field: 'id' },
        )
      const sumMost = shares.balance / 2n - shares.pending
      const chosen = await consolidation.choose(tx, {
        owner: caller,
        walletId,
        changeAddress: request.changeAddress,
        feeRate: request.feeRate,
        target: request.target,
        least: request.least,
        sumMost,
      })
      if ('lacks' in chosen) throw refusalOf(request, chosen.lacks, shares)
      const row = await insert(tx, request, chosen)
      const response = stringifyJson(presentTransaction(row, services.registry))
      const inserted = await tx.query(
        `insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash,
         response)
       values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning 1`,
        [caller.workspaceId, walletId, request.sequenceId, row.id, request.payloadHash, response],
      )
      if (inserted.length === 0) throw new Replayed()
      await reserveFee(tx, request, chosen.fee)
      await emit(tx, caller.workspaceId, caller.subAccountId, 'transaction.created', response)
      return { reply: { text: response }, isNew: true }
    })
    .catch(async (error: unknown) => {
      if (!(error instanceof Replayed)) throw error
      const { caller, walletId, sequenceId, payloadHash } = request
      const reply = await answeredBefore(
        services.database,
        caller.workspaceId,
        walletId,
        sequenceId,
        payloadHash,
      )
      if (!reply) throw new Error('the earlier response to a sequence_id is missing')
      return { reply, isNew: false }
    })

/** A concurrent request has used the `sequence_id`; nothing of this one is stored. */
class Replayed extends Error {}

async function sharesOf(tx: Queryable, { caller, walletId, asset }: Requested): Promise<Shares> {
  const row = await tx.one<{ balance: string; pending: string; choosing: boolean }>(
    `select coalesce((select sum(balance) from ledger_accounts where workspace_id = $1
         and wallet_id = $2 and asset = $3 and kind in ('available', 'reserved')), 0)::text balance,
       coalesce((select sum(coalesce((plan->>'sum_most')::numeric, amount)) from transactions
         where workspace_id = $1 and sub_account_id = $4 and wallet_id = $2
           and kind = 'CONSOLIDATION' and status = 'pending'), 0)::text pending,
       exists (select 1 from transactions where workspace_id = $1 and sub_account_id = $4
         and wallet_id = $2 and kind = 'CONSOLIDATION' and status = 'pending'
         and state = 'QUEUED') choosing`,
    [caller.workspaceId, walletId, asset.asset_name, caller.subAccountId],
  )
  return {
    balance: BigInt(row?.balance ?? '0'),
    pending: BigInt(row?.pending ?? '0'),
    isChoosing: row?.choosing ?? false,
  }
}

/** Returns the error of a request for which too few coins can be chosen. */
function refusalOf(
  { asset, least, target }: Requested,
  lacks: Extract<Merge, { lacks: unknown }>['lacks'],
  { balance, pending }: Shares,
): ApiError {
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  if (lacks === 'sum' && pending > 0n)
    return new ApiError(
      'CONSOLIDATION_PENDING',
      `id: unconfirmed consolidations of the wallet contain ${show(pending)}, and may contain at most half of its balance of ${show(balance)}; wait until they are confirmed`,
      { field: 'id' },
    )
  const from = least === 0n ? '' : `, each at least ${show(least)}`
  const reasons = {
    few: `fewer than 10 confirmed coins are free and worth more than the fee of their own input${from}, or fewer than 10 have to be merged to leave ${target}`,
    sum: `the 10 smallest coins are worth more than half of the balance of ${show(balance)}, which is the maximum of one consolidation`,
    fee: 'the network fee of merging 10 coins exceeds the signer nodes’ maximum, or leaves less than the dust limit',
  }
  return new ApiError(
    'NOTHING_TO_CONSOLIDATE',
    `target_coins: ${reasons[lacks]}; nothing was created`,
    { field: 'target_coins' },
  )
}

/** Inserts the transaction. Its amount is the value of the merged coin. */
function insert(
  tx: Queryable,
  request: Requested,
  { sum, fee }: Extract<Merge, { sum: bigint }>,
): Promise<TransactionRow> {
  const { caller, asset, network, signed } = request
  return insertTransaction(tx, {
    id: request.id,
    kind: 'CONSOLIDATION',
    state: 'QUEUED',
    workspace_id: caller.workspaceId,
    sub_account_id: caller.subAccountId,
    wallet_id: request.walletId,
    asset: asset.asset_name,
    network: network.code,
    amount: sum - fee,
    fee,
    fee_asset: asset.fee_asset,
    source_type: 'INTERNAL',
    source_id: request.source,
    destination_type: 'INTERNAL',
    destination_id: request.changeAddress,
    sequence_id: request.sequenceId,
    request: { api_key: caller.apiKey, ...signed },
    fee_rate: request.maxFeeRate,
    plan: {
      fee_reserve: fee.toString(),
      target_coins: request.target.toString(),
      sum_most: sum.toString(),
      ...(request.least === 0n ? {} : { min_value: request.least.toString() }),
    },
  })
}

/**
 * Reserves the network fee in the wallet.
 * @throws ApiError `INSUFFICIENT_BALANCE`
 */
async function reserveFee(
  tx: Queryable,
  { id, caller, asset, walletId }: Requested,
  fee: bigint,
): Promise<void> {
  const account = { workspace: caller.workspaceId, wallet: walletId, asset: asset.asset_name }
  const available = await lockedBalance(tx, { ...account, kind: 'available' })
  if (available < fee)
    throw new ApiError(
      'INSUFFICIENT_BALANCE',
      `id: the network fee of ${formatAmount(fee, asset.decimals)} ${asset.asset_name} exceeds the wallet's spendable balance`,
      { field: 'id' },
    )
  await post(tx, 'reserve', id, [
    { ...account, kind: 'available', amount: -fee },
    { ...account, kind: 'reserved', amount: fee },
  ])
}
