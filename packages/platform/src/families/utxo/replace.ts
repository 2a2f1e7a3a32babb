import { CHANGE_INDEX, ChainError, decode, formatAmount, pathOf, utxo as utxoBuild, type Network, type UnsignedTransaction } from '@custody/chains'
import { changeOf } from '../../addresses/derive.ts'
import { checkedFeeRate } from '../../fees/check-fee-rate.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Queryable } from '../../database/pool.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { spendableCoins } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Replacement } from '../../engine/replacements.ts'
import { changeSpender, leastRateOf, type Attempt } from '../../engine/attempts.ts'
import { previousTransaction } from './build.ts'
import { giveUp } from '../../engine/give-up.ts'

/** BIP125: all inputs of what waits, at a higher fee; a cancellation returns them to the wallet's change address. */
export async function replaceUtxo(services: Services, row: TransactionRow, network: Network, replacement: Replacement, attempts: readonly Attempt[]): Promise<void> {
  const rate = await rateOfReplacement(services, row, network, replacement, attempts)
  if (typeof rate === 'string') return giveUp(services, row, replacement, rate)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const sub = (await services.database.one<{ path_index: number }>('select path_index from sub_accounts where id = $1', [row.sub_account_id]))?.path_index as number
  const changeAddress = await changeOf(services, network, { workspaceId: row.workspace_id, subAccountId: row.sub_account_id, subAccountIndex: sub })
  const amount = BigInt(row.amount)
  const select = async (database: Queryable): Promise<utxoBuild.Selection> => {
    const required = await coinsOf(database, network, sub, attempts)
    if (replacement.kind === 'CANCEL') return utxoBuild.selectReturn(network, { utxos: required, changeAddress, feeRate: rate, above: attempts.reduce((most, { fee_max: fee }) => (BigInt(fee) > most ? BigInt(fee) : most), 0n) })
    return utxoBuild.selectCoins(network, { utxos: await spendableCoins(database, row.wallet_id as string, network, sub), to: row.destination_id as string, amount, changeAddress, feeRate: rate, required })
  }
  let preview: utxoBuild.Selection
  try {
    preview = await select(services.database)
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    return giveUp(services, row, replacement, `the wallet's coins do not cover the higher fee: ${error.message}`)
  }
  const client = services.networks.utxo(network.code)
  const previous = new Map<string, string>()
  for (const coin of preview.utxos) if (!previous.has(coin.txid)) previous.set(coin.txid, await previousTransaction(services, client, coin.txid))
  const reason = await services.database.transaction(async (tx): Promise<string | null> => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`wallet ${row.wallet_id}`])
    const spender = await changeSpender(tx, attempts)
    if (spender) return `transfer ${spender} spends its change already`
    const selection = await select(tx).catch((error: unknown) => {
      if (error instanceof ChainError) return null
      throw error
    })
    if (!selection) return "the wallet's coins do not cover the higher fee"
    if (selection.utxos.some((coin) => !previous.has(coin.txid))) {
      await advance(tx, row, { run_in_ms: 50 })
      return null
    }
    const show = (value: bigint) => `${formatAmount(value, services.registry.asset(row.asset)?.decimals ?? 0)} ${row.fee_asset}`
    const cap = BigInt(network.fee_cap)
    if (selection.fee > cap) return `a network fee of ${show(selection.fee)} exceeds the cap of ${show(cap)}`
    const reserved = BigInt(row.plan['fee_reserve'] ?? '0')
    // A cancellation pays out of what it brings back: a wallet that was emptied can be cancelled for all the same.
    const difference = replacement.kind !== 'CANCEL' && selection.fee > reserved ? selection.fee - reserved : 0n
    const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
    if (difference > 0n && (await lockedBalance(tx, { ...account, kind: 'available' })) < difference) {
      return `the higher fee of ${show(selection.fee)} is more than the wallet holds beside the amount`
    }
    const id = services.environment.uuid()
    await post(tx, 'reserve-adjust', id, [{ ...account, kind: 'available', amount: -difference }, { ...account, kind: 'reserved', amount: difference }])
    const parts = { selection, changeAddress, changePath: pathOf(network, sub, CHANGE_INDEX), previous }
    const unsigned: UnsignedTransaction = replacement.kind === 'CANCEL'
      ? utxoBuild.buildReturn(network, parts)
      : utxoBuild.buildTransfer(network, { ...parts, to: row.destination_id as string, amount })
    const decoded = decode(services.registry, unsigned, key.at)
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, unsigned, fee_max, attempt, replaces, replacement_id)
       values ($1, $2, $3, 'BUILT', $4, $5, (select max(attempt) + 1 from chain_transactions where transaction_id = $2), $6, $7)`,
      [id, row.id, network.code, JSON.stringify(unsigned), decoded.fee_max.toString(), attempts.at(-1)?.id, replacement.id])
    for (const coin of selection.utxos) {
      await tx.query('update utxos set spent_by = $4 where network = $1 and txid = $2 and vout = $3 and spent_by is null', [network.code, coin.txid, coin.vout, id])
    }
    await tx.query(`update utxos set contested = true, spendable = false where origin = 'change' and txid = any($1)`, [attempts.map(({ hash }) => hash)])
    await advance(tx, row, { fee: selection.fee, plan: { fee_reserve: (reserved + difference).toString() }, last_error: null, run_in_ms: 0 })
    return null
  })
  if (reason !== null) return giveUp(services, row, replacement, reason)
  services.environment.checkpoint('transaction.replacement-built')
}

async function rateOfReplacement(services: Services, row: TransactionRow, network: Network, replacement: Replacement, attempts: readonly Attempt[]): Promise<bigint | string> {
  const least = await leastRateOf(services, row, network, attempts)
  if (replacement.fee_rate !== null) {
    const rate = checkedFeeRate(replacement.fee_rate, network, services.registry)
    return rate < least ? 'its fee_rate is no longer high enough to take the place of what waits' : rate
  }
  const market = (await services.networks.utxoFeeRates(network.code))[(replacement.fee_level as 'low' | 'medium' | 'high' | null) ?? (replacement.kind === 'AUTO' ? 'medium' : 'high')]
  const rate = market > least ? market : least
  if (replacement.kind === 'AUTO' && row.fee_rate !== null) {
    const most = checkedFeeRate(row.fee_rate, network, services.registry)
    if (most < least) return 'the fee_rate of the transfer allows no higher fee'
    return rate < most ? rate : most
  }
  return rate
}

/** All coins that any of the attempts spends, each once. */
async function coinsOf(database: Queryable, network: Network, subAccountIndex: number, attempts: readonly Attempt[]): Promise<utxoBuild.Utxo[]> {
  const rows = await database.query<{ txid: string; vout: number; value: string; path_index: number; address: string }>(
    'select txid, vout, value::text, path_index, address from utxos where network = $1 and spent_by = any($2) order by txid, vout', [network.code, attempts.map(({ id }) => id)])
  return rows.map((coin) => ({ txid: coin.txid, vout: coin.vout, value: BigInt(coin.value), path: pathOf(network, subAccountIndex, coin.path_index), address: coin.address }))
}
