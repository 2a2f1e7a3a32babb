import type { Transaction } from 'bitcoinjs-lib'
import { formatAmount } from '../amount.ts'
import { isSecp256k1 } from '../secp256k1.ts'
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
import { address, addressOf, bitcoinNetwork, hash160, paramsOf } from './address.ts'
import { library } from './library.ts'
import { readParent, type Parent } from './parent.ts'
import { virtualSize } from './size.ts'

interface Input {
  path: number[]
  publicKey: Uint8Array
  script: Uint8Array
  value: bigint
  address: string
}

/** Rates are exact to a thousandth. */
const MILLI_DECIMALS = 3
/** Maximum length of a transaction in hex digits; nodes relay no larger ones. */
const HEX_LENGTH_MAX = 800_000

function parseHex(hex: string): Transaction {
  // The length is checked first, and the expression has no repeated group, because that would
  // overflow the regular expression's stack on megabytes.
  if (
    hex.length < 20 ||
    hex.length > HEX_LENGTH_MAX ||
    hex.length % 2 !== 0 ||
    /[^0-9a-f]/.test(hex)
  ) {
    throw new ChainError('TRANSACTION', 'transaction must be lower-case hex')
  }
  try {
    return library().Transaction.fromHex(hex)
  } catch {
    throw new ChainError('TRANSACTION', 'transaction is not a Bitcoin transaction')
  }
}

/**
 * Reads the unsigned transaction. Without signatures, a transaction with one output is ambiguous to
 * segwit-aware parsers only if it has no inputs, so at least one input is required before anything
 * else is read.
 */
function parse(unsigned: UnsignedTransaction): Transaction {
  const transaction = parseHex(unsigned.bytes)
  if (transaction.ins.length === 0 || transaction.outs.length === 0)
    throw new ChainError('SHAPE', 'has no inputs or no outputs')
  if (transaction.hasWitnesses() || transaction.ins.some((input) => input.script.length > 0)) {
    throw new ChainError('TRANSACTION', 'already carries signatures')
  }
  if (transaction.toHex() !== unsigned.bytes)
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  if (transaction.version !== 2) throw new ChainError('SHAPE', 'version must be 2')
  if (transaction.locktime !== 0) throw new ChainError('SHAPE', 'locktime must be 0')
  // The eight bytes are read as a signed number, but amounts have no sign.
  if (transaction.outs.some(({ value }) => value < 0n))
    throw new ChainError('SHAPE', 'has an output with an invalid amount')
  if (transaction.ins.length !== unsigned.inputs.length)
    throw new ChainError('SHAPE', 'inputs and their paths differ in number')
  return transaction
}

function outpoint(hash: Uint8Array, index: number): string {
  return `${Buffer.from(hash).reverse().toString('hex')}:${index}`
}

/**
 * Cache of parsed parents. Decoding, signing and assembling follow each other, and a parent is not
 * parsed again while the same object contains the same bytes.
 */
const opened = new WeakMap<object, { network: string; previous: string; parent: Parent }>()

function open(
  network: Network,
  input: UnsignedTransaction['inputs'][number],
  previous: string,
  position: number,
): Parent {
  const existing = opened.get(input)
  if (existing?.previous === previous && existing.network === network.code) return existing.parent
  const parent = readParent(network, previous, `previous transaction of input ${position}`)
  opened.set(input, { network: network.code, previous, parent })
  return parent
}

/**
 * Reads the inputs. Their values come from previous transactions whose ids are recomputed, so
 * nothing is trusted. A transaction that several inputs spend from is included with the first one.
 */
function inputsOf(
  network: Network,
  transaction: Transaction,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): Input[] {
  const shown = new Map<string, Parent>()
  return unsigned.inputs.map((each, position) => {
    const { path, previous } = each
    const input = transaction.ins[position] as Transaction['ins'][number]
    const id = Buffer.from(input.hash).toString('hex')
    const before = previous === undefined ? shown.get(id) : open(network, each, previous, position)
    if (!before)
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} lacks its previous transaction`,
      )
    if (Buffer.compare(before.hash, input.hash) !== 0) {
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `previous transaction of input ${position} has another id`,
      )
    }
    shown.set(id, before)
    const output = before.output(input.index)
    if (!output)
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} spends an output that does not exist`,
      )
    const publicKey = publicKeyAt(path)
    const own = address(network, publicKey)
    if (addressOf(network, output.script) !== own) {
      throw new ChainError(
        'PREVIOUS_TRANSACTION',
        `input ${position} does not belong to the key at its path`,
      )
    }
    if (input.sequence < 0xfffffffd)
      throw new ChainError('SHAPE', 'a relative lock time is not allowed')
    return { path, publicKey, script: output.script, value: output.value, address: own }
  })
}

/**
 * Returns the coins that a transaction spends, in the order of its inputs. `value` is null if an
 * input lacks its previous transaction.
 */
export function coinsOf(
  network: Network,
  unsigned: UnsignedTransaction,
): { txid: string; vout: number; value: bigint | null }[] {
  const shown = new Map<string, Parent>()
  return parse(unsigned).ins.map(({ hash, index }, at) => {
    const id = Buffer.from(hash).toString('hex')
    const [input, previous] = [unsigned.inputs[at], unsigned.inputs[at]?.previous]
    const before =
      input === undefined || previous === undefined
        ? shown.get(id)
        : open(network, input, previous, at)
    if (before) shown.set(id, before)
    return {
      txid: Buffer.from(hash).reverse().toString('hex'),
      vout: index,
      value: before?.output(index)?.value ?? null,
    }
  })
}

