import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import {
  ChainError,
  type Asset,
  type Network,
  type TronAction,
  type TronResource,
  type UnsignedTransaction,
} from '../types.ts'
import { address, addressBytes } from './address.ts'
import { encodeRaw, type ContractType, type Fields } from './proto.ts'

/** Bytes that bandwidth counts for the result, in addition to the signed transaction. */
export const RESULT_BYTES = 64
export { TOKEN_BANDWIDTH, TRANSFER_BANDWIDTH } from './bandwidth.ts'
/**
 * Upper bound of the energy of a token transfer, used if the chain cannot be queried: the energy of
 * a transfer to an address that has none of the token.
 */
export const TOKEN_ENERGY = 131_000n
export const TOKEN_ENERGY_MAX = 500_000n
/**
 * Sun per point of bandwidth. The actual value is in the chain's parameters; this constant bounds
 * the cost of a transaction.
 */
export const BANDWIDTH_SUN = 1000n
/**
 * Sun that a transfer costs if it creates its receiver: 1 TRX, and 0.1 TRX instead of bandwidth.
 */
export const ACTIVATION_SUN = 1_100_000n
/**
 * Bytes that signing adds: field tag, length and 65 bytes of the signature; tag and length of
 * raw_data.
 */
const SIGNATURE_BYTES = 67
/** transfer(address,uint256) */
export const TRANSFER_SELECTOR = 'a9059cbb'
/**
 * Numerator of the ratio of fee_limit to energy × price. The contract's energy factor may rise until
 * the transaction is included.
 */
export const FEE_LIMIT_NUMERATOR = 12n
export const FEE_LIMIT_DENOMINATOR = 10n
/**
 * Lifetime of a transaction in milliseconds: long enough for three nodes to sign, short enough that
 * a lost transaction soon expires.
 */
export const LIFE_MS = 600_000

/**
 * Reference to the chain in a transaction, read just before building. `timestamp` can have any
 * value, because nodes do not check it. It distinguishes two equal payments, so a value must never
 * be used twice for an account.
 */
export interface TronReference {
  refBlockBytes: Uint8Array
  refBlockHash: Uint8Array
  /** Unix milliseconds. */
  expiration: number
  timestamp: number
}

/** Returns the reference to a block: bytes 6 to 8 of its number, bytes 8 to 16 of its id. */
export function refBlock(
  height: number,
  id: string,
): { refBlockBytes: Uint8Array; refBlockHash: Uint8Array } {
  const number = hexToBytes(BigInt(height).toString(16).padStart(16, '0'))
  return { refBlockBytes: number.slice(6, 8), refBlockHash: hexToBytes(id).slice(8, 16) }
}

const RESOURCES: Record<TronResource, number> = { BANDWIDTH: 0, ENERGY: 1 }
const ACTION_TYPES = {
  freeze: 54,
  unfreeze: 55,
  withdraw: 56,
  delegate: 57,
  undelegate: 58,
} as const

/** Returns the call data of a TRC-20 transfer. */
export function transferData(to: string, amount: bigint): Uint8Array {
  if (amount < 0n || amount >= 2n ** 256n)
    throw new ChainError('AMOUNT', 'does not fit into 256 bits')
  return concatBytes(
    hexToBytes(TRANSFER_SELECTOR),
    new Uint8Array(12),
    addressBytes(to).subarray(1),
    hexToBytes(amount.toString(16).padStart(64, '0')),
  )
}

/**
 * Returns the fee_limit in sun. It caps all energy of a call, including staked energy, so it must
 * not be computed from the burnt part alone.
 */
export function feeLimitFor(energy: bigint, energySun: bigint): bigint {
  return (energy * energySun * FEE_LIMIT_NUMERATOR) / FEE_LIMIT_DENOMINATOR
}

/** Returns the points of bandwidth that raw_data uses once it is signed. */
export function bandwidthOf(bytes: string): bigint {
  const length = bytes.length / 2
  const lengthBytes = length < 128 ? 1 : length < 16_384 ? 2 : 3
  return BigInt(1 + lengthBytes + length + SIGNATURE_BYTES + RESULT_BYTES)
}

/** A number at least as long as any time or amount in use, for measuring the size. */
const LONG_TIME_MS = 2n ** 42n - 1n
const LONG_AMOUNT = 2n ** 63n - 1n

/**
 * Returns the maximum bandwidth of a transfer in points. `feeLimit` is that of a token transfer,
 * otherwise 0.
 */
export function transferBandwidth(feeLimit: bigint): bigint {
  const someone = Uint8Array.of(0x41, ...new Uint8Array(20).fill(1))
  const value: Fields =
    feeLimit === 0n
      ? { owner_address: someone, to_address: someone, amount: LONG_AMOUNT }
      : { owner_address: someone, contract_address: someone, data: new Uint8Array(68) }
  const raw = encodeRaw({
    refBlockBytes: new Uint8Array(2),
    refBlockHash: new Uint8Array(8),
    expiration: LONG_TIME_MS,
    timestamp: LONG_TIME_MS,
    feeLimit,
    type: feeLimit === 0n ? 1 : 31,
    value,
  })
  return bandwidthOf(bytesToHex(raw))
}

