import { ChainError, type UnsignedTransaction, type Validation } from './types.ts'

/** @throws ChainError `SHAPE` */
export function assertShape(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ChainError('SHAPE', message)
}

/** The path of an account's transaction. @throws ChainError `SHAPE` */
export function onlyPath(unsigned: UnsignedTransaction): number[] {
  const [input, more] = unsigned.inputs
  assertShape(
    input !== undefined && !more && !unsigned.change,
    "an account's transaction has one input and no change",
  )
  return input.path
}

/** Why an address with a tag is refused where no address has one; null: it has none. */
export function refusedTag(
  addressTag: string | null | undefined,
): Extract<Validation, { valid: false }> | null {
  return addressTag === undefined || addressTag === null
    ? null
    : { valid: false, reason: 'this network has no address tags', field: 'address_tag' }
}
