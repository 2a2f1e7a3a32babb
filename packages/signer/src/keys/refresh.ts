import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import type { Ceremonies } from './ceremony.ts'
import type { Keyring } from './keyring.ts'
import {
  abandonRefusal,
  forgetRefusal,
  revertRefusal,
  switchRefusal,
  type Switched,
} from './refresh-rules.ts'
import { RUNS } from './rate-limit.ts'
import { shareNameSchema, type PairTests, type ShareName, type Subject } from './pair-tests.ts'

const nameSchema = shareNameSchema.extend({ epoch: z.int().min(1) })
const pairSchema = nameSchema.extend({ partner: z.int().min(1).max(3) })
const keySchema = z.strictObject({ key_id: z.string().max(64) })
const switchedSchema = z.strictObject({ epoch: z.int(), session: z.string().nullable() })
const commandSchema = z.strictObject({
  key_ids: z.array(z.string().max(64)).optional(),
  workspace: z.string().max(128).optional(),
})

/** How often a refresh waits for its turn. */
const WAITS_MAX = 5

interface Parts {
  config: Config
  store: Store
  peers: Peers
  keyring: Keyring
  log: Log
  ceremonies: Ceremonies
  tests: PairTests
}

/**
 * Generates new shares of the same key, in phases: all three nodes generate and certify the shares
 * of the next epoch, each of the three pairs signs a test with them, all three nodes switch, and
 * each deletes its old share after both peers have reported that they have switched. Until then
 * both shares sign. `refresh-rules.ts` has the reasons.
 */
export class Refresher {
  readonly #parts: Parts
  #running = false
  #isForgetting = false
  /** Keys for which the log has reported that their old share still exists. */
  readonly #unforgotten = new Set<string>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { peers, tests } = parts
    tests.serve((name) => this.#subjectOf(name))
    peers.handle('/peer/refresh/pair', async (_node, body) => {
      const { partner, ...name } = pairSchema.parse(body)
      this.#assertPrepared(name)
      await tests.lead(name, partner)
      return {}
    })
    peers.handle('/peer/refresh/commit', async (_node, body) => {
      this.#commit(nameSchema.parse(body))
      return {}
    })
    peers.handle('/peer/refresh/state', async (_node, body) => {
      const key = parts.store.state.keys.get(keySchema.parse(body).key_id)
      if (!key) throw new Refusal('KEY_NOT_READY', 'This key does not exist')
      return { epoch: key.epoch, session: key.session } satisfies Switched
    })
    peers.handle('/peer/refresh/forget', async (_node, body) => {
      if (!(await this.#forget(nameSchema.parse(body))))
        throw new Refusal('KEY_CONFLICT', 'Not every node has switched to the new shares')
      return {}
    })
    peers.handle('/peer/refresh/abandon', async (_node, body) => {
      this.#abandon(nameSchema.parse(body))
      return {}
    })
    peers.handle('/peer/refresh/settle', async (_node, body) => {
      await this.#settle(keySchema.parse(body).key_id)
      return {}
    })
  }

  async command(body: unknown): Promise<unknown> {
    const parsed = commandSchema.safeParse(body)
    if (!parsed.success)
      throw new Refusal(
        'BAD_ORDER',
        'refresh accepts key_ids or workspace, or no parameter for all keys',
      )
    if (this.#running)
      throw new Refusal('TOO_BUSY', 'A refresh is already running; wait until it ends')
    this.#running = true
    const refreshed: { key_id: string; epoch: number }[] = []
    const failed: { key_id: string; reason: string }[] = []
    try {
      for (const keyId of parsed.data.key_ids ?? this.#keysOf(parsed.data.workspace)) {
        try {
          refreshed.push({ key_id: keyId, epoch: await this.#refreshInTurn(keyId) })
        } catch (error) {
          failed.push({ key_id: keyId, reason: reason(error) })
          this.#parts.log('error', 'a refresh failed; the old shares stay in use', {
            key: keyId,
            reason: reason(error),
          })
        }
      }
    } finally {
      this.#running = false
    }
    if (refreshed.length > 0) {
      this.#parts.log(
        'info',
        'backups made before this contain old shares: make new ones and destroy the old ones',
        { keys: refreshed.length },
      )
    }
    return { refreshed, failed }
  }

  #keysOf(workspace: string | undefined): string[] {
    const keys = [...this.#parts.store.state.keys.values()]
    return keys
      .filter((key) => workspace === undefined || key.workspace === workspace)
      .map((key) => key.key_id)
  }

  /** Waits while the peers have no turn for another refresh, because they limit how many one node leads. */
  async #refreshInTurn(keyId: string): Promise<number> {
    for (let waits = 0; ; waits++) {
      try {
        return await this.#refresh(keyId)
      } catch (error) {
        const isLate = error instanceof Refusal && error.detail['retry_after_ms'] !== undefined
        if (!isLate || waits === WAITS_MAX) throw error
        await sleep(RUNS.everyMs)
      }
    }
  }

  async #refresh(keyId: string): Promise<number> {
    const { store, ceremonies, peers, config, log, tests } = this.#parts
    const key = store.state.keys.get(keyId)
    if (!key) throw new Refusal('KEY_NOT_READY', 'This key does not exist')
    await this.#settle(keyId)
    const { epoch } = store.state.keys.get(keyId)!
    const { session } = await ceremonies.lead({
      kind: 'refresh',
      curve: key.curve,
      key_id: keyId,
      epoch,
    })
    const name: ShareName = { key_id: keyId, epoch: epoch + 1, session }
    const [first, second] = peers.nodes as [number, number]
    await tests.lead(name, first)
    await tests.lead(name, second)
    const timeout = config.timeouts_ms.keygen
    await peers.call(first, '/peer/refresh/pair', { ...name, partner: second }, { timeout })
    await Promise.all(
      peers.nodes.map((node) => peers.call(node, '/peer/refresh/commit', name, { timeout })),
    )
    this.#commit(name)
    // All three nodes have switched, so the old shares can be deleted. A node that is unreachable
    // now queries the others later.
    await Promise.all(
      peers.nodes.map((node) => peers.call(node, '/peer/refresh/forget', name, { timeout })),
    )
    await this.#forget(name)
    log('info', 'a key was refreshed', { key: keyId, epoch: name.epoch })
    return name.epoch
  }

