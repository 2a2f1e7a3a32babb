import type { UnsignedTransaction, Registry } from '@custody/chains'
import { findIncluded, liveAttempts } from './attempts.ts'
import type { FeeLevel, RequestedReplacement } from './chain.ts'
import { commitBuilt, overCap } from './commit.ts'
import { giveUp } from './outcomes/give-up.ts'
import { recordChange } from './change-coins.ts'
import { advance } from './lease.ts'
import { isHeldByPolicy, refusalReason } from '../signing/refusal.ts'
import { openReplacement, whyFinal, type Replacement } from './replacement.ts'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import type { Tanks } from './interfaces/tanks.ts'
import { markSubmitted } from './submission.ts'
import { noteSigned, retryMsOf, signBuilt } from './sign.ts'
import { isForward, NO_REPLACEMENT, type TransactionRow } from './transaction.ts'

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
  tanks: Tanks
}

interface Built {
  id: string
  unsigned: UnsignedTransaction
  account: string | null
  nonce: string | null
}

const LOWER_FEE =
  'a cancellation whose fee is at most a quarter above that of the transaction is always possible'

/**
 * Starts the requested replacement of a pending transaction; returns false if none was requested.
 */
export async function startReplacing(
  services: Pick<Services, 'database'>,
  row: TransactionRow,
): Promise<boolean> {
  if (!(await openReplacement(services.database, row))) return false
  await advance(services.database, row, { state: 'REPLACING', last_error: null, run_in_ms: 0 })
  return true
}

/**
 * REPLACING → BROADCASTING, with a new signed transaction or, if the replacement is given up, with
 * the pending one.
 */
export async function replace(services: Services, row: TransactionRow): Promise<void> {
  const replacement = await openReplacement(services.database, row)
  if (!replacement) return advance(services.database, row, { state: 'BROADCASTING', run_in_ms: 0 })
  // A forward has no caller's request that could allow a higher fee; the platform alone chooses its
  // fee.
  if (isForward(row) && replacement.kind === 'SPEED_UP')
    return giveUp(services, row, replacement, NO_REPLACEMENT)
  const built = await services.database.one<Built>(
    `select id, unsigned, account, nonce::text from chain_transactions
     where workspace_id = $3 and transaction_id = $1 and replacement_id = $2 and state = 'BUILT'`,
    [row.id, replacement.id, row.workspace_id],
  )
  if (built) return signReplacement(services, row, replacement, built)
  await buildReplacement(services, row, replacement)
}

async function buildReplacement(
  services: Services,
  row: TransactionRow,
  replacement: Replacement,
): Promise<void> {
  const { network, replaceable } = services.networks.get(row.network)
  if (!replaceable) return giveUp(services, row, replacement, whyFinal(network))
  const attempts = await liveAttempts(services.database, row)
  const { status } = await findIncluded(services, row, attempts)
  // If fuel was already sent for the replacement, its arrival is awaited even if a block contains
  // the transaction, so that the ledger knows where the fuel is.
  if (status.state === 'included' && replacement.state !== 'FUELING') {
    return giveUp(services, row, replacement, 'a block already contains the transaction')
  }
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new Error(`asset ${row.asset} is not available`)
  if (replacement.state === 'FUELING') {
    const fuel = await services.tanks.arrivedMore(row, replacement)
    if (fuel === 'waits') {
      const cause = await services.tanks.causeOf(row, replacement)
      return advance(services.database, row, { waits: 'GAS_TANK', cause, run_in_ms: null })
    }
    if (fuel !== 'arrived') return giveUp(services, row, replacement, fuel.reason)
  }
  const wanted: RequestedReplacement = {
    kind: replacement.kind,
    refused: replacement.plan.refused === '1',
    feeRate: replacement.fee_rate,
    level: replacement.fee_level as FeeLevel | null,
  }
  const ask = (fuelled: boolean) => replaceable.prepare(row, asset, wanted, attempts, fuelled)
  let prepared = await ask(replacement.state === 'FUELING')
  // Rates may rise between the estimate and the reservation; only the reserved amount is ever paid.
  while (prepared.kind === 'dearer') {
    const more =
      overCap(services, network, prepared.worst) ??
      (await services.tanks.startMore(row, replacement, prepared))
    if (more === 'started') return
    prepared = more === 'taken' ? await ask(false) : more
  }
  if (prepared.kind === 'fail') return giveUp(services, row, replacement, prepared.reason)
  const refused = await commitBuilt(services, row, prepared, { replacement, attempts })
  if (refused) await giveUp(services, row, replacement, refused.reason)
}

async function signReplacement(
  services: Services,
  row: TransactionRow,
  replacement: Replacement,
  built: Built,
): Promise<void> {
  // The transaction being replaced is already signed, so nothing prevents submitting the
  // replacement.
  await markSubmitted(services.database, row, built.id)
  const outcome = await signBuilt(services, row, built, replacement)
  // A policy that is stopped or whose window is full allows a cancellation at a lower fee, which the
  // caller can request once this one has ended.
  if (
    outcome.kind === 'unavailable' &&
    replacement.kind === 'CANCEL' &&
    isHeldByPolicy(outcome.code)
  )
    return giveUp(services, row, replacement, `${outcome.message}; ${LOWER_FEE}`)
  if (outcome.kind === 'unavailable') {
    return advance(services.database, row, {
      waits: 'SIGNER_NODES',
      last_error: outcome.message,
      run_in_ms: retryMsOf(outcome),
    })
  }
  if (outcome.kind === 'refused') return giveUp(services, row, replacement, refusalReason(outcome))
  const { signed, decoded, nodes } = outcome
  await services.database.transaction(async (tx) => {
    await noteSigned(tx, row.workspace_id, built.id, signed, nodes)
    await recordChange(tx, row, {
      hash: signed.hash,
      unsigned: built.unsigned,
      decoded,
      isContested: true,
      isCancellation:
        services.networks.get(row.network).coins !== null && replacement.kind === 'CANCEL',
    })
    await tx.query(
      `update replacements set state = 'DONE', updated_at = $2 where workspace_id = $3 and id = $1`,
      [replacement.id, tx.now(), row.workspace_id],
    )
    await advance(tx, row, {
      state: 'BROADCASTING',
      hash: signed.hash,
      last_error: null,
      run_in_ms: 0,
    })
  })
  services.environment.checkpoint('transaction.replaced')
}
