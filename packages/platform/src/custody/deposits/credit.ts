import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit, lockedBalance, post, type Posting } from '../../core/ledger/post.ts'
import { repayWrittenOff } from '../../core/ledger/written-off.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { queueSweep } from './sweeps.ts'

interface Services {
  environment: Environment
  registry: Registry
  log: Logger
  forwards: Forwards
  invoices: Invoices
}

/**
 * Returns the ledger reference of a deposit. Its generation grows with every reorganisation that
 * reverts the deposit, so that each crediting is a separate entry.
 */
export function depositReference(row: TransactionRow): string {
  return `${row.id}:${row.plan.generation ?? '0'}`
}

/** Returns the ledger account that a deposit is credited to. */
async function accountOf(tx: Queryable, row: TransactionRow): Promise<Omit<Posting, 'amount'>> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  if (row.kind === 'TANK_DEPOSIT') return { ...scope, kind: 'tank' }
  if (row.wallet_id === null) return { ...scope, kind: 'suspense', address: row.destination_id }
  const address = await tx.one<{ kind: string }>(
    'select kind from chain_addresses where workspace_id = $3 and network = $1 and address = $2',
    [row.network, row.destination_id, row.workspace_id],
  )
  const utxo = await tx.one(
    'select 1 from utxos where workspace_id = $3 and network = $1 and address = $2 limit 1',
    [row.network, row.destination_id, row.workspace_id],
  )
  if (address?.kind === 'deposit' && !utxo)
    return { ...scope, wallet: row.wallet_id, kind: 'unswept', address: row.destination_id }
  return { ...scope, wallet: row.wallet_id, kind: 'available' }
}

/** Returns the ledger account of a deposit that was held by screening; null if it was not held. */
function frozenAccount(row: TransactionRow): Omit<Posting, 'amount'> | null {
  const wallet = row.plan.frozen_wallet
  return wallet === undefined
    ? null
    : {
        workspace: row.workspace_id,
        wallet: wallet === '' ? null : wallet,
        asset: row.asset,
        kind: 'frozen',
        address: row.destination_id,
      }
}

/**
 * Whether a deposit at its depth has no wallet yet: it is booked in suspense and stays pending
 * until it is assigned to a wallet.
 */
export const isSuspended = (row: Pick<TransactionRow, 'state'>): boolean => row.state === 'SUSPENSE'

/**
 * Credits a deposit that has reached its depth and passed screening; without a wallet it goes to
 * suspense.
 */
export async function credit(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  confirmations: number,
): Promise<void> {
  await services.forwards.credited(tx, row, new Date(services.environment.now()))
  const account = await accountOf(tx, row)
  await post(tx, 'deposit', depositReference(row), [
    {
      ...(frozenAccount(row) ?? {
        workspace: row.workspace_id,
        asset: row.asset,
        kind: 'chain' as const,
      }),
      amount: -BigInt(row.amount),
    },
    { ...account, amount: BigInt(row.amount) },
  ])
  const { workspace_id, wallet_id, asset } = row
  if (row.plan.generation !== undefined && wallet_id !== null)
    await repayWrittenOff(
      tx,
      { workspace_id, wallet_id, asset },
      BigInt(row.amount),
      depositReference(row),
    )
  const suspended = row.wallet_id === null && row.kind === 'DEPOSIT'
  const end = suspended
    ? { state: 'SUSPENSE' as const, status: 'pending' as const, confirmed_at: null }
    : {
        state: 'CREDITED' as const,
        status: 'confirmed' as const,
        confirmed_at: new Date(services.environment.now()),
      }
  await tx.query(
    `update transactions set state = $2, status = $5, confirmed_at = $3, confirmations = $4,
     plan = plan - 'frozen_wallet' - 'screening_since' - 'screening_alerted' - 'unknown_sender',
     last_error = null, failure_reason = null,
     next_run_at = null, lease_until = null, lease_token = null,
       updated_at = greatest($6::timestamptz, $3)
     where workspace_id = $7 and id = $1`,
    [row.id, end.state, end.confirmed_at, confirmations, end.status, tx.now(), row.workspace_id],
  )
  await tx.query(
    `update utxos u set spendable = true from deposits d
     where d.workspace_id = $2 and d.transaction_id = $1 and u.workspace_id = $2
       and u.network = d.network and u.txid = d.txid and u.vout = d.position
       and u.address = d.address and u.value = d.amount`,
    [row.id, row.workspace_id],
  )
  if (account.kind === 'unswept')
    await queueSweep(services, tx, { ...row, source_id: row.destination_id })
  if (row.kind === 'DEPOSIT') {
    await emit(
      tx,
      row.workspace_id,
      row.sub_account_id,
      suspended ? 'deposit.suspended' : 'deposit.confirmed',
      stringifyJson(presentTransaction({ ...row, ...end, confirmations }, services.registry)),
    )
    await services.invoices.moved(tx, row)
  }
}

