import {
  publicKeysBelow,
  type Curve,
  type NetworkMode,
  type PublicKeyAt,
  type WorkspaceKey,
} from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from './nodes.ts'

interface KeyAnswer {
  workspace: string
  curve: Curve
  key_id: string
  public_key: string
  chain_code: string
  epoch: number
  certificates: { node: number; signature: string }[]
}

export interface KnownKey extends WorkspaceKey {
  at: PublicKeyAt
}

/** A workspace's place in the nodes' queue for new keys; 1 is served next. */
interface QueuePlace {
  place: number
}

/** Maximum time for which a request waits for a new key, in milliseconds. */
const KEY_WAIT_MS = 25_000
/** Minimum time for the response of each node that is called, in milliseconds. */
const CALL_MS_MIN = 2000
/** Interval between two calls for a key, in milliseconds: `place` for each place, within limits. */
const POLL_MS = { place: 250, min: 250, max: 2000 }
/** Limits of `Retry-After`. The nodes generate about one key a second. */
const RETRY_AFTER_S = { min: 1, max: 60 }
const CERTIFICATES_NEEDED = 3

/** Returns the text that each node signs for a workspace's key. */
function certificateText(key: Omit<KeyAnswer, 'certificates'>, mode: NetworkMode): string {
  return `custody/key-certificate/v1\n${JSON.stringify({
    workspace: key.workspace,
    curve: key.curve,
    key_id: key.key_id,
    public_key: key.public_key,
    chain_code: key.chain_code,
    mode,
    epoch: key.epoch,
  })}`
}

/** Public keys of workspaces. No address is assigned before three nodes have certified the key. */
export class WorkspaceKeys {
  readonly #database: Database
  readonly #nodes: Pick<SignerNodes, 'peers' | 'call' | 'verify'>
  readonly #mode: NetworkMode
  readonly #environment: Pick<Environment, 'now' | 'sleep'>
  readonly #cache = new Map<string, KnownKey>()
  /** Requests for new keys in progress, by workspace and curve. */
  readonly #requests = new Map<string, Promise<WorkspaceKey>>()

  constructor(
    database: Database,
    nodes: Pick<SignerNodes, 'peers' | 'call' | 'verify'>,
    mode: NetworkMode,
    environment: Pick<Environment, 'now' | 'sleep'>,
  ) {
    this.#database = database
    this.#nodes = nodes
    this.#mode = mode
    this.#environment = environment
  }

