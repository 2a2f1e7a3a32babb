import ipaddr from 'ipaddr.js'

/** A range of addresses, IPv4 or IPv6. */
export type Range = ReturnType<typeof ipaddr.parseCIDR>

/**
 * An address, or a range such as 203.0.113.0/24 or 2001:db8::/32. @returns null where it is neither
 */
export function readRange(text: string): Range | null {
  try {
    // The last part of an IPv4 address may be left out, by an old reading that nobody means.
    if (!text.includes(':') && !/^\d+\.\d+\.\d+\.\d+(?:\/\d+)?$/.test(text)) return null
    const [address, bits] = text.includes('/')
      ? ipaddr.parseCIDR(text)
      : [ipaddr.parse(text), text.includes(':') ? 128 : 32]
    // A client of IPv4 is one of IPv4 here, however its address is written.
    if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) return null
    return [address, bits] as Range
  } catch {
    return null
  }
}

/** Of what is stored, which was read when it was written. */
export const readRanges = (texts: readonly string[]): Range[] =>
  texts.map((text) => {
    const range = readRange(text)
    // Left out, it would let everybody in.
    if (range === null) throw new Error(`an API key has an invalid range of addresses: ${text}`)
    return range
  })

/**
 * Whether a client's address lies in one of the ranges; where there is none, every address does.
 * @param ip as the connection, or the proxies that are trusted, tell it; an IPv4 address may be
 *   written as IPv6 (::ffff:…)
 */
export function isAllowed(ranges: readonly Range[], ip: string): boolean {
  if (ranges.length === 0) return true
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.process(ip)
  return ranges.some(
    ([start, bits]) => start.kind() === address.kind() && address.match(start, bits),
  )
}
