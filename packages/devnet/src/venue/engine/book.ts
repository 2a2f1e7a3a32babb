import type { Order, Side } from './types.ts'

/** One price at which the market maker buys or sells, and the remaining amount. */
export interface Level {
  price: bigint
  volume: bigint
}

/** The best offer of one side: a customer's order, or the market maker's. */
export type Offer = { price: bigint; volume: bigint; order: Order | null; level: Level | null }

/**
 * The resting orders of one market, the best first on each side; of two at one price the older
 * first.
 */
export class Book {
  readonly buy: Order[] = []
  readonly sell: Order[] = []
  /** Offers of the market maker on each side, the best first. */
  marketMaker: Record<Side, Level[]> = { buy: [], sell: [] }

  add(order: Order): void {
    const side = this[order.side]
    const at = side.findIndex((other) => isBetter(order, other))
    side.splice(at === -1 ? side.length : at, 0, order)
  }

  remove(order: Order): void {
    const side = this[order.side]
    const at = side.indexOf(order)
    if (at !== -1) side.splice(at, 1)
  }

  /**
   * Iterates over one side in the order of execution: at one price customers precede the market
   * maker.
   */
  *offers(side: Side): Generator<Offer> {
    const levels = this.marketMaker[side]
    const better = (one: bigint, other: bigint) => (side === 'buy' ? one > other : one < other)
    let [at, below] = [0, 0]
    for (;;) {
      const [order, level] = [this[side][at], levels[below]]
      if (order && (!level || !better(level.price, order.price!))) {
        at += 1
        yield { price: order.price!, volume: order.volume! - order.filled, order, level: null }
      } else if (level) {
        below += 1
        if (level.volume > 0n)
          yield { price: level.price, volume: level.volume, order: null, level }
      } else return
    }
  }
}

function isBetter(one: Order, other: Order): boolean {
  if (one.price === other.price) return one.number < other.number
  return one.side === 'buy' ? one.price! > other.price! : one.price! < other.price!
}
