import type { UnsignedTransaction } from './types.ts'

/**
 * Caches the parsed form of an unsigned transaction for as long as it is the same object with the
 * same bytes, because decoding, signing and assembling each parse it. The result of `read` must
 * depend only on `unsigned.bytes` and on the value passed as `of`, and must not be modified.
 */
export function readOnce<Of extends object, T>(
  read: (of: Of, unsigned: UnsignedTransaction) => T,
): typeof read {
  const cache = new WeakMap<UnsignedTransaction, { of: Of; bytes: string; value: T }>()
  return (of, unsigned) => {
    const last = cache.get(unsigned)
    if (last?.of === of && last.bytes === unsigned.bytes) return last.value
    const value = read(of, unsigned)
    cache.set(unsigned, { of, bytes: unsigned.bytes, value })
    return value
  }
}
