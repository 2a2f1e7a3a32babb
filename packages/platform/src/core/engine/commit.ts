import { decode, formatAmount, type Network, type Registry } from '@custody/chains'
import type { Queryable, Database } from '../database/pool.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import { changeSpender, type Attempt } from './attempts.ts'
import { fail, type Built, type Fail, type Hold, type Prepared } from './chain.ts'
import { startFailing } from './outcomes/fail.ts'
import { insertChainTransaction } from './insert.ts'
import { advance } from './lease.ts'
import { openAccount } from './nonce-order.ts'
import { lockCoins } from './wallet-lock.ts'
import type { Replacement } from './replacement.ts'
import type { Environment } from '../environment.ts'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import type { TransactionRow } from './transaction.ts'

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

/**
 * The replacement being built and the attempts that it replaces. The attempts are waiting for a
 * block, and whichever transaction is mined decides the outcome.
 */
export interface InPlaceOf {
  replacement: Replacement
  attempts: readonly Attempt[]
}

/** A transaction for which an unsigned chain transaction is written. */
interface BuildContext {
  row: TransactionRow
  /** ID of the chain transaction. */
  id: string
  inPlaceOf: InPlaceOf | undefined
}

/**
 * Writes an unsigned transaction; no other code does. Under the lock of the wallet's coins or of
 * the account, in one commit: builds the transaction, checks the network's fee cap, reserves the
 * fee in the wallet, stores the transaction and assigns its coins. If a replacement cannot be
 * built, the reason is returned; any other transaction that cannot be built starts to fail.
 */
export async function commitBuilt(
  services: Services,
  row: TransactionRow,
  prepared: Prepared,
  inPlaceOf?: InPlaceOf,
): Promise<Fail | null> {
  const { network } = services.networks.get(row.network)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const refused = await services.database.transaction(async (tx): Promise<Fail | null> => {
    await takeLock(tx, row, prepared)
    // Mining the replacement would invalidate a later transfer that spends the replaced
    // transaction's change.
    const spender = inPlaceOf ? await changeSpender(tx, row, inPlaceOf.attempts) : null
    if (spender) return fail(`transfer ${spender} already spends its change`)
    const result = await prepared.build(tx, await unsweptOf(services, tx, row))
    if (result.kind === 'wait') {
      await advance(tx, row, {
        waits: result.code,
        last_error: result.reason,
        run_in_ms: result.inMs,
      })
      return null
    }
    const context = { row, id: services.environment.uuid(), inPlaceOf }
    const refusal =
      result.kind === 'fail'
        ? result
        : (overCap(services, network, result.worst) ?? (await reserveFee(tx, context, result)))
    if (refusal) {
      if (!inPlaceOf) await startFailing(services, tx, row, refusal.reason)
      return refusal
    }
    const built = result as Built
    await writeUnsigned(tx, context, built, decode(services.registry, built.unsigned, key.at))
    return null
  })
  services.environment.checkpoint(inPlaceOf ? 'transaction.replacement-built' : 'transaction.built')
  return inPlaceOf ? refused : null
}

/**
 * Acquires the lock. Must be called before locking any row of `chain_transactions` or any ledger
 * account.
 */
async function takeLock(tx: Queryable, row: TransactionRow, { lock }: Prepared): Promise<void> {
  if (lock === 'account') return openAccount(tx, row.network, row.source_id as string)
  await lockCoins(tx, row.wallet_id as string)
}

/**
 * Locks and returns the unswept balance of a deposit address; 0 if the transaction is not a sweep.
 */
async function unsweptOf(services: Services, tx: Queryable, row: TransactionRow): Promise<bigint> {
  if (!services.kinds[row.kind].sweeps) return 0n
  return lockedBalance(tx, {
    workspace: row.workspace_id,
    wallet: row.wallet_id,
    asset: row.asset,
    kind: 'unswept',
    address: row.source_id,
  })
}

/** Returns the failure if a fee exceeds the network's cap, otherwise null. */
export function overCap(
  services: Pick<Services, 'registry'>,
  network: Network,
  worst: bigint,
): Fail | null {
  const cap = BigInt(network.fee_cap)
  if (worst <= cap) return null
  const decimals = services.registry.asset(network.native_asset)?.decimals ?? 0
  const show = (value: bigint) => `${formatAmount(value, decimals)} ${network.native_asset}`
  return fail(`a network fee of up to ${show(worst)} exceeds the cap of ${show(cap)}`)
}