const BLOCK_GONE = 'the block that contained it is no longer part of the chain'

/**
 * Reverses the ledger entry of a credited or suspended deposit. An amount that was already swept
 * from the deposit address is taken from the wallet.
 */
async function reverseCredit(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
): Promise<void> {
  await services.forwards.takenBack(tx, row)
  const account = await accountOf(tx, row)
  const amount = BigInt(row.amount)
  const postings: Posting[] = [
    { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount },
  ]
  if (account.kind === 'unswept') {
    const balance = await lockedBalance(tx, account)
    const unswept = balance < amount ? (balance > 0n ? balance : 0n) : amount
    postings.push(
      { ...account, amount: -unswept },
      {
        workspace: row.workspace_id,
        wallet: row.wallet_id,
        asset: row.asset,
        kind: 'available',
        amount: unswept - amount,
      },
    )
  } else postings.push({ ...account, amount: -amount })
  await post(tx, 'deposit-reverted', depositReference(row), postings, { overdraw: true })
  await tx.query('select ledger_reverse($1, $2, $3)', [
    row.workspace_id,
    ['written-off-repaid'],
    [depositReference(row)],
  ])
  services.log.warn({ transaction: row.id }, 'a credited deposit was reversed by a reorganisation')
}

/** Reverses the ledger entry of a frozen deposit and deletes its current freezes. */
async function reverseFreeze(
  tx: Queryable,
  row: TransactionRow,
  frozen: Omit<Posting, 'amount'>,
): Promise<void> {
  const amount = BigInt(row.amount)
  await post(tx, 'deposit-frozen-reverted', depositReference(row), [
    { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount },
    { ...frozen, amount: -amount },
  ])
  // If the deposit returns, screening finds a current freeze again; a released freeze stays
  // released.
  await tx.query(
    'delete from aml_holds where workspace_id = $2 and transaction_id = $1 and released_at is null',
    [row.id, row.workspace_id],
  )
}

/**
 * Reverts a deposit that its chain no longer holds. If a credited deposit was already spent, the
 * account falls below zero, because the loss is real.
 * @param reason failure reason shown for the deposit
 */
export async function revert(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  reason = BLOCK_GONE,
): Promise<void> {
  const booked = row.status === 'confirmed' || isSuspended(row)
  if (booked) await reverseCredit(services, tx, row)
  const frozen = booked ? null : frozenAccount(row)
  if (frozen) await reverseFreeze(tx, row, frozen)
  await tx.query(
    `update transactions set state = 'REORGED', status = 'failed',
       failure_reason = $4, confirmed_at = null, confirmations = 0,
       next_run_at = null, lease_until = null, lease_token = null,
       plan = (plan - 'frozen_wallet' - 'unknown_sender' - 'senders_released')
         || jsonb_build_object('generation', (coalesce((plan->>'generation')::int, 0) + 1)::text),
       updated_at = $2
     where workspace_id = $3 and id = $1`,
    [row.id, tx.now(), row.workspace_id, reason],
  )
  await tx.query(
    `update deposits set block_height = null, block_hash = null, refuted_at = null where workspace_id = $2
      and transaction_id = $1`,
    [row.id, row.workspace_id],
  )
  if (row.kind === 'DEPOSIT') {
    await emit(
      tx,
      row.workspace_id,
      row.sub_account_id,
      'deposit.reverted',
      stringifyJson(
        presentTransaction(
          { ...row, state: 'REORGED', status: 'failed', confirmed_at: null },
          services.registry,
        ),
      ),
    )
    await services.invoices.moved(tx, row)
  }
}
