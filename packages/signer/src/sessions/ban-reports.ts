import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { canonicalBytes, signBytes, verifyBytes } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { banStatementSchema, type BanStatement } from '../store/entries/people.ts'
import type { Body } from '../store/entries/index.ts'
import type { Store } from '../store/index.ts'
import { shaped } from '../transport/body.ts'
import type { Peers } from '../transport/peers.ts'
import type { Bans } from './bans.ts'

const CALL = '/peer/ban'
const TIMEOUT_MS = 1500
const STATEMENT_KEYS = ['node', 'identity', 'by', 'at', 'reason', 'cause'] as const
const reportSchema = z.strictObject({
  statement: banStatementSchema,
  signature: z.string().max(128),
})

const bytesOf = (statement: BanStatement): Buffer =>
  canonicalBytes('ban', STATEMENT_KEYS, { ...statement })
export const signBan = (identity: KeyObject, statement: BanStatement): string =>
  signBytes(identity, bytesOf(statement))
const isSigned = (identity: KeyObject, statement: BanStatement, signature: string): boolean =>
  verifyBytes(identity, bytesOf(statement), signature)

/**
 * Returns the ban that a node itself had signed, from the report that a peer still has.
 * @returns null if the statement is another node's, or this node's identity key did not sign it
 */
export function ownBanFrom(
  { signature, ...statement }: Body<'ban-told'>,
  own: Pick<Config, 'node' | 'identityPublic'>,
): Required<Body<'ban'>> | null {
  const { by, ...ban } = statement
  return by === own.node &&
    ban.node !== own.node &&
    isSigned(own.identityPublic, statement, signature)
    ? ban
    : null
}

/**
 * Exchange of bans between nodes.
 *
 * A report does not ban anyone at the node that receives it. Otherwise a single hostile node could
 * make two honest nodes stop signing with each other, and no pair would be left. The operator of
 * the receiving node decides, with the command `ban`.
 */
export class BanReports {
  readonly #parts: { config: Config; store: Store; peers: Peers; bans: Bans; log: Log }
  /**
   * Reports that a peer has acknowledged, by the peer's generation, because a restored peer has
   * lost them.
   */
  readonly #acknowledged = new Set<string>()
  readonly #warned = new Set<string>()

  constructor(parts: { config: Config; store: Store; peers: Peers; bans: Bans; log: Log }) {
    this.#parts = parts
    parts.peers.handle(CALL, async (node, body) => {
      this.#receive(node, shaped(reportSchema, body))
      return {}
    })
  }

  /** Returns the reports about bans of the peers' current keys. */
  get current(): Body<'ban-told'>[] {
    const { store, bans } = this.#parts
    return store.state.banReports.filter(({ node, identity }) => bans.identityOf(node) === identity)
  }

  /**
   * Reports each ban on record to the third node until it has acknowledged it. The banned node is
   * not informed.
   */
  async report(): Promise<void> {
    const {
      store: { state },
      peers,
      bans,
    } = this.#parts
    // The partner of a node that was opened for a recovery accepts no reports.
    if (state.restoring || state.recovering) return
    await Promise.all(
      bans.recorded.flatMap((ban) =>
        peers.nodes
          .filter((third) => !bans.isBanned(third) && peers.reachable(third))
          .map(async (third) => {
            const name = `${third}/${peers.headOf(third)?.generation ?? 0}/${ban.identity}`
            if (!this.#acknowledged.has(name)) await this.#reportTo(third, ban.node, name)
          }),
      ),
    )
  }

  async #reportTo(third: number, banned: number, name: string): Promise<void> {
    const { config, peers, bans, log } = this.#parts
    const {
      node,
      identity,
      at,
      reason: why,
      cause,
    } = bans.recorded.find((ban) => ban.node === banned)!
    const statement = {
      node,
      identity: identity!,
      by: config.node,
      at,
      reason: why.slice(0, 200),
      cause,
    }
    try {
      await peers.call(
        third,
        CALL,
        { statement, signature: signBan(config.identity, statement) },
        { timeout: TIMEOUT_MS },
      )
      this.#acknowledged.add(name)
    } catch (error) {
      if (this.#warned.has(name)) return
      this.#warned.add(name)
      log('warn', 'a peer did not accept the report of a ban; it is sent again', {
        peer: third,
        banned,
        reason: reason(error),
      })
    }
  }

  /**
   * Records a report.
   * @throws Refusal if the statement is not the sender's own about the other peer as this node has
   *   pinned it
   */
  #receive(sender: number, { statement, signature }: z.infer<typeof reportSchema>): void {
    const { config, store, bans, log } = this.#parts
    const { node, identity, by } = statement
    const peer = config.peerList.find((each) => each.node === sender)
    if (!peer || by !== sender)
      throw new Refusal('NOT_ALLOWED', 'A node can report only its own bans')
    bans.assertNot(sender)
    if (node === sender || bans.identityOf(node) !== identity) {
      throw new Refusal(
        'NOT_ALLOWED',
        'The report does not contain an identity of the other peer that this node has',
      )
    }
    if (!isSigned(peer.identity, statement, signature))
      throw new Refusal('NOT_ALLOWED', 'The report is not signed by its sender')
    // Only one report for each pair of identities is recorded, whatever else it contains, so that
    // repetition cannot fill the record.
    if (this.current.some((report) => report.by === by && report.node === node)) return
    store.append('ban-told', { ...statement, signature })
    log(
      'alert',
      'a peer has banned the other peer: contact its operator, and order the ban here if it is confirmed',
      {
        peer: sender,
        banned: node,
        reason: statement.reason,
      },
    )
  }
}
