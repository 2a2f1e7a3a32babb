import { createHash, createPublicKey } from 'node:crypto'
import { pinOf } from '@custody/request-auth/pinned'

/**
 * What others pin of a node or of the platform (which has no identity): the key of its TLS
 * certificate, and its identity key.
 */
export interface Pinned {
  certificate: string
  identity?: string
}

const GROUP = /.{4}/g
/**
 * 80 bits: nobody makes a second key of the same print, and two people can read it to each other.
 */
const DIGITS = 20

/**
 * The print of a public half, to be compared over another channel: of its TLS key and its identity
 * key. It is the same after the TLS certificate was renewed. @param name whose it is: `1`, `2`, `3`
 * or `platform`; two that are swapped have other prints
 * @throws where certificate or key cannot be read
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
 * What a node says of itself to whoever it knows: nothing of it is secret. `prints` by `1`, `2`,
 * `3`, `platform`.
 */
export interface Hello {
  node: number
  mode: string
  clock: number
  prints: Record<string, string>
}

/** Prints of everybody that a node knows, itself included. */
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
