import { decode, type Network, type TransactionStatus } from '@custody/chains'
import { isAgreed } from './agreed.ts'
import {
  expectedOf,
  findIncluded,
  liveAttempts,
  resolveAttempts,
  type Attempt,
} from './attempts.ts'
import { bumpLowFee } from './auto-bump.ts'
import { buryDead } from './expiry.ts'
import type { Queryable } from '../database/pool.ts'
import { oneEndpoint } from './endpoint-group.ts'
import { advance } from './lease.ts'
import { startReplacing } from './replace.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

/** Whether the block that holds a transaction, its fee and its outcome are written down. */
const isNoted = (
  chain: Attempt,
  status: Extract<TransactionStatus, { state: 'included' }>,
  fee: bigint,
): boolean =>
  chain.state === 'INCLUDED' &&
  chain.block_hash === status.blockHash &&
  chain.fee === fee.toString() &&
  chain.succeeded === status.succeeded

/**
 * How many blocks the scanner has read from this one on, itself counted, each standing on the one
 * before; 0 where it has read another at this height, or none. Where depth decides what is final a
 * head that an endpoint only tells of buries nothing. A block that is too old to be kept
 * (`BLOCKS_KEPT` of the scanner) was read, and is known by its height alone.
 */
async function depthRead(
  database: Queryable,
  { code }: Network,
  block: { height: number; blockHash: string },
): Promise<number> {
  const scan = await database.one<{ depth: number }>(
    `select (s.height - $2::bigint + 1)::integer depth from network_scans s where s.network = $1 and s.height >= $2
      and coalesce((select b.hash = $3 from blocks b where b.network = $1 and b.height = $2),
        $2 < (select min(b.height) from blocks b where b.network = $1))`,
    [code, block.height, block.blockHash],
  )
  return scan?.depth ?? 0
}

/**
 * A transaction that sits in the mempool is sent again this often, in case that nodes forgot it.
 */
const REBROADCAST_ATTEMPTS = 20

/**
 * CONFIRMING: looks the hash up, or several where one has replaced another; its kind books the end
 * at the chain's depth.
 */
export async function confirm(services: Services, row: TransactionRow): Promise<void> {
  const kind = services.kinds[row.kind]
  const attempts = await liveAttempts(services.database, row)
  const { network, agreement, ...on } = services.networks.get(row.network)
  // By another endpoint's head a block could be final that it does not have.
  const client = await oneEndpoint(on.client)
  // The head first: by one that came later a block would be final that has gone in between.
  const tip = await client.tip()
  const { attempt: chain, status } = await findIncluded(services, row, attempts, client)
  if (status.state !== 'included') {
    if (status.state === 'absent' && (await buryDead(services, row, chain))) return
    if (attempts.some(({ state }) => state === 'INCLUDED')) {
      await services.database.query(
        `update chain_transactions set state = 'SIGNED', block_height = null, block_hash = null
         where workspace_id = $2 and transaction_id = $1 and state = 'INCLUDED'`,
        [row.id, row.workspace_id],
      )
    }
    if (await startReplacing(services, row)) return
    await bumpLowFee(services, row, attempts)
    const again = status.state === 'absent' || row.attempts % REBROADCAST_ATTEMPTS === 0
    return advance(
      services.database,
      row,
      again
        ? { state: 'BROADCASTING', confirmations: 0, run_in_ms: 0 }
        : {
            confirmations: 0,
            run_in_ms: null,
          },
    )
  }
  const depth =
    tip.finalHeight === null
      ? await depthRead(services.database, network, status)
      : tip.height - status.height + 1
  const confirmations = Math.max(1, depth)
  const isDeep =
    tip.finalHeight === null
      ? network.confirmations !== null && depth >= network.confirmations
      : status.height <= tip.finalHeight
  const isVouched = async (isFinal: boolean) =>
    !agreement ||
    (await isAgreed(services, agreement, network, {
      client,
      hash: chain.hash,
      status,
      expected: expectedOf(services, row, chain),
      isFinal,
    }))
  const final = isDeep && (await isVouched(true))
  const fee = status.fee ?? BigInt(chain.fee_max)
  // Most looks find what is written down already, one block deeper.
  if (!final && isNoted(chain, status, fee))
    return advance(services.database, row, { confirmations, last_error: null, run_in_ms: null })
  // What is booked before it is final is vouched for too.
  if (!final && kind.included && !(await isVouched(false)))
    return advance(services.database, row, { confirmations, run_in_ms: null })
  const key = await services.keys.get(row.workspace_id, network.curve)
  const cancelled = chain.replacement === 'CANCEL'
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set state = $2, block_height = $3, block_hash = $4, fee = $5, succeeded = $6, withdrawn = $7
        where workspace_id = $8 and id = $1`,
      [
        chain.id,
        final ? 'CONFIRMED' : 'INCLUDED',
        status.height,
        status.blockHash,
        fee.toString(),
        status.succeeded,
        status.staking?.withdrawn.toString() ?? null,
        row.workspace_id,
      ],
    )
    await kind.included?.(services, tx, row, {
      fee,
      feeMax: BigInt(chain.fee_max),
      succeeded: status.succeeded,
      final,
    })
    if (!final)
      return advance(tx, row, {
        hash: chain.hash,
        confirmations,
        fee,
        last_error: null,
        run_in_ms: null,
      })
    await resolveAttempts(
      tx,
      row,
      chain,
      decode(services.registry, chain.unsigned, key.at).consumes,
      attempts,
    )
    if (!kind.settle)
      throw new Error(`a transaction of the kind ${row.kind} cannot be settled here`)
    const outcome = {
      fee,
      succeeded: status.succeeded && !cancelled,
      cancelled,
      confirmations,
      staking: status.staking,
    }
    await kind.settle(services, tx, { ...row, hash: chain.hash }, outcome)
  })
  services.environment.checkpoint(final ? 'transaction.settled' : 'transaction.included')
}
