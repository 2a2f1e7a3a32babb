import { ThresholdError, type KeyMaterial, type Vault } from '@custody/threshold'
import { z } from 'zod'
import { hex, sha256 } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { NO_BINDING, type Binding } from '../envelope.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import type { Bans } from '../sessions/bans.ts'
import { Batch, type RoundMessages } from '../sessions/batch.ts'
import type { Engine } from '../sessions/engine.ts'
import { verifyItems } from '../sessions/verify.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import { RateLimit, TESTS } from './rate-limit.ts'

const freshSchema = z.string().regex(/^[0-9a-f]{64}$/)
/**
 * Names new shares by the session of the run that generated them, which is a hash over random bytes
 * of all three nodes.
 */
export const shareNameSchema = z.strictObject({
  key_id: z.string().max(64),
  epoch: z.int().min(0),
  session: freshSchema,
})
export type ShareName = z.infer<typeof shareNameSchema>
const openSchema = shareNameSchema.extend({ fresh: freshSchema })
const openedSchema = z.strictObject({ fresh: freshSchema })
/** Maximum message length of one signature: the larger of its rounds has 165 kB on secp256k1. */
const MESSAGE_LENGTH_MAX = 512 * 1024
const messagesSchema = z.strictObject({
  messages: z.array(z.array(z.string().max(MESSAGE_LENGTH_MAX)).max(4)).length(1),
})

/** New shares of this node that are to be tested. */
export interface Subject {
  kind: 'keygen' | 'refresh'
  material: KeyMaterial
  /** Called after the pair has signed with them. */
  passed(partner: number): void
}

interface Test {
  name: ShareName
  subject: Subject
  partner: number
  batch: Batch
  next: Promise<RoundMessages>
  round: number
  timer: NodeJS.Timeout
}

const toText = (messages: RoundMessages): string[][] =>
  messages.map((list) => list.map((each) => Buffer.from(each).toString('base64')))
const fromText = (messages: readonly (readonly string[])[]): RoundMessages =>
  messages.map((list) => list.map((each) => Buffer.from(each, 'base64')))

/**
 * Test signatures of two nodes with new shares, before the shares are used. The signed message is a
 * constant that each node computes itself, so that a test cannot be misused to sign anything else.
 */
