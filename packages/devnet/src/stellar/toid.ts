/**
 * Returns a position in the whole history, as Stellar numbers it.
 * @param order of the transaction in its ledger, from 0
 * @param operation in its transaction, from 0; without it the number of the transaction itself
 */
export function toid(ledger: number, order: number, operation = -1): bigint {
  return (BigInt(ledger) << 32n) | (BigInt(order + 1) << 12n) | BigInt(operation + 1)
}
