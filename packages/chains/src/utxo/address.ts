import { secp256k1, schnorr } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { ripemd160 } from '@noble/hashes/legacy.js'
import { address as codec, initEccLib, payments, type Network as BitcoinNetwork } from 'bitcoinjs-lib'
import { ChainError, type Network, type UtxoParams, type Validation } from '../types.ts'

// bitcoinjs-lib asks for curve arithmetic before it reads taproot addresses.
initEccLib({
  isXOnlyPoint: (point) => {
    try {
      schnorr.utils.lift_x(BigInt(`0x${Buffer.from(point).toString('hex')}`))
      return point.length === 32
    } catch {
      return false
    }
  },
  xOnlyPointAddTweak: (point, tweak) => {
    const scalar = BigInt(`0x${Buffer.from(tweak).toString('hex')}`)
    if (scalar >= secp256k1.Point.Fn.ORDER) return null
    const lifted = schnorr.utils.lift_x(BigInt(`0x${Buffer.from(point).toString('hex')}`))
    const sum = scalar === 0n ? lifted : lifted.add(secp256k1.Point.BASE.multiply(scalar))
    if (sum.is0()) return null
    const bytes = sum.toBytes(true)
    return { parity: bytes[0] === 3 ? 1 : 0, xOnlyPubkey: bytes.subarray(1) }
  },
})

/** UTXO parameters of a network. Throws ChainError `NETWORK` where it has none. */
export function paramsOf(network: Network): UtxoParams {
  if (!network.utxo) throw new ChainError('NETWORK', `${network.code} has no UTXO parameters`)
  return network.utxo
}

/** The same parameters in bitcoinjs-lib's words. */
export function bitcoinNetwork(network: Network): BitcoinNetwork {
  const params = paramsOf(network)
  return {
    messagePrefix: '', bip32: { public: 0, private: 0 }, wif: 0,
    bech32: params.bech32_hrp ?? '', pubKeyHash: params.p2pkh_version, scriptHash: params.p2sh_version,
  }
}

/** HASH160 (BIP13). */
export function hash160(bytes: Uint8Array): Uint8Array {
  return ripemd160(sha256(bytes))
}

/** Address of a compressed public key, in the network's own output type. */
export function address(network: Network, publicKey: Uint8Array): string {
  const params = paramsOf(network)
  const make = params.script === 'p2wpkh' ? payments.p2wpkh : payments.p2pkh
  return make({ hash: hash160(publicKey), network: bitcoinNetwork(network) }).address as string
}

/** Output script of an address. Throws ChainError `ADDRESS`. */
export function scriptOf(network: Network, text: string): Uint8Array {
  try {
    return codec.toOutputScript(text, bitcoinNetwork(network))
  } catch {
    throw new ChainError('ADDRESS', `is not an address of ${network.name}${network.mode === 'local' ? ' (local)' : ''}`)
  }
}

/** Address of an output script, or null where it has none. */
export function addressOf(network: Network, script: Uint8Array): string | null {
  try {
    return codec.fromOutputScript(script, bitcoinNetwork(network))
  } catch {
    return null
  }
}

/** Base58Check and bech32/bech32m (BIP173, BIP350); answers bech32 in lower case. */
export function validate(network: Network, text: string, addressTag?: string | null): Validation {
  if (addressTag !== undefined && addressTag !== null) return { valid: false, reason: 'addresses of this network take no address_tag' }
  if (text.length < 14 || text.length > 90) return { valid: false, reason: 'has a length no address has' }
  try {
    const script = scriptOf(network, text)
    const canonical = addressOf(network, script)
    if (canonical === null) return { valid: false, reason: 'has no known output type' }
    return { valid: true, address: canonical, address_tag: null }
  } catch {
    const hrp = paramsOf(network).bech32_hrp
    const other = /^(bc1|tb1|bcrt1|ltc1)/i.exec(text)?.[1]?.toLowerCase()
    if (other && hrp && other !== `${hrp}1`) return { valid: false, reason: `belongs to another network (${other}…); this one uses ${hrp}1…` }
    return { valid: false, reason: `is not an address of ${network.name}: checksum, length or version does not match` }
  }
}
