import { secp256k1, schnorr } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { ripemd160 } from '@noble/hashes/legacy.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import type { initEccLib, Network as BitcoinNetwork } from 'bitcoinjs-lib'
import { refusedTag } from '../assertions.ts'
import { byMode } from '../mode.ts'
import { ChainError, type Network, type UtxoParams, type Validation } from '../types.ts'
import { cashAddressOf, cashScriptOf, CASHADDR_PREFIXES } from './cashaddr.ts'
import { codecs } from './address-library.ts'

/** Curve arithmetic that bitcoinjs-lib requires for taproot addresses. */
const CURVE: Parameters<typeof initEccLib>[0] = {
  isXOnlyPoint: (point) => {
    try {
      schnorr.utils.lift_x(BigInt(`0x${bytesToHex(point)}`))
      return point.length === 32
    } catch {
      return false
    }
  },
  xOnlyPointAddTweak: (point, tweak) => {
    const scalar = BigInt(`0x${bytesToHex(tweak)}`)
    if (scalar >= secp256k1.Point.Fn.ORDER) return null
    const lifted = schnorr.utils.lift_x(BigInt(`0x${bytesToHex(point)}`))
    const sum = scalar === 0n ? lifted : lifted.add(secp256k1.Point.BASE.multiply(scalar))
    if (sum.is0()) return null
    const bytes = sum.toBytes(true)
    return { parity: bytes[0] === 3 ? 1 : 0, xOnlyPubkey: bytes.subarray(1) }
  },
}

/**
 * Initializes the curve library at the first taproot address. The library tests the arithmetic,
 * which takes a sixth of a node's start time.
 */
const readyForTaproot = (): void => {
  codecs().initEccLib(CURVE)
}

/**
 * Maximum length of an address in characters. Decoding base58 takes time quadratic in the length,
 * so longer texts are rejected unread.
 */
const LENGTH_MAX = 90

/**
 * Returns the UTXO parameters of a network.
 * @throws ChainError `NETWORK` if it has none
 */
export function paramsOf(network: Network): UtxoParams {
  if (!network.utxo) throw new ChainError('NETWORK', `${network.code} has no UTXO parameters`)
  return network.utxo
}

/** Converts the parameters to the form of bitcoinjs-lib. */
export function bitcoinNetwork(network: Network): BitcoinNetwork {
  const params = paramsOf(network)
  return {
    messagePrefix: '',
    bip32: { public: 0, private: 0 },
    wif: 0,
    bech32: params.bech32_hrp ?? '',
    pubKeyHash: params.p2pkh_version,
    scriptHash: params.p2sh_version,
  }
}

/** Computes HASH160 (BIP13). */
export function hash160(bytes: Uint8Array): Uint8Array {
  return ripemd160(sha256(bytes))
}

/** Returns the address of a compressed public key, in the network's own output type. */
export function address(network: Network, publicKey: Uint8Array): string {
  const params = paramsOf(network)
  if (params.cashaddr_prefix !== undefined) {
    const { output } = codecs().payments.p2pkh({
      hash: hash160(publicKey),
      network: bitcoinNetwork(network),
    })
    return addressOf(network, output as Uint8Array) as string
  }
  const { payments } = codecs()
  const make = params.script === 'p2wpkh' ? payments.p2wpkh : payments.p2pkh
  return make({ hash: hash160(publicKey), network: bitcoinNetwork(network) }).address as string
}

/**
 * Returns whether a bech32 address has a witness version (its first letter after the 1) other than
 * 0 or 1. Outputs of undefined versions can be spent by anyone, so they are never paid, although
 * BIP350 considers the address well-formed.
 */
function hasUnusedWitnessVersion(network: Network, text: string): boolean {
  const hrp = paramsOf(network).bech32_hrp
  return (
    hrp !== null &&
    text.toLowerCase().startsWith(`${hrp}1`) &&
    !'qp'.includes(text[hrp.length + 1]?.toLowerCase() ?? 'q')
  )
}

/** Returns whether a script is a witness program of versions 2 to 16 (BIP141). */
function isUnusedWitnessProgram(script: Uint8Array): boolean {
  const version = script[0] ?? 0
  return (
    script.length >= 4 &&
    script.length <= 42 &&
    version >= 0x52 &&
    version <= 0x60 &&
    script[1] === script.length - 2
  )
}

/**
 * Returns the output script of an address. Bitcoin Cash also accepts the base58 spelling.
 * @throws ChainError `ADDRESS`
 */
export function scriptOf(network: Network, text: string): Uint8Array {
  if (text.length > LENGTH_MAX) throw new ChainError('ADDRESS', 'has an invalid length')
  const prefix = paramsOf(network).cashaddr_prefix
  const cash = prefix === undefined ? null : cashScriptOf(prefix, text)
  if (cash) return cash
  if (hasUnusedWitnessVersion(network, text)) {
    throw new ChainError(
      'ADDRESS',
      'has a witness version that is not in use: anyone could take coins sent there',
    )
  }
  if (text.toLowerCase().startsWith(`${paramsOf(network).bech32_hrp}1p`)) readyForTaproot()
  // Outside of the `try`, so that a missing library is not reported as an invalid address.
  const { toOutputScript } = codecs().address
  try {
    return toOutputScript(text, bitcoinNetwork(network))
  } catch {
    throw new ChainError(
      'ADDRESS',
      `is not an address of ${network.name}${byMode(network.mode, { local: ' (local)', regtest: ' (regtest)', mainnet: '' })}`,
    )
  }
}

