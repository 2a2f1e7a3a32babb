import { CHANGE_INDEX, ChainError, decode, formatAmount, pathOf, utxo as utxoBuild, type Network } from '@custody/chains'
import { changeOf } from '../../addresses/derive.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { spendableCoins, utxoRate, type FeeLevel } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { startFailing } from '../../engine/fail.ts'

/** Coins bound by transfers that are being signed come back as change; how long a transfer waits for them. */
const WAIT_FOR_CHANGE_MS = 1000

/** Selects coins under the wallet's lock, adjusts the reservation to the real fee, and commits the unsigned bytes. */
export async function buildUtxo(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const client = services.networks.utxo(network.code)
  const rate = await utxoRate(services, network, row.fee_rate, row.fee_level as FeeLevel | null)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const subAccount = await services.database.one<{ path_index: number }>('select path_index from sub_accounts where id = $1', [row.sub_account_id])
  const owner = { workspaceId: row.workspace_id, subAccountId: row.sub_account_id, subAccountIndex: subAccount?.path_index as number }
  const changeAddress = await changeOf(services, network, owner)
  const amount = BigInt(row.amount)
  // Previous transactions are fetched before any lock is held: the chain may be slow.
  const candidates = await spendableCoins(services.database, row.wallet_id as string, network, owner.subAccountIndex)
  const selectFrom = (coins: utxoBuild.Utxo[]) => utxoBuild.selectCoins(network, { utxos: coins, to: row.destination_id as string, amount, changeAddress, feeRate: rate })
  const preview = (() => {
    try {
      return selectFrom(candidates)
    } catch (error) {
      if (error instanceof ChainError && error.code === 'INSUFFICIENT') return null
      throw error
    }
  })()
  const previous = new Map<string, string>()
  for (const coin of preview?.utxos ?? []) if (!previous.has(coin.txid)) previous.set(coin.txid, await previousTransaction(services, client, coin.txid))
  await services.database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`wallet ${row.wallet_id}`])
    // Asked before the coins are read: a transfer that is signed in between shows its change then.
    const bound = await tx.one<{ bound: boolean }>(
      `select exists (select 1 from utxos u join chain_transactions c on c.id = u.spent_by where u.wallet_id = $1 and c.state = 'BUILT') bound`, [row.wallet_id])
    const coins = await spendableCoins(tx, row.wallet_id as string, network, owner.subAccountIndex)
    let selection: utxoBuild.Selection
    try {
      selection = selectFrom(coins)
    } catch (error) {
      if (!(error instanceof ChainError) || error.code !== 'INSUFFICIENT') throw error
      if (bound?.bound) return advance(tx, row, { last_error: 'waits for change of an earlier transfer', run_in_ms: WAIT_FOR_CHANGE_MS })
      return startFailing(services, tx, row, `the wallet's coins do not cover the amount and a network fee at this rate: ${error.message}`)
    }
    // Other coins than foreseen: their previous transactions are fetched in the next round.
    if (selection.utxos.some((coin) => !previous.has(coin.txid))) return advance(tx, row, { run_in_ms: 50 })
    const show = (value: bigint) => `${formatAmount(value, services.registry.asset(row.asset)?.decimals ?? 0)} ${row.fee_asset}`
    const cap = BigInt(network.fee_cap)
    if (selection.fee > cap) {
      return startFailing(services, tx, row, `a network fee of ${show(selection.fee)} exceeds the cap of ${show(cap)}`)
    }
    const difference = selection.fee - BigInt(row.plan['fee_reserve'] ?? '0')
    const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
    if (difference > 0n && (await lockedBalance(tx, { ...account, kind: 'available' })) < difference) {
      return startFailing(services, tx, row, `the network fee rose: ${show(selection.fee)} is needed and the wallet does not hold it beside the amount`)
    }
    const id = services.environment.uuid()
    await post(tx, 'reserve-adjust', id, [{ ...account, kind: 'available', amount: -difference }, { ...account, kind: 'reserved', amount: difference }])
    const unsigned = utxoBuild.buildTransfer(network, { selection, to: row.destination_id as string, amount, changeAddress, changePath: pathOf(network, owner.subAccountIndex, CHANGE_INDEX), previous })
    const decoded = decode(services.registry, unsigned, key.at)
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, unsigned, fee_max) values ($1, $2, $3, 'BUILT', $4, $5)`,
      [id, row.id, network.code, JSON.stringify(unsigned), decoded.fee_max.toString()])
    for (const coin of selection.utxos) {
      const taken = await tx.query('update utxos set spent_by = $4 where network = $1 and txid = $2 and vout = $3 and spent_by is null returning 1', [network.code, coin.txid, coin.vout, id])
      if (taken.length !== 1) throw new Error('a coin was taken by another transfer')
    }
    await advance(tx, row, { state: 'SIGNING', fee: selection.fee, plan: { fee_reserve: selection.fee.toString() }, last_error: null, run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.built')
}

/** Our own signed transactions are known before the chain shows them. */
export async function previousTransaction(services: Services, client: { rawTransaction(txid: string): Promise<string> }, txid: string): Promise<string> {
  const own = await services.database.one<{ signed: string | null }>('select signed from chain_transactions where hash = $1', [txid])
  return own?.signed ?? client.rawTransaction(txid)
}
