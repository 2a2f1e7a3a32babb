import { decode, formatAmount, OMNIBUS_INDEX, pathOf, stellar, xrp, type Asset, type Network, type UnsignedTransaction } from '@custody/chains'
import { refusalOf } from '../../engine/destination.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Queryable } from '../../database/pool.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { taggedFee, type FeeLevel } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { startFailing } from '../../engine/fail.ts'
import { isGapClosing, lowestFree } from '../../engine/nonce-order.ts'

/** An account that its first deposit has just created may not be seen by every endpoint yet. */
const ACCOUNT_ATTEMPTS_MAX = 20
const ACCOUNT_RETRY_MS = 1000

/**
 * XRP and Stellar: takes the lowest free sequence under the account's lock and commits the unsigned bytes with it.
 * A transfer that expired keeps its sequence, so that the transactions before it stay excluded.
 */
export async function buildTagged(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const client = services.networks.tagged(network.code)
  const account = row.source_id as string
  const to = row.destination_id as string
  const amount = BigInt(row.amount)
  const fail = (reason: string) => services.database.transaction((tx) => startFailing(services, tx, row, reason))
  const refusal = await refusalOf(services, network, { to, tag: row.address_tag, amount, asset: services.registry.asset(row.asset) as Asset })
  if (refusal) return fail(`${refusal.field}: ${refusal.reason}`)
  const fee = await taggedFee(services, network, row.fee_rate, row.fee_level as FeeLevel | null)
  if (fee > BigInt(network.fee_cap)) return fail(`a network fee of ${fee} ${network.fee_rate_unit} exceeds the cap of ${network.fee_cap}`)
  const state = await client.account(account)
  if (!state) {
    if (row.attempts < ACCOUNT_ATTEMPTS_MAX) return advance(services.database, row, { last_error: 'the chain does not show the account yet', run_in_ms: ACCOUNT_RETRY_MS })
    return fail('the account does not exist on the chain')
  }
  const create = await client.account(to) === null
  const key = await services.keys.get(row.workspace_id, network.curve)
  const sub = await services.database.one<{ path_index: number }>('select path_index from sub_accounts where id = $1', [row.sub_account_id])
  const path = pathOf(network, sub?.path_index as number, OMNIBUS_INDEX)
  // Last: the transaction's life begins with it.
  const validUntil = await client.validUntil()
  await services.database.transaction(async (tx) => {
    if (create && await isBeingCreated(tx, row, network, to)) return advance(tx, row, { last_error: 'waits for the transfer that creates the destination account', run_in_ms: ACCOUNT_RETRY_MS })
    await tx.query('insert into signing_accounts (network, address) values ($1, $2) on conflict do nothing', [network.code, account])
    await tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [network.code, account])
    const earlier = await tx.one<{ attempt: number; nonce: string; hash: string | null }>('select attempt, nonce::text, hash from chain_transactions where transaction_id = $1 order by attempt desc limit 1', [row.id])
    const free = await lowestFree(tx, network.code, account, state.sequence)
    const sequence = earlier?.hash ? BigInt(earlier.nonce) : free
    if (earlier?.hash) {
      // Another transaction would no longer exclude the one that was signed, dead as it is.
      if (sequence < state.sequence) return startFailing(services, tx, row, 'it expired, and its sequence was used by another transaction')
      if (free < sequence && await isGapClosing(tx, network.code, account)) return advance(tx, row, { last_error: 'waits for a later transfer to take the place of one that was given up', run_in_ms: ACCOUNT_RETRY_MS })
      if (free < sequence) return startFailing(services, tx, row, 'it expired behind a transfer that was given up')
    }
    const ledger = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
    const difference = fee - BigInt(row.plan['fee_reserve'] ?? '0')
    if (difference > 0n && (await lockedBalance(tx, { ...ledger, kind: 'available' })) - state.reserve < difference) {
      return startFailing(services, tx, row, `the network fee rose: ${formatAmount(fee, services.registry.asset(row.asset)?.decimals ?? 0)} ${row.fee_asset} is needed and the wallet does not hold it beside the amount`)
    }
    const id = services.environment.uuid()
    await post(tx, 'reserve-adjust', id, [{ ...ledger, kind: 'available', amount: -difference }, { ...ledger, kind: 'reserved', amount: difference }])
    const unsigned: UnsignedTransaction = network.family === 'xrp'
      ? xrp.buildPayment(network, { to, tag: row.address_tag, amount, fee, sequence, validUntil, publicKey: key.at(path), path })
      : stellar.buildPayment(network, { to, tag: row.address_tag, amount, fee, sequence, validUntil, create, publicKey: key.at(path), path })
    const decoded = decode(services.registry, unsigned, key.at)
    if (decoded.from[0] !== account) throw new Error('the derived address is not the source address')
    await tx.query(`update chain_transactions set state = 'VOID' where transaction_id = $1 and state = 'EXPIRED'`, [row.id])
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned, fee_max, attempt, valid_until) values ($1, $2, $3, 'BUILT', $4, $5, $6, $7, $8, $9)`,
      [id, row.id, network.code, account, sequence.toString(), JSON.stringify(unsigned), decoded.fee_max.toString(), (earlier?.attempt ?? 0) + 1, validUntil])
    await tx.query('update signing_accounts set next_nonce = greatest(next_nonce, $3) where network = $1 and address = $2', [network.code, account, (sequence + 1n).toString()])
    await advance(tx, row, { state: 'SIGNING', fee, plan: { fee_reserve: fee.toString() }, last_error: null, run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.built')
}

/** True while another transfer of ours is about to create the account: on Stellar two creations exclude each other, and the second would only cost its fee. */
async function isBeingCreated(tx: Queryable, row: TransactionRow, network: Network, to: string): Promise<boolean> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`create ${network.code} ${to}`])
  const other = await tx.one(
    `select 1 from transactions where network = $1 and destination_id = $2 and id <> $3 and kind = 'WITHDRAWAL' and status = 'pending' and state in ('SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING') limit 1`,
    [network.code, to, row.id])
  return other !== undefined
}
