import ipaddr from 'ipaddr.js'

/** Networks of a client, by which quotas and rate limits are counted. */
export interface ClientNetworks {
  /**
   * The IPv4 address, or the /64 of an IPv6 address, because a single client usually has a whole
   * /64.
   */
  network: string
  /**
   * The IPv4 address, or the /48 of an IPv6 address, which a customer of an internet provider can
   * obtain.
   */
  site: string
}

/**
 * Returns the networks of a client's address.
 * @param ip address of the client. An IPv4 address in IPv6 notation (::ffff:…) counts as IPv4. A
 *   text that is not an address counts as itself.
 */
export function clientNetworks(ip: string): ClientNetworks {
  if (!ipaddr.isValid(ip)) return { network: ip, site: ip }
  const address = ipaddr.process(ip)
  if (!(address instanceof ipaddr.IPv6))
    return { network: address.toString(), site: address.toString() }
  const first = (parts: number) =>
    address.parts
      .slice(0, parts)
      .map((part) => part.toString(16))
      .join(':')
  return { network: `${first(4)}::/64`, site: `${first(3)}::/48` }
}

/** Returns the IPv4 address, or the /64 of an IPv6 address. */
export const networkOf = (ip: string): string => clientNetworks(ip).network