/**
 * See Family.decode. Allows exactly one payment, and at most one change output on the change path.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const params = paramsOf(network)
  const transaction = parse(unsigned)
  const inputs = inputsOf(network, transaction, unsigned, publicKeyAt)
  const outpoints = transaction.ins.map((input) => outpoint(input.hash, input.index))
  if (new Set(outpoints).size !== outpoints.length)
    throw new ChainError('SHAPE', 'spends an output twice')
  const native = assets.find((asset) => asset.type === 'native')
  if (!native) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  let change: DecodedTransaction['change'] = null
  const outputPayments: DecodedTransaction['payments'] = []
  transaction.outs.forEach((output, position) => {
    const to = addressOf(network, output.script)
    if (to === null)
      throw new ChainError('SHAPE', `output ${position} has a script without an address`)
    if (unsigned.change?.output === position) {
      if (to !== address(network, publicKeyAt(unsigned.change.path))) {
        throw new ChainError('CHANGE', `output ${position} is not on the change path`)
      }
      change = { address: to, amount: output.value }
    } else {
      outputPayments.push({ address: to, amount: output.value, tag: null })
    }
  })
  if (unsigned.change && change === null)
    throw new ChainError('CHANGE', 'the change output does not exist')
  if (outputPayments.length !== 1) throw new ChainError('SHAPE', 'must have exactly one payment')
  const spent = inputs.reduce((sum, input) => sum + input.value, 0n)
  const paid = transaction.outs.reduce((sum, output) => sum + output.value, 0n)
  if (paid > spent) throw new ChainError('SHAPE', 'outputs exceed the inputs')
  const vsize = virtualSize(
    params,
    inputs.length,
    transaction.outs.map((output) => output.script.length),
  )
  return {
    network: network.code,
    asset: native.asset_name,
    payments: outputPayments,
    change,
    from: inputs.map((input) => input.address),
    fee_max: spent - paid,
    fee_rate: formatAmount(((spent - paid) * 1000n) / BigInt(vsize), MILLI_DECIMALS),
    consumes: outpoints,
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize,
  }
}

const SIGHASH_ALL = 0x01
/** SIGHASH_ALL | SIGHASH_FORKID */
const SIGHASH_ALL_FORKID = 0x41

function sighashOf(network: Network): number {
  return paramsOf(network).cashaddr_prefix === undefined ? SIGHASH_ALL : SIGHASH_ALL_FORKID
}

function digest(
  network: Network,
  transaction: Transaction,
  position: number,
  input: Input,
): Uint8Array {
  const scriptCode = library().payments.p2pkh({
    hash: hash160(input.publicKey),
    network: bitcoinNetwork(network),
  }).output as Uint8Array
  const sighash = sighashOf(network)
  return paramsOf(network).script === 'p2wpkh' || sighash === SIGHASH_ALL_FORKID
    ? transaction.hashForWitnessV0(position, scriptCode, input.value, sighash)
    : transaction.hashForSignature(position, input.script, sighash)
}

/**
 * Encodes a signature as DER with its sighash byte. bitcoinjs-lib's own encoder rejects the byte of
 * Bitcoin Cash.
 */
function encodeSignature(signature: Uint8Array, sighash: number): Uint8Array {
  const der = library().script.signature.encode(signature, SIGHASH_ALL)
  return Uint8Array.of(...der.subarray(0, -1), sighash)
}

/**
 * Returns SIGHASH_ALL digests: BIP143 for P2WPKH and, with FORKID, for Bitcoin Cash; the original
 * algorithm for other P2PKH.
 */
export function signing(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const transaction = parse(unsigned)
  return inputsOf(network, transaction, unsigned, publicKeyAt).map((input, position) => ({
    path: input.path,
    publicKey: input.publicKey,
    message: digest(network, transaction, position, input),
  }))
}

/** Verifies each signature and inserts it as DER into its script or witness. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const transaction = parse(unsigned)
  const inputs = inputsOf(network, transaction, unsigned, publicKeyAt)
  if (signatures.length !== inputs.length)
    throw new ChainError('SIGNATURE', 'signatures and inputs differ in number')
  inputs.forEach((input, position) => {
    const { signature } = signatures[position] as SignatureBytes
    const message = digest(network, transaction, position, input)
    if (!isSecp256k1(signature, message, input.publicKey)) {
      throw new ChainError('SIGNATURE', `signature of input ${position} does not verify`)
    }
    const der = encodeSignature(signature, sighashOf(network))
    if (paramsOf(network).script === 'p2wpkh')
      transaction.setWitness(position, [der, input.publicKey])
    else transaction.setInputScript(position, library().script.compile([der, input.publicKey]))
  })
  return { network: network.code, raw: transaction.toHex(), hash: transaction.getId() }
}

/** See {@link Family.signaturesIn}. */
export function signaturesIn(raw: string): SignatureBytes[] {
  const { script } = library()
  return parseHex(raw).ins.map(({ script: unlocking, witness }) => {
    const [der] = witness.length > 0 ? witness : (script.decompile(unlocking) ?? [])
    if (!(der instanceof Uint8Array) || der.length < 2)
      throw new ChainError('SIGNATURE', 'an input has no signature')
    // The decoder rejects the sighash byte of Bitcoin Cash. The bytes are compared afterwards.
    const plain = Uint8Array.of(...der.subarray(0, -1), SIGHASH_ALL)
    try {
      return { signature: script.signature.decode(plain).signature, recoveryId: null }
    } catch {
      throw new ChainError('SIGNATURE', 'an input has no signature')
    }
  })
}

/** Returns whether the two transactions share at least one input. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return next.consumes.some((outpointText) => earlier.consumes.includes(outpointText))
}
