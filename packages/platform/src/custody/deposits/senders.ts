import type { Network, Senders } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { occurrences, tagOf } from './identity.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { ScreeningWaits, type Counterparty } from '../aml/screen.ts'

interface Services {
  database: Database
  networks: Networks
}

interface Deposit {
  senders: string[] | null
  senders_complete: boolean | null
  coinbase: boolean
  txid: string
  block_height: string | null
  block_hash: string | null
  occurrence: number
}

/**
 * Addresses for which a deposit is screened. `unknown`: some of the senders have no address, so
 * they cannot be screened.
 */
export interface Parties {
  parties: Counterparty[]
  unknown: boolean
}

/**
 * Returns all senders of a deposit except the sub-account's own addresses. The chain is queried
 * only once.
 * @throws ScreeningWaits if the chain cannot be queried, because the senders are then unknown
 */
export async function partiesOf(
  services: Services,
  row: TransactionRow,
  network: Network,
): Promise<Parties> {
  const deposit = await services.database.one<Deposit>(
    `select senders, senders_complete, coinbase, txid, block_height::text, block_hash, occurrence
     from deposits where workspace_id = $2 and transaction_id = $1`,
    [row.id, row.workspace_id],
  )
  if (!deposit || deposit.coinbase) return { parties: [], unknown: false }
  const { addresses, complete } =
    deposit.senders !== null && deposit.senders_complete !== null
      ? { addresses: deposit.senders, complete: deposit.senders_complete }
      : await ask(services, row, network, deposit)
  const own = await services.database.query<{ address: string }>(
    `select address from chain_addresses
     where network = $1 and address = any($2) and workspace_id = $3
       and (sub_account_id = $4 or sub_account_id is null)`,
    [network.code, addresses, row.workspace_id, row.sub_account_id],
  )
  const ours = new Set(own.map(({ address }) => address))
  return {
    parties: addresses
      .filter((address) => !ours.has(address))
      .map((address) => ({ address, tag: null })),
    unknown: !complete || addresses.length === 0,
  }
}

async function ask(
  services: Services,
  row: TransactionRow,
  network: Network,
  deposit: Deposit,
): Promise<Senders> {
  let match: Senders
  try {
    // On UTXO chains, the owners of the spent coins are queried.
    const { coins } = services.networks.get(network.code)
    match = coins
      ? await coins.senders(deposit.txid)
      : await fromBlock(services, row, network, deposit)
  } catch (error) {
    throw new ScreeningWaits('chain', `the senders are not known yet: ${reasonOf(error)}`)
  }
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update deposits set senders = $2, senders_complete = $3, sender = coalesce(sender, $4)
       where workspace_id = $5 and transaction_id = $1`,
      [
        row.id,
        JSON.stringify(match.addresses),
        match.complete,
        match.addresses[0] ?? null,
        row.workspace_id,
      ],
    )
    await tx.query(
      `update transactions set source_id = coalesce(source_id, $2) where workspace_id = $3
        and id = $1`,
      [row.id, match.addresses[0] ?? null, row.workspace_id],
    )
  })
  return match
}

/** Finds a deposit that was recorded without its senders in its block again. */
async function fromBlock(
  services: Services,
  row: TransactionRow,
  network: Network,
  deposit: Deposit,
): Promise<Senders> {
  const block = await services.networks.client(network.code).block(Number(deposit.block_height))
  if (!block || block.hash !== deposit.block_hash)
    throw new Error(`the endpoint does not return block ${String(deposit.block_height)}`)
  const transfers = block.transfers.filter(
    ({ txid, address, asset, amount, ...rest }) =>
      txid === deposit.txid &&
      address === row.destination_id &&
      asset === row.asset &&
      amount === BigInt(row.amount) &&
      tagOf(rest) === row.address_tag,
  )
  const match = [...occurrences(transfers)].find(([, number]) => number === deposit.occurrence)?.[0]
  if (!match?.senders)
    throw new Error(
      `block ${String(deposit.block_height)} does not contain the senders of ${deposit.txid}`,
    )
  return match.senders
}
