import { publicKeysBelow, type Curve, type PublicKeyAt, type WorkspaceKey } from '@custody/chains'
import type { KeyMaterial } from '@custody/threshold'
import { z } from 'zod'
import { fromHex, hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Bans } from '../sessions/bans.ts'
import type { Store } from '../store/index.ts'
import { State, type KeyState, type NodeSignature } from '../store/state.ts'
import type { Peers } from '../transport/peers.ts'
import {
  isSignedByAll,
  readyBytes,
  signCertificate,
  verifyCertificates,
  type KeyCertificate,
  type KeyReady,
} from './certificate.ts'
import type { Ceremonies } from './ceremony.ts'
import { KeyQueue, type QueuePlace } from './key-queue.ts'

export interface KeySet extends KeyCertificate {
  network: string
  certificates: NodeSignature[]
}

/** A workspace's public key on one curve, certified by three nodes. */
export interface CertifiedKey extends WorkspaceKey {
  key_id: string
  publicKeyAt: PublicKeyAt
}

const signaturesSchema = z
  .array(z.strictObject({ node: z.int().min(1).max(3), signature: z.string().max(128) }))
  .length(3)
const nameSchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  curve: z.enum(['secp256k1', 'ed25519']),
})
const certifySchema = nameSchema.extend({ key_id: z.string().max(64) })
const setSchema = certifySchema.extend({ certificates: signaturesSchema })
/** Answer of the node that assigns keys. */
const allocatedSchema = z.union([
  z.object({ key_id: z.string().max(64), certificates: signaturesSchema }),
  z.strictObject({ place: z.int().min(0), waiting: z.int().min(0) }),
])
const readySchema = z.strictObject({
  ready: z.strictObject({
    curve: z.enum(['secp256k1', 'ed25519']),
    key_id: z.string().max(64),
    public_key: z.string(),
    chain_code: z.string(),
    mode: z.string(),
    epoch: z.int(),
  }),
  signatures: signaturesSchema,
})

/**
 * The node that assigns keys to workspaces. All three nodes must agree, so a single node has no
 * additional power; two could collide.
 */
const ALLOCATOR = 1

/**
 * Generated keys, keys in the pool, and the workspace that each key belongs to. The mapping is
 * unique in both directions and permanent.
 */
export class Keyring {
  readonly #config: Config
  readonly #store: Store
  readonly #peers: Peers
  readonly #environment: Environment
  readonly #log: Log
  readonly #ceremonies: Ceremonies
  readonly #bans: Bans
  readonly identities: ReadonlyMap<number, import('node:crypto').KeyObject>
  readonly #public = new Map<string, CertifiedKey>()
  readonly #materials = new Map<string, KeyMaterial>()
  readonly #queue: KeyQueue<KeySet>
  /**
   * Keys of the pool that are being assigned to a workspace, or that a peer rejected: they are not
   * offered to another workspace.
   */
  readonly #offered = new Set<string>()