  /**
   * Deletes old shares if both peers have switched since. Part of housekeeping: its time is not
   * critical.
   */
  async forgetOld(): Promise<void> {
    const { store } = this.#parts
    if (this.#isForgetting) return
    this.#isForgetting = true
    for (const { key_id: keyId, epoch, session, previous } of store.state.keys.values()) {
      if (!previous || session === null) continue
      try {
        await this.#forget({ key_id: keyId, epoch, session })
        this.#unforgotten.delete(keyId)
      } catch (error) {
        this.#tellOnce(keyId, error)
      }
    }
    this.#isForgetting = false
  }

  #tellOnce(keyId: string, error: unknown): void {
    if (!this.#unforgotten.has(keyId)) {
      this.#parts.log('warn', 'an old share cannot be wiped yet; this is retried', {
        key: keyId,
        reason: reason(error),
      })
    }
    this.#unforgotten.add(keyId)
  }

  /**
   * Queries both peers directly for the epoch and the session that they have switched to.
   * @throws Refusal PEER_UNAVAILABLE
   */
  #switched(keyId: string): Promise<Switched[]> {
    const { peers, config } = this.#parts
    return Promise.all(
      peers.nodes.map(async (node) =>
        shapeOfAnswer(
          switchedSchema,
          await peers.call(
            node,
            '/peer/refresh/state',
            { key_id: keyId },
            { timeout: config.timeouts_ms.round },
          ),
          node,
        ),
      ),
    )
  }

  /**
   * Completes an unfinished earlier refresh, here and at the peers, so that another one can start.
   * @throws Refusal
   */
  async #settle(keyId: string): Promise<void> {
    const { store, peers, config } = this.#parts
    const key = store.state.keys.get(keyId)
    if (!key) throw new Refusal('KEY_NOT_READY', 'This key does not exist')
    const prepared = store.state.prepared.get(keyId)
    const results = await this.#switched(keyId)
    // The refresh was interrupted after one node had switched and before another had: this node
    // switches too.
    const isFollowed =
      prepared &&
      prepared.epoch > key.epoch &&
      results.some((peer) => peer.session === prepared.session)
    if (isFollowed)
      this.#commit({ key_id: keyId, epoch: prepared.epoch, session: prepared.session })
    const now = store.state.keys.get(keyId)!
    if (now.previous && now.session !== null) {
      await this.#end({ key_id: keyId, epoch: now.epoch, session: now.session })
      return
    }
    for (const [at, node] of peers.nodes.entries()) {
      if (results[at]!.epoch > now.epoch) {
        await peers.call(
          node,
          '/peer/refresh/settle',
          { key_id: keyId },
          { timeout: config.timeouts_ms.keygen },
        )
      }
    }
  }

  /**
   * Makes the peers switch to the share that this node has switched to, or returns to the old share
   * after both peers have promised not to switch.
   */
  async #end(name: ShareName): Promise<void> {
    const { store, peers, config, keyring, log } = this.#parts
    const timeout = config.timeouts_ms.round
    const toAll = (call: string) =>
      Promise.allSettled(peers.nodes.map((node) => peers.call(node, call, name, { timeout })))
    await toAll('/peer/refresh/commit')
    if (await this.#forget(name)) {
      await toAll('/peer/refresh/forget')
      return
    }
    const abandoned = await toAll('/peer/refresh/abandon')
    if (abandoned.some(({ status }) => status === 'rejected')) {
      throw new Refusal(
        'KEY_CONFLICT',
        'An earlier refresh of this key has not ended: some nodes have not switched to the new shares, and some have not abandoned them',
      )
    }
    const refusal = revertRefusal(store.state, name)
    if (refusal !== null) throw new Refusal('KEY_CONFLICT', refusal)
    store.append('reverted', name)
    keyring.forget(name.key_id)
    log('warn', 'a refresh that the other nodes abandoned was reverted', {
      key: name.key_id,
      epoch: name.epoch,
    })
  }

  #commit(name: ShareName): void {
    const { store, peers } = this.#parts
    const refusal = switchRefusal(store.state, name, peers.nodes)
    if (refusal !== null) throw new Refusal('KEY_CONFLICT', refusal)
    if (store.state.keys.get(name.key_id)!.epoch < name.epoch) store.append('refreshed', name)
  }

  /**
   * Deletes the previous share; returns whether it is deleted.
   * @throws Refusal if this node has not switched, or a peer does not respond
   */
  async #forget(name: ShareName): Promise<boolean> {
    const { store, keyring } = this.#parts
    const key = store.state.keys.get(name.key_id)
    if (key?.session === name.session && !key.previous) return true
    const refusal = forgetRefusal(store.state, name, [])
    if (refusal !== null) throw new Refusal('KEY_CONFLICT', refusal)
    if (forgetRefusal(store.state, name, await this.#switched(name.key_id)) !== null) return false
    // If the node is killed here, it completes the deletion at its next start.
    store.append('forgotten', { key_id: name.key_id, epoch: name.epoch - 1 })
    store.wipeUnused()
    keyring.forget(name.key_id)
    return true
  }

  #abandon(name: ShareName): void {
    const { store } = this.#parts
    const refusal = abandonRefusal(store.state, name)
    if (refusal !== null) throw new Refusal('KEY_CONFLICT', refusal)
    if (store.state.prepared.get(name.key_id)?.session === name.session)
      store.append('abandoned', name)
  }

  #assertPrepared(name: ShareName): void {
    const prepared = this.#parts.store.state.prepared.get(name.key_id)
    if (prepared?.session !== name.session || prepared.epoch !== name.epoch) {
      throw new Refusal('KEY_CONFLICT', 'This refresh is not prepared at this node')
    }
  }

  /**
   * Returns the prepared shares of a refresh, after the run that generates them has ended here too.
   */
  async #subjectOf(name: ShareName): Promise<Subject | null> {
    const { store, ceremonies } = this.#parts
    if (name.epoch === 0) return null
    await ceremonies.ended(name.key_id)
    this.#assertPrepared(name)
    // Each test would allow a malicious partner to guess a bit of the shares, so there are no tests
    // of shares that are in use.
    if (store.state.keys.get(name.key_id)?.session === name.session)
      throw new Refusal('KEY_CONFLICT', 'These shares are in use at this node')
    const material = store.shares.read(name.key_id, name.epoch, name.session)
    if (!material) return null
    return {
      kind: 'refresh',
      material,
      passed: (partner) => {
        store.append('tested', { ...name, partner })
      },
    }
  }
}
