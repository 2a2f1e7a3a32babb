import { decode, formatAmount, type Network } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import { changeSpender, type Attempt } from './attempts.ts'
import { fail, type Built, type Fail, type Hold, type Prepared } from './chain.ts'
import { startFailing } from './fail.ts'
import { insertChainTransaction } from './insert.ts'
import { advance } from './lease.ts'
import { openAccount } from './nonce-order.ts'
import type { Replacement } from './replacement.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * The replacement being built and the attempts that it replaces. The attempts are waiting for a
 * block, and whichever transaction is mined decides the outcome.
 */
export interface InPlaceOf {
  replacement: Replacement
  attempts: readonly Attempt[]
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
    const answer = await prepared.build(tx, await unsweptOf(services, tx, row))
    if (answer.kind === 'wait') {
      await advance(tx, row, {
        waits: answer.code,
        last_error: answer.reason,
        run_in_ms: answer.inMs,
      })
      return null
    }
    const id = services.environment.uuid()
    const refusal =
      answer.kind === 'fail'
        ? answer
        : (overCap(services, network, answer.worst) ??
          (await holdFee(services, tx, row, id, answer, inPlaceOf)))
    if (refusal) {
      if (!inPlaceOf) await startFailing(services, tx, row, refusal.reason)
      return refusal
    }
    await write(
      services,
      tx,
      row,
      id,
      answer as Built,
      decode(services.registry, (answer as Built).unsigned, key.at),
      inPlaceOf,
    )
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
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `wallet ${row.wallet_id}`,
  ])
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
export function overCap(services: Services, network: Network, worst: bigint): Fail | null {
  const cap = BigInt(network.fee_cap)
  if (worst <= cap) return null
  const decimals = services.registry.asset(network.native_asset)?.decimals ?? 0
  const show = (value: bigint) => `${formatAmount(value, decimals)} ${network.native_asset}`
  return fail(`a network fee of up to ${show(worst)} exceeds the cap of ${show(cap)}`)
}

/** Adjusts the wallet's reservation for the fee to the fee of the built transaction. */
async function holdFee(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  id: string,
  { hold }: Built,
  inPlaceOf: InPlaceOf | undefined,
): Promise<Fail | null> {
  if (!hold) return null
  const held = BigInt(row.plan[hold.noted] ?? '0')
  const difference = heldAfter(row, hold, inPlaceOf) - held
  const account = { workspace: row.workspace_id, wallet: hold.wallet, asset: hold.asset.asset_name }
  const left =
    difference > 0n
      ? (await lockedBalance(tx, { ...account, kind: 'available' })) - hold.kept
      : difference
  if (left < difference) {
    const show = (value: bigint) =>
      `${formatAmount(value < 0n ? 0n : value, hold.asset.decimals)} ${hold.asset.asset_name}`
    const stays = hold.kept > 0n ? ` and the ${show(hold.kept)} that must stay on the account` : ''
    if (inPlaceOf)
      return fail(
        `the higher fee of ${show(hold.amount)} exceeds the balance of the wallet after the amount`,
      )
    const has = `${show(held)} is reserved for it, and the wallet has ${show(left)} in addition to the amount${stays}`
    return fail(`a network fee of up to ${show(hold.amount)} is required: ${has}`)
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
function heldAfter(row: TransactionRow, hold: Hold, inPlaceOf: InPlaceOf | undefined): bigint {
  const held = BigInt(row.plan[hold.noted] ?? '0')
  return inPlaceOf && hold.amount < held ? held : hold.amount
}

async function write(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  id: string,
  built: Built,
  decoded: ReturnType<typeof decode>,
  inPlaceOf: InPlaceOf | undefined,
): Promise<void> {
  const { unsigned, account = null, hold } = built
  if (account !== null && decoded.from.at(-1) !== account)
    throw new Error('the derived address differs from the source address')
  // This transaction takes the nonce and coins of the transfer's expired attempts and so excludes
  // them; they are never sent again.
  const dead = await tx.query<{ id: string }>(
    `update chain_transactions set state = 'VOID' where workspace_id = $2 and transaction_id = $1 and state = 'EXPIRED' returning id`,
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
    await takeCoin(
      tx,
      row,
      id,
      coin,
      dead.map((each) => each.id),
      inPlaceOf,
    )
  const noted = hold ? { [hold.noted]: heldAfter(row, hold, inPlaceOf).toString() } : {}
  if (inPlaceOf) {
    await tx.query(
      `update utxos set contested = true, spendable = false where workspace_id = $2 and network = $3 and origin = 'change'
      and txid = any($1)`,
      [inPlaceOf.attempts.map(({ hash }) => hash), row.workspace_id, row.network],
    )
  }
  await advance(tx, row, {
    ...(inPlaceOf ? {} : { state: 'SIGNING' }),
    ...(built.fee === undefined ? {} : { fee: built.fee }),
    ...(built.amount === undefined ? {} : { amount: built.amount }),
    plan: { ...built.plan, ...noted },
    last_error: null,
    run_in_ms: 0,
  })
}

/**
 * Assigns a coin that is free or was assigned to an expired attempt of the same transfer. A
 * replacement leaves the coins of the pending attempts assigned to them.
 */
async function takeCoin(
  tx: Queryable,
  row: TransactionRow,
  id: string,
  {
    txid,
    vout,
  }: {
    txid: string
    vout: number
  },
  dead: readonly string[],
  inPlaceOf: InPlaceOf | undefined,
): Promise<void> {
  const taken = await tx.query(
    `update utxos set spent_by = $4
     where workspace_id = $6 and network = $1 and txid = $2 and vout = $3 and (spent_by is null or spent_by = any($5)) returning 1`,
    [row.network, txid, vout, id, dead, row.workspace_id],
  )
  if (taken.length === 1) return
  const own =
    inPlaceOf &&
    (await tx.one(
      'select 1 from utxos where workspace_id = $5 and network = $1 and txid = $2 and vout = $3 and spent_by = any($4)',
      [row.network, txid, vout, inPlaceOf.attempts.map((attempt) => attempt.id), row.workspace_id],
    ))
  if (!own) throw new Error('another transfer has spent one of the coins')
}
