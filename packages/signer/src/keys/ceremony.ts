import { startKeygen, startRefresh, type KeyMaterial, type Session, type Vault } from '@custody/threshold'
import { z } from 'zod'
import { hex, sha256, verifyBytes } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { NodeSignature } from '../store/state.ts'
import { NO_BINDING, type Binding } from '../envelope.ts'
import { Mailbox } from '../transport/mailbox.ts'
import type { Peers } from '../transport/peers.ts'
import type { Bans } from './bans.ts'
import { readyBytes, signReady, type KeyReady } from './certificate.ts'

const freshSchema = z.string().regex(/^[0-9a-f]{64}$/)
const openSchema = z.strictObject({
  run: freshSchema, kind: z.enum(['keygen', 'refresh']), curve: z.enum(['secp256k1', 'ed25519']), key_id: z.string().min(1).max(64),
  epoch: z.int().min(0),
})
const startSchema = z.strictObject({ run: freshSchema, fresh: z.array(z.strictObject({ node: z.int(), fresh: freshSchema })).length(3) })
const messageSchema = z.strictObject({ run: freshSchema, payloads: z.array(z.string()).max(8) })
const readySchema = z.strictObject({ run: freshSchema, signature: z.string() })

type Opening = z.infer<typeof openSchema>
interface Run { opening: Opening; leader: number; fresh: string; session: string; started: boolean; ended?: Promise<unknown> }

/** Rounds above every engine's: the certificates. */
const READY_ROUND = 1000

export interface CeremonyResult { material: KeyMaterial; ready: KeyReady; signatures: NodeSignature[]; session: string }

/**
 * Runs of all three nodes: key generation and refresh. The session id comes from fresh bytes of all three. Rounds go
 * from node to node. The engine echoes its broadcasts; then all three sign {public key, chain code, epoch}, and a key
 * counts only with three equal statements.
 */
export class Ceremonies {
  readonly #config: Config
  readonly #store: Store
  readonly #peers: Peers
  readonly #environment: Environment
  readonly #log: Log
  readonly #vault: Vault
  readonly #bans: Bans
  readonly #mailbox = new Mailbox()
  readonly #runs = new Map<string, Run>()
  /** Called on every node when a key is certified by all. */
  onReady: (result: CeremonyResult, kind: Opening['kind']) => void = () => {}

