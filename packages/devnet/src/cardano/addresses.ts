import { Address, BaseAddress, RewardAddress } from '@emurgo/cardano-serialization-lib-nodejs'
import { SLOT_MS, SLOT_ZERO_MS, type CardanoChain, type Place } from './chain.ts'
import type { Output } from './transaction.ts'

interface Amount {
  unit: string
  quantity: string
}
interface Part {
  place: Place
  received: Output[]
  sent: Output[]
}

/**
 * Returns the transactions in blocks that paid an address or spent from it, in the order of the
 * chain.
 */
function historyOf(chain: CardanoChain, address: string): Part[] {
  const ofAddress = (output: Output | undefined): output is Output => output?.address === address
  return [...chain.places.values()].flatMap((place) => {
    const { inputs, outputs } = place.transaction
    const sent = inputs
      .map(({ hash, index }) => chain.places.get(hash)?.transaction.outputs[index])
      .filter(ofAddress)
    const received = outputs.filter(ofAddress)
    return sent.length + received.length > 0 ? [{ place, received, sent }] : []
  })
}

/** Returns the sums by unit, lovelace first. */
function sumsOf(outputs: readonly Output[]): Amount[] {
  const sums = new Map<string, bigint>([['lovelace', 0n]])
  for (const { coin, tokens } of outputs) {
    for (const { unit, quantity } of [{ unit: 'lovelace', quantity: coin }, ...tokens]) {
      sums.set(unit, (sums.get(unit) ?? 0n) + BigInt(quantity))
    }
  }
  return [...sums].map(([unit, quantity]) => ({ unit, quantity: quantity.toString() }))
}

/**
 * Returns an address object with its balance and the parts of the address; null if the text is
 * invalid or the chain never used the address.
 */
export function addressObject(chain: CardanoChain, address: string): unknown {
  const parsed = read(address)
  if (!parsed || historyOf(chain, address).length === 0) return null
  const unspent = chain
    .unspent(address)
    .map(({ index, place }) => place.transaction.outputs[index] as Output)
  const stake = BaseAddress.from_address(parsed)?.stake_cred()
  return {
    address,
    amount: sumsOf(unspent),
    type: 'shelley',
    stake_address: stake
      ? RewardAddress.new(parsed.network_id(), stake).to_address().to_bech32()
      : null,
    script: parsed.payment_cred()?.to_scripthash() !== undefined,
  }
}

/** Returns the total amounts that an address received and sent. */
export function addressTotal(chain: CardanoChain, address: string): unknown {
  const history = historyOf(chain, address)
  if (history.length === 0) return null
  return {
    address,
    received_sum: sumsOf(history.flatMap(({ received }) => received)),
    sent_sum: sumsOf(history.flatMap(({ sent }) => sent)),
    tx_count: history.length,
  }
}

/**
 * Returns an address's transactions, oldest first.
 * @param range `from` and `to` as `height` or `height:index`, both inclusive
 */
export function addressTransactions(
  chain: CardanoChain,
  address: string,
  range: { from?: string; to?: string },
): unknown[] | null {
  const history = historyOf(chain, address)
  if (history.length === 0) return null
  const [from, to] = [placeOf(range.from, 0), placeOf(range.to, Infinity)]
  const isBefore = ([height, index]: Spot, [otherHeight, otherIndex]: Spot) =>
    height < otherHeight || (height === otherHeight && index < otherIndex)
  return history
    .map(({ place: { transaction, block, order } }) => ({
      transaction,
      block,
      order,
      at: [block.height, order] as Spot,
    }))
    .filter(({ at }) => !isBefore(at, from) && !isBefore(to, at))
    .map(({ transaction, block, order }) => ({
      tx_hash: transaction.hash,
      tx_index: order,
      block_height: block.height,
      block_time: SLOT_ZERO_MS / SLOT_MS + block.slot,
    }))
}

/** A block's height, and a transaction's index in it. */
type Spot = [number, number]

function placeOf(text: string | undefined, fallback: number): Spot {
  const [, height, index] = /^(\d{1,10})(?::(\d{1,6}))?$/.exec(text ?? '') ?? []
  return height === undefined
    ? [fallback, fallback]
    : [Number(height), index === undefined ? fallback : Number(index)]
}

function read(text: string): Address | null {
  try {
    return Address.from_bech32(text)
  } catch {
    return null
  }
}