/** Returns the maximum bandwidth of a Stake 2.0 call in points. */
export function actionBandwidth(kind: TronAction['kind']): bigint {
  const someone = Uint8Array.of(0x41, ...new Uint8Array(20).fill(1))
  const value: Record<TronAction['kind'], Fields> = {
    freeze: { frozen_balance: LONG_AMOUNT, resource: 1 },
    unfreeze: { unfreeze_balance: LONG_AMOUNT, resource: 1 },
    withdraw: {},
    delegate: { resource: 1, balance: LONG_AMOUNT, receiver_address: someone },
    undelegate: { resource: 1, balance: LONG_AMOUNT, receiver_address: someone },
  }
  const raw = encodeRaw({
    refBlockBytes: new Uint8Array(2),
    refBlockHash: new Uint8Array(8),
    expiration: LONG_TIME_MS,
    timestamp: LONG_TIME_MS,
    feeLimit: 0n,
    type: ACTION_TYPES[kind],
    value: { owner_address: someone, ...value[kind] },
  })
  return bandwidthOf(bytesToHex(raw))
}

interface Common {
  reference: TronReference
  publicKey: Uint8Array
  path: number[]
}

function build(
  network: Network,
  common: Common,
  type: ContractType,
  value: Fields,
  feeLimit = 0n,
): UnsignedTransaction {
  const { refBlockBytes, refBlockHash, expiration, timestamp } = common.reference
  const raw = encodeRaw({
    refBlockBytes,
    refBlockHash,
    expiration: BigInt(expiration),
    timestamp: BigInt(timestamp),
    feeLimit,
    type,
    value: { owner_address: addressBytes(address(network, common.publicKey)), ...value },
  })
  return { network: network.code, bytes: bytesToHex(raw), inputs: [{ path: common.path }] }
}

/**
 * Builds an unsigned transfer of TRX or a TRC-20 token.
 *
 * @param o.amount smallest unit of the asset
 * @param o.feeLimit tokens: maximum cost of energy, in sun
 * @param o.publicKey of the sending account, 33 bytes
 * @throws ChainError `ADDRESS`, `AMOUNT`, `FEE`
 */
export function buildTransfer(
  network: Network,
  o: Common & { asset: Asset; to: string; amount: bigint; feeLimit?: bigint },
): UnsignedTransaction {
  if (o.asset.type === 'native') {
    if (o.feeLimit) throw new ChainError('FEE', 'a transfer of TRX must have no fee limit')
    return build(network, o, 1, { to_address: addressBytes(o.to), amount: o.amount })
  }
  if (!o.feeLimit || o.feeLimit < 0n)
    throw new ChainError('FEE', 'a token transfer requires a fee limit')
  return build(
    network,
    o,
    31,
    {
      contract_address: addressBytes(o.asset.contract_address as string),
      data: transferData(o.to, o.amount),
    },
    o.feeLimit,
  )
}

/** Builds the transaction that stakes TRX for a resource. */
export function buildFreeze(
  network: Network,
  o: Common & { amount: bigint; resource: TronResource },
): UnsignedTransaction {
  return build(network, o, 54, { frozen_balance: o.amount, resource: RESOURCES[o.resource] })
}

/**
 * Builds the transaction that begins to unstake. It also returns amounts that have already matured
 * to the balance.
 */
export function buildUnfreeze(
  network: Network,
  o: Common & { amount: bigint; resource: TronResource },
): UnsignedTransaction {
  return build(network, o, 55, { unfreeze_balance: o.amount, resource: RESOURCES[o.resource] })
}

/** Builds the transaction that withdraws all matured unstaked TRX. */
export function buildWithdraw(network: Network, o: Common): UnsignedTransaction {
  return build(network, o, 56, {})
}

/**
 * Builds the transaction that lends the resource of staked TRX to another account, without a lock.
 */
export function buildDelegate(
  network: Network,
  o: Common & { amount: bigint; resource: TronResource; receiver: string },
): UnsignedTransaction {
  return build(network, o, 57, {
    resource: RESOURCES[o.resource],
    balance: o.amount,
    receiver_address: addressBytes(o.receiver),
  })
}

/** Builds the transaction that reclaims a lent resource. */
export function buildUndelegate(
  network: Network,
  o: Common & { amount: bigint; resource: TronResource; receiver: string },
): UnsignedTransaction {
  return build(network, o, 58, {
    resource: RESOURCES[o.resource],
    balance: o.amount,
    receiver_address: addressBytes(o.receiver),
  })
}

/** Builds the Stake 2.0 call of an action. */
export function buildAction(network: Network, o: Common & TronAction): UnsignedTransaction {
  if (o.kind === 'withdraw') return buildWithdraw(network, o)
  const { resource, receiver } = o
  if (resource === null) throw new ChainError('AMOUNT', `${o.kind} has no resource`)
  if (o.kind === 'freeze') return buildFreeze(network, { ...o, resource })
  if (o.kind === 'unfreeze') return buildUnfreeze(network, { ...o, resource })
  if (receiver === null) throw new ChainError('ADDRESS', `${o.kind} has no receiver`)
  return (o.kind === 'delegate' ? buildDelegate : buildUndelegate)(network, {
    ...o,
    resource,
    receiver,
  })
}
