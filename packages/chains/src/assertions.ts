import { ChainError, type UnsignedTransaction, type Validation } from './types.ts'

/**
 * Asserts a condition on the shape of a transaction.
 * @throws ChainError `SHAPE` if the condition is false
 */
export function assertShape(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ChainError('SHAPE', message)
}

/**
 * Returns the path of an account's transaction, which has exactly one signer.
 * @throws ChainError `SHAPE` if it has more or fewer
 */
export function onlyPath(unsigned: UnsignedTransaction): number[] {
  const [input, more] = unsigned.inputs
  assertShape(
    input !== undefined && !more && !unsigned.change,
    "an account's transaction has one input and no change",
  )
  return input.path
}

/**
 * Returns why an address with a tag is invalid on a network without tags; null if it has no tag.
 */
export function refusedTag(
  addressTag: string | null | undefined,
): Extract<Validation, { valid: false }> | null {
  return addressTag === undefined || addressTag === null
    ? null
    : { valid: false, reason: 'this network has no address tags', field: 'address_tag' }
}
