/** Odd multipliers of FNV-1a and of the final steps of MurmurHash3. */
const [PRIME_A, PRIME_B, PRIME_C] = [0x01000193, 0x85ebca6b, 0xc2b2ae35]

/**
 * Returns twelve hexadecimal digits that distinguish texts. The texts are not chosen by an
 * attacker, so speed counts more than collision resistance.
 */
export function digestOf(text: string): string {
  let a = 0x811c9dc5
  let b = 0x9747b28c
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    a = Math.imul(a ^ code, PRIME_A)
    b = Math.imul(b ^ code, PRIME_B)
  }
  // The last characters must also affect all bits.
  a = Math.imul(a ^ (a >>> 15), PRIME_B) ^ b
  b = Math.imul(b ^ (b >>> 13), PRIME_C) ^ (a >>> 16)
  return ((a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0')).slice(
    0,
    12,
  )
}
