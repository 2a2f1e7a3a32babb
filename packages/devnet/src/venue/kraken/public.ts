import { PRICE_DECIMALS } from '../../prices/quotes.ts'
import type { Level } from '../engine/book.ts'
import { quoted } from '../engine/markets.ts'
import { padded, trimmed } from '../engine/numbers.ts'
import type { Side } from '../engine/types.ts'
import type { Venue } from '../venue.ts'
import { invalid, KrakenError, needed, type Arguments } from './answer.ts'
import { assetNamed, KRAKEN_ASSETS, pairNamed, PAIRS, type Pair } from './names.ts'

const DEPTH_MAX = 500

/** Requests that need no key. Their responses contain no timestamp. */
export const PUBLIC: Record<string, (venue: Venue, args: Arguments) => unknown> = {
  Time: (venue) => {
    const at = Math.floor(venue.now() / 1000)
    return { unixtime: at, rfc1123: new Date(at * 1000).toUTCString() }
  },
  SystemStatus: (venue) => ({
    status: 'online',
    timestamp: new Date(venue.now()).toISOString().replace(/\.\d+Z/, 'Z'),
  }),
  Assets: (_, { asset }) => {
    const named =
      asset === undefined ? KRAKEN_ASSETS : asset.split(',').map((name) => assetNamed(name))
    return Object.fromEntries(
      named.map((each) => {
        if (!each) throw new KrakenError('EQuery:Unknown asset')
        const { id, alt, decimals } = each
        return [
          id,
          {
            aclass: 'currency',
            altname: alt,
            decimals,
            display_decimals: Math.min(5, decimals),
            status: 'enabled',
          },
        ]
      }),
    )
  },
  AssetPairs: (venue, { pair }) =>
    Object.fromEntries(pairsNamed(pair).map((each) => [each.market.id, pairShape(venue, each)])),
  Ticker: (venue, { pair }) =>
    Object.fromEntries(
      pairsNamed(pair).flatMap((each) => {
        const shape = ticker(venue, each)
        return shape ? [[each.market.id, shape]] : []
      }),
    ),
  Depth: (venue, names) => {
    const [pair, more] = pairsNamed(needed(names, 'pair'))
    const count = Number(names['count'] ?? 100)
    if (!pair || more || !Number.isInteger(count) || count < 1 || count > DEPTH_MAX)
      throw invalid(pair && !more ? 'count' : 'pair')
    const at = Math.floor(venue.now() / 1000)
    const side = (which: Side) =>
      venue.engine
        .depth(pair.market, which)
        .slice(0, count)
        .map(({ price, volume }) => [
          padded(price, pair.market.priceDecimals),
          trimmed(volume, pair.market.base.decimals),
          at,
        ])
    return { [pair.market.id]: { asks: side('sell'), bids: side('buy') } }
  },
}

function pairsNamed(names: string | undefined): readonly Pair[] {
  return names === undefined
    ? PAIRS
    : names.split(',').map((name) => {
        const pair = pairNamed(name)
        if (!pair) throw new KrakenError('EQuery:Unknown asset pair')
        return pair
      })
}

function pairShape({ kind: { rules } }: Venue, { market, alt, ws, base, quote }: Pair): unknown {
  const percent = (bps: bigint) => Number(bps) / 100
  return {
    altname: alt,
    wsname: ws,
    aclass_base: 'currency',
    base: base.id,
    aclass_quote: 'currency',
    quote: quote.id,
    lot: 'unit',
    cost_decimals: 5,
    pair_decimals: market.priceDecimals,
    lot_decimals: market.lotDecimals,
    lot_multiplier: 1,
    leverage_buy: [],
    leverage_sell: [],
    fees: [[0, percent(rules.takerBps)]],
    fees_maker: [[0, percent(rules.makerBps)]],
    fee_volume_currency: 'ZUSD',
    margin_call: 80,
    margin_stop: 40,
    ordermin: trimmed(market.minVolume, market.base.decimals),
    costmin: trimmed(market.minCost, market.quote.decimals),
    tick_size: trimmed(1n, market.priceDecimals),
    status: 'online',
  }
}

/**
 * Returns the ticker. Bid and ask are the book's; the last trade has the local price, as if it had
 * just been traded there.
 */
function ticker(venue: Venue, { market }: Pair): unknown {
  const last = quoted({ ...market, priceDecimals: PRICE_DECIMALS }, venue.priceOf, 0n, false)
  const [bid, ask] = [venue.engine.depth(market, 'buy')[0], venue.engine.depth(market, 'sell')[0]]
  if (last === null || !bid || !ask) return null
  const price = padded(last, PRICE_DECIMALS)
  const show = ({ price: at, volume }: Level) => [
    padded(at, market.priceDecimals),
    String(volume / 10n ** BigInt(market.base.decimals)),
    trimmed(volume, market.base.decimals),
  ]
  const [low, high] = [
    padded(bid.price, market.priceDecimals),
    padded(ask.price, market.priceDecimals),
  ]
  return {
    a: show(ask),
    b: show(bid),
    c: [price, '0.10000000'],
    v: ['120.5', '980.25'],
    p: [price, price],
    t: [310, 2240],
    l: [low, low],
    h: [high, high],
    o: price,
  }
}
