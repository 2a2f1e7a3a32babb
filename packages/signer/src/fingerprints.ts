import { createHash, createPublicKey } from 'node:crypto'
import { pinOf } from '@custody/request-auth/pinned'

/**
 * The keys that others pin of a node or of the platform: the key of its TLS certificate, and its
 * identity key, which the platform does not have.
 */
export interface Pinned {
  certificate: string
  identity?: string
}

const GROUP = /.{4}/g
/**
 * Number of hexadecimal digits: 80 bits, so that a second key with the same fingerprint cannot be
 * found and two people can compare it by voice.
 */
const DIGITS = 20

/**
 * Returns the fingerprint of a public configuration, to be compared over another channel. It covers
 * the TLS key and the identity key, and stays the same after a renewal of the TLS certificate.
 * @param name owner: `1`, `2`, `3` or `platform`; swapped owners have other fingerprints
 * @throws Error if the certificate or the key cannot be read
 */
export function fingerprintOf(
  name: number | 'platform',
  { certificate, identity }: Pinned,
): string {
  const key =
    identity === undefined
      ? ''
      : createPublicKey(identity).export({ type: 'spki', format: 'der' }).toString('hex')
  const text = `custody/public-half/v2\n${name}\n${pinOf(certificate)}\n${key}`
  return (
    createHash('sha256').update(text).digest('hex').slice(0, DIGITS).match(GROUP) as string[]
  ).join('-')
}

/**
 * A node's public description of itself for the platform and its peers. `prints`: fingerprints by
 * `1`, `2`, `3`, `platform`.
 */
export interface Hello {
  node: number
  mode: string
  clock: number
  prints: Record<string, string>
}

/** Returns the fingerprints of all parties that a node has pinned, including itself. */
export function fingerprintsOf(o: {
  own: { node: number; certificate: string; identity: string }
  peers: readonly { node: number; certificate: string; identity: string }[]
  platform: string
}): Record<string, string> {
  return {
    ...Object.fromEntries(
      [o.own, ...o.peers].map((each) => [String(each.node), fingerprintOf(each.node, each)]),
    ),
    platform: fingerprintOf('platform', { certificate: o.platform }),
  }
}
