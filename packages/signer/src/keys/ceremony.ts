import type { KeyMaterial, Session, Vault } from '@custody/threshold'
import { z } from 'zod'
import { hex, sha256, verifyBytes } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Bans } from '../sessions/bans.ts'
import type { Engine } from '../sessions/engine.ts'
import type { Store } from '../store/index.ts'
import type { NodeSignature } from '../store/state.ts'
import { NO_BINDING, type Binding } from '../envelope.ts'
import { Mailbox } from '../transport/mailbox.ts'
import type { Peers } from '../transport/peers.ts'
import { readyBytes, signReady, type KeyReady } from './certificate.ts'
import type { PairTests, ShareName, Subject } from './pair-tests.ts'
import { refreshRefusal } from './refresh-rules.ts'
import { RateLimit, RUNS } from './rate-limit.ts'

const freshSchema = z.string().regex(/^[0-9a-f]{64}$/)
const keyIdSchema = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)
const openSchema = z.strictObject({
  run: freshSchema,
  kind: z.enum(['keygen', 'refresh']),
  curve: z.enum(['secp256k1', 'ed25519']),
  key_id: keyIdSchema,
  epoch: z.int().min(0),
})
const openedSchema = z.strictObject({ fresh: freshSchema })
const startSchema = z.strictObject({
  run: freshSchema,
  fresh: z.array(z.strictObject({ node: z.int(), fresh: freshSchema })).length(3),
})
/** Base64 length of the engine's limit of 1 MiB for a message. */
const PAYLOAD_LENGTH_MAX = 1_400_000
/** A message from one node to each other node in a round. */
const messageSchema = z.strictObject({
  run: freshSchema,
  payloads: z.array(z.string().max(PAYLOAD_LENGTH_MAX)).max(1),
})
const readySchema = z.strictObject({ run: freshSchema, signature: z.string().max(256) })

type Opening = z.infer<typeof openSchema>

/** One run of all three nodes. `isEnded`: its messages and results do not count any more. */
interface Run {
  opening: Opening
  leader: number
  fresh: string
  session: string
  round: number
  isStarted: boolean
  isEnded: boolean
  engine: Session<KeyMaterial> | null
  /** The new share, after it is on disk; the pairs test it. */
  subject: PromiseWithResolvers<Subject>
  /** Peers with which the share was tested. */
  tested: Map<number, PromiseWithResolvers<void>>
  releases: (() => void)[]
  /** Whether a share of the run is on disk on which no other node depends. */
  isUnpromised: boolean
  ended?: Promise<unknown>
}

/** Round number of the certificates, above every round of the engine. */
const READY_ROUND = 1000
/**
 * Maximum number of runs that one node leads at a time. An honest node leads fewer: the key
 * generations of its queue, and a refresh.
 */
const LED_MAX = 4
/** Maximum number of keys of one curve without a workspace; more than a pool may contain. */
const UNUSED_KEYS_MAX = 150
/**
 * Maximum number of keys that were generated and that this node did not certify. Their shares are
 * kept, because the other two nodes may have certified them.
 */
const UNCERTIFIED_MAX = 50
/** Time in milliseconds after a signature for which key generations have a lower priority. */
const SIGNING_MS = 5000

const expectedEpoch = ({ kind, epoch }: Opening): number => (kind === 'keygen' ? 0 : epoch + 1)

export interface CeremonyResult {
  material: KeyMaterial
  ready: KeyReady
  signatures: NodeSignature[]
  session: string
}

/** Returns a promise whose rejection is never reported as unhandled. */
function deferred<T>(): PromiseWithResolvers<T> {
  const made = Promise.withResolvers<T>()
  made.promise.catch(() => {})
  return made
}

/**
 * Runs of all three nodes: key generation and refresh. The session ID is derived from random bytes
 * of all three nodes. Rounds are sent directly between the nodes. The engine echoes its broadcasts.
 * The new share is stored under a separate name. After a key generation each pair signs a test with
 * it; then all three nodes sign {public key, chain code, epoch}, and a key counts only with three
 * identical statements. There is one run at a time for each key, because interleaved runs would
 * leave nodes with shares of different runs.
 */
