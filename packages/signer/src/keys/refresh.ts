import { ThresholdError, type Vault } from '@custody/threshold'
import { z } from 'zod'
import { fromHex, hex, sha256 } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { Batch, type RoundMessages } from '../sessions/batch.ts'
import { verifyItems } from '../sessions/verify.ts'
import type { Store } from '../store/index.ts'
import { NO_BINDING, type Binding } from '../envelope.ts'
import type { Peers } from '../transport/peers.ts'
import type { Bans } from './bans.ts'
import type { Ceremonies } from './ceremony.ts'
import type { Keyring } from './keyring.ts'

const freshSchema = z.string().regex(/^[0-9a-f]{64}$/)
const nameSchema = z.strictObject({ key_id: z.string().max(64), epoch: z.int().min(1), session: freshSchema })
const pairSchema = nameSchema.extend({ partner: z.int().min(1).max(3) })
const openSchema = nameSchema.extend({ fresh: freshSchema })
const messagesSchema = z.strictObject({ messages: z.array(z.array(z.string()).max(4)).length(1) })
const commandSchema = z.strictObject({ key_ids: z.array(z.string().max(64)).optional(), workspace: z.string().max(128).optional() })
type Name = z.infer<typeof nameSchema>

interface Parts {
  config: Config
  environment: Environment
  store: Store
  peers: Peers
  keyring: Keyring
  vault: Vault
  log: Log
  bans: Bans
  ceremonies: Ceremonies
}
const toText = (messages: RoundMessages): string[][] => messages.map((list) => list.map((each) => Buffer.from(each).toString('base64')))
const fromText = (messages: readonly (readonly string[])[]): RoundMessages =>
  messages.map((list) => list.map((each) => Buffer.from(each, 'base64')))

interface Test { name: Name; partner: number; batch: Batch; next: Promise<RoundMessages>; round: number; timer: NodeJS.Timeout }

/**
 * New shares of the same key, in phases: all three make and certify the new epoch (the old one stays in use), each of
 * the three pairs signs a test with it, all three switch, and only then the old shares go. A failure before the switch
 * leaves the old epoch in use; one during it leaves both usable.
 */
export class Refresher {
  readonly #parts: Parts
  readonly #tests = new Map<string, Test>()
  #running = false

