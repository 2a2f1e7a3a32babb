// Only this module, because the whole library would cost 30 MB in every process.
import {
  CashAddressNetworkPrefix,
  CashAddressType,
  decodeCashAddress,
  encodeCashAddress,
} from '@bitauth/libauth/build/lib/address/cash-address.js'

export const CASHADDR_PREFIXES: readonly string[] = Object.values(CashAddressNetworkPrefix)

const HASH_BYTES = 20
const P2PKH = { before: Uint8Array.of(0x76, 0xa9, HASH_BYTES), after: Uint8Array.of(0x88, 0xac) }
const P2SH = { before: Uint8Array.of(0xa9, HASH_BYTES), after: Uint8Array.of(0x87) }

/**
 * Returns the output script of a CashAddr address, with or without its prefix, in upper or lower
 * case; null if it is invalid. Token-aware spellings have the same script. Only hashes of 20 bytes
 * are standard.
 */
export function cashScriptOf(prefix: string, text: string): Uint8Array | null {
  if (text !== text.toLowerCase() && text !== text.toUpperCase()) return null
  const lower = text.toLowerCase()
  const full = lower.includes(':') ? lower : `${prefix}:${lower}`
  const decoded = decodeCashAddress(full)
  if (
    typeof decoded === 'string' ||
    decoded.prefix !== prefix ||
    decoded.payload.length !== HASH_BYTES
  )
    return null
  const form =
    decoded.type === CashAddressType.p2pkh || decoded.type === CashAddressType.p2pkhWithTokens
      ? P2PKH
      : P2SH
  return Uint8Array.of(...form.before, ...decoded.payload, ...form.after)
}

/** Returns the CashAddr address of an output script, or null if it has none. */
export function cashAddressOf(prefix: string, script: Uint8Array): string | null {
  for (const [form, type] of [
    [P2PKH, CashAddressType.p2pkh],
    [P2SH, CashAddressType.p2sh],
  ] as const) {
    if (script.length !== form.before.length + HASH_BYTES + form.after.length) continue
    const end = form.before.length + HASH_BYTES
    if (
      !form.before.every((byte, at) => script[at] === byte) ||
      !form.after.every((byte, at) => script[end + at] === byte)
    )
      continue
    return encodeCashAddress({
      payload: script.slice(form.before.length, end),
      prefix: prefix as CashAddressNetworkPrefix,
      type,
    }).address
  }
  return null
}
