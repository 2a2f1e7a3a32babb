import ipaddr from 'ipaddr.js'

/** A range of IPv4 or IPv6 addresses. */
export type Range = ReturnType<typeof ipaddr.parseCIDR>

/**
 * Parses an address, or a range such as 203.0.113.0/24 or 2001:db8::/32.
 * @returns null if the text is neither
 */
export function readRange(text: string): Range | null {
  try {
    // The library would also accept the obsolete short notation of IPv4 addresses, such as 10.1.
    if (!text.includes(':') && !/^\d+\.\d+\.\d+\.\d+(?:\/\d+)?$/.test(text)) return null
    const [address, bits] = text.includes('/')
      ? ipaddr.parseCIDR(text)
      : [ipaddr.parse(text), text.includes(':') ? 128 : 32]
    // IPv4 clients are always compared as IPv4, so a range in IPv4-mapped IPv6 notation would never
    // match.
    if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) return null
    return [address, bits] as Range
  } catch {
    return null
  }
}

/** Parses stored ranges, which were validated when they were stored. */
export const readRanges = (texts: readonly string[]): Range[] =>
  texts.map((text) => {
    const range = readRange(text)
    // Ignoring the range could leave an empty list, which allows every address.
    if (range === null) throw new Error(`an API key has an invalid range of addresses: ${text}`)
    return range
  })

/**
 * Returns whether a client's address is in one of the ranges. An empty list allows every address.
 * @param ip the client's address, as the connection or the trusted proxies report it; an IPv4
 *   address may be in IPv6 notation (::ffff:…)
 */
export function isAllowed(ranges: readonly Range[], ip: string): boolean {
  if (ranges.length === 0) return true
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.process(ip)
  return ranges.some(
    ([start, bits]) => start.kind() === address.kind() && address.match(start, bits),
  )
}
