import type { Hex } from 'viem'
import type { Anvil, RpcAnswer } from '../evm/anvil.ts'
import { isBelowBaseFee, type Pending } from './policy.ts'

/**
 * Transactions below the base fee. The engine rejects them, but a production node keeps them until
 * the fee has fallen.
 */
export class Held {
  readonly #transactions = new Map<Hex, Pending>()

  get size(): number {
    return this.#transactions.size
  }

  values(): Iterable<Pending> {
    return this.#transactions.values()
  }

  get(hash: Hex): Pending | undefined {
    return this.#transactions.get(hash)
  }

  add(hash: Hex, transaction: Pending): void {
    this.replacedBy(transaction)
    this.#transactions.set(hash, transaction)
  }

  delete(hash: Hex): boolean {
    return this.#transactions.delete(hash)
  }

  /** Removes a transaction after another one used the sender's nonce. */
  replacedBy({ sender, nonce }: Pending): void {
    for (const [hash, held] of this.#transactions)
      if (held.sender === sender && held.nonce === nonce) this.#transactions.delete(hash)
  }

  /**
   * Sends transactions to the engine that the lower base fee allows, and returns them. Removes
   * those that have become invalid.
   */
  async offer(anvil: Anvil): Promise<[Hex, Pending][]> {
    const taken: [Hex, Pending][] = []
    for (const [hash, transaction] of this.#transactions) {
      const answer = (await anvil.send({
        jsonrpc: '2.0',
        id: 1,
        method: 'eth_sendRawTransaction',
        params: [transaction.raw],
      })) as RpcAnswer
      if (answer.error && isBelowBaseFee(answer.error.message)) continue
      this.#transactions.delete(hash)
      if (!answer.error) taken.push([hash, transaction])
    }
    return taken
  }
}
