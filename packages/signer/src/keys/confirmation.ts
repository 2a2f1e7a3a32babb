import { AuthError, canonicalPublicKey } from '@custody/request-auth'
import { z } from 'zod'
import { sha256hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import type { BackedDrain, BackedEnrolment } from './backup-file.ts'

/**
 * Call by which a node that is being restored queries its peers for the enrolments and orders of
 * their operators. Every order was entered at each node, so an entry of a backup that a peer does
 * not have was never entered there, or is forged.
 */
const CALL = '/peer/people'
/**
 * Number of hashes per page. A hash has 64 digits, so a page stays below the size limit of
 * responses before heads are compared.
 */
const PAGE = 2000
/** Maximum number of hashes that a peer may return in total, so that its list cannot be endless. */
const HELD_MAX = 1_000_000

const hash = z.string().regex(/^[0-9a-f]{64}$/)
const askSchema = z.strictObject({ after: hash.nullable() })
const answerSchema = z.strictObject({
  /**
   * `lost`: the peer has no data and has not read a backup. `claimed`: it is being restored, and
   * returns the content of its own backup.
   */
  state: z.enum(['held', 'claimed', 'lost']),
  people: z.array(hash).max(PAGE),
  more: z.boolean(),
})

/** Returns a public key in canonical form. An invalid key matches no stored key. */
function oneSpelling(pem: string): string {
  try {
    return canonicalPublicKey(pem)
  } catch (error) {
    if (error instanceof AuthError) return pem
    throw error
  }
}

/**
 * Returns the hash of an enrolment: the caller, the key, the permission, and the person if it names
 * one. Names of sub-accounts
 * are bound to indexes by certificates, not here.
 */
export const enrolmentHash = ({
  api_key,
  public_key_pem,
  role,
  workspace,
  sub_account,
  person,
}: BackedEnrolment): string =>
  sha256hex(
    JSON.stringify([
      'enrolment',
      api_key,
      oneSpelling(public_key_pem),
      role,
      workspace,
      sub_account,
      ...(person === undefined ? [] : [person]),
    ]),
  )
export const drainHash = ({
  order,
  workspace,
  network,
  to_address,
  expires_at,
}: BackedDrain): string =>
  sha256hex(JSON.stringify(['drain', order, workspace, network, to_address, expires_at]))

interface Parts {
  config: Config
  store: Store
  peers: Peers
}

export class Confirmation {
  readonly #parts: Parts
  /**
   * Hashes from this node's own backup, while it is being restored. They are only in memory,
   * because the operator repeats the command after a restart.
   */
  #claims: string[] | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    parts.peers.handle(CALL, async (_node, body) => this.#answer(askSchema.parse(body).after))
  }

  /**
   * Makes peers receive the hashes of a backup while this node is being restored.
   * @param hashes hashes of the entries of an authentic backup; empty for an unsigned one, which
   *   proves nothing
   */
  claim(hashes: readonly string[]): void {
    this.#claims = [...hashes].sort()
  }
  /** Makes peers receive the hashes of the record again. */
  unclaim(): void {
    this.#claims = null
  }

  #answer(after: string | null): z.infer<typeof answerSchema> {
    const { state } = this.#parts.store
    const isLost = state.restoring || (state.keys.size === 0 && state.enrolments.size === 0)
    if (isLost && !this.#claims) return { state: 'lost', people: [], more: false }
    const all = isLost
      ? (this.#claims as string[])
      : [
          ...[...state.enrolments.values()].map(enrolmentHash),
          ...[...state.drains.values()].map(drainHash),
        ].sort()
    const from = after === null ? 0 : all.findIndex((each) => each > after)
    const people = from < 0 ? [] : all.slice(from, from + PAGE)
    return {
      state: isLost ? 'claimed' : 'held',
      people,
      more: from >= 0 && from + PAGE < all.length,
    }
  }

  async #heldBy(node: number): Promise<Set<string>> {
    const { peers, config } = this.#parts
    const held = new Set<string>()
    let after: string | null = null
    for (;;) {
      const said: unknown = await peers
        .call(node, CALL, { after }, { timeout: config.timeouts_ms.keygen })
        .catch((error: unknown) => {
          if (!(error instanceof Refusal) || error.code !== 'NOT_FOUND') throw error
          throw new Refusal(
            'PEER_UNAVAILABLE',
            `Node ${node} runs an earlier version: upgrade it first, then restore this node`,
            { node },
          )
        })
      const { state, people, more } = shapeOfAnswer(answerSchema, said, node)
      if (state === 'lost') {
        throw new Refusal(
          'RESTORING',
          `Node ${node} has lost its record as well: run its own restore there, then this command again`,
          { node },
        )
      }
      for (const each of people) held.add(each)
      const last = people.at(-1)
      if (!more) return held
      if (last === undefined || (after !== null && last <= after) || held.size >= HELD_MAX) {
        throw new Refusal(
          'PEER_UNAVAILABLE',
          `Node ${node} does not complete its open operations`,
          { node },
        )
      }
      after = last
    }
  }

  /**
   * Returns the hashes that each peer has, by node.
   * @param nodes the peers to query
   * @throws Refusal if a peer is unavailable, or has itself lost its data
   */
  async ask(
    nodes: readonly number[] = this.#parts.peers.nodes,
  ): Promise<ReadonlyMap<number, ReadonlySet<string>>> {
    return new Map(
      await Promise.all(nodes.map(async (node) => [node, await this.#heldBy(node)] as const)),
    )
  }
}
