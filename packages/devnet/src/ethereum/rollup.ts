import type { Hex } from 'viem'
import { parseTransaction, serializeTransaction, size, toHex } from 'viem/utils'
import type { Anvil } from '../evm/anvil.ts'
import { intrinsicGas } from './gas.ts'

// Fees of roll-ups in addition to the EVM's own gas. The engine does not support them, so they are
// deducted from the sender after each block.

/** Fee model of a network for publishing on the parent chain; null if there is none. */
export type Rollup = 'arbitrum' | 'isthmus' | 'jovian' | null

/**
 * Fees of one transaction of a block, as journaled: a replay charges them again. `receipt`: fields
 * in its receipt; `gas`: poster gas, which is part of the receipt's gasUsed.
 */
export interface Charge {
  hash: Hex
  account: Hex
  wei: Hex
  gas?: Hex
  receipt: Record<string, Hex>
}

/**
 * Bytes that a transaction publishes in addition to its call data: fields, recipient, amount and
 * signature.
 */
const ENVELOPE_BYTES = 120n
/**
 * Minimum poster gas of one byte. It changes with the height, as the parent chain's price changes
 * over time.
 */
const POSTER_GAS_LEAST = 250n
const POSTER_GAS_STEP = 5n
const POSTER_GAS_STEPS = 8
/**
 * Estimated price of the parent chain in percent of the actual one (nitro's
 * GasEstimationL1PricePadding is 11,000 bips).
 */
const ESTIMATE_PERCENT = 110n

/** Values of `contracts/GasPriceOracleLike.sol`. */
const L1_BASE_FEE = 10_000_000n
const SIGNATURE_BYTES = 68n
const GAS_PER_BYTE = 16n

/** getOperatorFee(uint256) of the GasPriceOracle. */
const GET_OPERATOR_FEE = '0x275aedd2'
const OPERATOR_FEE: Record<'isthmus' | 'jovian', { scalar: bigint; constant: bigint }> = {
  isthmus: { scalar: 2_000_000_000n, constant: 400_000_000_000n },
  jovian: { scalar: 5_000_000n, constant: 300_000_000_000n },
}
const ISTHMUS_DIVISOR = 1_000_000n
const JOVIAN_FACTOR = 100n
const DA_FOOTPRINT_GAS_SCALAR = 400n

/** Returns the gas that a transaction in the block at a height pays for publishing. */
function posterGas(dataBytes: number, height: number): bigint {
  // The price rises and falls in steps, so that it never jumps.
  const at = height % (2 * POSTER_GAS_STEPS)
  const step = BigInt(at < POSTER_GAS_STEPS ? at : 2 * POSTER_GAS_STEPS - at)
  return (ENVELOPE_BYTES + BigInt(dataBytes)) * (POSTER_GAS_LEAST + POSTER_GAS_STEP * step)
}

/** Returns the gas that eth_estimateGas adds. */
export const estimatedPosterGas = (dataBytes: number, height: number): bigint =>
  (posterGas(dataBytes, height) * ESTIMATE_PERCENT) / 100n

/** Isthmus divides the scalar by a million, Jovian multiplies it by a hundred. */
function operatorFee(fork: 'isthmus' | 'jovian', gas: bigint): bigint {
  const { scalar, constant } = OPERATOR_FEE[fork]
  return (
    (fork === 'isthmus' ? (gas * scalar) / ISTHMUS_DIVISOR : gas * scalar * JOVIAN_FACTOR) +
    constant
  )
}

function l1Fee(raw: Hex): bigint {
  const { r: _r, s: _s, v: _v, yParity: _y, ...unsigned } = parseTransaction(raw)
  const bytes = BigInt(
    size(serializeTransaction(unsigned as Parameters<typeof serializeTransaction>[0])),
  )
  return (bytes + SIGNATURE_BYTES) * GAS_PER_BYTE * L1_BASE_FEE
}

/**
 * Returns the response of the oracle's getOperatorFee, which the local chain's contract does not
 * implement; undefined for another call.
 */
