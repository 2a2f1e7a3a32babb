import {
  decode,
  type Network,
  type PublicKeyAt,
  type TransactionStatus,
  type Registry,
} from '@custody/chains'
import { isConfirmedByQuorum } from '../endpoints/quorum.ts'
import {
  expectedOf,
  findIncluded,
  liveAttempts,
  resolveAttempts,
  type Attempt,
} from '../attempts.ts'
import { bumpLowFee } from '../auto-bump.ts'
import { buryDead } from './expiry.ts'
import type { Queryable, Database } from '../../database/pool.ts'
import { oneEndpoint } from '../endpoints/group.ts'
import { advance } from '../lease.ts'
import { startReplacing } from '../replace.ts'
import type { Environment } from '../../environment.ts'
import type { Networks } from '../networks.ts'
import type { SignerNodes } from '../../signing/nodes.ts'
import type { WorkspaceKeys } from '../../signing/keys.ts'
import type { Metrics } from '../../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from '../interfaces/kind.ts'
import type { TransactionRow } from '../transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

/** Status of a transaction that is in a block. */
type Included = Extract<TransactionStatus, { state: 'included' }>

/** Whether the transaction's block, fee and outcome are already stored. */
const isStored = (chain: Attempt, status: Included, fee: bigint): boolean =>
  chain.state === 'INCLUDED' &&
  chain.block_hash === status.blockHash &&
  chain.fee === fee.toString() &&
  chain.succeeded === status.succeeded

/**
 * Returns the number of blocks that the scanner has read on top of a block, including the block
 * itself; 0 if the scanner has read no block or a different block at this height. Nothing is settled in
 * a block that the scanner has not read, because the scanner is what notices that a block has left the
 * chain. A block that is too old to be stored (`BLOCKS_KEPT` in `forget-blocks.ts`) was read before and
 * is identified by its height only, and so is a block whose hash the chain does not return.
 * `isHalted`: an endpoint contradicts a final block, so nothing is settled.
 */
async function depthRead(
  database: Queryable,
  { code }: Network,
  block: { height: number; blockHash: string },
): Promise<{ depth: number; isHalted: boolean }> {
  const scan = await database.one<{ depth: number; isHalted: boolean }>(
    `select (s.height - $2::bigint + 1)::integer depth, s.contradiction is not null "isHalted"
     from network_scans s where s.network = $1 and s.height >= $2
      and coalesce((select b.hash = $3 or $3 = '' from blocks b where b.network = $1 and b.height = $2),
        $2 < (select min(b.height) from blocks b where b.network = $1))`,
    [code, block.height, block.blockHash],
  )
  return scan ?? { depth: 0, isHalted: false }
}

/**
 * Number of checks after which a transaction in the mempool is broadcast again, in case nodes
 * dropped it.
 */
const REBROADCAST_ATTEMPTS = 20

/**
 * CONFIRMING: queries the status of the transaction, or of all attempts if one has replaced
 * another. At the chain's depth the kind books the result.
 */
