import { ed25519 } from '@noble/curves/ed25519.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import { ChainError, type Asset, type DecodedTransaction, type Network, type PublicKeyAt, type SignatureBytes, type SignedTransaction, type SigningItem, type UnsignedTransaction } from '../types.ts'
import { address } from './address.ts'
import { feeOf, TOKEN_ACCOUNT_RENT } from './build.ts'
import { parse, type Payment } from './message.ts'

const SIGNATURE_BYTES = 64

function read(network: Network, unsigned: UnsignedTransaction, publicKeyAt: PublicKeyAt): { payment: Payment; path: number[]; message: Uint8Array } {
  if (!/^(?:[0-9a-f]{2})+$/.test(unsigned.bytes)) throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
  const [input, more] = unsigned.inputs
  if (!input || more || unsigned.change) throw new ChainError('SHAPE', 'a Solana transaction has one input and no change')
  const message = hexToBytes(unsigned.bytes)
  const payment = parse(message)
  if (payment.from !== address(network, publicKeyAt(input.path))) throw new ChainError('PATH', 'the account is not the one at the path')
  return { payment, path: input.path, message }
}

/**
 * See Family.decode. One transfer, paid by the account that it leaves. It names no end: a recent blockhash ends it after
 * 150 blocks, and nothing that would keep it alive (a durable nonce) is allowed. Nothing excludes anything.
 */
export function decode(network: Network, unsigned: UnsignedTransaction, assets: readonly Asset[], publicKeyAt: PublicKeyAt): DecodedTransaction {
  const { payment } = read(network, unsigned, publicKeyAt)
  const { token } = payment
  const asset = assets.find((candidate) => (token ? candidate.type === 'token' && candidate.contract_address === token.mint : candidate.type === 'native'))
  if (!asset) throw new ChainError(token ? 'CONTRACT' : 'NETWORK', token ? `the mint ${token.mint} is not registered` : `${network.code} has no native asset`)
  if (token && token.decimals !== asset.decimals) throw new ChainError('CONTRACT', `${asset.asset_name} has ${asset.decimals} decimals, not ${token.decimals}`)
  const fee = feeOf(payment.units ?? 0, payment.unitPrice ?? 0n)
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [{ address: payment.to, amount: payment.amount, tag: null }],
    change: null,
    from: [payment.from],
    // The token account may vanish until the transaction is executed, and is then paid for.
    fee_max: fee + (token ? TOKEN_ACCOUNT_RENT : 0n),
    fee_rate: fee.toString(),
    consumes: [],
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
}

/** The whole message is signed. */
export function signing(network: Network, unsigned: UnsignedTransaction, publicKeyAt: PublicKeyAt): SigningItem[] {
  const { path, message } = read(network, unsigned, publicKeyAt)
  return [{ path, publicKey: publicKeyAt(path), message }]
}

/** The transaction's id is its first signature. */
export function assemble(network: Network, unsigned: UnsignedTransaction, signatures: SignatureBytes[], publicKeyAt: PublicKeyAt): SignedTransaction {
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  const [part, more] = signatures
  if (!part || more || part.signature.length !== SIGNATURE_BYTES) throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is needed')
  if (part.recoveryId !== null) throw new ChainError('SIGNATURE', 'an Ed25519 signature has no recovery id')
  if (!ed25519.verify(part.signature, item.message, item.publicKey, { zip215: false })) throw new ChainError('SIGNATURE', 'does not verify')
  return { network: network.code, raw: bytesToHex(concatBytes(Uint8Array.of(1), part.signature, item.message)), hash: base58.encode(part.signature) }
}

/** Two transactions of one account may both be executed. The same message cannot: the chain remembers it while its blockhash lives. */
export function exclusive(): boolean {
  return false
}