export function operatorFeeCall(
  rollup: Rollup,
  oracle: Hex | undefined,
  call: unknown,
): Hex | undefined {
  if (rollup === null || rollup === 'arbitrum' || oracle === undefined) return undefined
  const { to, data, input } = (call ?? {}) as { to?: unknown; data?: unknown; input?: unknown }
  const bytes = data ?? input
  if (
    typeof to !== 'string' ||
    to.toLowerCase() !== oracle.toLowerCase() ||
    typeof bytes !== 'string'
  )
    return undefined
  if (!bytes.startsWith(GET_OPERATOR_FEE) || bytes.length !== GET_OPERATOR_FEE.length + 64)
    return undefined
  return toHex(operatorFee(rollup, BigInt(`0x${bytes.slice(GET_OPERATOR_FEE.length)}`)), {
    size: 32,
  })
}

/**
 * Returns why a roll-up's node rejects a signed transaction, in its own words; null if it accepts
 * it.
 * @param height of the next block
 */
export async function refusalOf(
  rollup: Rollup,
  anvil: Anvil,
  raw: Hex,
  sender: Hex,
  height: number,
): Promise<string | null> {
  if (rollup === null) return null
  const { gas = 0n, to, data = '0x', value = 0n, gasPrice, maxFeePerGas } = parseTransaction(raw)
  if (rollup === 'arbitrum') {
    const needed = intrinsicGas({ to, data }) + posterGas(size(data), height)
    return gas < needed ? `intrinsic gas too low: have ${gas}, want ${needed}` : null
  }
  const balance = BigInt(await anvil.call<Hex>('eth_getBalance', sender, 'latest'))
  const cost =
    value + gas * (maxFeePerGas ?? gasPrice ?? 0n) + l1Fee(raw) + operatorFee(rollup, gas)
  return cost > balance
    ? `insufficient funds for gas * price + value: have ${balance} want ${cost}`
    : null
}

interface Receipt {
  transactionHash: Hex
  from: Hex
  gasUsed: Hex
  effectiveGasPrice: Hex
}

/** Returns the fees of the transactions of the engine's newest block. */
export async function chargesOf(
  rollup: Rollup,
  anvil: Anvil,
  block: { height: number; raw: readonly Hex[] },
): Promise<Charge[]> {
  if (rollup === null || block.raw.length === 0) return []
  const receipts = await anvil.call<Receipt[]>('eth_getBlockReceipts', toHex(block.height))
  return receipts.map(
    ({ transactionHash: hash, from: account, gasUsed, effectiveGasPrice }, at): Charge => {
      const raw = block.raw[at] as Hex
      if (rollup === 'arbitrum') {
        const { gas = 0n, data = '0x' } = parseTransaction(raw)
        const [poster, left] = [posterGas(size(data), block.height), gas - BigInt(gasUsed)]
        const bought = poster < left ? poster : left
        return {
          hash,
          account,
          wei: toHex(bought * BigInt(effectiveGasPrice)),
          gas: toHex(bought),
          receipt: { gasUsedForL1: toHex(bought) },
        }
      }
      const { scalar, constant } = OPERATOR_FEE[rollup]
      const published = l1Fee(raw)
      return {
        hash,
        account,
        wei: toHex(published + operatorFee(rollup, BigInt(gasUsed))),
        receipt: {
          l1Fee: toHex(published),
          operatorFeeScalar: toHex(scalar),
          operatorFeeConstant: toHex(constant),
          ...(rollup === 'jovian' ? { daFootprintGasScalar: toHex(DA_FOOTPRINT_GAS_SCALAR) } : {}),
        },
      }
    },
  )
}

/** Deducts the fees from the senders. */
export async function take(anvil: Anvil, charges: readonly Charge[]): Promise<void> {
  for (const { account, wei } of charges) {
    const balance = BigInt(await anvil.call<Hex>('eth_getBalance', account, 'latest'))
    const left = balance - BigInt(wei)
    await anvil.call('anvil_setBalance', account, toHex(left > 0n ? left : 0n))
  }
}

/** Adds the fees of its transaction to a receipt. */
export function charged<R extends { gasUsed: Hex }>(receipt: R, charge: Charge | undefined): R {
  if (charge === undefined) return receipt
  return {
    ...receipt,
    ...charge.receipt,
    gasUsed: toHex(BigInt(receipt.gasUsed) + BigInt(charge.gas ?? '0x0')),
  }
}
