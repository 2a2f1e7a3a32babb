import { cardano, CHANGE_INDEX, ChainError, decode, formatAmount, pathOf, type CardanoClient, type Network } from '@custody/chains'
import { changeOf } from '../../addresses/derive.ts'
import type { Queryable } from '../../database/pool.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { cardanoCoins, coinsOfDead } from './coins.ts'
import { feeRateInteger } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { startFailing } from '../../engine/fail.ts'

/** Change of other transfers comes with their block; how soon it is looked for. */
const WAIT_FOR_CHANGE_MS = 1000

/**
 * Selects coins under the wallet's lock, adjusts the reservation to the real fee, and commits the unsigned bytes. A
 * transfer that expired spends all its coins again, so that every transaction of it excludes all others.
 */
export async function buildCardano(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const client = services.networks.cardano(network.code)
  const parameters = await client.parameters()
  const rate = row.fee_rate === null ? parameters.feePerByte : feeRateInteger(network, row.fee_rate)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const subAccount = await services.database.one<{ path_index: number }>('select path_index from sub_accounts where id = $1', [row.sub_account_id])
  const index = subAccount?.path_index as number
  const changeAddress = await changeOf(services, network, { workspaceId: row.workspace_id, subAccountId: row.sub_account_id, subAccountIndex: index })
  const to = row.destination_id as string
  const amount = BigInt(row.amount)
  const choose = async (database: Queryable, ttl: bigint): Promise<cardano.Selection> => {
    const { coins: required, gone } = await coinsOfDead(database, row.id, network, index)
    if (gone && required.length === 0) throw new ChainError('COINS_GONE', 'it expired, and its coins are no longer on the chain')
    return cardano.selectCoins(network, { coins: await cardanoCoins(database, row.wallet_id as string, network, index), required, to, amount, changeAddress, rate, ttl, parameters })
  }
  // Previous transactions are fetched before any lock is held: the chain may be slow.
  const previous = new Map<string, string>()
  const preview = await choose(services.database, cardano.NOMINAL_END).catch((error: unknown) => {
    if (error instanceof ChainError) return null
    throw error
  })
  for (const { txid } of preview?.coins ?? []) if (!previous.has(txid)) previous.set(txid, await previousBody(services, client, txid))
  // Last: the transaction's life begins with it.
  const validUntil = await client.validUntil()
  await services.database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`wallet ${row.wallet_id}`])
    // Asked before the coins are read: a transfer that comes into a block in between shows its change then.
    const bound = await tx.one<{ bound: boolean }>(
      `select exists (select 1 from utxos u join chain_transactions c on c.id = u.spent_by where u.wallet_id = $1 and c.state = 'BUILT' and c.transaction_id <> $2)
         or exists (select 1 from utxos where wallet_id = $1 and origin = 'change' and spendable and block_height is null and spent_by is null) bound`, [row.wallet_id, row.id])
    let selection: cardano.Selection
    try {
      selection = await choose(tx, BigInt(validUntil))
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      if (error.code === 'INSUFFICIENT' && bound?.bound) return advance(tx, row, { last_error: 'waits for change of an earlier transfer', run_in_ms: WAIT_FOR_CHANGE_MS })
      return startFailing(services, tx, row, error.code === 'INSUFFICIENT' ? `the wallet's coins do not cover the amount and a network fee at this rate: ${error.message}` : error.message)
    }
    // Other coins than foreseen: their previous transactions are fetched in the next round.
    if (selection.coins.some(({ txid }) => !previous.has(txid))) return advance(tx, row, { run_in_ms: 50 })
    const decimals = services.registry.asset(row.asset)?.decimals ?? 0
    if (selection.fee > BigInt(network.fee_cap)) return startFailing(services, tx, row, `a network fee of ${formatAmount(selection.fee, decimals)} ${row.fee_asset} exceeds the cap of ${formatAmount(BigInt(network.fee_cap), decimals)}`)
    const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
    const difference = selection.fee - BigInt(row.plan['fee_reserve'] ?? '0')
    if (difference > 0n && (await lockedBalance(tx, { ...account, kind: 'available' })) < difference) {
      return startFailing(services, tx, row, `the network fee rose: ${formatAmount(selection.fee, decimals)} ${row.fee_asset} is needed and the wallet does not hold it beside the amount`)
    }
    const id = services.environment.uuid()
    await post(tx, 'reserve-adjust', id, [{ ...account, kind: 'available', amount: -difference }, { ...account, kind: 'reserved', amount: difference }])
    const unsigned = cardano.buildTransfer(network, { selection, to, amount, changeAddress, changePath: pathOf(network, index, CHANGE_INDEX), ttl: BigInt(validUntil), previous })
    const decoded = decode(services.registry, unsigned, key.at)
    const last = await tx.one<{ attempt: number }>('select max(attempt) attempt from chain_transactions where transaction_id = $1', [row.id])
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, unsigned, fee_max, attempt, valid_until) values ($1, $2, $3, 'BUILT', $4, $5, $6, $7)`,
      [id, row.id, network.code, JSON.stringify(unsigned), decoded.fee_max.toString(), (last?.attempt ?? 0) + 1, validUntil])
    for (const { txid, vout } of selection.coins) {
      const taken = await tx.query(
        `update utxos set spent_by = $4 where network = $1 and txid = $2 and vout = $3
           and (spent_by is null or spent_by in (select id from chain_transactions where transaction_id = $5 and state = 'EXPIRED')) returning 1`, [network.code, txid, vout, id, row.id])
      if (taken.length !== 1) throw new Error('a coin was taken by another transfer')
    }
    await tx.query(`update chain_transactions set state = 'VOID' where transaction_id = $1 and state = 'EXPIRED'`, [row.id])
    await advance(tx, row, { state: 'SIGNING', fee: selection.fee, plan: { fee_reserve: selection.fee.toString() }, last_error: null, run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.built')
}

/** Our own signed transactions are known without asking. */
async function previousBody(services: Services, client: CardanoClient, txid: string): Promise<string> {
  const own = await services.database.one<{ signed: string | null }>('select signed from chain_transactions where hash = $1', [txid])
  return own?.signed ? cardano.bodyOf(own.signed) : client.transactionBody(txid)
}