  constructor(parts: { config: Config; store: Store; peers: Peers; environment: Environment; log: Log; vault: Vault; bans: Bans }) {
    this.#config = parts.config
    this.#store = parts.store
    this.#peers = parts.peers
    this.#environment = parts.environment
    this.#log = parts.log
    this.#vault = parts.vault
    this.#bans = parts.bans
    this.#peers.handle('/peer/ceremony/open', async (node, body) => ({ fresh: this.#open(node, openSchema.parse(body)).fresh }))
    this.#peers.handle('/peer/ceremony/start', async (node, body) => {
      const { run, fresh } = startSchema.parse(body)
      const known = this.#runs.get(run)
      if (!known || known.leader !== node || known.started) throw new Refusal('SESSION_ABORTED', 'No such run is open')
      if (fresh.find((each) => each.node === this.#config.node)?.fresh !== known.fresh) {
        throw new Refusal('SESSION_ABORTED', 'The fresh bytes of this node are missing')
      }
      known.ended = this.#begin(known, fresh).catch((error: unknown) => {
        this.#log('warn', 'a run of three ended', { kind: known.opening.kind, key: known.opening.key_id, reason: reason(error) })
      })
      return {}
    })
    this.#peers.handle('/peer/ceremony/message', async (node, body, header) => {
      const { run, payloads } = messageSchema.parse(body)
      this.#mailbox.put(run, header.round, node, { payloads, session: header.session })
      return {}
    })
    this.#peers.handle('/peer/ceremony/ready', async (node, body) => {
      const { run, signature } = readySchema.parse(body)
      this.#mailbox.put(run, READY_ROUND, node, signature)
      return {}
    })
  }

  #open(leader: number, opening: Opening): Run {
    this.#bans.assertNone()
    if (this.#runs.has(opening.run)) throw new Refusal('SESSION_ABORTED', 'This run exists already')
    const { state } = this.#store
    if (opening.kind === 'keygen' && (state.keys.has(opening.key_id) || opening.epoch !== 0)) {
      throw new Refusal('KEY_CONFLICT', 'A key of this id exists')
    }
    if (opening.kind === 'refresh' && state.keys.get(opening.key_id)?.epoch !== opening.epoch) {
      throw new Refusal('KEY_CONFLICT', 'The key is at another epoch here')
    }
    this.#mailbox.open(opening.run, this.#environment.now() + this.#config.timeouts_ms.keygen * 3, this.#environment.now())
    const run: Run = { opening, leader, fresh: hex(this.#environment.random(32)), session: '', started: false }
    this.#runs.set(opening.run, run)
    for (const [name] of this.#runs) if (!this.#mailbox.has(name)) this.#runs.delete(name)
    return run
  }

  /** Waits for the end of the runs of a key that another node leads: its leader has the last certificate a moment before the others. */
  async ended(keyId: string): Promise<void> {
    await Promise.all([...this.#runs.values()].filter((run) => run.opening.key_id === keyId).map((run) => run.ended))
  }

  /** Leads a run and waits for its end. */
  async lead(opening: Omit<Opening, 'run'>): Promise<CeremonyResult> {
    const full: Opening = { ...opening, run: hex(this.#environment.random(32)) }
    const own = this.#open(this.#config.node, full)
    try {
      const timeout = this.#config.timeouts_ms.round
      const others = await Promise.all(this.#peers.nodes.map(async (node) => {
        const { fresh } = await this.#peers.call<{ fresh: string }>(node, '/peer/ceremony/open', full, { timeout })
        return { node, fresh: freshSchema.parse(fresh) }
      }))
      const fresh = [{ node: this.#config.node, fresh: own.fresh }, ...others]
      await Promise.all(
        this.#peers.nodes.map((node) => this.#peers.call(node, '/peer/ceremony/start', { run: full.run, fresh }, { timeout }))
      )
      return await this.#begin(own, fresh)
    } finally {
      this.#mailbox.close(full.run)
      this.#runs.delete(full.run)
    }
  }

  async #begin(run: Run, fresh: readonly { node: number; fresh: string }[]): Promise<CeremonyResult> {
    const { opening } = run
    const ordered = [...fresh].sort((a, b) => a.node - b.node)
    if (ordered.map((each) => each.node).join() !== '1,2,3') {
      throw new Refusal('SESSION_ABORTED', 'Fresh bytes of all three nodes are needed')
    }
    run.started = true
    const sessionId = sha256('custody/ceremony/v1\n', JSON.stringify([
      opening.kind, opening.curve, opening.key_id, opening.epoch, ordered.map((each) => each.fresh),
    ]))
    run.session = hex(sessionId)
    if (this.#store.state.sessions.has(run.session)) throw new Refusal('SESSION_ABORTED', 'The session id was used before')
    this.#store.append('session', { kind: opening.kind, key_id: opening.key_id, sessions: [run.session] })
    let session: Session<KeyMaterial>
    if (opening.kind === 'keygen') {
      session = startKeygen({
        vault: this.#vault, curve: opening.curve, keyId: opening.key_id, sessionId: new Uint8Array(sessionId),
        party: this.#config.node as 1 | 2 | 3,
      })
    } else {
      const key = this.#store.shares.read(opening.key_id, opening.epoch)
      if (!key) throw new Refusal('KEY_CONFLICT', 'This node holds no share of that epoch')
      session = startRefresh({ vault: this.#vault, key, sessionId: new Uint8Array(sessionId) })
    }
    try {
      const material = await this.#rounds(run, session)
      return await this.#certify(run, material)
    } catch (error) {
      session.abort()
      this.#bans.consider(error)
      throw error
    } finally {
      this.#mailbox.close(opening.run)
      this.#runs.delete(opening.run)
    }
  }

  async #rounds(run: Run, session: Session<KeyMaterial>): Promise<KeyMaterial> {
    const timeout = this.#config.timeouts_ms.keygen
    let inbox: { from: number; payload: Uint8Array }[] = []
    for (let round = 1; ; round++) {
      const step = await session.step(inbox)
      const binding: Binding = { ...NO_BINDING, session: run.session, round, key: run.opening.key_id, participants: [1, 2, 3] }
      if (step.messages.length > 0) {
        await Promise.all(this.#peers.nodes.map((node) => {
          const payloads = step.messages.filter((message) => message.to === 0 || message.to === node)
            .map((message) => Buffer.from(message.payload).toString('base64'))
          return this.#peers.call(node, '/peer/ceremony/message', { run: run.opening.run, payloads }, { timeout, binding })
        }))
      }
      if (step.kind === 'done') return step.result
      const heard = await Promise.all(this.#peers.nodes.map(async (node) => {
        const message = (await this.#mailbox.take(run.opening.run, round, node, timeout)) as { payloads: string[]; session: string }
        if (message.session !== run.session) throw new Refusal('SESSION_ABORTED', `node ${node} speaks of another session`, { node })
        return message.payloads.map((payload) => ({ from: node, payload: new Uint8Array(Buffer.from(payload, 'base64')) }))
      }))
      inbox = heard.flat()
    }
  }

  async #certify(run: Run, material: KeyMaterial): Promise<CeremonyResult> {
    const expected = run.opening.kind === 'keygen' ? 0 : run.opening.epoch + 1
    if (material.keyId !== run.opening.key_id || material.curve !== run.opening.curve || material.epoch !== expected) {
      throw new Refusal('SESSION_ABORTED', 'The engine made another key')
    }
    const ready: KeyReady = {
      curve: material.curve, key_id: material.keyId, public_key: hex(material.publicKey), chain_code: hex(material.chainCode),
      mode: this.#config.mode, epoch: material.epoch,
    }
    const known = this.#store.state.keys.get(material.keyId)
    if (run.opening.kind === 'refresh' && (known?.public_key !== ready.public_key || known.chain_code !== ready.chain_code)) {
      throw new Refusal('SESSION_ABORTED', 'The refresh changed the key')
    }
    // The share is on disk before anyone may count on it.
    this.#store.shares.save(material)
    const own = signReady(this.#config.identity, ready)
    const timeout = this.#config.timeouts_ms.keygen
    await Promise.all(
      this.#peers.nodes.map((node) => this.#peers.call(node, '/peer/ceremony/ready', { run: run.opening.run, signature: own }, { timeout }))
    )
    const bytes = readyBytes(ready)
    const others = await Promise.all(this.#config.peerList.map(async ({ node, identity }) => {
      const signature = (await this.#mailbox.take(run.opening.run, READY_ROUND, node, timeout)) as string
      if (!verifyBytes(identity, bytes, signature)) throw new Refusal('SESSION_ABORTED', `node ${node} certified another key`, { node })
      return { node, signature }
    }))
    const signatures = [{ node: this.#config.node, signature: own }, ...others].sort((a, b) => a.node - b.node)
    const result = { material, ready, signatures, session: run.session }
    this.onReady(result, run.opening.kind)
    return result
  }
}

