import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { isEd25519 } from '../ed25519.ts'
import { formatAmount } from '../amount.ts'
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
import { address, addressText } from './address.ts'
import {
  encodeSigned,
  hashOf,
  outputOf,
  parseBody,
  signedBytes,
  type Body,
  type FoundOutput,
} from './body.ts'
import { PARAMETERS, scriptFee } from './build.ts'

/** Rates are exact to a thousandth. */
const MILLI_DECIMALS = 3
const SIGNATURE_BYTES = 64
const HEX_MAX = 2 * PARAMETERS.transactionBytesMax

interface Spent {
  path: number[]
  publicKey: Uint8Array
  address: string
  output: FoundOutput
}

function bytesFrom(hex: string, what: string): Uint8Array {
  if (hex.length === 0 || hex.length > HEX_MAX || hex.length % 2 !== 0 || /[^0-9a-f]/.test(hex)) {
    throw new ChainError('TRANSACTION', `${what} must be lower-case hex`)
  }
  return hexToBytes(hex)
}

/**
 * Reads the inputs. Their values come from the bodies of the transactions that created them, whose
 * ids are recomputed, so nothing is trusted.
 */
function read(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): { bytes: Uint8Array; body: Body; spent: Spent[] } {
  const bytes = bytesFrom(unsigned.bytes, 'transaction')
  const body = parseBody(bytes)
  if (body.inputs.length !== unsigned.inputs.length)
    throw new ChainError('SHAPE', 'inputs and their paths differ in number')
  const existing = new Map<string, { id: string; body: Uint8Array }>()
  const spent = body.inputs.map(({ txid, index }, position): Spent => {
    const { path, previous } = unsigned.inputs[position] as UnsignedTransaction['inputs'][number]
    if (previous === undefined)
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} lacks its previous transaction`,
      )
    let before = existing.get(previous)
    if (!before) {
      const matches = bytesFrom(previous, `previous transaction of input ${position}`)
      before = { id: bytesToHex(hashOf(matches)), body: matches }
      existing.set(previous, before)
    }
    if (before.id !== txid)
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `previous transaction of input ${position} has another id`,
      )
    const output = outputOf(before.body, index)
    if (!output)
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} spends an output that does not exist`,
      )
    const publicKey = publicKeyAt(path)
    const own = address(network, publicKey)
    if (addressText(network, output.address) !== own) {
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} does not belong to the key at its path`,
      )
    }
    return { path, publicKey, address: own, output }
  })
  return { bytes, body, spent }
}

/**
 * Returns the keys that must sign, in the order of the inputs. A key of several inputs is listed
 * once.
 */
function signers(spent: readonly Spent[]): Spent[] {
  return spent.filter(
    (input, at) => spent.findIndex((other) => other.address === input.address) === at,
  )
}

/**
 * Reads the outputs as payments and change.
 * @returns also the native tokens of the inputs that the change does not return
 * @throws ChainError
 */
function readOutputs(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
  { body, spent }: Pick<ReturnType<typeof read>, 'body' | 'spent'>,
): Pick<DecodedTransaction, 'payments' | 'change'> & { left: Map<string, bigint> } {
  let change: DecodedTransaction['change'] = null
  const payments: DecodedTransaction['payments'] = []
  const left = new Map<string, bigint>()
  for (const { output } of spent)
    for (const [unit, quantity] of output.assets) left.set(unit, (left.get(unit) ?? 0n) + quantity)
  for (const [position, output] of body.outputs.entries()) {
    const to = addressText(network, output.address)
    if (to === null)
      throw new ChainError('SHAPE', `output ${position} has an address that cannot be paid`)
    if (unsigned.change?.output !== position) {
      if (output.assets.size > 0)
        throw new ChainError('SHAPE', `output ${position} transfers native tokens to another owner`)
      payments.push({ address: to, amount: output.coin, tag: null })
      continue
    }
    if (to !== address(network, publicKeyAt(unsigned.change.path))) {
      throw new ChainError('CHANGE', `output ${position} is not on the change path`)
    }
    change = {
      address: to,
      amount: output.coin,
      ...(output.assets.size > 0
        ? {
            assets: Object.fromEntries(
              [...output.assets].map(([unit, quantity]) => [unit, quantity.toString()]),
            ),
          }
        : {}),
    }
    for (const [unit, quantity] of output.assets) left.set(unit, (left.get(unit) ?? 0n) - quantity)
  }
  return { payments, change, left }
}

/**
 * See Family.decode. Allows exactly one payment, of lovelace alone, and at most one change output
 * on the change path, which returns every native token of the inputs. Inputs and outputs must
 * balance to the last lovelace.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const { bytes, body, spent } = read(network, unsigned, publicKeyAt)
  const native = assets.find((asset) => asset.type === 'native')
  if (!native) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  const { payments, change, left } = readOutputs(network, unsigned, publicKeyAt, { body, spent })
  if (unsigned.change && change === null)
    throw new ChainError('CHANGE', 'the change output does not exist')
  if (payments.length !== 1) throw new ChainError('SHAPE', 'must have exactly one payment')
  if ([...left.values()].some((quantity) => quantity !== 0n)) {
    throw new ChainError(
      'CHANGE',
      'the change does not contain exactly the native tokens of the inputs',
    )
  }
  const sum = spent.reduce((total, { output }) => total + output.coin, 0n)
  if (body.outputs.reduce((total, { coin }) => total + coin, body.fee) !== sum) {
    throw new ChainError('SHAPE', 'outputs and fee do not equal the inputs')
  }
  if (body.ttl > BigInt(Number.MAX_SAFE_INTEGER))
    throw new ChainError('SHAPE', 'has a time to live without a valid end')
  const size = signedBytes(bytes.length, signers(spent).length)
  const constant =
    PARAMETERS.feeConstant +
    scriptFee(spent.reduce((total, { output }) => total + output.scriptBytes, 0))
  return {
    network: network.code,
    asset: native.asset_name,
    payments,
    change,
    from: spent.map((input) => input.address),
    fee_max: body.fee,
    fee_rate: formatAmount(
      body.fee > constant ? ((body.fee - constant) * 1000n) / BigInt(size) : 0n,
      MILLI_DECIMALS,
    ),
    fee_constant: constant.toString(),
    consumes: body.inputs.map(({ txid, index }) => `${txid}:${index}`),
    valid_until: Number(body.ttl),
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: size,
  }
}

/** Returns one item for each key. Every key signs the hash of the body's exact bytes. */
export function signing(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const { bytes, spent } = read(network, unsigned, publicKeyAt)
  const message = hashOf(bytes)
  return signers(spent).map(({ path, publicKey }) => ({ path, publicKey, message }))
}

/** Adds one witness for each key. The id is the hash that they sign. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const { bytes, spent } = read(network, unsigned, publicKeyAt)
  const keys = signers(spent)
  if (signatures.length !== keys.length)
    throw new ChainError('SIGNATURE', `exactly ${keys.length} signatures are required`)
  const message = hashOf(bytes)
  const witnesses = keys.map(({ publicKey }, position) => {
    const { signature, recoveryId } = signatures[position] as SignatureBytes
    if (signature.length !== SIGNATURE_BYTES)
      throw new ChainError('SIGNATURE', 'a signature has 64 bytes')
    if (recoveryId !== null)
      throw new ChainError('SIGNATURE', 'an Ed25519 signature has no recovery id')
    if (!isEd25519(signature, message, publicKey)) {
      throw new ChainError('SIGNATURE', `signature ${position} does not verify`)
    }
    return { publicKey, signature }
  })
  return {
    network: network.code,
    raw: bytesToHex(encodeSigned(bytes, witnesses)),
    hash: bytesToHex(message),
  }
}

/** Returns whether the two transactions share at least one input. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return next.consumes.some((outpoint) => earlier.consumes.includes(outpoint))
}