  constructor(parts: Parts) {
    this.#parts = parts
    const { peers } = parts
    peers.handle('/peer/refresh/pair', async (_node, body) => {
      const { partner, ...name } = pairSchema.parse(body)
      await this.#test(name, partner)
      return {}
    })
    peers.handle('/peer/refresh/open', async (node, body) => this.#opened(node, openSchema.parse(body)))
    peers.handle(
      '/peer/refresh/round',
      async (node, body, header) => this.#round(node, header.session, header.round, messagesSchema.parse(body).messages)
    )
    peers.handle('/peer/refresh/commit', async (_node, body) => {
      this.#commit(nameSchema.parse(body))
      return {}
    })
    peers.handle('/peer/refresh/state', async (_node, body) => {
      const { key_id } = z.strictObject({ key_id: z.string().max(64) }).parse(body)
      return { epoch: parts.store.state.keys.get(key_id)?.epoch ?? null }
    })
    peers.handle('/peer/refresh/forget', async (_node, body) => {
      this.#forget(nameSchema.parse(body))
      return {}
    })
  }

  async command(body: unknown): Promise<unknown> {
    const parsed = commandSchema.safeParse(body)
    if (!parsed.success) throw new Refusal('BAD_ORDER', 'refresh takes key_ids or workspace, or nothing for all')
    if (this.#running) throw new Refusal('TOO_BUSY', 'A refresh is running')
    this.#running = true
    const refreshed: { key_id: string; epoch: number }[] = []
    const failed: { key_id: string; reason: string }[] = []
    try {
      for (const keyId of parsed.data.key_ids ?? this.#keysOf(parsed.data.workspace)) {
        try {
          refreshed.push({ key_id: keyId, epoch: await this.#refresh(keyId) })
        } catch (error) {
          failed.push({ key_id: keyId, reason: reason(error) })
          this.#parts.log('error', 'a refresh failed; the old shares stay in use', { key: keyId, reason: reason(error) })
        }
      }
    } finally {
      this.#running = false
    }
    if (refreshed.length > 0) {
      this.#parts.log('info', 'backups made before this hold old shares: make new ones and destroy those', { keys: refreshed.length })
    }
    return { refreshed, failed }
  }

  #keysOf(workspace: string | undefined): string[] {
    const keys = [...this.#parts.store.state.keys.values()]
    return keys.filter((key) => workspace === undefined || key.workspace === workspace).map((key) => key.key_id)
  }

  async #refresh(keyId: string): Promise<number> {
    const { store, ceremonies, peers, config, log } = this.#parts
    const key = store.state.keys.get(keyId)
    if (!key) throw new Refusal('KEY_NOT_READY', 'No such key')
    await this.#settle(keyId)
    const { session } = await ceremonies.lead({ kind: 'refresh', curve: key.curve, key_id: keyId, epoch: key.epoch })
    const name: Name = { key_id: keyId, epoch: key.epoch + 1, session }
    const [first, second] = peers.nodes as [number, number]
    await this.#test(name, first)
    await this.#test(name, second)
    const timeout = config.timeouts_ms.keygen
    await peers.call(first, '/peer/refresh/pair', { ...name, partner: second }, { timeout })
    await Promise.all(peers.nodes.map((node) => peers.call(node, '/peer/refresh/commit', name, { timeout })))
    this.#commit(name)
    // All three have switched: the old shares can go.
    await Promise.all(peers.nodes.map((node) => peers.call(node, '/peer/refresh/forget', name, { timeout })))
    this.#forget(name)
    log('info', 'a key was refreshed', { key: keyId, epoch: name.epoch })
    return name.epoch
  }

  /** An earlier refresh may have ended between the switches of two nodes: whoever tested the new epoch follows. */
  async #settle(keyId: string): Promise<void> {
    const { store, peers, config } = this.#parts
    const key = store.state.keys.get(keyId)!
    const prepared = store.state.prepared.get(keyId)
    if (!prepared) return
    const timeout = config.timeouts_ms.round
    const name: Name = { key_id: keyId, epoch: prepared.epoch, session: prepared.session }
    const epochs = await Promise.all(
      peers.nodes.map(
        async (node) => z.strictObject({ epoch: z.int().nullable() }).parse(
          await peers.call(node, '/peer/refresh/state', { key_id: keyId }, { timeout })
        ).epoch
      )
    )
    if (key.epoch !== prepared.epoch && !epochs.includes(prepared.epoch)) return
    this.#commit(name)
    for (const [at, node] of peers.nodes.entries()) {
      if (epochs[at] !== name.epoch) await peers.call(node, '/peer/refresh/commit', name, { timeout })
    }
    if (!store.shares.has(keyId, name.epoch - 1)) return
    await Promise.all(peers.nodes.map((node) => peers.call(node, '/peer/refresh/forget', name, { timeout })))
    this.#forget(name)
  }

  #prepared(name: Name): { tested: Set<number> } {
    const prepared = this.#parts.store.state.prepared.get(name.key_id)
    if (prepared?.session !== name.session || prepared.epoch !== name.epoch) {
      throw new Refusal('KEY_CONFLICT', 'That refresh is not prepared here')
    }
    return prepared
  }

  #commit(name: Name): void {
    const { store, peers } = this.#parts
    const prepared = this.#prepared(name)
    for (const node of peers.nodes) {
      if (!prepared.tested.has(node)) throw new Refusal('KEY_CONFLICT', `The new shares were not tested with node ${node}`)
    }
    if (store.state.keys.get(name.key_id)!.epoch < name.epoch) {
      store.append('refreshed', { key_id: name.key_id, epoch: name.epoch, session: name.session })
    }
  }

