import {
  CHANGE_INDEX,
  ChainError,
  decode,
  pathOf,
  utxo,
  type Asset,
  type DecodedTransaction,
  type UtxoClient,
} from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import { changeSpender } from '../../engine/attempts.ts'
import {
  DEFAULT_LEVEL,
  fail,
  type Fail,
  type Prepared,
  type Replaceable,
  type Waiting,
  type RequestedReplacement,
} from '../../engine/chain.ts'
import { isConsolidation, type TransactionRow } from '../../engine/transaction.ts'
import { checkedFeeRate } from '../../engine/check-fee-rate.ts'
import type { CoinChain } from '../coins/chain.ts'
import { previousOf } from '../coins/previous.ts'
import { holdOf, notChosen, spend } from '../coins/spend.ts'
import { ownerOf } from '../owner.ts'
import { coinsSpentBy, spendableCoins } from './coins.ts'

type Chain = CoinChain<UtxoClient>

const NOT_COVERED = "the wallet's coins do not cover the higher fee"

/** Replacement as defined in BIP125: all inputs of the pending transaction, with a higher fee. */
export function replaceable(chain: Chain): Replaceable {
  return {
    leastRate: (row, waiting) => leastRate(chain, row, waiting),
    marketPaysMore: (row, newest) => marketPaysMore(chain, row, newest),
    prepare: (row, asset, wanted, waiting) => prepare(chain, row, asset, wanted, waiting),
  }
}

async function decoded(
  { context, network }: Chain,
  row: TransactionRow,
  waiting: readonly Waiting[],
): Promise<DecodedTransaction[]> {
  const key = await context.keys.get(row.workspace_id, network.curve)
  return waiting.map(({ unsigned }) => decode(context.registry, unsigned, key.at))
}

/**
 * Returns the lowest fee rate of a replacement in satoshi per 1000 vbytes, rounded up: for each
 * pending attempt, its fee plus the relay fee of its own size.
 */
async function leastRate(
  chain: Chain,
  row: TransactionRow,
  waiting: readonly Waiting[],
): Promise<bigint> {
  const floor = BigInt(chain.network.utxo?.min_fee_rate ?? 1)
  const rates = (await decoded(chain, row, waiting)).map(({ vsize, fee_max: fee }) => {
    const size = BigInt(vsize as number)
    return ((fee + size * floor) * 1000n + size - 1n) / size
  })
  return highest(rates)
}

async function marketPaysMore(
  chain: Chain,
  row: TransactionRow,
  newest: Waiting,
): Promise<boolean> {
  const [match] = await decoded(chain, row, [newest])
  return (
    match !== undefined &&
    (await chain.rates())[DEFAULT_LEVEL] * BigInt(match.vsize as number) > match.fee_max * 1000n
  )
}

async function prepare(
  chain: Chain,
  row: TransactionRow,
  asset: Asset,
  wanted: RequestedReplacement,
  waiting: readonly Waiting[],
): Promise<Prepared | Fail> {
  const { context, network } = chain
  const feeRate = await rateOf(chain, row, wanted, waiting)
  if (typeof feeRate === 'string') return fail(feeRate)
  const owner = await ownerOf(context.database, row)
  const changeAddress = await context.addresses.change(network, owner)
  const [to, amount, cancels] = [
    row.destination_id as string,
    BigInt(row.amount),
    wanted.kind === 'CANCEL',
  ]
  const merges = isConsolidation(row)
  const above = highest(waiting.map(({ fee_max: fee }) => BigInt(fee)))
  const choose = async (database: Queryable): Promise<utxo.Selection> => {
    const required = await coinsSpentBy(
      database,
      waiting.map(({ id }) => id),
      network,
      owner,
    )
    if (cancels || merges)
      return utxo.selectReturn(network, { utxos: required, changeAddress, feeRate, above })
    const utxos = await spendableCoins(database, row.wallet_id as string, network, owner)
    return utxo.selectCoins(network, { utxos, to, amount, changeAddress, feeRate, required })
  }
  const foreseen = await choose(context.database).catch(notChosen)
  if (foreseen instanceof ChainError) return fail(`${NOT_COVERED}: ${foreseen.message}`)
  const previous = await previousOf(foreseen.utxos, chain.previous)
  return {
    kind: 'prepared',
    lock: 'wallet',
    async build(tx) {
      const spender = await changeSpender(tx, row, waiting)
      if (spender !== null) return fail(`transfer ${spender} already spends its change`)
      const selection = await choose(tx).catch(notChosen)
      if (selection instanceof ChainError) return fail(NOT_COVERED)
      const { utxos: coins, fee } = selection
      const parts = {
        selection,
        changeAddress,
        changePath: pathOf(network, owner.subAccountIndex, CHANGE_INDEX),
        previous,
      }
      if (merges) {
        const hold = holdOf(row, asset, highest([fee, BigInt(row.plan.fee_reserve ?? '0')]))
        return spend({ coins, fee, hold, previous, build: () => utxo.buildReturn(network, parts) })
      }
      // A cancellation pays its fee out of the amount that it returns, so that an emptied wallet
      // can cancel too.
      if (cancels)
        return spend({ coins, fee, previous, build: () => utxo.buildReturn(network, parts) })
      // A pending attempt may still be mined, so the highest of the fees stays reserved.
      const hold = holdOf(row, asset, highest([fee, BigInt(row.plan.fee_reserve ?? '0')]))
      return spend({
        coins,
        fee,
        hold,
        previous,
        build: () => utxo.buildTransfer(network, { ...parts, to, amount }),
      })
    },
  }
}

/** Returns the fee rate in satoshi per 1000 vbytes, or the reason why no rate is sufficient. */
async function rateOf(
  chain: Chain,
  row: TransactionRow,
  wanted: RequestedReplacement,
  waiting: readonly Waiting[],
): Promise<bigint | string> {
  const {
    context: { registry },
    network,
  } = chain
  const least = await leastRate(chain, row, waiting)
  if (wanted.feeRate !== null) {
    const rate = checkedFeeRate(wanted.feeRate, network, registry)
    return rate < least
      ? 'its fee_rate is no longer high enough to replace the waiting transaction'
      : rate
  }
  const rate = highest([
    (await chain.rates())[wanted.level ?? (wanted.kind === 'AUTO' ? DEFAULT_LEVEL : 'high')],
    least,
  ])
  if (wanted.kind !== 'AUTO' || row.fee_rate === null) return rate
  const most = checkedFeeRate(row.fee_rate, network, registry)
  if (most < least) return 'the fee_rate of the transfer allows no higher fee'
  return rate < most ? rate : most
}

const highest = (values: readonly bigint[]): bigint =>
  values.reduce((most, each) => (each > most ? each : most), 0n)
