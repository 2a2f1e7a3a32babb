import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto'
import type { Curve } from '@custody/chains'
import type { CertifiedKey } from '../../../../signer/src/keys/keyring.ts'
import { WholeKeys } from '../../../../signer/testing/whole-keys.ts'
import type { KeyMaterial } from './engine-types.ts'

export const NODES = [1, 2, 3] as const
export const WORKSPACE = 'acme'
/** The platform's key. Its signatures are random, and no line of a log contains one. */
export const PLATFORM = generateKeyPairSync('ec', { namedCurve: 'P-256' })
export const PLATFORM_PEM = Buffer.from(
  PLATFORM.privateKey.export({ type: 'pkcs8', format: 'pem' }),
)

/** Keys of the three nodes of a seed, and the workspace's key. */
export class ClusterKeys {
  readonly whole: WholeKeys
  readonly #secret: Buffer
  readonly #identities = new Map<number, KeyObject>()
  readonly identities = new Map<number, KeyObject>()
  readonly certified: Record<Curve, CertifiedKey>

  constructor(seed: number) {
    this.#secret = createHash('sha256').update(`byzantine ${seed}`).digest()
    this.whole = new WholeKeys(this.#secret)
    for (const node of NODES) {
      const secret = createHash('sha256').update(`byzantine node ${node}`).digest()
      const key = createPrivateKey({
        key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret]),
        format: 'der',
        type: 'pkcs8',
      })
      this.#identities.set(node, key)
      this.identities.set(node, createPublicKey(key))
    }
    this.certified = {
      secp256k1: this.#certifiedOf('secp256k1'),
      ed25519: this.#certifiedOf('ed25519'),
    }
  }

  #certifiedOf(curve: Curve): CertifiedKey {
    return { ...this.whole.keys[curve], publicKeyAt: this.whole.at[curve] }
  }

  identityOf(node: number): KeyObject {
    return this.#identities.get(node)!
  }

  /** The share of a node; the double of the engine keeps the whole key in each share. */
  shareOf(node: number, keyId: string): KeyMaterial {
    const curve = keyId === this.certified.ed25519.key_id ? 'ed25519' : 'secp256k1'
    const { publicKey, chainCode } = this.certified[curve]
    return {
      engine: curve === 'ed25519' ? 'frost-ed25519' : 'dkls23-secp256k1',
      engineVersion: 'double',
      curve,
      keyId,
      epoch: 0,
      party: node,
      publicKey,
      chainCode,
      sealedShare: this.#secret,
    }
  }
}
