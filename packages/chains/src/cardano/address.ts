import { blake2b } from '@noble/hashes/blake2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { base58, bech32 } from '@scure/base'
import { refusedTag } from '../assertions.ts'
import { ChainError, type Network, type Validation } from '../types.ts'
import { bytesOf, itemsOf, read, uintOf } from './cbor.ts'
import { crc32 } from './crc32.ts'

/** Network magic of the main network. Addresses treat every other network as a test network. */
const MAINNET_MAGIC = 764_824_073
const BECH32_MAX = 1023
const KEY_HASH_BYTES = 28
/** Base address types: upper half of the first byte (CIP-19). */
const BASE_TYPES = new Set([0, 1, 2, 3])
const POINTER_TYPES = new Set([4, 5])
const ENTERPRISE_TYPES = new Set([6, 7])
const BYRON_TYPE = 8
const ENTERPRISE_KEY = 0x60
const BASE_BYTES = 1 + 2 * KEY_HASH_BYTES
const ENTERPRISE_BYTES = 1 + KEY_HASH_BYTES
const ENCODED_CBOR = 24n
/** Maximum length of a Byron address's attributes in bytes; the ledger accepts no longer ones. */
const BYRON_ATTRIBUTES_MAX = 64

const tagOf = (network: Network): number => (network.network_id === MAINNET_MAGIC ? 1 : 0)
const prefixOf = (tag: number): string => (tag === 1 ? 'addr' : 'addr_test')

function refuse(reason: string): never {
  throw new ChainError('ADDRESS', reason)
}

/**
 * Returns the enterprise address of an Ed25519 key. It has no stake key, so nothing can be
 * delegated from it.
 */
export function address(network: Network, publicKey: Uint8Array): string {
  const tag = tagOf(network)
  return encode(
    tag,
    Uint8Array.of(ENTERPRISE_KEY | tag, ...blake2b(publicKey, { dkLen: KEY_HASH_BYTES })),
  )
}

const encode = (tag: number, bytes: Uint8Array): string =>
  bech32.encode(prefixOf(tag), bech32.toWords(bytes), BECH32_MAX)

/**
 * Returns the stake address of a reward account, made of its kind and hash. The network in its
 * first byte is ignored.
 */
export function stakeAddressText(network: Network, account: Uint8Array): string {
  const tag = tagOf(network)
  const bytes = Uint8Array.of(((account[0] ?? 0) & 0xf0) | tag, ...account.subarray(1))
  return bech32.encode(tag === 1 ? 'stake' : 'stake_test', bech32.toWords(bytes), BECH32_MAX)
}

/**
 * Returns the bytes that represent an address in an output.
 * @throws ChainError `ADDRESS` with the reason
 */
export function addressBytes(network: Network, text: string): Uint8Array {
  if (text.length < 10 || text.length > BECH32_MAX) refuse('has an invalid length')
  const tag = tagOf(network)
  const prefix = /^([a-z_]+)1/i.exec(text)?.[1]?.toLowerCase() ?? ''
  if (prefix === 'stake' || prefix === 'stake_test')
    refuse('is a stake address: it receives rewards, but no payments')
  if (prefix !== 'addr' && prefix !== 'addr_test') return byronBytes(network, text)
  if (prefix !== prefixOf(tag))
    refuse(`belongs to another network (${prefix}1…); this one uses ${prefixOf(tag)}1…`)
  let bytes: Uint8Array
  try {
    bytes = bech32.fromWords(bech32.decode(text as `${string}1${string}`, BECH32_MAX).words)
  } catch {
    return refuse('is not an address of Cardano: its checksum or characters are wrong')
  }
  assertShelley(tag, bytes)
  return bytes
}

function assertShelley(tag: number, bytes: Uint8Array): void {
  const type = (bytes[0] ?? 0xff) >> 4
  if (POINTER_TYPES.has(type))
    refuse(
      'is a pointer address, which the chain no longer supports; ask the payee for another one',
    )
  if (type === 14 || type === 15) refuse('is a stake address: it receives rewards, but no payments')
  const length = BASE_TYPES.has(type)
    ? BASE_BYTES
    : ENTERPRISE_TYPES.has(type)
      ? ENTERPRISE_BYTES
      : 0
  if (length === 0) refuse('has a type that is not in use')
  if (bytes.length !== length)
    refuse('is not an address of Cardano: its length does not match its type')
  if (((bytes[0] as number) & 0x0f) !== tag)
    refuse('belongs to another network than its prefix says')
}

/** Decodes an address of the Byron era, which can still be paid: base58 with its own checksum. */
function byronBytes(network: Network, text: string): Uint8Array {
  let bytes: Uint8Array
  try {
    bytes = base58.decode(text)
    if (bytes[0] !== 0x82) throw new Error()
  } catch {
    return refuse('is not an address of Cardano')
  }
  assertByron(tagOf(network), network.network_id, bytes)
  return bytes
}

