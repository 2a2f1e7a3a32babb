import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Resolves a name to all of its addresses. */
export type Resolve = (
  name: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** An address in a public range that is not on the Internet: Azure's platform address. */
const NEVER = ['168.63.129.16/32'].map((text) => ipaddr.parseCIDR(text))
/**
 * Range of IPv6 global unicast addresses (RFC 4291, as assigned by IANA). It excludes every form
 * that embeds an IPv4 address.
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
 * Decides which addresses may be connected to: those of the public Internet, and those that the
 * operator allows. It checks the address of the actual connection, whatever the name or spelling,
 * so that a name cannot bypass it by resolving to another address later.
 */
export class EgressPolicy {
  readonly #allowed: [Address, number][]
  readonly #resolve: Resolve

  /**
   * Creates a policy.
   * @param allowed additional permitted address ranges (CIDRs)
   */
  constructor(allowed: readonly string[], resolve: Resolve) {
    this.#allowed = allowed.map((text) => ipaddr.parseCIDR(text))
    this.#resolve = resolve
  }

  /**
   * Returns whether an address may be connected to.
   * @param text IP address as the operating system writes it, IPv6 without brackets
   */
  allows(text: string): boolean {
    if (isIP(text) === 0) return false
    const address = ipaddr.process(text)
    if (this.#allowed.some((range) => within(address, range))) return true
    if (NEVER.some((range) => within(address, range)) || address.range() !== 'unicast') return false
    return address.kind() === 'ipv4' || within(address, GLOBAL)
  }

  /**
   * Checks the host of a URL if it is an address; names are resolved later.
   * @throws NotAllowed if the address may not be connected to
   */
  check(url: URL): void {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !this.allows(host)) throw new EgressDenied(host)
  }

  /** Lookup function for connections, which only returns allowed addresses. */
  readonly lookup: LookupFunction = (name, options, done) => {
    this.#resolve(name, { ...options, all: true }, (error, addresses) => {
      const all = options.all === true
      if (error) return done(error, all ? [] : '')
      const matches = addresses.filter(({ address }) => this.allows(address))
      const [first] = matches
      if (first === undefined)
        return done(
          new EgressDenied(`${name} (${addresses[0]?.address ?? 'no address'})`),
          all ? [] : '',
        )
      return all ? done(null, matches) : done(null, first.address, isIP(first.address))
    })
  }
}
