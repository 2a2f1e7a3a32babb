import type { Network } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { credit, depositReference } from '../deposits/credit.ts'
import { emit, post } from '../ledger/post.ts'
import type { Services } from '../services.ts'
import { presentTransaction, type TransactionRow } from '../transactions/present.ts'
import { advance, LeaseLost } from '../work/lease.ts'
import { addressKey, spaceOf } from './address-key.ts'
import { confirmHits, hold, isHeld, lockFreezing, type Hit } from './frozen.ts'
import { screen, ScreeningWaits, type Counterparty } from './screen.ts'
import { isOn, readPolicy } from './policy.ts'
import { NO_WAIT, waitForProvider } from './waiting.ts'

const HELD_POLL_MS = 10 * 60_000

/** CONFIRMING → SCREENING, when a deposit has reached its depth. What fills a gas tank is credited at once. */
export async function depthReached(services: Services, tx: Queryable, row: TransactionRow, confirmations: number): Promise<void> {
  if (row.kind !== 'DEPOSIT' || row.sub_account_id === null) return credit(services, tx, row, confirmations)
  await tx.query(`update transactions set state = 'SCREENING', confirmations = $2, attempts = 0, next_run_at = now(), updated_at = now() where id = $1`, [row.id, confirmations])
}

interface Sender { senders: string[] | null; sender: string | null; coinbase: boolean; txid: string }

/** All addresses a deposit was paid from, but for the sub-account's own. Asked for once. */
async function sendersOf(services: Services, row: TransactionRow, network: Network, direction: { on: boolean }): Promise<Counterparty[]> {
  const deposit = await services.database.one<Sender>('select senders, sender, coinbase, txid from deposits where transaction_id = $1', [row.id])
  if (!deposit || deposit.coinbase) return []
  let senders = deposit.senders
  if (senders === null) {
    // Where a transaction spends from many addresses, its chain is asked for all of them.
    const client = services.networks.client(network.code) as { senders?: (txid: string) => Promise<string[]> }
    senders = client.senders ? await client.senders(deposit.txid) : deposit.sender === null ? [] : [deposit.sender]
    await services.database.query('update deposits set senders = $2 where transaction_id = $1', [row.id, JSON.stringify(senders)])
  }
  // Nobody can be asked about nobody; whoever wants deposits screened does not want this one passed.
  if (senders.length === 0 && direction.on) throw new ScreeningWaits('chain', 'the deposit names no sender')
  const own = await services.database.query<{ address: string }>(
    'select address from chain_addresses where network = $1 and address = any($2) and workspace_id = $3 and (sub_account_id = $4 or sub_account_id is null)', [network.code, senders, row.workspace_id, row.sub_account_id])
  const ours = new Set(own.map(({ address }) => address))
  return senders.filter((address) => !ours.has(address)).map((address) => ({ address, tag: null }))
}

/** SCREENING → CREDITED or FROZEN. Without a clear answer it stays, uncredited. */
export async function screenDeposit(services: Services, row: TransactionRow): Promise<void> {
  const network = services.networks.get(row.network).network
  const subAccountId = row.sub_account_id as string
  let frozen: boolean | null
  try {
    const parties = await sendersOf(services, row, network, { on: isOn(await readPolicy(services.database, subAccountId), 'deposit') })
    const hits = await screen(services, row, network, 'deposit', parties)
    frozen = await services.database.transaction(async (tx) => {
      await lockFreezing(tx, subAccountId)
      const fresh = await tx.one<TransactionRow>('select * from transactions where id = $1 and lease_token = $2 for update', [row.id, row.lease_token])
      if (!fresh) throw new LeaseLost(row.id)
      const all = await confirmHits(tx, { subAccountId, transactionId: row.id, space: spaceOf(network), keys: parties.map(({ address }) => addressKey(network, address)) }, hits)
      if (all === null) {
        await advance(tx, row, { run_in_ms: 0 })
        return null
      }
      if (all.length === 0) {
        await credit(services, tx, fresh, fresh.confirmations)
        return false
      }
      await freeze(services, tx, fresh, all, spaceOf(network))
      return true
    })
  } catch (error) {
    if (error instanceof ScreeningWaits) return waitForProvider(services, row, error)
    throw error
  }
  if (frozen !== null) services.environment.checkpoint(frozen ? 'deposit.frozen' : 'deposit.credited')
}

/** The coins are ours on the chain, and in the books nobody's to spend. */
async function freeze(services: Services, tx: Queryable, row: TransactionRow, hits: readonly Hit[], space: string): Promise<void> {
  await hold(services, tx, row, space, hits)
  if (row.plan['frozen_wallet'] === undefined) {
    await post(tx, 'deposit-frozen', depositReference(row), [
      { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount: -BigInt(row.amount) },
      { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset, kind: 'frozen', address: row.destination_id, amount: BigInt(row.amount) },
    ])
  }
  await emit(tx, row.workspace_id, row.sub_account_id, 'deposit.frozen', stringifyJson(presentTransaction({ ...row, state: 'FROZEN' }, services.registry)))
  // The wallet is written down: it may be given to the deposit later, and the books are to be undone as they were made.
  await advance(tx, row, { state: 'FROZEN', last_error: null, plan: { ...NO_WAIT, frozen_wallet: row.plan['frozen_wallet'] ?? row.wallet_id ?? '' }, run_in_ms: HELD_POLL_MS })
}

/** FROZEN → SCREENING, once nothing holds it any more; its other senders may not have been asked for yet. */
export async function awaitDepositUnfreezing(services: Services, row: TransactionRow): Promise<void> {
  await services.database.transaction(async (tx) => {
    await lockFreezing(tx, row.sub_account_id as string)
    await advance(tx, row, await isHeld(tx, row.id) ? { run_in_ms: HELD_POLL_MS } : { state: 'SCREENING', run_in_ms: 0 })
  })
}
