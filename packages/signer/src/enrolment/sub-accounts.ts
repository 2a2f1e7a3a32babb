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
// 0 is the workspace's gas tank and belongs to no caller.
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
 * The node that proposes an index. All three must sign it, so nothing is lost by asking one; two
 * could collide.
 */
const ALLOCATOR = 1

interface Parts {
  config: Config
  store: Store
  peers: Peers
  identities: ReadonlyMap<number, KeyObject>
}

/**
 * Rule 1: which index belongs to which sub-account is known to the nodes alone, unique both ways,
 * immutable, and certified by all three, so that no platform can hand one customer's addresses to
 * another's key.
 */
export class SubAccounts {
  readonly #parts: Parts
  readonly #binding = new Map<string, Promise<number>>()
  /** What this node led last, by workspace. */
  readonly #led = new Map<string, Promise<unknown>>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { peers } = parts
    peers.handle('/peer/sub-account/bind', async (_node, body) => {
      const { workspace, sub_account, index } = nameSchema.parse(body)
      if (parts.config.node !== ALLOCATOR)
        throw new Refusal('NOT_ALLOWED', 'This node does not allocate indexes')
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
   * The index of a sub-account; a new one is agreed on by all three nodes, which must be up for it.
   * @param index what the operator typed; another one that is bound already is refused
   */
  async bind(workspace: string, name: string, index?: number): Promise<number> {
    const { store, config } = this.#parts
    const key = State.subAccountKey(workspace, name)
    const known = store.state.subAccounts.get(key)
    if (known && index !== undefined && known.index !== index) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The sub-account ${name} permanently has the index ${known.index}`,
      )
    }
    if (known?.certificates) return known.index
    // An enrolment of before names were bound has an index without a name: this node's operator
    // names it, by typing both.
    if (
      !known &&
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
   * One of a workspace after the other: two at once would be given the same index, and one of them
   * refused.
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
    // All three hold the set before anyone is enrolled by it here.
    await Promise.all(
      peers.nodes.map((node) => peers.call(node, '/peer/sub-account/set', set, { timeout })),
    )
    return bound
  }

  /**
   * The lowest index that is free at all three. A node that names a very high one wastes indexes,
   * and nothing else.
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
   * This node's own certificate. Writes the pairing down first; another pairing of either side is
   * refused for ever.
   */
  #sign(workspace: string, name: string, index: number): string {
    const { store, config } = this.#parts
    const known = store.state.subAccounts.get(State.subAccountKey(workspace, name))
    if (known && known.index !== index) {
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        `The sub-account ${name} permanently has the index ${known.index}`,
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
    if (!known) store.append('sub-account', { workspace, name, index })
    return signBytes(config.identity, bindingBytes(this.#pair(workspace, name, index)))
  }

  #adopt({ workspace, sub_account: name, index, certificates }: z.infer<typeof setSchema>): number {
    const { store, identities } = this.#parts
    if (
      !isSignedByAll(bindingBytes(this.#pair(workspace, name, index)), certificates, identities)
    ) {
      throw new Refusal('ENROLMENT_CONFLICT', 'The certificates of the sub-account do not verify')
    }
    // Signing first also checks that both sides are still free, or are this very pair.
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