  /**
   * Returns a workspace's certified public key. The first call requests it from the nodes, and waits
   * for it for at most 25 seconds.
   * @throws ApiError `KEY_PENDING` if the key is not ready by then, `SIGNERS_UNAVAILABLE` if the
   *   workspace has no key yet and the nodes cannot create one
   */
  async get(workspaceId: string, curve: Curve): Promise<KnownKey> {
    const name = `${workspaceId} ${curve}`
    const existing = this.#cache.get(name)
    if (existing) return existing
    const key =
      (await this.#load(workspaceId, curve)) ?? (await this.#requestOnce(workspaceId, curve))
    const complete = { ...key, at: publicKeysBelow(key) }
    this.#cache.set(name, complete)
    return complete
  }

  async #load(workspaceId: string, curve: Curve): Promise<WorkspaceKey | null> {
    const row = await this.#database.one<{ public_key: Buffer; chain_code: Buffer }>(
      'select public_key, chain_code from workspace_keys where workspace_id = $1 and curve = $2',
      [workspaceId, curve],
    )
    return row
      ? {
          curve,
          publicKey: new Uint8Array(row.public_key),
          chainCode: new Uint8Array(row.chain_code),
        }
      : null
  }

  /** Concurrent requests for a key wait for the same responses of the nodes. */
  #requestOnce(workspaceId: string, curve: Curve): Promise<WorkspaceKey> {
    const name = `${workspaceId} ${curve}`
    const running =
      this.#requests.get(name) ??
      this.#request(workspaceId, curve).finally(() => {
        this.#requests.delete(name)
      })
    this.#requests.set(name, running)
    return running
  }

  async #request(workspaceId: string, curve: Curve): Promise<WorkspaceKey> {
    const workspace = (
      await this.#database.one<{ name: string }>('select name from workspaces where id = $1', [
        workspaceId,
      ])
    )?.name as string
    const environment = this.#environment
    const end = environment.now() + KEY_WAIT_MS
    for (let place: number | null = null; ;) {
      const answer = await this.#ask(workspace, curve, end)
      if ('key_id' in answer) {
        this.#verify(answer, workspace, curve)
        return this.#store(workspaceId, workspace, answer)
      }
      // Nodes that were reached before may be reached again; otherwise waiting is pointless.
      if ('problems' in answer && place === null) throw unavailable(answer.problems)
      if ('place' in answer) ({ place } = answer)
      const pauseMs = Math.min(Math.max((place ?? 0) * POLL_MS.place, POLL_MS.min), POLL_MS.max)
      if (environment.now() + pauseMs > end)
        throw 'place' in answer ? pending(answer.place) : unavailable(answer.problems)
      await environment.sleep(pauseMs)
    }
  }

  /**
   * Requests a key from the first node that responds.
   * @throws ApiError `KEY_PENDING` if the queue of the nodes is full
   */
  async #ask(
    workspace: string,
    curve: Curve,
    end: number,
  ): Promise<KeyAnswer | QueuePlace | { problems: string[] }> {
    const problems: string[] = []
    for (const { node } of this.#nodes.peers) {
      try {
        return await this.#nodes.call<KeyAnswer | QueuePlace>(
          node,
          'POST',
          '/key',
          { workspace, curve },
          Math.max(end - this.#environment.now(), CALL_MS_MIN),
        )
      } catch (error) {
        if (error instanceof NodeRefused && error.code === 'TOO_BUSY') throw pending(null)
        if (!(error instanceof NodeRefused || error instanceof NodeUnavailable)) throw error
        problems.push(error.message)
      }
    }
    return { problems }
  }

  /** Stores a verified key. Concurrent calls, also of other processes, store it once. */
  async #store(workspaceId: string, workspace: string, answer: KeyAnswer): Promise<WorkspaceKey> {
    const { curve } = answer
    await this.#database.query(
      `insert into workspace_keys (workspace_id, curve, key_id, public_key, chain_code, epoch,
        certificates)
       values ($1, $2, $3, decode($4, 'hex'), decode($5, 'hex'), $6, $7) on conflict do nothing`,
      [
        workspaceId,
        curve,
        answer.key_id,
        answer.public_key,
        answer.chain_code,
        answer.epoch,
        JSON.stringify(answer.certificates),
      ],
    )
    const stored = await this.#load(workspaceId, curve)
    if (!stored || Buffer.from(stored.publicKey).toString('hex') !== answer.public_key) {
      throw new Error(`workspace ${workspace} has another ${curve} key than the nodes certify`)
    }
    return stored
  }

  #verify(answer: KeyAnswer, workspace: string, curve: Curve): void {
    if (answer.workspace !== workspace || answer.curve !== curve)
      throw new Error('a signer node responded for another workspace')
    const text = certificateText(answer, this.#mode)
    const valid = new Set(
      answer.certificates
        .filter(({ node, signature }) => this.#nodes.verify(node, text, signature))
        .map(({ node }) => node),
    )
    if (valid.size < CERTIFICATES_NEEDED) {
      throw new Error(
        `the key of workspace ${workspace} has ${valid.size} of ${CERTIFICATES_NEEDED} required certificates`,
      )
    }
  }
}

const unavailable = (problems: readonly string[]): ApiError =>
  new ApiError(
    'SIGNERS_UNAVAILABLE',
    `the signer nodes cannot assign a key to this workspace now: ${problems.join('; ')}`,
  )

/** @param place position in the queue; null if the queue is full */
const pending = (place: number | null): ApiError =>
  new ApiError(
    'KEY_PENDING',
    place === null
      ? 'too many new workspaces wait for a key; nothing was created; send the request again'
      : `the key of this workspace is being generated (place ${place} in the queue); nothing was created; send the request again`,
    {
      retryAfterS: Math.min(
        Math.max(place ?? RETRY_AFTER_S.max, RETRY_AFTER_S.min),
        RETRY_AFTER_S.max,
      ),
    },
  )