  #forget(name: Name): void {
    const { store, keyring } = this.#parts
    this.#prepared(name)
    if (store.state.keys.get(name.key_id)!.epoch !== name.epoch) throw new Refusal('KEY_CONFLICT', 'This node has not switched')
    // First the entry, so that a node that is killed here ends it at its next start.
    store.append('forgotten', { key_id: name.key_id, epoch: name.epoch - 1 })
    store.shares.delete(name.key_id, name.epoch - 1)
    keyring.forget(name.key_id, name.epoch - 1)
  }

  /** A constant that each node computes by itself, so that no test can be made to sign anything else. */
  #item(name: Name): { path: number[]; publicKey: Uint8Array; message: Uint8Array } {
    const key = this.#parts.store.state.keys.get(name.key_id)
    if (!key) throw new Refusal('KEY_NOT_READY', 'No such key')
    return {
      path: [], publicKey: fromHex(key.public_key),
      message: new Uint8Array(sha256('custody/refresh-test/v1\n', JSON.stringify([name.key_id, name.epoch]))),
    }
  }

  #batch(name: Name, partner: number, fresh: readonly [string, string]): { batch: Batch; id: string; binding: (round: number) => Binding } {
    const { config, keyring, vault, store } = this.#parts
    const participants: [number, number] = config.node < partner ? [config.node, partner] : [partner, config.node]
    const item = this.#item(name)
    const sessionId = sha256('custody/refresh-test-session/v1\n', JSON.stringify([name, participants, fresh]))
    const id = hex(sessionId)
    if (store.state.sessions.has(id)) throw new Refusal('SESSION_ABORTED', 'The session id was used before')
    store.append('session', { kind: 'refresh-test', key_id: name.key_id, sessions: [id] })
    const batch = new Batch({
      vault, key: keyring.material(name.key_id, name.epoch), items: [item], sessionIds: [sessionId], participants, partner,
    })
    return {
      batch, id, binding: (round) => ({ ...NO_BINDING, session: id, round, key: name.key_id, digest: hex(item.message), participants }),
    }
  }

  async #test(name: Name, partner: number): Promise<void> {
    const { environment, peers, config, bans } = this.#parts
    this.#prepared(name)
    bans.assertNot(partner)
    const timeout = config.timeouts_ms.round
    const fresh = hex(environment.random(32))
    const opened = z.strictObject({ fresh: freshSchema }).parse(
      await peers.call(partner, '/peer/refresh/open', { ...name, fresh }, { timeout })
    )
    const { batch, binding } = this.#batch(name, partner, [fresh, opened.fresh])
    try {
      let messages = await batch.step(null)
      for (let round = 1; !batch.results; round++) {
        const heard = messagesSchema.parse(await peers.call(partner, '/peer/refresh/round', { messages: toText(messages) }, {
          timeout, binding: binding(round),
        }))
        messages = await batch.step(fromText(heard.messages))
      }
      // The partner ends on its own: one more call hears that it did.
      await peers.call(partner, '/peer/refresh/round', { messages: [[]] }, { timeout, binding: binding(0) })
      this.#passed(name, partner, batch)
    } catch (error) {
      batch.abort()
      bans.consider(error)
      if (error instanceof ThresholdError) throw new Refusal('SESSION_ABORTED', `The test with node ${partner} ended: ${error.code}`)
      throw error
    }
  }

  async #opened(node: number, { fresh, ...name }: Name & { fresh: string }): Promise<{ fresh: string }> {
    const { bans, environment, config, ceremonies } = this.#parts
    await ceremonies.ended(name.key_id)
    bans.assertNot(node)
    this.#prepared(name)
    if (this.#tests.size >= 8) throw new Refusal('TOO_BUSY', 'Too many tests are open')
    const mine = hex(environment.random(32))
    const { batch, id } = this.#batch(name, node, [fresh, mine])
    const next = batch.step(null)
    next.catch(() => {})
    this.#tests.set(id, {
      name, partner: node, batch, next, round: 0, timer: setTimeout(() => { this.#close(id) }, config.timeouts_ms.keygen),
    })
    return { fresh: mine }
  }

  async #round(node: number, session: string, round: number, messages: string[][]): Promise<unknown> {
    const test = this.#tests.get(session)
    if (!test || test.partner !== node) throw new Refusal('SESSION_ABORTED', 'No such test is open')
    try {
      const mine = await test.next
      if (round === 0) {
        if (!test.batch.results) throw new Refusal('SESSION_ABORTED', 'The test has not ended')
        this.#passed(test.name, node, test.batch)
        this.#close(session)
        return { messages: [[]] }
      }
      if (round !== ++test.round) throw new Refusal('SESSION_ABORTED', 'A message of another round')
      test.next = test.batch.step(fromText(messages))
      test.next.catch(() => {})
      return { messages: toText(mine) }
    } catch (error) {
      this.#parts.bans.consider(error)
      this.#close(session)
      if (error instanceof ThresholdError) throw new Refusal('SESSION_ABORTED', `The test ended: ${error.code}`)
      throw error
    }
  }

  #passed(name: Name, partner: number, batch: Batch): void {
    const { store } = this.#parts
    verifyItems(store.state.keys.get(name.key_id)!.curve, [this.#item(name)], batch.results!)
    store.append('tested', { key_id: name.key_id, epoch: name.epoch, session: name.session, partner })
  }

  #close(session: string): void {
    const test = this.#tests.get(session)
    if (!test) return
    clearTimeout(test.timer)
    test.batch.abort()
    this.#tests.delete(session)
  }
}