  constructor(parts: {
    config: Config
    store: Store
    peers: Peers
    environment: Environment
    log: Log
    ceremonies: Ceremonies
    bans: Bans
    /** Returns whether a signature is being made at this node. */
    isSigning: () => boolean
  }) {
    this.#config = parts.config
    this.#store = parts.store
    this.#peers = parts.peers
    this.#environment = parts.environment
    this.#log = parts.log
    this.#ceremonies = parts.ceremonies
    this.#bans = parts.bans
    this.identities = new Map([
      [this.#config.node, this.#config.identityPublic],
      ...this.#config.peerList.map((peer) => [peer.node, peer.identity] as const),
    ])
    this.#queue = this.#openQueue(parts.isSigning)
    this.#ceremonies.onReady = ({ ready, signatures, session }, kind) => {
      if (kind === 'keygen') this.#addKey(ready, signatures, session)
      else this.#store.append('prepared', { ...ready, signatures, session })
    }
    this.#peers.handle('/peer/key/allocate', async (_node, body) => {
      const { workspace, curve } = nameSchema.parse(body)
      return this.#request(workspace, curve)
    })
    this.#peers.handle('/peer/key/certify', async (_node, body) => {
      const { workspace, curve, key_id } = certifySchema.parse(body)
      this.#assertNoBan()
      this.#assertNotLost(key_id)
      await this.#learn(key_id)
      return { signature: this.#sign(workspace, curve, key_id) }
    })
    this.#peers.handle('/peer/key/allocatable', async (_node, body) => {
      const { key_id } = z.strictObject({ key_id: z.string().max(64) }).parse(body)
      this.#assertNoBan()
      return { allocatable: !this.#store.state.isLost(key_id) }
    })
    this.#peers.handle('/peer/key/set', async (_node, body) => {
      this.#adopt(setSchema.parse(body))
      return {}
    })
    this.#peers.handle('/peer/key/get', async (_node, body) => {
      const { workspace, curve } = nameSchema.parse(body)
      const set = this.setOf(workspace, curve)
      return {
        set: set && { workspace, curve, key_id: set.key_id, certificates: set.certificates },
      }
    })
    this.#peers.handle('/peer/key/ready', async (_node, body) => {
      const { key_id } = z.strictObject({ key_id: z.string().max(64) }).parse(body)
      const key = this.#store.state.keys.get(key_id)
      return key ? { known: true, ...this.readyOf(key) } : { known: false }
    })
  }

  #addKey(ready: KeyReady, signatures: NodeSignature[], session: string | null): void {
    if (this.#store.state.keys.has(ready.key_id)) return
    this.#store.append('key', { ...ready, signatures, ...(session === null ? {} : { session }) })
    this.#log('info', 'a key is ready', { key: ready.key_id, curve: ready.curve })
  }

  readyOf(key: KeyState): { ready: KeyReady; signatures: NodeSignature[] } {
    const { signatures, curve, key_id, public_key, chain_code, mode, epoch } =
      this.#store.record.readAs(key.height, 'key').body
    return { ready: { curve, key_id, public_key, chain_code, mode, epoch }, signatures }
  }

  /**
   * A node that lost the last message of a key generation has the share but not the certificates,
   * so it requests them.
   */
  async #learn(keyId: string): Promise<void> {
    if (this.#store.state.keys.has(keyId)) return
    const shares = this.#store.shares.of(keyId, 0)
    if (shares.length === 0)
      throw new Refusal('KEY_CONFLICT', 'This node holds no share of that key')
    for (const node of this.#peers.nodes) {
      try {
        const answer = await this.#peers.call<{ known: boolean }>(
          node,
          '/peer/key/ready',
          { key_id: keyId },
          { timeout: this.#config.timeouts_ms.round },
        )
        if (!answer.known) continue
        const { known: _known, ...rest } = answer
        const { ready, signatures } = readySchema.parse(rest)
        if (ready.key_id !== keyId || ready.epoch !== 0 || ready.mode !== this.#config.mode)
          continue
        const share = shares.find(({ material }) => isOf(material, ready))
        if (!share || !isSignedByAll(readyBytes(ready), signatures, this.identities)) continue
        this.#addKey(ready, signatures, share.session)
        return
      } catch (error) {
        this.#log('warn', 'a key could not be requested from a peer', {
          peer: node,
          reason: reason(error),
        })
      }
    }
    throw new Refusal('KEY_NOT_READY', 'The key is not certified by all three nodes here')
  }

  /** Returns the keys that may be assigned to a workspace. */
  pool(curve: Curve): KeyState[] {
    const { shares, state } = this.#store
    return [...state.keys.values()].filter(
      (key) =>
        key.curve === curve &&
        key.workspace === null &&
        !state.isLost(key.key_id) &&
        !this.#offered.has(key.key_id) &&
        shares.has(key.key_id, key.epoch, key.session),
    )
  }

  /**
   * Checks that no peer is banned.
   * @throws Refusal BANNED
   */
  #assertNoBan(): void {
    const [node] = this.#bans.nodes
    if (node === undefined) return
    const advice =
      'set up a new installation and move the funds (docs/production/replacing-a-banned-node.md)'
    throw new Refusal(
      'BANNED',
      `Node ${node} is banned here, so no key is assigned to a workspace: ${advice}`,
      { node },
    )
  }

  /**
   * Checks that the key is not older than a ban.
   * @throws Refusal BANNED
   */
  #assertNotLost(keyId: string): void {
    if (!this.#store.state.isLost(keyId)) return
    throw new Refusal(
      'BANNED',
      'The key was generated before a node was banned, so it is not assigned to a workspace. Use another workspace name',
    )
  }

  poolSizes(): Record<Curve, number> {
    return { secp256k1: this.pool('secp256k1').length, ed25519: this.pool('ed25519').length }
  }

  /** Number of keys that were generated after the last backup of this node. */
  notInBackup(): number {
    const { keys, backupHeight } = this.#store.state
    return [...keys.values()].filter(({ height }) => height > backupHeight).length
  }

  /**
   * The queue of workspaces without a key, and the number of keys that this node keeps prepared;
   * null at a node that does not assign keys.
   */
  queueStatus(): { waiting: number; generating: number; pool: Record<Curve, number> } | null {
    if (this.#config.node !== ALLOCATOR) return null
    const { waiting, generating } = this.#queue
    return { waiting, generating, pool: this.#config.pool }
  }

  #openQueue(isSigning: () => boolean): KeyQueue<KeySet> {
    return new KeyQueue<KeySet>({
      pool: this.#config.pool,
      ready: (curve) => this.pool(curve).length,
      isPaired: (workspace, curve) => this.#pairedWith(workspace, curve) !== undefined,
      assign: (workspace, curve) => this.#allocate(workspace, curve),
      generate: async (curve) => {
        const key_id = `${curve === 'secp256k1' ? 's' : 'e'}-${hex(this.#environment.random(12))}`
        await this.#ceremonies.lead({ kind: 'keygen', curve, key_id, epoch: 0 })
      },
      isAble: () =>
        !this.#store.state.restoring && this.#bans.nodes.length === 0 && this.#away() === undefined,
      isSigning,
      now: () => this.#environment.monotonic(),
      later: (run, ms) => setTimeout(run, ms).unref(),
      log: this.#log,
    })
  }

  /** Returns a peer that cannot be reached; without it, no key can be generated. */
  #away(): number | undefined {
    return this.#peers.nodes.find((node) => !this.#peers.reachable(node))
  }

  /** Continues the generation of keys for waiting workspaces and for the pool. */
  fill(): void {
    if (this.#config.node === ALLOCATOR) this.#queue.serve()
  }

  #certificateOf(workspace: string, curve: Curve, key: KeyState, epoch: number): KeyCertificate {
    return {
      workspace,
      curve,
      key_id: key.key_id,
      public_key: key.public_key,
      chain_code: key.chain_code,
      mode: this.#config.mode,
      epoch,
    }
  }

  setOf(workspace: string, curve: Curve): KeySet | null {
    const allocation = this.#store.state.allocations.get(State.allocationKey(workspace, curve))
    const key = allocation && this.#store.state.keys.get(allocation.key_id)
    if (!allocation?.certificates || !key) return null
    return {
      ...this.#certificateOf(workspace, curve, key, allocation.epoch),
      network: this.#config.mode,
      certificates: allocation.certificates,
    }
  }

  /**
   * Signs this node's own certificate. Records the pairing first; any other pairing of either side
   * is permanently rejected.
   */
  #sign(workspace: string, curve: Curve, keyId: string): string {
    const { state } = this.#store
    const key = state.keys.get(keyId)
    if (!key || key.curve !== curve)
      throw new Refusal('KEY_CONFLICT', 'No key with this id has this curve')
    const allocation = state.allocations.get(State.allocationKey(workspace, curve))
    if (allocation && allocation.key_id !== keyId)
      throw new Refusal('KEY_CONFLICT', 'The workspace has another key')
    if (key.workspace !== null && key.workspace !== workspace)
      throw new Refusal('KEY_CONFLICT', 'The key belongs to another workspace')
    if (!allocation) this.#store.append('allocate', { workspace, curve, key_id: keyId, epoch: 0 })
    return signCertificate(this.#config.identity, this.#certificateOf(workspace, curve, key, 0))
  }

  #adopt(set: z.infer<typeof setSchema>): KeySet {
    const { workspace, curve, key_id, certificates } = set
    const existing = this.setOf(workspace, curve)
    if (existing) {
      if (existing.key_id !== key_id)
        throw new Refusal('KEY_CONFLICT', 'The workspace has another key')
      return existing
    }
    const key = this.#store.state.keys.get(key_id)
    if (!key) throw new Refusal('KEY_CONFLICT', 'This key does not exist')
    if (
      !verifyCertificates(
        { ...this.#certificateOf(workspace, curve, key, 0), certificates },
        this.identities,
      )
    ) {
      throw new Refusal('KEY_CONFLICT', 'The certificates do not verify')
    }
    // Signing also checks that both sides are still free, or are paired with each other already.
    this.#sign(workspace, curve, key_id)
    this.#store.append('certificates', { workspace, curve, key_id, certificates })
    return this.setOf(workspace, curve)!
  }

  /**
   * Handles POST /key: returns the workspace's certified key on a curve, or its place in the queue
   * for one.
   */
  async key(workspace: string, curve: Curve): Promise<KeySet | QueuePlace> {
    const existing = this.setOf(workspace, curve)
    if (existing) return existing
    this.#assertNoBan()
    if (this.#config.node === ALLOCATOR) return this.#request(workspace, curve)
    const answer = shapeOfAnswer(
      allocatedSchema,
      await this.#peers.call(
        ALLOCATOR,
        '/peer/key/allocate',
        { workspace, curve },
        { timeout: this.#config.timeouts_ms.keygen },
      ),
      ALLOCATOR,
    )
    if ('place' in answer) return answer
    const { key_id, certificates } = answer
    return this.setOf(workspace, curve) ?? this.#adopt({ workspace, curve, key_id, certificates })
  }

  /**
   * Returns the workspace's key, or its place in the queue for one.
   * @throws Refusal BANNED, TOO_BUSY; PEER_UNAVAILABLE if no key is ready, and none can be generated
   */
  async #request(workspace: string, curve: Curve): Promise<KeySet | QueuePlace> {
    if (this.#config.node !== ALLOCATOR)
      throw new Refusal('NOT_ALLOWED', 'This node does not allocate keys')
    const done = this.setOf(workspace, curve)
    if (done) return done
    this.#assertNoBan()
    const paired = this.#pairedWith(workspace, curve)
    if (paired !== undefined) this.#assertNotLost(paired)
    const answer = await this.#queue.request(workspace, curve)
    const node = this.#away()
    if ('place' in answer && node !== undefined) {
      const message = `Node ${node} cannot be reached, and a new key requires all three nodes`
      throw new Refusal('PEER_UNAVAILABLE', message, { node })
    }
    return answer
  }

  #pairedWith(workspace: string, curve: Curve): string | undefined {
    return this.#store.state.allocations.get(State.allocationKey(workspace, curve))?.key_id
  }

  /** Returns null if the peers accept no key of the pool. */
  async #allocate(workspace: string, curve: Curve): Promise<KeySet | null> {
    const keyId = this.#pairedWith(workspace, curve) ?? (await this.#offer(curve))
    if (keyId === null) return null
    const own = { node: this.#config.node, signature: this.#sign(workspace, curve, keyId) }
    const others = await Promise.all(
      this.#peers.nodes.map(async (node) => {
        const { signature } = await this.#peers.call<{ signature: string }>(
          node,
          '/peer/key/certify',
          { workspace, curve, key_id: keyId },
          { timeout: this.#config.timeouts_ms.round },
        )
        return { node, signature: z.string().parse(signature) }
      }),
    )
    const certificates = [own, ...others].sort((a, b) => a.node - b.node)
    const set = this.#adopt({ workspace, curve, key_id: keyId, certificates })
    // All three nodes store the certificates before anyone outside may depend on the key.
    await Promise.all(
      this.#peers.nodes.map((node) =>
        this.#peers.call(
          node,
          '/peer/key/set',
          { workspace, curve, key_id: keyId, certificates },
          {
            timeout: this.#config.timeouts_ms.round,
          },
        ),
      ),
    )
    return set
  }

  /**
   * Returns a key that both peers would certify too, because a recorded pairing cannot be changed;
   * null if the pool has no such key.
   * A key that a peer rejects is not offered again; without a response of a peer, the key stays in
   * the pool.
   */
  async #offer(curve: Curve): Promise<string | null> {
    for (let key = this.pool(curve)[0]; key; key = this.pool(curve)[0]) {
      const { key_id: keyId } = key
      this.#offered.add(keyId)
      const isAllocatable = await this.#isAllocatable(keyId).catch((error: unknown) => {
        this.#offered.delete(keyId)
        throw error
      })
      if (isAllocatable) return keyId
    }
    return null
  }

  /**
   * Returns whether both peers may assign the key.
   * @throws Refusal BANNED if a node is banned at a peer, PEER_UNAVAILABLE
   */
  async #isAllocatable(keyId: string): Promise<boolean> {
    const answers = await Promise.all(
      this.#peers.nodes.map(async (node) => {
        try {
          const { allocatable } = await this.#peers.call<{ allocatable: unknown }>(
            node,
            '/peer/key/allocatable',
            { key_id: keyId },
            { timeout: this.#config.timeouts_ms.round },
          )
          return allocatable === true
        } catch (error) {
          // During an upgrade a peer may still run an earlier version, which does not support the
          // call.
          if (error instanceof Refusal && error.code === 'NOT_FOUND') return true
          throw error
        }
      }),
    )
    return answers.every(Boolean)
  }

  /**
   * Returns the workspace's key for evaluating and signing, only if it has all three certificates.
   */
  async workspaceKey(workspace: string, curve: Curve): Promise<CertifiedKey> {
    const name = State.allocationKey(workspace, curve)
    const cached = this.#public.get(name)
    if (cached) return cached
    let set = this.setOf(workspace, curve)
    for (const node of set ? [] : this.#peers.nodes) {
      try {
        const answer = await this.#peers.call<{ set: unknown }>(
          node,
          '/peer/key/get',
          { workspace, curve },
          { timeout: this.#config.timeouts_ms.round },
        )
        if (!answer.set) continue
        const received = setSchema.parse(answer.set)
        if (received.workspace !== workspace || received.curve !== curve) continue
        await this.#learn(received.key_id)
        set = this.#adopt(received)
        break
      } catch (error) {
        this.#log('warn', 'the certificates of a key could not be requested from a peer', {
          peer: node,
          reason: reason(error),
        })
      }
    }
    if (!set)
      throw new Refusal('KEY_NOT_READY', 'The workspace has no key that all three nodes certified')
    const half = { curve, publicKey: fromHex(set.public_key), chainCode: fromHex(set.chain_code) }
    const key: CertifiedKey = { key_id: set.key_id, ...half, publicKeyAt: publicKeysBelow(half) }
    this.#public.set(name, key)
    return key
  }

  /**
   * Returns the epoch to sign with. As long as a peer may not have switched, this is the previous
   * epoch, whose share all three nodes still have.
   */
  epochOf(keyId: string): number {
    const key = this.#store.state.keys.get(keyId)
    if (!key) throw new Refusal('KEY_NOT_READY', 'This key does not exist')
    return key.previous?.epoch ?? key.epoch
  }

  /** Returns whether this node signs with an epoch. */
  isUsable(keyId: string, epoch: number): boolean {
    return this.#store.state.sessionOf(keyId, epoch) !== undefined
  }

  /**
   * Returns the encrypted share of an epoch in use; it is decrypted in native memory only.
   * @throws Refusal
   */
  material(keyId: string, epoch: number): KeyMaterial {
    const { state } = this.#store
    const name = `${keyId}/${epoch}/${state.sessionOf(keyId, epoch) ?? ''}`
    let material = this.#materials.get(name)
    if (!material) {
      const loaded = this.#store.shareOf(keyId, epoch)
      if (!loaded) throw new Refusal('KEY_NOT_READY', `This node holds no share of epoch ${epoch}`)
      const key = state.keys.get(keyId)!
      if (
        !isOf(loaded, key) ||
        loaded.keyId !== keyId ||
        loaded.epoch !== epoch ||
        loaded.party !== this.#config.node
      ) {
        this.#log('alert', 'a share does not belong to the certified key', { key: keyId, epoch })
        throw new Refusal(
          'KEY_CONFLICT',
          'The share of this node does not belong to the certified key',
        )
      }
      material = loaded
      if (this.#materials.size >= 256) this.#materials.clear()
      this.#materials.set(name, material)
    }
    return material
  }

  /** Removes a key's shares from memory. */
  forget(keyId: string): void {
    for (const name of this.#materials.keys())
      if (name.startsWith(`${keyId}/`)) this.#materials.delete(name)
  }

  stop(): void {
    this.#queue.stop()
  }
}

/** Returns whether a share belongs to a public key. */
const isOf = (
  share: KeyMaterial,
  key: { curve: Curve; public_key: string; chain_code: string },
): boolean =>
  share.curve === key.curve &&
  hex(share.publicKey) === key.public_key &&
  hex(share.chainCode) === key.chain_code