export class PairTests {
  readonly #parts: {
    config: Config
    environment: Environment
    store: Store
    peers: Peers
    engine: Engine
    vault: Vault
    bans: Bans
  }
  readonly #tests = new Map<string, Test>()
  readonly #opening = new Map<number, number>()
  readonly #pace: ReadonlyMap<number, RateLimit>
  readonly #sources: ((name: ShareName) => Promise<Subject | null>)[] = []
  /** Maximum number of concurrent tests for each partner. */
  static readonly testsMax = 4

  constructor(parts: {
    config: Config
    environment: Environment
    store: Store
    peers: Peers
    engine: Engine
    vault: Vault
    bans: Bans
  }) {
    this.#parts = parts
    const { peers } = parts
    this.#pace = new Map(peers.nodes.map((node) => [node, new RateLimit(TESTS)]))
    peers.handle('/peer/test/open', async (node, body) =>
      this.#opened(node, openSchema.parse(body)),
    )
    peers.handle('/peer/test/round', async (node, body, header) =>
      this.#round(node, header.session, header.round, messagesSchema.parse(body).messages),
    )
  }

  /** Adds a source of shares that a partner may request. The returned promise may wait. */
  serve(source: (name: ShareName) => Promise<Subject | null>): void {
    this.#sources.push(source)
  }

  async #subjectOf(name: ShareName): Promise<Subject> {
    for (const source of this.#sources) {
      const subject = await source(name)
      if (subject) return subject
    }
    throw new Refusal('KEY_CONFLICT', 'These shares are not prepared at this node')
  }

  #begin(
    name: ShareName,
    { kind, material }: Subject,
    partner: number,
    fresh: readonly [string, string],
  ): {
    batch: Batch
    id: string
    binding: (round: number) => Binding
  } {
    const { config, engine, vault, store, bans } = this.#parts
    const participants: [number, number] =
      config.node < partner ? [config.node, partner] : [partner, config.node]
    const sessionId = sha256(
      'custody/pair-test-session/v1\n',
      JSON.stringify([kind, name.key_id, name.epoch, name.session, participants, fresh]),
    )
    const id = hex(sessionId)
    if (store.state.sessions.has(id))
      throw new Refusal('SESSION_ABORTED', 'The session id was used before')
    store.append('session', {
      kind: kind === 'keygen' ? 'keygen-test' : 'refresh-test',
      key_id: name.key_id,
      sessions: [id],
    })
    const item = itemOf(name, { kind, material })
    const batch = new Batch({
      engine,
      vault,
      bans,
      key: material,
      items: [item],
      sessionIds: [sessionId],
      participants,
      partner,
    })
    const digest = hex(item.message)
    return {
      batch,
      id,
      binding: (round) => ({
        ...NO_BINDING,
        session: id,
        round,
        key: name.key_id,
        digest,
        participants,
      }),
    }
  }

  /**
   * Leads a test with one partner.
   * @throws Refusal
   */
  async lead(name: ShareName, partner: number): Promise<void> {
    const { environment, peers, config, bans } = this.#parts
    const subject = await this.#subjectOf(name)
    bans.assertNot(partner)
    const timeout = config.timeouts_ms.round
    const fresh = hex(environment.random(32))
    const opened = shapeOfAnswer(
      openedSchema,
      await peers.call(
        partner,
        '/peer/test/open',
        { ...name, fresh },
        { timeout: config.timeouts_ms.keygen },
      ),
      partner,
    )
    const { batch, binding } = this.#begin(name, subject, partner, [fresh, opened.fresh])
    try {
      let messages = await batch.step(null)
      for (let round = 1; !batch.results; round++) {
        const received = shapeOfAnswer(
          messagesSchema,
          await peers.call(
            partner,
            '/peer/test/round',
            { messages: toText(messages) },
            {
              timeout,
              binding: binding(round),
            },
          ),
          partner,
        )
        messages = await batch.step(fromText(received.messages))
      }
      // The partner completes its side by itself; one more call confirms that it did.
      await peers.call(
        partner,
        '/peer/test/round',
        { messages: [[]] },
        { timeout, binding: binding(0) },
      )
      pass(name, subject, partner, batch)
    } catch (error) {
      batch.abort()
      if (error instanceof ThresholdError)
        throw new Refusal('SESSION_ABORTED', `The test with node ${partner} ended: ${error.code}`)
      throw error
    }
  }

  async #opened(
    partner: number,
    { fresh, ...name }: ShareName & { fresh: string },
  ): Promise<{ fresh: string }> {
    const { bans, environment, config } = this.#parts
    const opening = this.#opening.get(partner) ?? 0
    const open = [...this.#tests.values()].filter((test) => test.partner === partner).length
    if (open + opening >= PairTests.testsMax)
      throw new Refusal('TOO_BUSY', 'Too many tests are open')
    if (this.#pace.get(partner)?.take() === false)
      throw new Refusal('TOO_BUSY', `Node ${partner} begins tests too often`)
    this.#opening.set(partner, opening + 1)
    let subject: Subject
    try {
      subject = await this.#subjectOf(name)
    } finally {
      this.#opening.set(partner, this.#opening.get(partner)! - 1)
    }
    bans.assertNot(partner)
    const mine = hex(environment.random(32))
    const { batch, id } = this.#begin(name, subject, partner, [fresh, mine])
    const next = batch.step(null)
    next.catch(() => {})
    this.#tests.set(id, {
      name,
      subject,
      partner,
      batch,
      next,
      round: 0,
      timer: setTimeout(() => {
        this.#close(id)
      }, config.timeouts_ms.keygen),
    })
    return { fresh: mine }
  }

  async #round(
    node: number,
    session: string,
    round: number,
    messages: string[][],
  ): Promise<unknown> {
    const test = this.#tests.get(session)
    if (!test || test.partner !== node)
      throw new Refusal('SESSION_ABORTED', 'This trial signature does not exist')
    try {
      const mine = await test.next
      if (round === 0) {
        if (!test.batch.results) throw new Refusal('SESSION_ABORTED', 'The test has not ended')
        pass(test.name, test.subject, node, test.batch)
        this.#close(session)
        return { messages: [[]] }
      }
      if (round !== ++test.round)
        throw new Refusal('SESSION_ABORTED', 'The message belongs to another round')
      test.next = test.batch.step(fromText(messages))
      test.next.catch(() => {})
      return { messages: toText(mine) }
    } catch (error) {
      this.#close(session)
      if (error instanceof ThresholdError)
        throw new Refusal('SESSION_ABORTED', `The test ended: ${error.code}`)
      throw error
    }
  }

  #close(session: string): void {
    const test = this.#tests.get(session)
    if (!test) return
    clearTimeout(test.timer)
    test.batch.abort()
    this.#tests.delete(session)
  }
}

const TAGS = { keygen: 'custody/keygen-test/v1\n', refresh: 'custody/refresh-test/v1\n' }

function itemOf(
  name: ShareName,
  { kind, material }: Pick<Subject, 'kind' | 'material'>,
): {
  path: number[]
  publicKey: Uint8Array
  message: Uint8Array
} {
  const message = new Uint8Array(sha256(TAGS[kind], JSON.stringify([name.key_id, name.epoch])))
  return { path: [], publicKey: material.publicKey, message }
}

function pass(name: ShareName, subject: Subject, partner: number, { results }: Batch): void {
  verifyItems(subject.material.curve, [itemOf(name, subject)], results!)
  subject.passed(partner)
}
