import type { Answer, RpcReceipt } from './rpc-types.ts'

/** getOperatorFee(uint256) of the GasPriceOracle (OP Stack, since Isthmus). */
const GET_OPERATOR_FEE = '0x275aedd2'
const ISTHMUS_DIVISOR = 1_000_000n
const JOVIAN_FACTOR = 100n

/** Returns the call data by which the oracle returns the operator fee for an amount of gas. */
export const operatorFeeCall = (gas: bigint): string =>
  `${GET_OPERATOR_FEE}${gas.toString(16).padStart(64, '0')}`

/**
 * Returns the scalar and the constant by which a receipt states an operator fee; null if none was
 * charged. Nodes omit both if they are 0.
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
 * Computes the operator fee by the formula of the fork that a receipt indicates: Isthmus divides
 * the scalar by a million; Jovian, whose receipts have a `daFootprintGasScalar`, multiplies it by a
 * hundred.
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
