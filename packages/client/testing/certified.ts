import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import type { CertifiedKey, Keys, Trust } from '../src/index.ts'

/**
 * State and responses of three signer nodes, created by hand: keys of a workspace and their
 * certificates.
 */
export class Nodes {
  readonly identities = new Map<number, { privateKey: KeyObject; publicKey: KeyObject }>()
  readonly network: 'local' | 'mainnet'
  readonly #random: (bytes: number) => Uint8Array

  constructor(random: (bytes: number) => Uint8Array, network: 'local' | 'mainnet' = 'local') {
    this.#random = random
    this.network = network
    for (const node of [1, 2, 3]) this.identities.set(node, generateKeyPairSync('ed25519'))
  }

  trust(more: Partial<Trust> = {}): Trust {
    const nodes = [...this.identities].map(([node, { publicKey }]) => ({
      node,
      identity: publicKey.export({ type: 'spki', format: 'pem' }) as string,
    }))
    return {
      version: 1,
      network: this.network,
      workspace: 'acme',
      sub_account: 'main',
      sub_account_index: 1,
      nodes,
      ...more,
    }
  }

  sign(node: number, text: string): string {
    return sign(null, Buffer.from(text), this.identities.get(node)!.privateKey).toString('hex')
  }

  /** Creates a key that these nodes certify; `nodes` selects the certifying nodes. */
  key(
    curve: 'secp256k1' | 'ed25519',
    more: Partial<Omit<CertifiedKey, 'certificates'>> = {},
    nodes: readonly number[] = [1, 2, 3],
  ): CertifiedKey {
    const publicKey =
      curve === 'secp256k1'
        ? secp256k1.getPublicKey(this.#random(32), true)
        : ed25519.getPublicKey(this.#random(32))
    const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
    const { workspace, key_id, public_key, chain_code, mode, epoch } = {
      workspace: 'acme',
      key_id: `${curve[0]}-1`,
      public_key: hex(publicKey),
      chain_code: hex(this.#random(32)),
      mode: this.network,
      epoch: 0,
      ...more,
    }
    const certified = { workspace, curve, key_id, public_key, chain_code, mode, epoch }
    const text = `custody/key-certificate/v1\n${JSON.stringify(certified)}`
    return {
      ...certified,
      certificates: nodes.map((node) => ({ node, signature: this.sign(node, text) })),
    }
  }

  keys(): Keys {
    return { network: this.network, keys: [this.key('secp256k1'), this.key('ed25519')] }
  }
}
