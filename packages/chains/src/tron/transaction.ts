import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
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
  type TronAction,
  type UnsignedTransaction,
} from '../types.ts'
import { address, addressText } from './address.ts'
import {
  ACTIVATION_SUN,
  BANDWIDTH_SUN,
  bandwidthOf,
  feeLimitFor,
  TOKEN_ENERGY_MAX,
  TRANSFER_SELECTOR,
} from './build.ts'
import { decodeRaw, encodeSigned, type RawData } from './proto.ts'

const BYTES_MAX = 1024
const TRANSFER_DATA_BYTES = 68
const MS = 1000n
const ACTIONS = {
  54: 'freeze',
  55: 'unfreeze',
  56: 'withdraw',
  57: 'delegate',
  58: 'undelegate',
} as const
const AMOUNT_FIELD = {
  54: 'frozen_balance',
  55: 'unfreeze_balance',
  57: 'balance',
  58: 'balance',
} as const

function parse(unsigned: UnsignedTransaction): RawData {
  if (!/^(?:[0-9a-f]{2})+$/.test(unsigned.bytes) || unsigned.bytes.length > 2 * BYTES_MAX) {
    throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
  }
  const raw = decodeRaw(hexToBytes(unsigned.bytes))
  if (raw.refBlockBytes.length !== 2 || raw.refBlockHash.length !== 8)
    throw new ChainError('SHAPE', 'has no reference block')
  if (raw.expiration <= 0n) throw new ChainError('SHAPE', 'has no expiration')
  if (raw.type === 31 ? raw.feeLimit === 0n : raw.feeLimit !== 0n) {
    throw new ChainError(
      'SHAPE',
      'contract calls require a fee limit, and other transactions must have none',
    )
  }
  return raw
}

function addressField(raw: RawData, name: string): string {
  return addressText(raw.value[name] as Uint8Array)
}

function amountField(raw: RawData, name: string): bigint {
  const amount = raw.value[name] as bigint
  if (amount <= 0n) throw new ChainError('SHAPE', `${name} must be greater than zero`)
  return amount
}

/**
 * Reads a call of exactly transfer(address,uint256) that moves neither TRX nor a TRC-10 token in
 * addition.
 */
function tokenPayment(
  network: Network,
  raw: RawData,
  assets: readonly Asset[],
): { asset: Asset; to: string; amount: bigint } {
  const contract = addressField(raw, 'contract_address')
  const asset = assets.find(
    (candidate) => candidate.type === 'token' && candidate.contract_address === contract,
  )
  if (!asset)
    throw new ChainError(
      'CONTRACT',
      `contract ${contract} is not a registered asset of ${network.code}`,
    )
  if (raw.value['call_value'] !== 0n)
    throw new ChainError('SHAPE', 'a token transfer must carry no native value')
  if (raw.value['call_token_value'] !== 0n || raw.value['token_id'] !== 0n) {
    throw new ChainError('SHAPE', 'a token transfer must carry no other token')
  }
  const data = raw.value['data'] as Uint8Array
  if (
    data.length !== TRANSFER_DATA_BYTES ||
    bytesToHex(data.subarray(0, 4)) !== TRANSFER_SELECTOR ||
    data.subarray(4, 16).some((byte) => byte !== 0)
  ) {
    throw new ChainError('SHAPE', 'token data must be exactly transfer(address,uint256)')
  }
  return {
    asset,
    to: addressText(concatBytes(Uint8Array.of(0x41), data.subarray(16, 36))),
    amount: BigInt(`0x${bytesToHex(data.subarray(36))}`),
  }
}

function actionOf(raw: RawData & { type: keyof typeof ACTIONS }): TronAction {
  const kind = ACTIONS[raw.type]
  if (raw.type === 56) return { kind, resource: null, amount: 0n, receiver: null }
  const resource = raw.value['resource']
  if (resource !== 0 && resource !== 1)
    throw new ChainError('SHAPE', 'TRX can be staked for BANDWIDTH and ENERGY only')
  if (raw.value['lock'] === true || (raw.value['lock_period'] ?? 0n) !== 0n) {
    throw new ChainError('SHAPE', 'a locked delegation is not allowed')
  }
  return {
    kind,
    resource: resource === 1 ? 'ENERGY' : 'BANDWIDTH',
    amount: amountField(raw, AMOUNT_FIELD[raw.type]),
    receiver: raw.type === 57 || raw.type === 58 ? addressField(raw, 'receiver_address') : null,
  }
}

/**
 * See Family.decode. Allowed shapes: a transfer of TRX, transfer(address,uint256) of a registered
 * token, and the five calls of Stake 2.0, which have no payment and are described in `action`.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const raw = parse(unsigned)
  const from = address(network, publicKeyAt(onlyPath(unsigned)))
  if (addressField(raw, 'owner_address') !== from)
    throw new ChainError('PATH', 'the account is not the one at the path')
  const native = assets.find((candidate) => candidate.type === 'native')
  if (!native) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  const decoded: DecodedTransaction = {
    network: network.code,
    asset: native.asset_name,
    payments: [],
    change: null,
    from: [from],
    fee_max: bandwidthOf(unsigned.bytes) * BANDWIDTH_SUN + raw.feeLimit,
    // A transaction contains no price. For TRX it is the price of a point of bandwidth; for a call
    // it is the lowest energy price at which its limit is plausible.
    fee_rate: (raw.feeLimit === 0n
      ? BANDWIDTH_SUN
      : (raw.feeLimit + feeLimitFor(TOKEN_ENERGY_MAX, 1n) - 1n) / feeLimitFor(TOKEN_ENERGY_MAX, 1n)
    ).toString(),
    consumes: [],
    valid_until: Number((raw.expiration + MS - 1n) / MS),
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
  switch (raw.type) {
    case 1: {
      const to = addressField(raw, 'to_address')
      if (to === from) throw new ChainError('SHAPE', 'an account must not pay itself')
      // Whether the receiver exists is unknown here.
      return {
        ...decoded,
        payments: [{ address: to, amount: amountField(raw, 'amount'), tag: null }],
        fee_max: decoded.fee_max + ACTIVATION_SUN,
      }
    }
    case 31: {
      const { asset, to, amount } = tokenPayment(network, raw, assets)
      return { ...decoded, asset: asset.asset_name, payments: [{ address: to, amount, tag: null }] }
    }
    default: {
      const action = actionOf({ ...raw, type: raw.type })
      if (action.receiver === from)
        throw new ChainError('SHAPE', 'an account cannot lend to itself')
      return { ...decoded, action }
    }
  }
}

/** Returns the SHA-256 of raw_data as the digest to sign. It is also the transaction's id. */
export function signing(
  _network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  parse(unsigned)
  const path = onlyPath(unsigned)
  return [{ path, publicKey: publicKeyAt(path), message: sha256(hexToBytes(unsigned.bytes)) }]
}

/** Attaches r, s and 27 + recovery id. The owner must be the key that signs. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const raw = parse(unsigned)
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  if (addressField(raw, 'owner_address') !== address(network, item.publicKey)) {
    throw new ChainError('PATH', 'the account is not the one at the path')
  }
  const { signature, recoveryId } = recoverableSignature(item, signatures)
  const recoverable = concatBytes(signature, Uint8Array.of(27 + recoveryId))
  return {
    network: network.code,
    raw: encodeSigned(unsigned.bytes, recoverable),
    hash: bytesToHex(item.message),
  }
}

/** Always false: accounts have no sequence, so signed transactions do not exclude each other. */
export function exclusive(_earlier: DecodedTransaction, _next: DecodedTransaction): boolean {
  return false
}