export async function confirm(services: Services, row: TransactionRow): Promise<void> {
  const kind = services.kinds[row.kind]
  const attempts = await liveAttempts(services.database, row)
  const { network, agreement, ...on } = services.networks.get(row.network)
  // All queries go to one endpoint: with the head of another endpoint, a block that this endpoint
  // does not have could appear final.
  const client = await oneEndpoint(on.client)
  // The head is read first: with a head read later, a block that was reorganised in between could
  // appear final.
  const tip = await client.tip()
  const { attempt: chain, status } = await findIncluded(services, row, attempts, client)
  if (status.state !== 'included')
    return retryUnincluded(services, row, attempts, { attempt: chain, state: status.state })
  const { depth, isHalted } = await depthRead(services.database, network, status)
  const confirmations = Math.max(
    1,
    tip.finalHeight === null ? depth : tip.height - status.height + 1,
  )
  const isDeep =
    depth > 0 &&
    !isHalted &&
    (tip.finalHeight === null
      ? network.confirmations !== null && depth >= network.confirmations
      : status.height <= tip.finalHeight)
  const isConfirmed = async (isFinal: boolean) =>
    !agreement ||
    (await isConfirmedByQuorum(services, agreement, network, {
      client,
      hash: chain.hash,
      status,
      expected: expectedOf(services, row, chain),
      isFinal,
    }))
  const final = isDeep && (await isConfirmed(true))
  const fee = status.fee ?? BigInt(chain.fee_max)
  // Most checks find what is already stored, one block deeper.
  if (!final && isStored(chain, status, fee))
    return advance(services.database, row, { confirmations, last_error: null, run_in_ms: null })
  // Results that are booked before they are final also need the quorum.
  if (!final && kind.included && !(await isConfirmed(false)))
    return advance(services.database, row, { confirmations, run_in_ms: null })
  const key = await services.keys.get(row.workspace_id, network.curve)
  await services.database.transaction((tx) =>
    bookInclusion(services, tx, row, {
      chain,
      attempts,
      status,
      fee,
      confirmations,
      final,
      publicKeyAt: key.at,
    }),
  )
  services.environment.checkpoint(final ? 'transaction.settled' : 'transaction.included')
}

/**
 * Continues a transaction of which no attempt is in a block: ends it if it can no longer be
 * included, otherwise clears a block that was reorganised away, starts a replacement or fee bump,
 * and schedules the next check or broadcast.
 */
async function retryUnincluded(
  services: Services,
  row: TransactionRow,
  attempts: readonly Attempt[],
  result: { attempt: Attempt; state: Exclude<TransactionStatus['state'], 'included'> },
): Promise<void> {
  if (result.state === 'absent' && (await buryDead(services, row, result.attempt))) return
  if (attempts.some(({ state }) => state === 'INCLUDED')) {
    await services.database.query(
      `update chain_transactions set state = 'SIGNED', block_height = null, block_hash = null
         where workspace_id = $2 and transaction_id = $1 and state = 'INCLUDED'`,
      [row.id, row.workspace_id],
    )
  }
  if (await startReplacing(services, row)) return
  await bumpLowFee(services, row, attempts)
  const isRebroadcast = result.state === 'absent' || row.attempts % REBROADCAST_ATTEMPTS === 0
  return advance(
    services.database,
    row,
    isRebroadcast
      ? { state: 'BROADCASTING', confirmations: 0, run_in_ms: 0 }
      : {
          confirmations: 0,
          run_in_ms: null,
        },
  )
}

/** A transaction's attempt that is in a block. */
interface Inclusion {
  chain: Attempt
  attempts: readonly Attempt[]
  status: Included
  fee: bigint
  confirmations: number
  final: boolean
  /** Public keys of the workspace, by path. */
  publicKeyAt: PublicKeyAt
}

/**
 * Stores the block, fee and outcome of the included attempt. If it is final, resolves the other
 * attempts and settles the transaction.
 * @throws Error if the kind cannot be settled
 */
async function bookInclusion(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  { chain, attempts, status, fee, confirmations, final, publicKeyAt }: Inclusion,
): Promise<void> {
  const kind = services.kinds[row.kind]
  const cancelled = chain.replacement === 'CANCEL'
  await tx.query(
    `update chain_transactions set state = $2, block_height = $3, block_hash = $4, fee = $5,
        succeeded = $6, withdrawn = $7
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
  await kind.included?.(tx, row, {
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
    decode(services.registry, chain.unsigned, publicKeyAt).consumes,
    attempts,
  )
  if (!kind.settle) throw new Error(`a transaction of the kind ${row.kind} cannot be settled here`)
  const outcome = {
    fee,
    succeeded: status.succeeded && !cancelled,
    cancelled,
    confirmations,
    staking: status.staking,
  }
  await kind.settle(tx, { ...row, hash: chain.hash }, outcome)
}
