import {
  publicKeysBelow,
  type Curve,
  type NetworkMode,
  type PublicKeyAt,
  type WorkspaceKey,
} from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Database } from '../database/pool.ts'
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

/**
 * Timeout for creating a key, in milliseconds. It takes the three nodes a few seconds when their
 * pool is empty.
 */
const KEY_TIMEOUT_MS = 30_000
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
  readonly #nodes: SignerNodes
  readonly #mode: NetworkMode
  readonly #cache = new Map<string, KnownKey>()

  constructor(database: Database, nodes: SignerNodes, mode: NetworkMode) {
    this.#database = database
    this.#nodes = nodes
    this.#mode = mode
  }

  /**
   * Returns a workspace's certified public key; the nodes create it at the first call.
   * @throws ApiError `SIGNERS_UNAVAILABLE` if the workspace has no key yet and the nodes cannot
   *   create one
   */
  async get(workspaceId: string, curve: Curve): Promise<KnownKey> {
    const name = `${workspaceId} ${curve}`
    const existing = this.#cache.get(name)
    if (existing) return existing
    const key = (await this.#load(workspaceId, curve)) ?? (await this.#request(workspaceId, curve))
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

  async #request(workspaceId: string, curve: Curve): Promise<WorkspaceKey> {
    const workspace = (
      await this.#database.one<{ name: string }>('select name from workspaces where id = $1', [
        workspaceId,
      ])
    )?.name as string
    const problems: string[] = []
    for (const { node } of this.#nodes.peers) {
      let answer: KeyAnswer
      try {
        answer = await this.#nodes.call<KeyAnswer>(
          node,
          'POST',
          '/key',
          { workspace, curve },
          KEY_TIMEOUT_MS,
        )
      } catch (error) {
        if (!(error instanceof NodeRefused || error instanceof NodeUnavailable)) throw error
        problems.push(error.message)
        continue
      }
      this.#verify(answer, workspace, curve)
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
    throw new ApiError(
      'SIGNERS_UNAVAILABLE',
      `the signer nodes cannot assign a key to this workspace now: ${problems.join('; ')}`,
    )
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
