import { hexToBytes } from '@noble/hashes/utils.js'
import { VerificationError } from './errors.ts'
import { signersOf } from './signatures.ts'
import type { NodeSignature, PinnedTrust } from './trust.ts'

/**
 * A workspace's key with each signer node's signature of it, as GET /dac/v1/keys returns it.
 * Lower-case hex.
 */
export interface CertifiedKey {
  workspace: string
  curve: string
  key_id: string
  public_key: string
  chain_code: string
  mode: string
  epoch: number
  certificates: NodeSignature[]
}
export interface Keys {
  network: string
  keys: CertifiedKey[]
}

export interface VerifiedKey {
  curve: string
  keyId: string
  publicKey: Uint8Array
  chainCode: Uint8Array
  certifiedBy: number[]
}

const CERTIFICATES_NEEDED = 3
const PUBLIC_KEY: Readonly<Record<string, RegExp>> = {
  secp256k1: /^0[23][0-9a-f]{64}$/,
  ed25519: /^[0-9a-f]{64}$/,
}

/** Returns the bytes that each node signs: packages/signer/README.md, POST /key. */
function certificateText({
  workspace,
  curve,
  key_id,
  public_key,
  chain_code,
  mode,
  epoch,
}: Omit<CertifiedKey, 'certificates'>): string {
  return `custody/key-certificate/v1\n${JSON.stringify({ workspace, curve, key_id, public_key, chain_code, mode, epoch })}`
}

/**
 * Finds the workspace's key of a curve in a response of GET /dac/v1/keys and verifies that all
 * three pinned nodes certified exactly this key for exactly this workspace and network.
 *
 * @throws VerificationError `KEY`
 */
export function verifiedKey(trust: PinnedTrust, answer: unknown, curve: string): VerifiedKey {
  const keys = (answer as Partial<Keys> | null)?.keys
  const key = Array.isArray(keys) ? keys.find((each) => each?.curve === curve) : undefined
  if (!key)
    throw new VerificationError(
      'KEY',
      `the service returned no ${curve} key of workspace ${trust.workspace}`,
      { expected: curve },
    )
  const refuse = (what: string, expected: string, actual: unknown): never => {
    const message = `the ${curve} key is of another ${what}: ${String(actual)}, where ${expected} is pinned`
    throw new VerificationError('KEY', message, { expected, actual: String(actual) })
  }
  if (key.workspace !== trust.workspace) refuse('workspace', trust.workspace, key.workspace)
  if (key.mode !== trust.network) refuse('network', trust.network, key.mode)
  const isHex =
    PUBLIC_KEY[curve]?.test(key.public_key) === true && /^[0-9a-f]{64}$/.test(key.chain_code)
  const isShaped =
    isHex &&
    typeof key.key_id === 'string' &&
    Number.isInteger(key.epoch) &&
    Array.isArray(key.certificates)
  const certifiedBy = isShaped ? signersOf(trust, certificateText(key), key.certificates) : []
  if (certifiedBy.length < CERTIFICATES_NEEDED) {
    const message = `the ${curve} key is certified by ${certifiedBy.length} of the ${CERTIFICATES_NEEDED} pinned signer nodes`
    throw new VerificationError('KEY', message, {
      expected: [...trust.identities.keys()].join(', '),
      actual: certifiedBy.join(', '),
    })
  }
  return {
    curve,
    keyId: key.key_id,
    publicKey: hexToBytes(key.public_key),
    chainCode: hexToBytes(key.chain_code),
    certifiedBy,
  }
}
