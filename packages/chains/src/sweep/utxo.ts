import { z } from 'zod'
import {
  buildTransfer,
  dustLimit,
  outpointOf,
  scriptOf,
  unspendable,
  virtualSize,
  type Utxo,
} from '../utxo/build.ts'
import { paramsOf } from '../utxo/address.ts'
import { UtxoClient } from '../utxo/rpc.ts'
import {
  coin,
  digits,
  previous as previousShape,
  sweeper,
  unread as unreadShape,
} from './schemas.ts'
import type { Network } from '../types.ts'
import type { Left, Planned } from './types.ts'
import { coinsAt, previousOf } from './address-scan.ts'

/**
 * Maximum number of inputs of one transaction: two nodes sign them in one session, and its size
 * stays far below the relay limit.
 */
const INPUTS_MAX = 100

type Coin = z.infer<typeof coin>
/** `rate`: satoshi per 1000 vbytes. */
const shape = z.strictObject({
  coins: z.array(coin),
  previous: previousShape,
  rate: digits,
  unread: unreadShape,
})

/** Returns why coins cannot be spent, by coin; other coins are absent. */
function problemsOf(
  network: Network,
  coins: readonly Utxo[],
  { previous, unread = {} }: Pick<z.infer<typeof shape>, 'previous' | 'unread'>,
): Map<Utxo, string> {
  const problemOf = (coin: Utxo): string | null => {
    const before = previous[coin.txid]
    return before === undefined
      ? (unread[coin.txid] ?? 'its transaction is missing')
      : unspendable(network, coin, before)
  }
  return new Map(
    coins.flatMap((coin): [Utxo, string][] => {
      const problem = problemOf(coin)
      return problem === null ? [] : [[coin, problem]]
    }),
  )
}

export const utxo = sweeper(shape, {
  life: 'until the coins are spent',
  client: (_registry, network, endpoint, fetch) => new UtxoClient(network, endpoint, fetch),
  async look(ask) {
    const client = new UtxoClient(ask.network, ask.endpoint, ask.fetch)
    await client.probe()
    const matches = await coinsAt(ask, client)
    const coins = matches.map(({ place, transfer }): Coin => ({
      txid: transfer.txid,
      vout: transfer.position,
      value: transfer.amount.toString(),
      path: place.path,
      address: place.address,
    }))
    const shown = await previousOf(coins, (txid) => client.rawTransaction(txid))
    return { coins, ...shown, rate: (await client.feeRates()).high.toString() }
  },
  plan({ network, scan, to }) {
    const { coins, previous, rate } = scan
    const params = paramsOf(network)
    const script = scriptOf(network, to)
    const feeAt = (inputs: number): bigint =>
      (BigInt(virtualSize(params, inputs, [script.length])) * BigInt(rate) + 999n) / 1000n
    const worth = feeAt(2) - feeAt(1)
    const args = coins
      .map((coin): Utxo => ({ ...coin, value: BigInt(coin.value) }))
      .sort((a, b) => (a.value > b.value ? -1 : 1))
    const problems = problemsOf(network, args, scan)
    const all = args.filter((coin) => !problems.has(coin))
    const left: Left[] = [...problems].map(([coin, problem]) => ({
      address: coin.address,
      asset: network.native_asset,
      amount: coin.value.toString(),
      why: `${outpointOf(coin)} cannot be spent: ${problem}`,
    }))
    left.push(
      ...all
        .filter(({ value }) => value <= worth)
        .map(({ address, value }) => ({
          address,
          asset: network.native_asset,
          amount: value.toString(),
          why: 'its fee would exceed its amount',
        })),
    )
    const spent = all.filter(({ value }) => value > worth)
    const transactions: Planned[] = []
    for (let at = 0; at < spent.length; at += INPUTS_MAX) {
      const utxos = spent.slice(at, at + INPUTS_MAX)
      const fee = feeAt(utxos.length)
      const amount = utxos.reduce((sum, { value }) => sum + value, 0n) - fee
      if (amount < dustLimit(params, script)) {
        left.push(
          ...utxos.map((coin) => ({
            address: coin.address,
            asset: network.native_asset,
            amount: coin.value.toString(),
            why: `${outpointOf(coin)} is dust`,
          })),
        )
        continue
      }
      const selection = {
        utxos,
        fee,
        change: 0n,
        vsize: virtualSize(params, utxos.length, [script.length]),
      }
      transactions.push({
        unsigned: buildTransfer(network, {
          selection,
          to,
          amount,
          changeAddress: to,
          changePath: [],
          previous: new Map(Object.entries(previous)),
        }),
        asset: network.native_asset,
        from: `${utxos.length} coins`,
        amount: amount.toString(),
      })
    }
    return { transactions, left, more: false }
  },
})