/** Adjusts the wallet's reservation for the fee to the fee of the built transaction. */
async function reserveFee(
  tx: Queryable,
  { row, id, inPlaceOf }: BuildContext,
  { hold }: Built,
): Promise<Fail | null> {
  if (!hold) return null
  const reserved = BigInt(row.plan[hold.noted] ?? '0')
  const difference = reservedAfter(row, hold, inPlaceOf) - reserved
  const account = { workspace: row.workspace_id, wallet: hold.wallet, asset: hold.asset.asset_name }
  const available =
    difference > 0n
      ? (await lockedBalance(tx, { ...account, kind: 'available' })) - hold.reserve
      : difference
  if (available < difference) {
    const show = (value: bigint) =>
      `${formatAmount(value < 0n ? 0n : value, hold.asset.decimals)} ${hold.asset.asset_name}`
    const chainReserve =
      hold.reserve > 0n ? ` and the ${show(hold.reserve)} that must stay on the account` : ''
    if (inPlaceOf)
      return fail(
        `the higher fee of ${show(hold.amount)} exceeds the balance of the wallet after the amount`,
      )
    const funds = `${show(reserved)} is reserved for it, and the wallet has ${show(available)} in addition to the amount${chainReserve}`
    return fail(`a network fee of up to ${show(hold.amount)} is required: ${funds}`)
  }
  await post(tx, 'reserve-adjust', id, [
    { ...account, kind: 'available', amount: -difference },
    { ...account, kind: 'reserved', amount: difference },
  ])
  return null
}

/**
 * Returns the new reservation for the fee. A cheaper replacement does not reduce it, because the
 * more expensive transaction may still be mined.
 */
function reservedAfter(row: TransactionRow, hold: Hold, inPlaceOf: InPlaceOf | undefined): bigint {
  const reserved = BigInt(row.plan[hold.noted] ?? '0')
  return inPlaceOf && hold.amount < reserved ? reserved : hold.amount
}

/**
 * Voids the expired attempts, stores the unsigned transaction, assigns its coins and advances the
 * transaction to SIGNING; a replacement leaves the state unchanged.
 * @throws Error if the source address or a coin does not belong to the transaction
 */
async function writeUnsigned(
  tx: Queryable,
  context: BuildContext,
  built: Built,
  decoded: ReturnType<typeof decode>,
): Promise<void> {
  const { row, id, inPlaceOf } = context
  const { unsigned, account = null, hold } = built
  if (account !== null && decoded.from.at(-1) !== account)
    throw new Error('the derived address differs from the source address')
  // This transaction takes the nonce and coins of the transfer's expired attempts and so excludes
  // them; they are never sent again.
  const voided = await tx.query<{ id: string }>(
    `update chain_transactions set state = 'VOID' where workspace_id = $2 and transaction_id = $1
      and state = 'EXPIRED' returning id`,
    [row.id, row.workspace_id],
  )
  await insertChainTransaction(tx, {
    id,
    workspace_id: row.workspace_id,
    transaction_id: row.id,
    network: row.network,
    state: 'BUILT',
    account,
    nonce: built.nonce ?? null,
    unsigned,
    fee_max: decoded.fee_max,
    valid_until: built.validUntil ?? null,
    step: decoded.action?.kind ?? null,
    replaces: inPlaceOf?.attempts.at(-1)?.id ?? null,
    replacement_id: inPlaceOf?.replacement.id ?? null,
  })
  for (const coin of built.coins ?? [])
    await assignCoin(
      tx,
      context,
      coin,
      voided.map((each) => each.id),
    )
  const reservation = hold ? { [hold.noted]: reservedAfter(row, hold, inPlaceOf).toString() } : {}
  if (inPlaceOf) {
    await tx.query(
      `update utxos set contested = true, spendable = false where workspace_id = $2 and network = $3
        and origin = 'change'
      and txid = any($1)`,
      [inPlaceOf.attempts.map(({ hash }) => hash), row.workspace_id, row.network],
    )
  }
  await advance(tx, row, {
    ...(inPlaceOf ? {} : { state: 'SIGNING' }),
    ...(built.fee === undefined ? {} : { fee: built.fee }),
    ...(built.amount === undefined ? {} : { amount: built.amount }),
    plan: { ...built.plan, ...reservation },
    last_error: null,
    run_in_ms: 0,
  })
}

/**
 * Assigns a coin that is free or was assigned to an expired attempt of the same transfer. A
 * replacement leaves the coins of the pending attempts assigned to them.
 * @throws Error if another transfer has spent the coin
 */
async function assignCoin(
  tx: Queryable,
  { row, id, inPlaceOf }: BuildContext,
  { txid, vout }: { txid: string; vout: number },
  voided: readonly string[],
): Promise<void> {
  const assigned = await tx.query(
    `update utxos set spent_by = $4
     where workspace_id = $6 and network = $1 and txid = $2 and vout = $3
       and (spent_by is null or spent_by = any($5)) returning 1`,
    [row.network, txid, vout, id, voided, row.workspace_id],
  )
  if (assigned.length === 1) return
  const own =
    inPlaceOf &&
    (await tx.one(
      `select 1 from utxos where workspace_id = $5 and network = $1 and txid = $2 and vout = $3
        and spent_by = any($4)`,
      [row.network, txid, vout, inPlaceOf.attempts.map((attempt) => attempt.id), row.workspace_id],
    ))
  if (!own) throw new Error('another transfer has spent one of the coins')
}
