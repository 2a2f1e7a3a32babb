import { ChainError, decode, formatAmount, OMNIBUS_INDEX, pathOf, solana, type Asset, type Network, type UnsignedTransaction } from '@custody/chains'
import { sweepWaits } from '../../deposits/sweep-policy.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import { refusalOf } from '../../engine/destination.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { solanaFee, type FeeLevel } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { startFailing } from '../../engine/fail.ts'
import { sweepAmount } from '../../gas-tanks/fuelling.ts'

/** Equal transfers in one blockhash's life; each gets compute units of its own. */
const TWINS_MAX = 1000

/**
 * Solana: takes the fee from the sub-account's SOL wallet and fixes the bytes. Nothing excludes another transaction on
 * this chain: the nodes sign one, and if that dies the transfer fails. A sweep of SOL leaves its deposit address empty
 * and pays out of what it moves; one of a token is paid by the omnibus address.
 */
export async function buildSolana(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const client = services.networks.solana(network.code)
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new ChainError('ASSET', `asset ${row.asset} is not available`)
  const native = services.registry.asset(network.native_asset) as Asset
  const to = row.destination_id as string
  const isToken = asset.type === 'token'
  const fail = (reason: string) => services.database.transaction((tx) => startFailing(services, tx, row, reason))
  const isSweep = row.kind === 'SWEEP'
  const refusal = isSweep ? null : await refusalOf(services, network, { to, tag: null, amount: BigInt(row.amount), asset })
  if (refusal) return fail(`${refusal.field}: ${refusal.reason}`)
  const { fee, unitPrice } = await solanaFee(services, network, asset, row.fee_rate, row.fee_level as FeeLevel | null, isSweep && isToken ? 2 : 1)
  const worst = fee + (isToken ? solana.TOKEN_ACCOUNT_RENT : 0n)
  const show = (value: bigint) => `${formatAmount(value, native.decimals)} ${native.asset_name}`
  if (worst > BigInt(network.fee_cap)) return fail(`a network fee of up to ${show(worst)} exceeds the cap of ${show(BigInt(network.fee_cap))}`)
  if (isSweep) {
    const amount = await sweepAmount(services, row)
    if (amount > 0n && await sweepWaits(services, row, network, asset, { amount, cost: fee, own: !isToken })) return
  }
  const kept = await client.rent()
  const payer = isToken ? await feeWalletOf(services, row, native) : row.wallet_id
  if (payer === null) return fail(`network fees are paid from the ${native.asset_name} wallet, and there is none`)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const source = await services.database.one<{ sub: number; index: number }>(
    'select s.path_index sub, c.path_index index from chain_addresses c join sub_accounts s on s.id = c.sub_account_id where c.network = $1 and c.address = $2', [network.code, row.source_id])
  if (!source) throw new Error('the source address is not ours')
  const path = pathOf(network, source.sub, source.index)
  const omnibus = pathOf(network, source.sub, OMNIBUS_INDEX)
  // Last: the transaction's life begins with it.
  const { blockhash, validUntil } = await client.lifetime()
  await services.database.transaction(async (tx) => {
    const account = row.source_id as string
    await tx.query('insert into signing_accounts (network, address) values ($1, $2) on conflict do nothing', [network.code, account])
    await tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [network.code, account])
    const unswept = isSweep ? await lockedBalance(tx, { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset, kind: 'unswept', address: account }) : 0n
    const amount = !isSweep ? BigInt(row.amount) : isToken ? unswept : unswept - worst
    if (amount <= 0n) return startFailing(services, tx, row, 'what is left to sweep is not worth its fee')
    const held = BigInt((isToken ? row.plan['fee_held'] : row.plan['fee_reserve']) ?? '0')
    const ledger = { workspace: row.workspace_id, wallet: payer, asset: native.asset_name }
    // A sweep of SOL pays out of what it moves.
    const difference = isSweep && !isToken ? 0n : worst - held
    const left = await lockedBalance(tx, { ...ledger, kind: 'available' }) - kept
    if (difference > 0n && left < difference) {
      return startFailing(services, tx, row, `a network fee of up to ${show(worst)} is paid from the ${native.asset_name} wallet, which has ${show(left < 0n ? 0n : left)} beside the ${show(kept)} that must stay on the account`)
    }
    const id = services.environment.uuid()
    await post(tx, 'reserve-adjust', id, [{ ...ledger, kind: 'available', amount: -difference }, { ...ledger, kind: 'reserved', amount: difference }])
    // The chain takes equal bytes once: a second transfer of the same amount to the same address must differ.
    const living = new Set((await tx.query<{ bytes: string }>(
      `select unsigned->>'bytes' bytes from chain_transactions where network = $1 and account = $2 and valid_until >= $3`, [network.code, account, validUntil - 2 * solana.BLOCKS_TO_LIVE])).map(({ bytes }) => bytes))
    let unsigned: UnsignedTransaction | null = null
    for (let more = 0; more < TWINS_MAX && unsigned === null; more++) {
      const units = solana.unitsOf(isToken) + more
      const price = more === 0 ? unitPrice : (unitPrice * BigInt(solana.unitsOf(isToken))) / BigInt(units)
      const candidate = isSweep && isToken
        ? solana.buildTokenSweep(network, { asset, amount, blockhash, units, unitPrice: price, from: { publicKey: key.at(path), path }, omnibus: { publicKey: key.at(omnibus), path: omnibus } })
        : solana.buildTransfer(network, { asset, to, amount, blockhash, units, unitPrice: price, publicKey: key.at(path), path })
      if (!living.has(candidate.bytes)) unsigned = candidate
    }
    if (!unsigned) return advance(tx, row, { last_error: 'waits for equal transfers to be done', run_in_ms: 5000 })
    const decoded = decode(services.registry, unsigned, key.at)
    if (decoded.from.at(-1) !== account || decoded.payments[0]?.address !== to) throw new Error('the derived addresses are not those of the transfer')
    const last = await tx.one<{ attempt: number }>('select max(attempt) attempt from chain_transactions where transaction_id = $1', [row.id])
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, account, unsigned, fee_max, attempt, valid_until) values ($1, $2, $3, 'BUILT', $4, $5, $6, $7, $8)`,
      [id, row.id, network.code, account, JSON.stringify(unsigned), decoded.fee_max.toString(), (last?.attempt ?? 0) + 1, validUntil])
    await advance(tx, row, { state: 'SIGNING', fee, ...(isSweep ? { amount } : {}), plan: isToken ? { fee_wallet: payer, fee_held: worst.toString() } : isSweep ? {} : { fee_reserve: worst.toString() }, last_error: null, run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.built')
}

async function feeWalletOf(services: Services, row: TransactionRow, native: Asset): Promise<string | null> {
  const wallet = await services.database.one<{ id: string }>('select id from wallets where sub_account_id = $1 and asset = $2', [row.sub_account_id, native.asset_name])
  return wallet?.id ?? null
}
