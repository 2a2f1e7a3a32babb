import { publicKeysBelow, type Curve, type PublicKeyAt, type WorkspaceKey } from '@custody/chains'
import type { KeyMaterial } from '@custody/threshold'
import { z } from 'zod'
import { fromHex, hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import { State, type KeyState, type NodeSignature } from '../store/state.ts'
import type { Peers } from '../transport/peers.ts'
import { isSignedByAll, readyBytes, signCertificate, verifyCertificates, type KeyCertificate, type KeyReady } from './certificate.ts'
import type { Ceremonies } from './ceremony.ts'

export interface KeySet extends KeyCertificate { network: string; certificates: NodeSignature[] }

/** A workspace's public key on one curve, certified by three nodes. */
export interface CertifiedKey extends WorkspaceKey { key_id: string; publicKeyAt: PublicKeyAt }

const signaturesSchema = z.array(z.strictObject({ node: z.int().min(1).max(3), signature: z.string().max(128) })).length(3)
const nameSchema = z.strictObject({ workspace: z.string().min(1).max(128), curve: z.enum(['secp256k1', 'ed25519']) })
const certifySchema = nameSchema.extend({ key_id: z.string().max(64) })
const setSchema = certifySchema.extend({ certificates: signaturesSchema })
const readySchema = z.strictObject({
  ready: z.strictObject({
    curve: z.enum(['secp256k1', 'ed25519']), key_id: z.string().max(64), public_key: z.string(), chain_code: z.string(), mode: z.string(),
    epoch: z.int(),
  }),
  signatures: signaturesSchema,
})

/** The node that gives keys to workspaces. All three must agree, so nothing is lost by asking one; two could collide. */
const ALLOCATOR = 1

/** Keys made, keys in the pool, and which workspace a key belongs to: unique both ways, for ever. */
export class Keyring {
  readonly #config: Config
  readonly #store: Store
  readonly #peers: Peers
  readonly #environment: Environment
  readonly #log: Log
  readonly #ceremonies: Ceremonies
  readonly identities: ReadonlyMap<number, import('node:crypto').KeyObject>
  readonly #public = new Map<string, CertifiedKey>()
  readonly #materials = new Map<string, KeyMaterial>()
  readonly #allocating = new Map<string, Promise<KeySet>>()
  #generating: Promise<void> | null = null
  #stopped = false
  #retryAt = 0

  constructor(parts: { config: Config; store: Store; peers: Peers; environment: Environment; log: Log; ceremonies: Ceremonies }) {
    this.#config = parts.config
    this.#store = parts.store
    this.#peers = parts.peers
    this.#environment = parts.environment
    this.#log = parts.log
    this.#ceremonies = parts.ceremonies
    this.identities = new Map([
      [this.#config.node, this.#config.identityPublic], ...this.#config.peerList.map((peer) => [peer.node, peer.identity] as const),
    ])
    this.#ceremonies.onReady = ({ ready, signatures, session }, kind) => {
      if (kind === 'keygen') this.#addKey(ready, signatures)
      else {
        this.forget(ready.key_id, ready.epoch)
        this.#store.append('prepared', { ...ready, signatures, session })
      }
    }
    this.#peers.handle('/peer/key/allocate', async (_node, body) => {
      const { workspace, curve } = nameSchema.parse(body)
      return this.allocate(workspace, curve)
    })
    this.#peers.handle('/peer/key/certify', async (_node, body) => {
      const { workspace, curve, key_id } = certifySchema.parse(body)
      await this.#learn(key_id)
      return { signature: this.#sign(workspace, curve, key_id) }
    })
    this.#peers.handle('/peer/key/set', async (_node, body) => {
      this.#adopt(setSchema.parse(body))
      return {}
    })
    this.#peers.handle('/peer/key/get', async (_node, body) => {
      const { workspace, curve } = nameSchema.parse(body)
      const set = this.setOf(workspace, curve)
      return { set: set && { workspace, curve, key_id: set.key_id, certificates: set.certificates } }
    })
    this.#peers.handle('/peer/key/ready', async (_node, body) => {
      const { key_id } = z.strictObject({ key_id: z.string().max(64) }).parse(body)
      const key = this.#store.state.keys.get(key_id)
      return key ? { known: true, ...this.readyOf(key) } : { known: false }
    })
  }

  #addKey(ready: KeyReady, signatures: NodeSignature[]): void {
    if (this.#store.state.keys.has(ready.key_id)) return
    this.#store.append('key', { ...ready, signatures })
    this.#log('info', 'a key is ready', { key: ready.key_id, curve: ready.curve })
  }

  readyOf(key: KeyState): { ready: KeyReady; signatures: NodeSignature[] } {
    const { signatures, curve, key_id, public_key, chain_code, mode, epoch } = this.#store.record.readAs(key.height, 'key').body
    return { ready: { curve, key_id, public_key, chain_code, mode, epoch }, signatures }
  }

  /** A node that lost the last message of a key generation holds the share but not the certificates: it asks. */
  async #learn(keyId: string): Promise<void> {
    if (this.#store.state.keys.has(keyId)) return
    const share = this.#store.shares.read(keyId, 0)
    if (!share) throw new Refusal('KEY_CONFLICT', 'This node holds no share of that key')
    for (const node of this.#peers.nodes) {
      try {
        const answer = await this.#peers.call<{ known: boolean }>(
          node, '/peer/key/ready', { key_id: keyId }, { timeout: this.#config.timeouts_ms.round }
        )
        if (!answer.known) continue
        const { known: _known, ...rest } = answer
        const { ready, signatures } = readySchema.parse(rest)
        if (
          ready.public_key !== hex(share.publicKey)
            || ready.chain_code !== hex(share.chainCode)
            || ready.epoch !== 0
            || ready.key_id !== keyId
            || ready.mode !== this.#config.mode
            || ready.curve !== share.curve
        ) {
          continue
        }
        if (!isSignedByAll(readyBytes(ready), signatures, this.identities)) continue
        this.#addKey(ready, signatures)
        return
      } catch (error) {
        this.#log('warn', 'could not ask for a key', { peer: node, reason: reason(error) })
      }
    }
    throw new Refusal('KEY_NOT_READY', 'The key is not certified by all three nodes here')
  }

  pool(curve: Curve): KeyState[] {
    const { shares, state } = this.#store
    return [...state.keys.values()].filter((key) => key.curve === curve && key.workspace === null && shares.has(key.key_id, key.epoch))
  }

  poolSizes(): Record<Curve, number> {
    return { secp256k1: this.pool('secp256k1').length, ed25519: this.pool('ed25519').length }
  }

  /** Makes keys until the pool is full; one at a time, led by one node. A failure is retried by the next call. */
  fill(): Promise<void> {
    if (this.#config.node !== ALLOCATOR || this.#stopped || this.#store.state.restoring) return Promise.resolve()
    if (this.#environment.now() < this.#retryAt && !this.#generating) return Promise.resolve()
    this.#generating ??= (async () => {
      for (;;) {
        const sizes = this.poolSizes()
        const want = (['secp256k1', 'ed25519'] as const).filter((curve) => sizes[curve] < this.#config.pool[curve])
          .sort((a, b) => sizes[a] - sizes[b])[0]
        if (!want || this.#stopped) return
        await this.#generate(want)
      }
    })().catch((error: unknown) => {
      this.#retryAt = this.#environment.now() + 1000
      if (!this.#stopped) this.#log('warn', 'key generation failed', { reason: reason(error) })
    }).finally(() => { this.#generating = null })
    return this.#generating
  }

  async #generate(curve: Curve): Promise<void> {
    await this.#ceremonies.lead({
      kind: 'keygen', curve, key_id: `${curve === 'secp256k1' ? 's' : 'e'}-${hex(this.#environment.random(12))}`, epoch: 0,
    })
  }

  #certificateOf(workspace: string, curve: Curve, key: KeyState, epoch: number): KeyCertificate {
    return { workspace, curve, key_id: key.key_id, public_key: key.public_key, chain_code: key.chain_code, mode: this.#config.mode, epoch }
  }

  setOf(workspace: string, curve: Curve): KeySet | null {
    const allocation = this.#store.state.allocations.get(State.allocationKey(workspace, curve))
    const key = allocation && this.#store.state.keys.get(allocation.key_id)
    if (!allocation?.certificates || !key) return null
    return {
      ...this.#certificateOf(workspace, curve, key, allocation.epoch), network: this.#config.mode, certificates: allocation.certificates,
    }
  }

  /** This node's own certificate. Writes the pairing down first; another pairing of either side is refused for ever. */
  #sign(workspace: string, curve: Curve, keyId: string): string {
    const { state } = this.#store
    const key = state.keys.get(keyId)
    if (!key || key.curve !== curve) throw new Refusal('KEY_CONFLICT', 'No such key of this curve')
    const allocation = state.allocations.get(State.allocationKey(workspace, curve))
    if (allocation && allocation.key_id !== keyId) throw new Refusal('KEY_CONFLICT', 'The workspace has another key')
    if (key.workspace !== null && key.workspace !== workspace) throw new Refusal('KEY_CONFLICT', 'The key belongs to another workspace')
    if (!allocation) this.#store.append('allocate', { workspace, curve, key_id: keyId, epoch: 0 })
    return signCertificate(this.#config.identity, this.#certificateOf(workspace, curve, key, 0))
  }

  #adopt(set: z.infer<typeof setSchema>): KeySet {
    const { workspace, curve, key_id, certificates } = set
    const known = this.setOf(workspace, curve)
    if (known) {
      if (known.key_id !== key_id) throw new Refusal('KEY_CONFLICT', 'The workspace has another key')
      return known
    }
    const key = this.#store.state.keys.get(key_id)
    if (!key) throw new Refusal('KEY_CONFLICT', 'No such key')
    if (!verifyCertificates({ ...this.#certificateOf(workspace, curve, key, 0), certificates }, this.identities)) {
      throw new Refusal('KEY_CONFLICT', 'The certificates do not verify')
    }
    // Signing first also checks that both sides are still free, or are this very pair.
    this.#sign(workspace, curve, key_id)
    this.#store.append('certificates', { workspace, curve, key_id, certificates })
    return this.setOf(workspace, curve)!
  }

  /** POST /key. */
  async key(workspace: string, curve: Curve): Promise<KeySet> {
    const known = this.setOf(workspace, curve)
    if (known) return known
    if (this.#config.node === ALLOCATOR) return this.allocate(workspace, curve)
    const set = await this.#peers.call<KeySet>(
      ALLOCATOR, '/peer/key/allocate', { workspace, curve }, { timeout: this.#config.timeouts_ms.keygen }
    )
    return this.setOf(workspace, curve) ?? this.#adopt(setSchema.parse({
      workspace, curve, key_id: set.key_id, certificates: set.certificates,
    }))
  }

  allocate(workspace: string, curve: Curve): Promise<KeySet> {
    if (this.#config.node !== ALLOCATOR) throw new Refusal('NOT_ALLOWED', 'This node does not allocate keys')
    const name = State.allocationKey(workspace, curve)
    let running = this.#allocating.get(name)
    if (!running) {
      running = this.#allocate(workspace, curve).finally(() => {
        this.#allocating.delete(name)
        void this.fill()
      })
      this.#allocating.set(name, running)
    }
    return running
  }

  async #allocate(workspace: string, curve: Curve): Promise<KeySet> {
    const done = this.setOf(workspace, curve)
    if (done) return done
    let keyId = this.#store.state.allocations.get(State.allocationKey(workspace, curve))?.key_id
    if (!keyId) {
      if (this.pool(curve).length === 0) {
        this.#retryAt = 0
        await this.fill()
      }
      if (this.pool(curve).length === 0) await this.#generate(curve)
      const key = this.pool(curve)[0]
      if (!key) throw new Refusal('KEY_NOT_READY', 'No key is ready yet')
      keyId = key.key_id
    }
    const own = { node: this.#config.node, signature: this.#sign(workspace, curve, keyId) }
    const others = await Promise.all(this.#peers.nodes.map(async (node) => {
      const { signature } = await this.#peers.call<{ signature: string }>(
        node, '/peer/key/certify', { workspace, curve, key_id: keyId }, { timeout: this.#config.timeouts_ms.round }
      )
      return { node, signature: z.string().parse(signature) }
    }))
    const certificates = [own, ...others].sort((a, b) => a.node - b.node)
    const set = this.#adopt({ workspace, curve, key_id: keyId, certificates })
    // All three hold the set before anyone outside may count on it.
    await Promise.all(
      this.#peers.nodes.map((node) => this.#peers.call(node, '/peer/key/set', { workspace, curve, key_id: keyId, certificates }, {
        timeout: this.#config.timeouts_ms.round,
      }))
    )
    return set
  }

  /** The workspace's key for judging and signing: only with all three certificates. */
  async workspaceKey(workspace: string, curve: Curve): Promise<CertifiedKey> {
    const name = State.allocationKey(workspace, curve)
    const cached = this.#public.get(name)
    if (cached) return cached
    let set = this.setOf(workspace, curve)
    for (const node of set ? [] : this.#peers.nodes) {
      try {
        const answer = await this.#peers.call<{ set: unknown }>(
          node, '/peer/key/get', { workspace, curve }, { timeout: this.#config.timeouts_ms.round }
        )
        if (!answer.set) continue
        const heard = setSchema.parse(answer.set)
        if (heard.workspace !== workspace || heard.curve !== curve) continue
        await this.#learn(heard.key_id)
        set = this.#adopt(heard)
        break
      } catch (error) {
        this.#log('warn', 'could not ask for certificates', { peer: node, reason: reason(error) })
      }
    }
    if (!set) throw new Refusal('KEY_NOT_READY', 'The workspace has no key that all three nodes certified')
    const half = { curve, publicKey: fromHex(set.public_key), chainCode: fromHex(set.chain_code) }
    const key: CertifiedKey = { key_id: set.key_id, ...half, publicKeyAt: publicKeysBelow(half) }
    this.#public.set(name, key)
    return key
  }

  epochOf(keyId: string): number {
    const key = this.#store.state.keys.get(keyId)
    if (!key) throw new Refusal('KEY_NOT_READY', 'No such key')
    return key.epoch
  }

  /** The sealed share of an epoch; it is opened in native memory only. */
  material(keyId: string, epoch: number): KeyMaterial {
    const name = `${keyId}/${epoch}`
    let material = this.#materials.get(name)
    if (!material) {
      const loaded = this.#store.shares.read(keyId, epoch)
      if (!loaded) throw new Refusal('KEY_NOT_READY', `This node holds no share of epoch ${epoch}`)
      material = loaded
      if (this.#materials.size >= 256) this.#materials.clear()
      this.#materials.set(name, material)
    }
    return material
  }

  forget(keyId: string, epoch: number): void { this.#materials.delete(`${keyId}/${epoch}`) }
  stop(): void { this.#stopped = true }
}