function assertByron(tag: number, magic: number | undefined, bytes: Uint8Array): void {
  let payload: Uint8Array
  let type: bigint
  let attributes: ReturnType<typeof read>
  try {
    const [wrapped, sum, more] = itemsOf(read(bytes))
    if (wrapped?.kind !== 'tag' || wrapped.tag !== ENCODED_CBOR || more) throw new Error()
    payload = bytesOf(wrapped.item)
    if (uintOf(sum) !== BigInt(crc32(payload))) throw new Error()
    const [root, result, kind, extra] = itemsOf(read(payload))
    if (bytesOf(root).length !== KEY_HASH_BYTES || result?.kind !== 'map' || extra)
      throw new Error()
    attributes = result
    type = uintOf(kind)
  } catch {
    return refuse('is not an address of Cardano: its checksum does not match')
  }
  if (type !== 0n) refuse('is a Byron address of a type that does not receive payments')
  if (attributes.kind !== 'map' || attributes.end - attributes.start > BYRON_ATTRIBUTES_MAX) {
    return refuse('is a Byron address with attributes that the chain rejects')
  }
  const named = attributes.entries.find(([key]) => key.kind === 'uint' && key.value === 2n)?.[1]
  let of: bigint | null = null
  try {
    of = named === undefined ? null : uintOf(read(bytesOf(named)))
  } catch {
    refuse('is not an address of Cardano: it contains no network')
  }
  // Addresses of the main network contain no magic.
  if (tag === 1 ? of !== null : of !== BigInt(magic ?? -1))
    refuse('is a Byron address of another network')
}

/**
 * Returns the address that the bytes in an output represent; null if {@link validate} would accept
 * none.
 */
export function addressText(network: Network, bytes: Uint8Array): string | null {
  const tag = tagOf(network)
  try {
    if ((bytes[0] ?? 0) >> 4 === BYRON_TYPE) {
      assertByron(tag, network.network_id, bytes)
      return base58.encode(bytes)
    }
    assertShelley(tag, bytes)
    return encode(tag, bytes)
  } catch {
    return null
  }
}

/**
 * Accepts base and enterprise addresses of keys and scripts, and Byron addresses. Rejects stake and
 * pointer addresses.
 */
export function validate(network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  try {
    return {
      valid: true,
      address: addressText(network, addressBytes(network, text)) as string,
      address_tag: null,
    }
  } catch (error) {
    if (error instanceof ChainError) return { valid: false, reason: error.message }
    throw error
  }
}

/**
 * Returns the payment credential behind an address of any network and form: the holder of its key
 * can spend from all forms. Base, pointer and enterprise addresses of a credential have the same
 * one, whatever their stake part. A Byron address contains only a hash of its key and attributes,
 * so it cannot be related to a Shelley address; its own root identifies it. Returns null if the
 * text is not a payment address.
 */
function credentialOf(text: string): string | null {
  try {
    if (!/^addr(_test)?1/i.test(text)) return byronRoot(base58.decode(text))
    const bytes = bech32.fromWords(bech32.decode(text as `${string}1${string}`, BECH32_MAX).words)
    const type = (bytes[0] ?? 0xff) >> 4
    const isPayment = BASE_TYPES.has(type) || POINTER_TYPES.has(type) || ENTERPRISE_TYPES.has(type)
    if (!isPayment || bytes.length < ENTERPRISE_BYTES) return null
    // The lowest bit of the type is set if the payment part is a script (CIP-19).
    return `${type % 2 === 0 ? 'key' : 'script'} ${bytesToHex(bytes.subarray(1, ENTERPRISE_BYTES))}`
  } catch {
    return null
  }
}

function byronRoot(bytes: Uint8Array): string | null {
  const [wrapped, sum, more] = itemsOf(read(bytes))
  if (wrapped?.kind !== 'tag' || wrapped.tag !== ENCODED_CBOR || more) return null
  const payload = bytesOf(wrapped.item)
  if (uintOf(sum) !== BigInt(crc32(payload))) return null
  const [root] = itemsOf(read(payload))
  return bytesOf(root).length === KEY_HASH_BYTES ? `byron ${bytesToHex(bytesOf(root))}` : null
}

/**
 * Returns the key by which addresses are compared: the payment credential; for stake addresses the
 * text in lower case; otherwise the text itself.
 */
export function key(text: string): string {
  return credentialOf(text) ?? (/^stake(_test)?1/i.test(text) ? text.toLowerCase() : text)
}

/** Returns the payment credential: base, pointer and enterprise addresses of it have the same one. */
export const paymentKey = (_network: Network, text: string): string => key(text)

/** Returns the payment credential, which is the same on all networks of this format. */
export function format(_network: Network, text: string): string | null {
  const credential = credentialOf(text)
  return credential === null ? null : `cardano ${credential}`
}
