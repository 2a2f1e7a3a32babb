import type { KeyObject } from 'node:crypto'
import { canonicalBytes, signBytes, verifyBytes } from '../canonical.ts'
import type { NodeSignature } from '../store/state.ts'

/**
 * Statement that all three nodes sign before a key belongs to a workspace. Hex is lower case, the
 * epoch is an integer.
 */
export interface KeyCertificate {
  workspace: string
  curve: string
  key_id: string
  public_key: string
  chain_code: string
  mode: string
  epoch: number
}
const CERTIFICATE_KEYS = [
  'workspace',
  'curve',
  'key_id',
  'public_key',
  'chain_code',
  'mode',
  'epoch',
] as const

/**
 * Statement that all three nodes sign after key generation and each refresh: the key, at this
 * epoch.
 */
export interface KeyReady {
  curve: 'secp256k1' | 'ed25519'
  key_id: string
  public_key: string
  chain_code: string
  mode: string
  epoch: number
}
const READY_KEYS = ['curve', 'key_id', 'public_key', 'chain_code', 'mode', 'epoch'] as const

const certificateBytes = (certificate: KeyCertificate): Buffer =>
  canonicalBytes('keyCertificate', CERTIFICATE_KEYS, { ...certificate })
export const readyBytes = (ready: KeyReady): Buffer =>
  canonicalBytes('keyReady', READY_KEYS, { ...ready })

export const signCertificate = (identity: KeyObject, certificate: KeyCertificate): string =>
  signBytes(identity, certificateBytes(certificate))
export const signReady = (identity: KeyObject, ready: KeyReady): string =>
  signBytes(identity, readyBytes(ready))

/** A sub-account's name and the first element of its derivation paths, which never changes. */
export interface Binding {
  workspace: string
  sub_account: string
  index: number
  mode: string
}
const BINDING_KEYS = ['workspace', 'sub_account', 'index', 'mode'] as const
export const bindingBytes = (binding: Binding): Buffer =>
  canonicalBytes('subAccount', BINDING_KEYS, { ...binding })

/**
 * Returns whether there is exactly one valid signature of each of the three nodes over these bytes.
 */
export function isSignedByAll(
  bytes: Uint8Array,
  signatures: readonly NodeSignature[],
  identities: ReadonlyMap<number, KeyObject>,
): boolean {
  if (signatures.length !== 3 || new Set(signatures.map((each) => each.node)).size !== 3)
    return false
  return signatures.every(({ node, signature }) => {
    const identity = identities.get(node)
    return identity !== undefined && verifyBytes(identity, bytes, signature)
  })
}

/** Verifies the response of POST /key with the three pinned identity keys. Pure function. */
export function verifyCertificates(
  set: KeyCertificate & { certificates: readonly NodeSignature[] },
  identityKeys: ReadonlyMap<number, KeyObject>,
): boolean {
  return isSignedByAll(certificateBytes(set), set.certificates, identityKeys)
}
