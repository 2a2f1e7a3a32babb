import type { Hex, TransactionSerializable } from 'viem'

const BASE_GAS = 21_000n
const CREATION_GAS = 32_000n
const INIT_CODE_WORD_GAS = 2n
const WORD_BYTES = 32n
const LISTED_ADDRESS_GAS = 2400n
const LISTED_KEY_GAS = 1900n
/** Cost of one token of call data: a zero byte is one, another byte four (EIP-7623). */
const FLOOR_TOKEN_GAS = 10n

/** Returns the numbers of zero bytes and of others. */
function bytesOf(data: Hex): { zero: bigint; other: bigint } {
  let zero = 0n
  for (let at = 2; at < data.length; at += 2) if (data.slice(at, at + 2) === '00') zero += 1n
  return { zero, other: BigInt(data.length - 2) / 2n - zero }
}

/** Returns the gas that a transaction uses before its first instruction. */
export function intrinsicGas({
  to,
  data = '0x',
  accessList = [],
}: Pick<TransactionSerializable, 'to' | 'data' | 'accessList'>): bigint {
  const { zero, other } = bytesOf(data)
  const words = (zero + other + WORD_BYTES - 1n) / WORD_BYTES
  const creation = to ? 0n : CREATION_GAS + words * INIT_CODE_WORD_GAS
  const keys = accessList.reduce((sum, { storageKeys }) => sum + storageKeys.length, 0)
  return (
    BASE_GAS +
    creation +
    4n * zero +
    16n * other +
    BigInt(accessList.length) * LISTED_ADDRESS_GAS +
    BigInt(keys) * LISTED_KEY_GAS
  )
}

/** Returns the least gas that a transaction with this call data pays (EIP-7623). */
export function floorGas({ data = '0x' }: Pick<TransactionSerializable, 'data'>): bigint {
  const { zero, other } = bytesOf(data)
  return BASE_GAS + (zero + 4n * other) * FLOOR_TOKEN_GAS
}
