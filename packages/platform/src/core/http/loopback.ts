import ipaddr from 'ipaddr.js'

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i

/**
 * Returns whether a `Host` header is a name of the machine itself. A page of another site can let
 * its own name resolve to a loopback address, but not send another name than its own.
 */
export const isLoopbackHost = (host: string | undefined): boolean => LOOPBACK.test(host ?? '')

/** Returns whether a connection comes from this machine. */
export const isLoopbackAddress = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
