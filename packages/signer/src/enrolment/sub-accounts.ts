import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { signBytes } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import { bindingBytes, isSignedByAll, type Binding } from '../keys/certificate.ts'
import type { Store } from '../store/index.ts'
import { State, type NodeSignature } from '../store/state.ts'
import type { Peers } from '../transport/peers.ts'

export const subAccountNameSchema = z.string().min(1).max(128)
// Index of a sub-account. 0 is the workspace's gas tank and belongs to no caller.
export const subAccountIndexSchema = z.int().min(1).max(0x7fffffff)
const nameSchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  sub_account: subAccountNameSchema,
  index: subAccountIndexSchema.optional(),
})
const pairSchema = nameSchema.extend({ index: subAccountIndexSchema })
const certificatesSchema = z
  .array(z.strictObject({ node: z.int().min(1).max(3), signature: z.string().max(128) }))
  .length(3)
const setSchema = pairSchema.extend({ certificates: certificatesSchema })

/**
 * The node that proposes an index. All three nodes must sign it, so a single proposer has no
 * additional power; two proposers could collide.
 */
const ALLOCATOR = 1

interface Parts {
  config: Config
  store: Store
  peers: Peers
  identities: ReadonlyMap<number, KeyObject>
}

/**
 * Rule 1: only the nodes decide which index belongs to which sub-account. The mapping is unique in
 * both directions, immutable, and certified by all three nodes, so that the platform cannot assign
 * one customer's addresses to another customer's key.
 */
export class SubAccounts {
  readonly #parts: Parts
  readonly #binding = new Map<string, Promise<number>>()
  /** The latest agreement that this node has led, by workspace. */
  readonly #led = new Map<string, Promise<unknown>>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { peers } = parts
    peers.handle('/peer/sub-account/bind', async (_node, body) => {
      const { workspace, sub_account, index } = nameSchema.parse(body)
      if (parts.config.node !== ALLOCATOR)
        throw new Refusal('NOT_ALLOWED', 'This node does not allocate the indexes of sub-accounts')
      return this.#set(workspace, sub_account, await this.bind(workspace, sub_account, index))
    })
    peers.handle('/peer/sub-account/certify', async (_node, body) => {
      const { workspace, sub_account, index } = pairSchema.parse(body)
      return { signature: this.#sign(workspace, sub_account, index) }
    })
    peers.handle('/peer/sub-account/set', async (_node, body) => {
      this.#adopt(setSchema.parse(body))
      return {}
    })
    peers.handle('/peer/sub-account/next', async (_node, body) => {
      const { workspace } = z.strictObject({ workspace: z.string().max(128) }).parse(body)
      return { next: parts.store.state.nextSubAccount(workspace) }
    })
  }

