import type { Answer, RpcReceipt } from './rpc-types.ts'

/** getOperatorFee(uint256) of the GasPriceOracle (OP Stack, since Isthmus). */
const GET_OPERATOR_FEE = '0x275aedd2'
const ISTHMUS_DIVISOR = 1_000_000n
const JOVIAN_FACTOR = 100n

/** Call data by which the oracle names the operator fee of so much gas. */
export const operatorFeeCall = (gas: bigint): string =>
  `${GET_OPERATOR_FEE}${gas.toString(16).padStart(64, '0')}`

/**
 * Scalar and constant by which a receipt says that an operator fee was charged; null: none was.
 * Nodes leave both out where they are 0.
 */
export function operatorFeeTerms(
  answer: Answer,
  receipt: RpcReceipt,
): { scalar: bigint; constant: bigint } | null {
  const read = (value: unknown, field: string) =>
    value === undefined || value === null ? 0n : answer.quantity(value, field)
  const scalar = read(receipt.operatorFeeScalar, 'operatorFeeScalar')
  const constant = read(receipt.operatorFeeConstant, 'operatorFeeConstant')
  return scalar === 0n && constant === 0n ? null : { scalar, constant }
}

/**
 * The operator fee by the formula of the fork that a receipt shows: Isthmus divides the scalar by a
 * million, Jovian, whose receipts have a `daFootprintGasScalar`, multiplies it by a hundred.
 */
export function operatorFeeByFork(
  receipt: RpcReceipt,
  { scalar, constant }: { scalar: bigint; constant: bigint },
  gas: bigint,
): bigint {
  const isJovian =
    receipt.daFootprintGasScalar !== undefined && receipt.daFootprintGasScalar !== null
  return (isJovian ? gas * scalar * JOVIAN_FACTOR : (gas * scalar) / ISTHMUS_DIVISOR) + constant
}
