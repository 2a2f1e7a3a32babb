import { z } from 'zod'
import {
  buildTransfer,
  leastPayment,
  selectCoins,
  type Coin,
  type Parameters,
} from '../cardano/build.ts'
import { CardanoClient } from '../cardano/rpc.ts'
import { ChainError } from '../types.ts'
import {
  coin,
  digits,
  previous as previousShape,
  sweeper,
  unread as unreadShape,
} from './schemas.ts'
import type { Left, Planned } from './types.ts'
import { coinsAt, previousOf } from './address-scan.ts'

const INPUTS_MAX = 60
/**
 * Initial estimate of the fee in lovelace, above the cost of a transaction of that many inputs. The
 * size of the result determines the actual fee.
 */
const GUESS = 1_000_000n

const reported = coin.extend({
  riders: z
    .strictObject({ assets: z.record(z.string(), digits), script_bytes: z.int().min(0) })
    .nullable(),
})
type ReportedCoin = z.infer<typeof reported>
const shape = z.strictObject({
  coins: z.array(reported),
  previous: previousShape,
  unread: unreadShape,
  rate: digits,
  validUntil: z.int(),
  parameters: z.strictObject({
    feePerByte: digits,
    feeConstant: digits,
    coinsPerByte: digits,
    transactionBytesMax: digits,
    valueBytesMax: digits,
  } satisfies Record<keyof Parameters, typeof digits>),
})

/** Converts the protocol parameters of a plan to numbers. */
const parametersOf = (texts: z.infer<typeof shape>['parameters']): Parameters => ({
  feePerByte: BigInt(texts.feePerByte),
  feeConstant: BigInt(texts.feeConstant),
  coinsPerByte: BigInt(texts.coinsPerByte),
  transactionBytesMax: Number(texts.transactionBytesMax),
  valueBytesMax: Number(texts.valueBytesMax),
})

/** Returns the coins that cannot be moved, with the reason. */
function unspendableCoins(
  all: readonly Coin[],
  {
    asset,
    isShown,
    unread,
  }: {
    asset: string
    /** Returns whether the transaction that created a coin is known. */
    isShown: (coin: Coin) => boolean
    /** Why transactions could not be read, by ID. */
    unread: Readonly<Record<string, string>>
  },
): Left[] {
  const left: Left[] = all
    .filter(({ riders }) => riders !== null)
    .map(({ address, value }) => ({
      address,
      asset,
      amount: value.toString(),
      why: 'it carries native tokens or a script, which these nodes do not move',
    }))
  left.push(
    ...all
      .filter((coin) => coin.riders === null && !isShown(coin))
      .map(({ address, value, txid, vout }) => ({
        address,
        asset,
        amount: value.toString(),
        why: `${txid}:${vout} cannot be spent: ${unread[txid] ?? 'its transaction is missing'}`,
      })),
  )
  return left
}

export const cardano = sweeper(shape, {
  life: 'one hour',
  client: (_registry, network, endpoint, fetch) => new CardanoClient(network, endpoint, fetch),
  async look(ask) {
    const client = new CardanoClient(ask.network, ask.endpoint, ask.fetch)
    await client.probe()
    const coins = (await coinsAt(ask, client)).map(({ place, transfer }): ReportedCoin => ({
      txid: transfer.txid,
      vout: transfer.position,
      value: transfer.amount.toString(),
      path: place.path,
      address: place.address,
      riders: transfer.riders ?? null,
    }))
    const shown = await previousOf(coins, (txid) => client.transactionBody(txid))
    const { feePerByte, feeConstant, coinsPerByte, transactionBytesMax, valueBytesMax } =
      await client.parameters()
    const parameters = {
      feePerByte: String(feePerByte),
      feeConstant: String(feeConstant),
      coinsPerByte: String(coinsPerByte),
      transactionBytesMax: String(transactionBytesMax),
      valueBytesMax: String(valueBytesMax),
    }
    const rate = (await client.feeRates()).high.toString()
    return { coins, ...shown, rate, parameters, validUntil: await client.validUntil() }
  },
  plan({ network, scan, to }) {
    const { coins, previous, unread = {}, rate: fee, validUntil, parameters: texts } = scan
    const parameters = parametersOf(texts)
    const rate = BigInt(fee)
    const all = coins.map((coin): Coin => ({ ...coin, value: BigInt(coin.value) }))
    const asset = network.native_asset
    const isShown = ({ txid }: Coin): boolean => previous[txid] !== undefined
    const left = unspendableCoins(all, { asset, isShown, unread })
    const plain = all
      .filter((coin) => coin.riders === null && isShown(coin))
      .sort((a, b) => (a.value > b.value ? -1 : 1))
    const transactions: Planned[] = []
    for (let at = 0; at < plain.length; at += INPUTS_MAX) {
      const required = plain.slice(at, at + INPUTS_MAX)
      const total = required.reduce((sum, { value }) => sum + value, 0n)
      const select = (amount: bigint) =>
        selectCoins(network, {
          coins: [],
          required,
          to,
          amount,
          changeAddress: to,
          rate,
          ttl: BigInt(validUntil),
          parameters,
        })
      try {
        let amount = total - GUESS
        if (amount < leastPayment(network, to, amount > 0n ? amount : 0n, parameters))
          throw new ChainError('DUST', 'is dust')
        // There is no change, so the fee follows from the size alone, and any surplus is added to
        // it.
        for (let round = 0; round < 2; round++)
          amount = total - (rate * BigInt(select(amount).size) + parameters.feeConstant)
        transactions.push({
          unsigned: buildTransfer(network, {
            selection: { ...select(amount), change: 0n },
            to,
            amount,
            changeAddress: to,
            changePath: [],
            ttl: BigInt(validUntil),
            previous: new Map(Object.entries(previous)),
          }),
          asset,
          from: `${required.length} coins`,
          amount: amount.toString(),
        })
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        left.push(
          ...required.map(({ address, value }) => ({
            address,
            asset,
            amount: value.toString(),
            why: error.message,
          })),
        )
      }
    }
    return { transactions, left, more: false }
  },
})