  /**
   * Returns the index of a sub-account. A new index is agreed on by all three nodes, which must be
   * available.
   * @param index index that the operator entered; rejected if the sub-account has another index
   *   already
   */
  async bind(workspace: string, name: string, index?: number): Promise<number> {
    const { store, config } = this.#parts
    const key = State.subAccountKey(workspace, name)
    const existing = store.state.subAccounts.get(key)
    if (existing && index !== undefined && existing.index !== index) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The sub-account ${name} permanently has the index ${existing.index}`,
      )
    }
    if (existing?.certificates) return existing.index
    // An enrolment of an earlier version, which did not bind names, has an index without a name.
    // This node's operator adds the name by entering both.
    if (
      !existing &&
      index !== undefined &&
      store.state.subAccountNames.get(State.subAccountIndexKey(workspace, index)) === null
    ) {
      store.append('sub-account', { workspace, name, index })
    }
    let running = this.#binding.get(key)
    if (!running) {
      running = (
        config.node === ALLOCATOR
          ? this.#leadNext(workspace, name, index)
          : this.#ask(workspace, name, index)
      ).finally(() => {
        this.#binding.delete(key)
      })
      this.#binding.set(key, running)
    }
    const bound = await running.catch((error: unknown) => {
      if (!(error instanceof Refusal) || error.code !== 'PEER_UNAVAILABLE') throw error
      throw new Refusal(
        'PEER_UNAVAILABLE',
        `The sub-account ${name} is new here, and all three nodes must be running to bind it: ${error.message}`,
        { ...error.detail },
      )
    })
    if (index !== undefined && bound !== index) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The sub-account ${name} permanently has the index ${bound}`,
      )
    }
    return bound
  }

  async #ask(workspace: string, name: string, index: number | undefined): Promise<number> {
    const { peers, config } = this.#parts
    const answer = await peers.call(
      ALLOCATOR,
      '/peer/sub-account/bind',
      { workspace, sub_account: name, ...(index === undefined ? {} : { index }) },
      { timeout: config.timeouts_ms.keygen },
    )
    const set = setSchema.parse(answer)
    if (set.workspace !== workspace || set.sub_account !== name) {
      throw new Refusal('PEER_UNAVAILABLE', `Node ${ALLOCATOR} responded for another sub-account`, {
        node: ALLOCATOR,
      })
    }
    return this.#adopt(set)
  }

  /**
   * Indexes of a workspace are assigned one after the other, because two concurrent calls would
   * propose the same index and one would be rejected.
   */
  async #leadNext(workspace: string, name: string, wanted: number | undefined): Promise<number> {
    const before = this.#led.get(workspace) ?? Promise.resolve()
    const leading = before.then(() => this.#lead(workspace, name, wanted))
    const ended = leading.catch(() => undefined)
    this.#led.set(workspace, ended)
    try {
      return await leading
    } finally {
      if (this.#led.get(workspace) === ended) this.#led.delete(workspace)
    }
  }

  async #lead(workspace: string, name: string, wanted: number | undefined): Promise<number> {
    const { store, peers, config } = this.#parts
    const timeout = config.timeouts_ms.round
    const proposed =
      store.state.subAccounts.get(State.subAccountKey(workspace, name))?.index ??
      wanted ??
      (await this.#next(workspace))
    const own = { node: config.node, signature: this.#sign(workspace, name, proposed) }
    const others = await Promise.all(
      peers.nodes.map(async (node) => {
        const { signature } = z
          .object({ signature: z.string() })
          .parse(
            await peers.call(
              node,
              '/peer/sub-account/certify',
              { workspace, sub_account: name, index: proposed },
              { timeout },
            ),
          )
        return { node, signature }
      }),
    )
    const set = {
      workspace,
      sub_account: name,
      index: proposed,
      certificates: [own, ...others].sort((a, b) => a.node - b.node),
    }
    const bound = this.#adopt(set)
    // All three nodes store the certificates before anyone is enrolled with them here.
    await Promise.all(
      peers.nodes.map((node) => peers.call(node, '/peer/sub-account/set', set, { timeout })),
    )
    return bound
  }

  /**
   * Returns the lowest index that is free at all three nodes. A node that reports a very high index
   * only wastes indexes.
   */
  async #next(workspace: string): Promise<number> {
    const { store, peers, config } = this.#parts
    const timeout = config.timeouts_ms.round
    const theirs = await Promise.all(
      peers.nodes.map(async (node) => {
        const answer = await peers.call(node, '/peer/sub-account/next', { workspace }, { timeout })
        return z.object({ next: subAccountIndexSchema }).parse(answer).next
      }),
    )
    return Math.max(store.state.nextSubAccount(workspace), ...theirs)
  }

  #pair(workspace: string, name: string, index: number): Binding {
    return { workspace, sub_account: name, index, mode: this.#parts.config.mode }
  }

  /**
   * Signs this node's own certificate. Records the pairing first; any other pairing of either side
   * is permanently rejected.
   */
  #sign(workspace: string, name: string, index: number): string {
    const { store, config } = this.#parts
    const existing = store.state.subAccounts.get(State.subAccountKey(workspace, name))
    if (existing && existing.index !== index) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The sub-account ${name} permanently has the index ${existing.index}`,
        { node: config.node },
      )
    }
    const holder = store.state.subAccountNames.get(State.subAccountIndexKey(workspace, index))
    if (holder !== undefined && holder !== name) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The index ${index} permanently belongs to the sub-account ${holder}`,
        { node: config.node },
      )
    }
    if (!existing) store.append('sub-account', { workspace, name, index })
    return signBytes(config.identity, bindingBytes(this.#pair(workspace, name, index)))
  }

  #adopt({ workspace, sub_account: name, index, certificates }: z.infer<typeof setSchema>): number {
    const { store, identities } = this.#parts
    if (
      !isSignedByAll(bindingBytes(this.#pair(workspace, name, index)), certificates, identities)
    ) {
      throw new Refusal('ENROLMENT_CONFLICT', 'The certificates of the sub-account do not verify')
    }
    // Signing also checks that both sides are still free, or are paired with each other already.
    this.#sign(workspace, name, index)
    if (!store.state.subAccounts.get(State.subAccountKey(workspace, name))!.certificates) {
      store.append('sub-account-set', { workspace, name, index, certificates })
    }
    return index
  }

  #set(workspace: string, name: string, index: number): z.infer<typeof setSchema> {
    const bound = this.#parts.store.state.subAccounts.get(State.subAccountKey(workspace, name))
    const { certificates } = bound as { certificates: NodeSignature[] }
    return { workspace, sub_account: name, index, certificates }
  }
}
