import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { readOnce } from '../read-once.ts'
import { recoverableSignature } from '../recoverable.ts'
import { onlyPath } from '../assertions.ts'
import {
  ChainError,
  type Asset,
  type DecodedTransaction,
  type Network,
  type PublicKeyAt,
  type SignatureBytes,
  type SignedTransaction,
  type SigningItem,
  type UnsignedTransaction,
} from '../types.ts'
import { address, canonical } from './address.ts'
import { read, typeOf, write, type Envelope, type Hex } from './envelope.ts'

const GWEI_DECIMALS = 9
/** transfer(address,uint256) */
export const TRANSFER_SELECTOR = '0xa9059cbb'

function bytesOf(unsigned: UnsignedTransaction): Hex {
  if (!/^(?:[0-9a-f]{2}){1,65536}$/.test(unsigned.bytes))
    throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
  return `0x${unsigned.bytes}`
}

type Parsed = Readonly<Envelope & { gas: bigint; nonce: bigint }>

const parse = readOnce((network: Network, unsigned: UnsignedTransaction): Parsed => {
  const bytes = bytesOf(unsigned)
  const type = typeOf(bytes)
  if (type === 'refused')
    throw new ChainError('SHAPE', 'only transactions of type 0 and 2 are allowed')
  let transaction: Envelope
  try {
    if (type === null) throw new Error('has an unknown type')
    transaction = read(bytes)
  } catch {
    throw new ChainError('TRANSACTION', 'is not an unsigned EVM transaction')
  }
  if (network.legacy_gas_price && transaction.type !== 'legacy') {
    throw new ChainError('SHAPE', `${network.code} supports transactions of type 0 only`)
  }
  if (transaction.type === 'eip1559' && (transaction.accessList?.length ?? 0) > 0) {
    throw new ChainError('SHAPE', 'an access list is not allowed')
  }
  // EIP-155: without a chain id a signature would be valid on every network.
  if (transaction.chainId !== network.chain_id) {
    throw new ChainError(
      'CHAIN_ID',
      `chain id ${String(transaction.chainId)} is not ${network.code}'s ${String(network.chain_id)}`,
    )
  }
  if (transaction.r !== undefined || transaction.s !== undefined)
    throw new ChainError('TRANSACTION', 'already carries a signature')
  if (written(transaction) !== bytes)
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  return { ...transaction, gas: transaction.gas ?? 0n, nonce: transaction.nonce ?? 0n }
})

/**
 * Encodes a transaction; null for one that was read but cannot be written, such as one with a
 * number that is too long.
 */
function written(transaction: Envelope): Hex | null {
  try {
    return write(transaction)
  } catch {
    return null
  }
}

/**
 * See Family.decode. A native transfer has empty data. A token transfer has exactly 68 bytes of
 * transfer(address,uint256) and value 0.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const transaction = parse(network, unsigned)
  const from = address(network, publicKeyAt(onlyPath(unsigned)))
  if (!transaction.to) throw new ChainError('SHAPE', 'contract creation is not allowed')
  const data = transaction.data ?? '0x'
  const value = transaction.value ?? 0n
  const price = transaction.type === 'eip1559' ? transaction.maxFeePerGas : transaction.gasPrice
  if (price === undefined) throw new ChainError('SHAPE', 'has no fee')
  if (transaction.type === 'eip1559' && (transaction.maxPriorityFeePerGas ?? 0n) > price) {
    throw new ChainError('SHAPE', 'priority fee is above the maximum fee')
  }
  let asset: Asset | undefined
  let payment: { address: string; amount: bigint; tag: null }
  if (data === '0x') {
    asset = assets.find((candidate) => candidate.type === 'native')
    payment = { address: canonical(transaction.to), amount: value, tag: null }
  } else {
    const contract = canonical(transaction.to)
    asset = assets.find(
      (candidate) =>
        candidate.type === 'token' && canonical(candidate.contract_address as string) === contract,
    )
    if (!asset)
      throw new ChainError(
        'CONTRACT',
        `contract ${contract} is not a registered asset of ${network.code}`,
      )
    if (
      data.length !== 2 + 68 * 2 ||
      !data.startsWith(TRANSFER_SELECTOR) ||
      !/^0{24}$/.test(data.slice(10, 34))
    ) {
      throw new ChainError('SHAPE', 'token data must be exactly transfer(address,uint256)')
    }
    if (value !== 0n) throw new ChainError('SHAPE', 'a token transfer must carry no native value')
    payment = {
      address: canonical(`0x${data.slice(34, 74)}`),
      amount: BigInt(`0x${data.slice(74)}`),
      tag: null,
    }
  }
  if (!asset) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [payment],
    change: null,
    from: [from],
    fee_max: transaction.gas * price,
    fee_rate: gwei(price),
    consumes: [`${from}:${transaction.nonce}`],
    nonce: transaction.nonce,
    gas_limit: transaction.gas,
    max_fee_per_gas: price,
    vsize: null,
  }
}

function gwei(wei: bigint): string {
  const text = wei.toString().padStart(GWEI_DECIMALS + 1, '0')
  const fraction = text.slice(-GWEI_DECIMALS).replace(/0+$/, '')
  return text.slice(0, -GWEI_DECIMALS) + (fraction === '' ? '' : `.${fraction}`)
}

/**
 * Returns the Keccak-256 digest of the unsigned envelope (EIP-155 for type 0, EIP-1559 for type 2).
 */
export function signing(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  parse(network, unsigned)
  const path = onlyPath(unsigned)
  return [{ path, publicKey: publicKeyAt(path), message: keccak_256(hexToBytes(unsigned.bytes)) }]
}

/** Attaches r, s and yParity. Low-S (EIP-2) is enforced here, because some nodes accept high-S. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const transaction = parse(network, unsigned)
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  const { signature, recoveryId } = recoverableSignature(item, signatures)
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)].map((half) =>
    BigInt(`0x${bytesToHex(half)}`),
  ) as [bigint, bigint]
  const raw = write(transaction, { r, s, yParity: recoveryId }).slice(2)
  return { network: network.code, raw, hash: `0x${bytesToHex(keccak_256(hexToBytes(raw)))}` }
}

/** See {@link Family.signaturesIn}. */
export function signaturesIn(raw: string): SignatureBytes[] {
  try {
    const { r, s, yParity } = read(`0x${raw}`)
    const signature = hexToBytes(
      [r, s].map((half) => half!.toString(16).padStart(64, '0')).join(''),
    )
    return [{ signature, recoveryId: yParity! }]
  } catch {
    throw new ChainError('SIGNATURE', 'is not a signed EVM transaction')
  }
}

/** Returns whether both have the same account and nonce: only one of them can be mined. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return earlier.consumes[0] === next.consumes[0]
}

/** See {@link Family.renumber}. */
export function renumber(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
  return { ...unsigned, bytes: write({ ...read(bytesOf(unsigned)), nonce }).slice(2) }
}
