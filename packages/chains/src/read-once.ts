import type { UnsignedTransaction } from './types.ts'

/**
 * Reads an unsigned transaction once for as long as it is the same object with the same bytes: what
 * decodes it, says what is to be signed and assembles it reads it each time. `read` must depend on
 * nothing else but what is in `unsigned.bytes`, or be given it as `of`; what it answers must not be
 * changed.
 */
export function readOnce<Of extends object, T>(
  read: (of: Of, unsigned: UnsignedTransaction) => T,
): typeof read {
  const known = new WeakMap<UnsignedTransaction, { of: Of; bytes: string; value: T }>()
  return (of, unsigned) => {
    const last = known.get(unsigned)
    if (last?.of === of && last.bytes === unsigned.bytes) return last.value
    const value = read(of, unsigned)
    known.set(unsigned, { of, bytes: unsigned.bytes, value })
    return value
  }
}