export class Ceremonies {
  readonly #config: Config
  readonly #store: Store
  readonly #peers: Peers
  readonly #environment: Environment
  readonly #log: Log
  readonly #engine: Engine
  readonly #vault: Vault
  readonly #bans: Bans
  readonly #tests: PairTests
  readonly #isSigning: (withinMs: number) => boolean
  readonly #mailbox = new Mailbox()
  readonly #runs = new Map<string, Run>()
  readonly #pace = new Map<number, RateLimit>()
  /** Called on every node when a key has been certified by all nodes. */
  onReady: (result: CeremonyResult, kind: Opening['kind']) => void = () => {}

  constructor(parts: {
    config: Config
    store: Store
    peers: Peers
    environment: Environment
    log: Log
    engine: Engine
    vault: Vault
    bans: Bans
    tests: PairTests
    /** Returns whether this node has made a signature within the given milliseconds. */
    isSigning: (withinMs: number) => boolean
  }) {
    this.#config = parts.config
    this.#store = parts.store
    this.#peers = parts.peers
    this.#environment = parts.environment
    this.#log = parts.log
    this.#engine = parts.engine
    this.#vault = parts.vault
    this.#bans = parts.bans
    this.#tests = parts.tests
    this.#isSigning = parts.isSigning
    for (const node of this.#peers.nodes) this.#pace.set(node, new RateLimit(RUNS))
    this.#tests.serve((name) => this.#subjectOf(name))
    this.#peers.handle('/peer/ceremony/open', async (node, body) => ({
      fresh: this.#open(node, openSchema.parse(body)).fresh,
    }))
    this.#peers.handle('/peer/ceremony/start', async (node, body) =>
      this.#start(node, startSchema.parse(body)),
    )
    this.#peers.handle('/peer/ceremony/message', async (node, body, header) => {
      const { run, payloads } = messageSchema.parse(body)
      // A node can send round n only after it has received round n - 1 of this node, so messages of
      // later rounds are not stored.
      const existing = this.#runs.get(run)
      if (!existing || header.round < 1 || header.round > existing.round + 1)
        throw new Refusal('SESSION_ABORTED', 'This round does not exist')
      this.#mailbox.put(run, header.round, node, { payloads, session: header.session })
      return {}
    })
    this.#peers.handle('/peer/ceremony/ready', async (node, body, header) => {
      const { run, signature } = readySchema.parse(body)
      this.#mailbox.put(run, READY_ROUND, node, { signature, session: header.session })
      return {}
    })
  }

  #open(leader: number, opening: Opening): Run {
    this.#bans.assertNone()
    this.#prune()
    if (this.#runs.has(opening.run)) throw new Refusal('SESSION_ABORTED', 'This run already exists')
    this.#assertFits(opening)
    const runs = [...this.#runs.values()]
    const other = runs.find((run) => run.opening.key_id === opening.key_id)
    // A leader that starts a new run has abandoned the earlier one, or was restarted during it.
    if (other?.leader === leader)
      this.#end(
        other,
        new Refusal('SESSION_ABORTED', 'The leading node has started another run for this key'),
      )
    else if (other)
      throw new Refusal(
        'TOO_BUSY',
        `Another run for this key is in progress, led by node ${other.leader}`,
      )
    if (runs.filter((run) => run.leader === leader && !run.isEnded).length >= LED_MAX) {
      throw new Refusal('TOO_BUSY', `Node ${leader} leads too many runs`)
    }
    if (opening.kind === 'keygen') {
      const unused = [...this.#store.state.keys.values()].filter(
        (key) => key.curve === opening.curve && key.workspace === null,
      )
      if (unused.length >= UNUSED_KEYS_MAX)
        throw new Refusal(
          'TOO_BUSY',
          `${unused.length} unused keys of ${opening.curve} are available, which is the maximum`,
        )
      const uncertified = this.#store.uncertified()
      if (uncertified >= UNCERTIFIED_MAX) {
        throw new Refusal(
          'TOO_BUSY',
          `${uncertified} generated keys are not certified by all three nodes yet, which is the maximum`,
        )
      }
    }
    if (this.#pace.get(leader)?.take() === false)
      throw new Refusal('TOO_BUSY', `Node ${leader} generates or refreshes keys too often`, {
        retry_after_ms: RUNS.everyMs,
      })
    this.#mailbox.open(
      opening.run,
      this.#environment.now() + this.#config.timeouts_ms.keygen * 3,
      this.#environment.now(),
    )
    const run: Run = {
      opening,
      leader,
      fresh: hex(this.#environment.random(32)),
      session: '',
      round: 0,
      isStarted: false,
      isEnded: false,
      engine: null,
      subject: deferred(),
      tested: new Map(this.#peers.nodes.map((node) => [node, deferred<void>()])),
      releases: [],
      isUnpromised: false,
    }
    this.#runs.set(opening.run, run)
    run.releases = this.#peers.nodes.map((node) =>
      this.#bans.endsWith(node, () => {
        this.#end(run, new Refusal('BANNED', `Node ${node} is banned permanently`, { node }))
      }),
    )
    return run
  }

  /**
   * Checks whether the key may be generated, or refreshed from this epoch. Called at the start of
   * the run, and again before anything is stored.
   */
  #assertFits({ kind, key_id: keyId, curve, epoch }: Opening): void {
    const key = this.#store.state.keys.get(keyId)
    if (kind === 'keygen' && (key || epoch !== 0))
      throw new Refusal('KEY_CONFLICT', 'A key with this id exists')
    const refusal = kind === 'refresh' ? refreshRefusal(key, epoch) : null
    if (refusal !== null) throw new Refusal('KEY_CONFLICT', refusal)
    if (kind === 'refresh' && key?.curve !== curve)
      throw new Refusal('KEY_CONFLICT', 'The key has another curve')
  }

  #prune(): void {
    this.#mailbox.expire(this.#environment.now())
    for (const run of this.#runs.values()) {
      if (!this.#mailbox.has(run.opening.run))
        this.#end(run, new Refusal('SESSION_ABORTED', 'The run took too long'))
    }
  }

  /** Ends a run: nothing of it is sent or stored afterwards. */
  #end(run: Run, why: unknown): void {
    if (run.isEnded) return
    run.isEnded = true
    this.#runs.delete(run.opening.run)
    for (const release of run.releases) release()
    run.engine?.abort()
    run.subject.reject(why)
    for (const { reject } of run.tested.values()) reject(why)
    this.#mailbox.close(run.opening.run)
  }

  #assertOpen(run: Run): void {
    this.#bans.assertNone()
    if (run.isEnded) throw new Refusal('SESSION_ABORTED', 'The run was aborted')
  }

  /**
   * Waits for the end of a key's runs that another node leads, because the leader has the last
   * certificate slightly earlier than the others.
   */
  async ended(keyId: string): Promise<void> {
    await Promise.all(
      [...this.#runs.values()]
        .filter((run) => run.opening.key_id === keyId)
        .map((run) => run.ended),
    )
  }

  async #subjectOf(name: ShareName): Promise<Subject | null> {
    if (name.epoch !== 0) return null
    const run = [...this.#runs.values()].find(
      ({ session, opening }) => session === name.session && opening.key_id === name.key_id,
    )
    return run ? run.subject.promise : null
  }

  #start(leader: number, { run, fresh }: z.infer<typeof startSchema>): object {
    const existing = this.#runs.get(run)
    if (!existing || existing.leader !== leader || existing.isStarted)
      throw new Refusal('SESSION_ABORTED', 'This run does not exist')
    if (fresh.find((each) => each.node === this.#config.node)?.fresh !== existing.fresh) {
      throw new Refusal('SESSION_ABORTED', 'The random bytes of this node are missing')
    }
    existing.ended = this.#begin(existing, fresh).catch((error: unknown) => {
      this.#log('warn', 'a key generation or refresh of the three nodes failed', {
        kind: existing.opening.kind,
        key: existing.opening.key_id,
        reason: reason(error),
      })
    })
    return {}
  }

  /** Leads a run and waits for its end. */
  async lead(opening: Omit<Opening, 'run'>): Promise<CeremonyResult> {
    const full: Opening = { ...opening, run: hex(this.#environment.random(32)) }
    const own = this.#open(this.#config.node, full)
    try {
      const timeout = this.#config.timeouts_ms.round
      const others = await Promise.all(
        this.#peers.nodes.map(async (node) => {
          const { fresh } = shapeOfAnswer(
            openedSchema,
            await this.#peers.call(node, '/peer/ceremony/open', full, { timeout }),
            node,
          )
          return { node, fresh }
        }),
      )
      const fresh = [{ node: this.#config.node, fresh: own.fresh }, ...others]
      await Promise.all(
        this.#peers.nodes.map((node) =>
          this.#peers.call(node, '/peer/ceremony/start', { run: full.run, fresh }, { timeout }),
        ),
      )
      return await this.#begin(own, fresh)
    } catch (error) {
      this.#end(own, error)
      throw error
    }
  }

  async #begin(
    run: Run,
    fresh: readonly { node: number; fresh: string }[],
  ): Promise<CeremonyResult> {
    try {
      this.#assertOpen(run)
      run.isStarted = true
      run.session = this.#sessionOf(run.opening, fresh)
      run.engine = this.#engineOf(run)
      const material = await this.#rounds(run, run.engine)
      const ready = this.#keep(run, material)
      if (run.opening.kind === 'keygen') await this.#test(run)
      return await this.#certify(run, material, ready)
    } catch (error) {
      this.#bans.consider(error)
      this.#end(run, error)
      if (run.isUnpromised)
        this.#store.shares.delete(run.opening.key_id, expectedEpoch(run.opening), run.session)
      throw error
    }
  }

  #sessionOf(
    { kind, curve, key_id: keyId, epoch }: Opening,
    fresh: readonly { node: number; fresh: string }[],
  ): string {
    const ordered = [...fresh].sort((a, b) => a.node - b.node)
    if (ordered.map((each) => each.node).join() !== '1,2,3') {
      throw new Refusal('SESSION_ABORTED', 'Random bytes of all three nodes are required')
    }
    const session = hex(
      sha256(
        'custody/ceremony/v1\n',
        JSON.stringify([kind, curve, keyId, epoch, ordered.map((each) => each.fresh)]),
      ),
    )
    if (this.#store.state.sessions.has(session))
      throw new Refusal('SESSION_ABORTED', 'The session id was used before')
    this.#store.append('session', { kind, key_id: keyId, sessions: [session] })
    return session
  }

  #engineOf({ opening, session }: Run): Session<KeyMaterial> {
    const sessionId = new Uint8Array(Buffer.from(session, 'hex'))
    const { kind, curve, key_id: keyId } = opening
    if (kind === 'keygen') {
      return this.#engine.startKeygen({
        vault: this.#vault,
        curve,
        keyId,
        sessionId,
        party: this.#config.node as 1 | 2 | 3,
      })
    }
    this.#assertFits(opening)
    const key = this.#store.shareOf(keyId, opening.epoch)
    if (!key) throw new Refusal('KEY_CONFLICT', 'This node holds no share of that epoch')
    return this.#engine.startRefresh({ vault: this.#vault, key, sessionId })
  }

  async #rounds(run: Run, engine: Session<KeyMaterial>): Promise<KeyMaterial> {
    const timeout = this.#config.timeouts_ms.keygen
    let inbox: { from: number; payload: Uint8Array }[] = []
    for (run.round = 1; ; run.round++) {
      const { round } = run
      // Refreshes are started by operators and do not queue up, so they keep their priority.
      const isBackground = run.opening.kind === 'keygen' && this.#isSigning(SIGNING_MS)
      const step = await engine.step(inbox, { isBackground })
      this.#assertOpen(run)
      const binding: Binding = {
        ...NO_BINDING,
        session: run.session,
        round,
        key: run.opening.key_id,
        participants: [1, 2, 3],
      }
      if (step.messages.length > 0) {
        await Promise.all(
          this.#peers.nodes.map((node) => {
            const payloads = step.messages
              .filter((message) => message.to === 0 || message.to === node)
              .map((message) => Buffer.from(message.payload).toString('base64'))
            return this.#peers.call(
              node,
              '/peer/ceremony/message',
              { run: run.opening.run, payloads },
              { timeout, binding },
            )
          }),
        )
        this.#assertOpen(run)
      }
      if (step.kind === 'done') return step.result
      const received = await Promise.all(
        this.#peers.nodes.map(async (node) => {
          const message = (await this.#mailbox.take(run.opening.run, round, node, timeout)) as {
            payloads: string[]
            session: string
          }
          if (message.session !== run.session)
            throw new Refusal('SESSION_ABORTED', `node ${node} sent a message of another session`, {
              node,
            })
          return message.payloads.map((payload) => ({
            from: node,
            payload: new Uint8Array(Buffer.from(payload, 'base64')),
          }))
        }),
      )
      this.#assertOpen(run)
      inbox = received.flat()
    }
  }

  /**
   * Stores the new share under a name that no other run uses, so that it is on disk before another
   * node depends on it.
   */
  #keep(run: Run, material: KeyMaterial): KeyReady {
    const { opening } = run
    if (
      material.keyId !== opening.key_id ||
      material.curve !== opening.curve ||
      material.epoch !== expectedEpoch(opening)
    ) {
      throw new Refusal(
        'SESSION_ABORTED',
        'The signing engine returned another key than this run is for',
      )
    }
    const ready: KeyReady = {
      curve: material.curve,
      key_id: material.keyId,
      public_key: hex(material.publicKey),
      chain_code: hex(material.chainCode),
      mode: this.#config.mode,
      epoch: material.epoch,
    }
    this.#assertOpen(run)
    this.#assertFits(opening)
    const existing = this.#store.state.keys.get(material.keyId)
    if (
      opening.kind === 'refresh' &&
      (existing?.public_key !== ready.public_key || existing.chain_code !== ready.chain_code)
    ) {
      throw new Refusal('SESSION_ABORTED', 'The refresh changed the key')
    }
    if (opening.kind === 'refresh') this.#store.wipeUnprepared(opening.key_id)
    this.#store.shares.save(material, run.session)
    run.isUnpromised = true
    return ready
  }

  /**
   * Each pair signs with the new shares before any node certifies the key; the node with the lower
   * number leads.
   */
  async #test(run: Run): Promise<void> {
    const { key_id: keyId, epoch } = run.opening
    const name: ShareName = { key_id: keyId, epoch, session: run.session }
    const material = this.#store.shares.read(keyId, epoch, run.session)
    if (!material) throw new Refusal('SESSION_ABORTED', 'The new share is not on disk')
    run.subject.resolve({
      kind: 'keygen',
      material,
      passed: (partner) => {
        run.tested.get(partner)!.resolve()
      },
    })
    await Promise.all(
      this.#peers.nodes.map(async (node) => {
        if (this.#config.node < node) await this.#tests.lead(name, node)
        else await this.#within(run.tested.get(node)!.promise, node)
      }),
    )
    this.#assertOpen(run)
  }

  /** Limits the wait for a test that a peer leads. */
  async #within(tested: Promise<void>, node: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(new Refusal('PEER_UNAVAILABLE', `node ${node} did not test the new key`, { node }))
      }, this.#config.timeouts_ms.keygen)
    })
    try {
      await Promise.race([tested, late])
    } finally {
      clearTimeout(timer)
    }
  }

  async #certify(run: Run, material: KeyMaterial, ready: KeyReady): Promise<CeremonyResult> {
    const own = signReady(this.#config.identity, ready)
    run.isUnpromised = false
    const timeout = this.#config.timeouts_ms.keygen
    const binding: Binding = {
      ...NO_BINDING,
      session: run.session,
      round: READY_ROUND,
      key: ready.key_id,
      participants: [1, 2, 3],
    }
    await Promise.all(
      this.#peers.nodes.map((node) =>
        this.#peers.call(
          node,
          '/peer/ceremony/ready',
          { run: run.opening.run, signature: own },
          { timeout, binding },
        ),
      ),
    )
    const bytes = readyBytes(ready)
    const others = await Promise.all(
      this.#config.peerList.map(async ({ node, identity }) => {
        const received = (await this.#mailbox.take(
          run.opening.run,
          READY_ROUND,
          node,
          timeout,
        )) as {
          signature: string
          session: string
        }
        if (received.session !== run.session)
          throw new Refusal('SESSION_ABORTED', `node ${node} sent a message of another session`, {
            node,
          })
        if (!verifyBytes(identity, bytes, received.signature)) {
          throw new Refusal('SESSION_ABORTED', `node ${node} certified another key`, { node })
        }
        return { node, signature: received.signature }
      }),
    )
    this.#assertOpen(run)
    this.#assertFits(run.opening)
    const signatures = [{ node: this.#config.node, signature: own }, ...others].sort(
      (a, b) => a.node - b.node,
    )
    const result = { material, ready, signatures, session: run.session }
    this.onReady(result, run.opening.kind)
    this.#end(run, new Refusal('SESSION_ABORTED', 'The run has ended'))
    return result
  }
}