/** Returns the address of an output script, or null if it has none. */
export function addressOf(network: Network, script: Uint8Array): string | null {
  const prefix = paramsOf(network).cashaddr_prefix
  if (prefix !== undefined) return cashAddressOf(prefix, script)
  // The library encodes a witness program with any prefix, although a network without segwit has no
  // such addresses.
  if (paramsOf(network).bech32_hrp === null && !isBase58Script(script)) return null
  if (isUnusedWitnessProgram(script)) return null
  // The usual kinds are encoded directly. The library tries one kind of payment after the other,
  // which takes ten times as long.
  const { pubKeyHash, scriptHash, bech32 } = bitcoinNetwork(network)
  if (isBase58Script(script)) {
    const { toBase58Check } = codecs().address
    return script[0] === 0x76
      ? toBase58Check(script.subarray(3, 23), pubKeyHash)
      : toBase58Check(script.subarray(2, 22), scriptHash)
  }
  if (
    script[0] === 0 &&
    ((script.length === 22 && script[1] === 20) || (script.length === 34 && script[1] === 32))
  ) {
    return codecs().address.toBech32(script.subarray(2), 0, bech32)
  }
  if (script[0] === 0x51) readyForTaproot()
  const { fromOutputScript } = codecs().address
  try {
    return fromOutputScript(script, bitcoinNetwork(network))
  } catch {
    return null
  }
}

/** Returns whether a script is P2PKH or P2SH. */
function isBase58Script(script: Uint8Array): boolean {
  return (
    (script.length === 25 &&
      script[0] === 0x76 &&
      script[1] === 0xa9 &&
      script[2] === 20 &&
      script[23] === 0x88 &&
      script[24] === 0xac) ||
    (script.length === 23 && script[0] === 0xa9 && script[1] === 20 && script[22] === 0x87)
  )
}

/**
 * Accepts Base58Check, bech32 and bech32m (BIP173, BIP350), and CashAddr. Returns the network's own
 * spelling, with bech32 in lower case.
 */
export function validate(network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  if (text.length < 14 || text.length > LENGTH_MAX)
    return { valid: false, reason: 'has an invalid length' }
  if (hasUnusedWitnessVersion(network, text)) {
    return {
      valid: false,
      reason: 'has a witness version that is not in use: anyone could take coins sent there',
    }
  }
  try {
    const script = scriptOf(network, text)
    const canonical = addressOf(network, script)
    if (canonical === null) return { valid: false, reason: 'has an unknown output type' }
    return { valid: true, address: canonical, address_tag: null }
  } catch {
    const { bech32_hrp: hrp, cashaddr_prefix: cash } = paramsOf(network)
    const other = /^(bc1|tb1|bcrt1|ltc1|tltc1|rltc1)/i.exec(text)?.[1]?.toLowerCase()
    if (other && hrp && other !== `${hrp}1`) {
      return {
        valid: false,
        reason: `belongs to another network (${other}…); this one uses ${hrp}1…`,
      }
    }
    if (other && !hrp)
      return {
        valid: false,
        reason: `belongs to another network (${other}…); ${network.name} has no such addresses`,
      }
    const prefix = CASHADDR_PREFIXES.find((each) => text.toLowerCase().startsWith(`${each}:`))
    if (prefix && prefix !== cash)
      return { valid: false, reason: `belongs to another network (${prefix}:…)` }
    return {
      valid: false,
      reason: `is not an address of ${network.name}: checksum, length or version does not match`,
    }
  }
}

/**
 * Returns the output script, which is the same on every network of the family; null if the text is
 * not an address of this network.
 */
export function format(network: Network, text: string): string | null {
  try {
    return `script ${bytesToHex(scriptOf(network, text))}`
  } catch {
    return null
  }
}

/**
 * Returns one address for all addresses of the same key, or of the same witness script: the P2SH
 * address of its witness program. The holder of a key can spend from its P2PKH, P2WPKH and
 * P2SH-P2WPKH addresses, and a witness script has the addresses P2WSH and P2SH-P2WSH. Every other
 * address, such as a taproot address, is returned unchanged: its key or script has no other
 * address that can be computed from it. Networks without segwit have one address for each script.
 */
export function paymentKey(network: Network, text: string): string {
  if (paramsOf(network).bech32_hrp === null) return text
  let script: Uint8Array
  try {
    script = scriptOf(network, text)
  } catch (error) {
    if (error instanceof ChainError) return text
    throw error
  }
  const program = programOf(script)
  if (program === null) return text
  return addressOf(network, Uint8Array.of(0xa9, 20, ...hash160(program), 0x87)) ?? text
}

/** Returns the witness program of version 0 for a key or script; null if there is none. */
function programOf(script: Uint8Array): Uint8Array | null {
  if (isBase58Script(script))
    return script[0] === 0x76 ? Uint8Array.of(0, 20, ...script.subarray(3, 23)) : null
  return script[0] === 0 ? script : null
}
