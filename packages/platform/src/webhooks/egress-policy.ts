import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Resolves a name to every address that it has. */
export type Resolve = (
  name: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Public by its range, and not the Internet: Azure's platform address. */
const NEVER = ['168.63.129.16/32'].map((text) => ipaddr.parseCIDR(text))
/**
 * What is handed out of IPv6 as global unicast (RFC 4291 as IANA assigns it); it leaves out every
 * form that embeds IPv4.
 */
const GLOBAL = ipaddr.parseCIDR('2000::/3')

const within = (address: Address, [network, bits]: [Address, number]): boolean =>
  address.kind() === network.kind() && address.match(network as never, bits)

export class EgressDenied extends Error {
  constructor(what: string) {
    super(`${what} is a private, local or reserved address, to which webhooks are not sent`)
    this.name = 'NotAllowed'
  }
}

/**
 * Which addresses may be connected to: those of the public Internet, and what the operator allows.
 * It is asked for the address that is dialled, whatever name or spelling led to it, so that a name
 * that changes its mind is of no use.
 */
export class EgressPolicy {
  readonly #allowed: [Address, number][]
  readonly #resolve: Resolve

  /** @param allowed CIDRs */
  constructor(allowed: readonly string[], resolve: Resolve) {
    this.#allowed = allowed.map((text) => ipaddr.parseCIDR(text))
    this.#resolve = resolve
  }

  /** @param text an IP address as the operating system writes it, IPv6 without brackets */
  allows(text: string): boolean {
    if (isIP(text) === 0) return false
    const address = ipaddr.process(text)
    if (this.#allowed.some((range) => within(address, range))) return true
    if (NEVER.some((range) => within(address, range)) || address.range() !== 'unicast') return false
    return address.kind() === 'ipv4' || within(address, GLOBAL)
  }

  /**
   * @throws NotAllowed where the host of a URL is an address that may not be connected to; names
   *   are looked up later
   */
  check(url: URL): void {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !this.allows(host)) throw new EgressDenied(host)
  }

  /** For a connection: only addresses that are allowed are dialled. */
  readonly lookup: LookupFunction = (name, options, done) => {
    this.#resolve(name, { ...options, all: true }, (error, addresses) => {
      const all = options.all === true
      if (error) return done(error, all ? [] : '')
      const found = addresses.filter(({ address }) => this.allows(address))
      const [first] = found
      if (first === undefined)
        return done(
          new EgressDenied(`${name} (${addresses[0]?.address ?? 'no address'})`),
          all ? [] : '',
        )
      return all ? done(null, found) : done(null, first.address, isIP(first.address))
    })
  }
}
