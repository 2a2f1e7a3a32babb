import * as Eip1559 from 'ox/TxEnvelopeEip1559'
import * as Legacy from 'ox/TxEnvelopeLegacy'

export type Hex = `0x${string}`
/** A transaction of type 2 (EIP-1559) or 0 (EIP-155). */
export type Envelope = Eip1559.TxEnvelopeEip1559 | Legacy.TxEnvelopeLegacy
/** Signature of a transaction; r and s are below the curve's order. */
export interface Signature {
  r: bigint
  s: bigint
  yParity: number
}

/**
 * First byte of an RLP list. EIP-2718: a legacy transaction is a list, whose first byte is no type
 * number.
 */
const LIST_FROM = 0xc0
const EIP1559 = 2
const NONCE_MAX = BigInt(Number.MAX_SAFE_INTEGER)
/**
 * EIP-2718 types that networks accept and that are never created here: EIP-2930, EIP-4844,
 * EIP-7702.
 */
const REFUSED = new Set([1, 3, 4])

/** Returns the envelope type that the first byte indicates; null if it is not an envelope. */
export function typeOf(bytes: Hex): 'eip1559' | 'legacy' | 'refused' | null {
  const first = Number.parseInt(bytes.slice(2, 4), 16)
  if (first >= LIST_FROM) return 'legacy'
  return first === EIP1559 ? 'eip1559' : REFUSED.has(first) ? 'refused' : null
}

/** Reads an envelope of type 0 or 2. Throws the library's own errors. */
export const read = (bytes: Hex): Envelope =>
  typeOf(bytes) === 'eip1559'
    ? Eip1559.deserialize(bytes as Eip1559.Serialized)
    : Legacy.deserialize(bytes)

/**
 * Encodes an envelope; it is unsigned if no signature is passed.
 * @throws RangeError for a nonce that a JSON number cannot represent exactly, and the library's own
 *   errors
 */
export function write(envelope: Envelope, signature?: Signature): Hex {
  if ((envelope.nonce ?? 0n) > NONCE_MAX)
    throw new RangeError(`a nonce must be at most ${NONCE_MAX}`)
  const options = signature === undefined ? {} : { signature }
  return envelope.type === 'eip1559'
    ? Eip1559.serialize(envelope, options)
    : Legacy.serialize(envelope, options)
}
