/** Alphabet of Bech32 and CashAddr. */
export const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

export function regroup(
  bytes: Iterable<number>,
  from: number,
  to: number,
  pad: boolean,
): number[] | undefined {
  let held = 0
  let bits = 0
  const groups: number[] = []
  for (const value of bytes) {
    held = ((held << from) | value) & 0xfff
    bits += from
    while (bits >= to) {
      bits -= to
      groups.push((held >> bits) & ((1 << to) - 1))
    }
  }
  if (pad) {
    if (bits > 0) groups.push((held << (to - bits)) & ((1 << to) - 1))
  } else if (bits >= from || ((held << (to - bits)) & ((1 << to) - 1)) !== 0) return undefined
  return groups
}
