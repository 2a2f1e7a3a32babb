import { LargeMap } from './large.ts'

/**
 * Signed transactions of an address: fuel to it, and the maximum cost of sweeps from it; by nonce,
 * otherwise by transaction.
 */
export interface Fuelled {
  fuel: Map<string, bigint>
  fees: Map<string, bigint>
}

const raise = (map: Map<string, bigint>, key: string, value: bigint): void => {
  if (value > (map.get(key) ?? -1n)) map.set(key, value)
}
const keyOf = (network: string, address: string): string => JSON.stringify([network, address])
const sum = (map: Map<string, bigint>): bigint =>
  [...map.values()].reduce((all, each) => all + each, 0n)

/** Deposit addresses that have received fuel. Amounts in the smallest native unit. */
export class FuelledAddresses {
  readonly #addresses = new LargeMap<string, Fuelled>()

  get(network: string, address: string): Fuelled | undefined {
    return this.#addresses.get(keyOf(network, address))
  }

  #at(network: string, address: string): Fuelled {
    const existing = this.get(network, address) ?? {
      fuel: new Map<string, bigint>(),
      fees: new Map<string, bigint>(),
    }
    this.#addresses.set(keyOf(network, address), existing)
    return existing
  }

  /**
   * Counts a transaction. Transactions with the same nonce exclude each other, so only the most
   * expensive one counts.
   * @param place its nonce, otherwise its hash
   */
  count(
    network: string,
    address: string,
    kind: keyof Fuelled,
    place: string,
    amount: bigint,
  ): void {
    raise(this.#at(network, address)[kind], place, amount)
  }

  /**
   * Merges a peer's account of an address, because the peer took part in signatures without this
   * node.
   */
  merge(network: string, address: string, theirs: Fuelled): void {
    const mine = this.#at(network, address)
    for (const name of ['fuel', 'fees'] as const)
      for (const [place, amount] of theirs[name]) raise(mine[name], place, amount)
  }

  /**
   * Returns the minimum amount of unused fuel at a deposit address.
   * @param without key of a fuel that is about to be replaced, and therefore does not count; null:
   *   all count
   */
  leftoverAt(network: string, address: string, without: string | null = null): bigint {
    const existing = this.get(network, address)
    const replaced = without === null ? 0n : (existing?.fuel.get(without) ?? 0n)
    const left = existing ? sum(existing.fuel) - replaced - sum(existing.fees) : 0n
    return left > 0n ? left : 0n
  }
}
