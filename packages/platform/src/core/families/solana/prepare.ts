import { familyOf, OMNIBUS_INDEX, solana, type UnsignedTransaction } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import {
  fail,
  wait,
  type Fail,
  type Hold,
  type Prepared,
  type Task,
  type Wait,
} from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { sourcePath } from '../source-path.ts'
import { feeOf, rentFor, type Solana } from './fees.ts'

/**
 * Maximum number of equal transfers within the lifetime of one blockhash; each uses a different
 * number of compute units.
 */
const TWINS_MAX = 1000
const TWINS_WAIT_MS = 5000

/**
 * Prepares a transfer or sweep. Nothing excludes another transaction on this chain: the signer
 * nodes sign only one, and if that one expires, the transfer fails. A sweep of SOL empties its
 * deposit address and pays its fee out of the amount moved; a sweep of a token is paid by the
 * omnibus address.
 */
export async function prepare(chain: Solana, task: Task): Promise<Prepared | Wait | Fail> {
  const { context, network, native, client } = chain
  const { row, asset, sweeps } = task
  const [account, to, isToken] = [
    row.source_id as string,
    row.destination_id as string,
    asset.type === 'token',
  ]
  const { fee, unitPrice } = await feeOf(
    chain,
    asset,
    row.fee_rate,
    row.fee_level,
    sweeps && isToken ? 2 : 1,
  )
  const worst = fee + (isToken ? solana.TOKEN_ACCOUNT_RENT : 0n)
  // The first sweep of a token also pays the rent of the omnibus address's token account.
  const sweepCost = fee + (sweeps && isToken ? await rentFor(chain, asset, to) : 0n)
  const reserve = await client.rent()
  const payer = isToken ? await feeWalletOf(chain, row) : row.wallet_id
  const key = await context.keys.get(row.workspace_id, network.curve)
  const path = await sourcePath(context.database, row, network)
  const from = { publicKey: key.at(path), path }
  const omnibus = [...path.slice(0, -1), OMNIBUS_INDEX]
  const receiver = { publicKey: key.at(omnibus), path: omnibus }
  if (sweeps && isToken && familyOf(network).address(network, receiver.publicKey) !== to) {
    throw new Error('the derived address is not the destination of the sweep')
  }
  // This query comes last, because the validity period starts when the chain responds.
  const { blockhash, validUntil } = await client.lifetime()
  const built = (amount: bigint, units: number, price: bigint): UnsignedTransaction => {
    const shape = { asset, amount, blockhash, units, unitPrice: price }
    if (sweeps && isToken)
      return solana.buildTokenSweep(network, { ...shape, from, omnibus: receiver })
    return solana.buildTransfer(network, { ...shape, to, ...from })
  }
  return {
    kind: 'prepared',
    lock: 'account',
    ...(sweeps ? { cost: { worst: sweepCost, own: !isToken } } : {}),
    async build(tx, unswept) {
      if (payer === null)
        return fail(
          `network fees are paid from the ${native.asset_name} wallet, which does not exist`,
        )
      const ownFee = isToken ? 0n : worst
      const amount = sweeps ? unswept - ownFee : task.amount
      if (amount <= 0n) return fail('the remaining balance is worth less than the fee of a sweep')
      const living = await livingOf(tx, row, account, validUntil)
      const unsigned = differing(solana.unitsOf(isToken), unitPrice, living, (units, price) =>
        built(amount, units, price),
      )
      if (!unsigned)
        return wait('EARLIER_TRANSFER', 'it waits until identical transfers end', TWINS_WAIT_MS)
      const noted = isToken ? 'fee_held' : 'fee_reserve'
      const hold: Hold = { wallet: payer, asset: native, amount: worst, noted, reserve: reserve }
      return {
        kind: 'built',
        unsigned,
        worst,
        account,
        validUntil,
        fee,
        ...(sweeps ? { amount } : {}),
        ...(sweeps && !isToken ? {} : { hold }),
        ...(isToken ? { plan: { fee_wallet: payer } } : {}),
      }
    },
  }
}

/** Returns the wallet that pays for a sub-account's token transfers. */
async function feeWalletOf(
  { context, native }: Solana,
  row: TransactionRow,
): Promise<string | null> {
  const wallet = await context.database.one<{ id: string }>(
    'select id from wallets where workspace_id = $3 and sub_account_id = $1 and asset = $2',
    [row.sub_account_id, native.asset_name, row.workspace_id],
  )
  return wallet?.id ?? null
}

/** Returns the bytes of an account's transactions that the chain may still include. */
async function livingOf(
  tx: Queryable,
  row: TransactionRow,
  account: string,
  validUntil: number,
): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ bytes: string }>(
    `select unsigned->>'bytes' bytes from chain_transactions
     where workspace_id = $4 and network = $1 and account = $2 and valid_until >= $3`,
    [row.network, account, validUntil - 2 * solana.BLOCKS_TO_LIVE, row.workspace_id],
  )
  return new Set(rows.map(({ bytes }) => bytes))
}

/**
 * Returns a transaction whose bytes differ from all pending ones, because the chain accepts equal
 * bytes only once. A second transfer of the same amount to the same address gets one more compute
 * unit, at the same cost. Null if there are too many equal transfers.
 */
function differing(
  units: number,
  unitPrice: bigint,
  living: ReadonlySet<string>,
  build: (units: number, unitPrice: bigint) => UnsignedTransaction,
): UnsignedTransaction | null {
  for (let more = 0; more < TWINS_MAX; more++) {
    const price = more === 0 ? unitPrice : (unitPrice * BigInt(units)) / BigInt(units + more)
    const unsigned = build(units + more, price)
    if (!living.has(unsigned.bytes)) return unsigned
  }
  return null
}
