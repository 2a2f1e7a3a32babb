import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { isProof, proofSchema } from '../envelope.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import type { Log } from '../log.ts'
import { ownBanFrom } from '../sessions/ban-reports.ts'
import { RecordError } from '../store/entries/error.ts'
import { entryOf, type Body, type NewEntry, type Row } from '../store/entries/index.ts'
import { takenFrom } from '../store/imported.ts'
import type { Store } from '../store/index.ts'
import { RecordStore } from '../store/record.ts'
import { WINDOW_KEPT_MS } from '../store/spending.ts'
import { RECORD } from '../transport/calls.ts'
import { PAGE_ROWS, type Peers } from '../transport/peers.ts'
import { bindingBytes, isSignedByAll, readyBytes, verifyCertificates } from './certificate.ts'
import type { Keyring } from './keyring.ts'

/** Maximum number of restrictions that are listed one by one. */
const LIST_MAX = 200
/** Maximum number of entries of a peer's record above the head that the third node has seen. */
const GROWTH_MAX = 100_000
/** Maximum number of entries of a peer's record if the third node knows no head of it. */
const ROWS_MAX = 20_000_000

const rowSchema = z.strictObject({
  height: z.int(),
  at: z.int(),
  kind: z.string(),
  body: z.string(),
  hash: z.string(),
})
const pageSchema = z.object({ rows: z.array(rowSchema).max(PAGE_ROWS) })
const headSchema = z.object({ proof: proofSchema.nullable().catch(null).default(null) })

interface Parts {
  config: Config
  store: Store
  peers: Pick<Peers, 'call' | 'nodes'>
  keyring: Pick<Keyring, 'identities'>
  log: Log
  /** Maximum number of entries of a record of which the third node knows no head. */
  rowsMax?: number
}

/** A restriction that only one of two peers has. `id`: its node and its height in that record. */
interface Restriction {
  id: string
  node: number
  height: number
  kind: string
  text: string
}
type Listed = Restriction & { names: readonly string[] }

/** What the record of one peer contains, by hashes. */
interface Scanned {
  names: Set<string>
  /** It does not contain the head that the third node has seen. */
  isOther: boolean
  /** Allocations and names of sub-accounts that all three nodes have certified. */
  proven: Set<string>
  /** IDs of forwarding rules. */
  rules: string[]
  restrictions: Listed[]
  /** Steps with the highest nonce of each account. */
  highest: Map<string, Listed & { nonce: bigint }>
}

/** The comparison of the peers' records. */
export interface Compared {
  sources: readonly number[]
  dropped: readonly string[]
  /** `kinds`: number of restrictions by kind; `listed`: the first ones. */
  onlyAtOne: { kinds: Record<string, number>; listed: Restriction[] }
  /**
   * Peers whose record does not contain the head that the third node has seen: they were restored, or
   * do not send all of it.
   */
  others: number[]
  /** Forwarding rules that are not restored, because a second record was not read. */
  rules: string[]
  /** Returns whether this node takes an entry of a peer. */
  isTaken: (node: number, height: number, taken: Body<'imported'>) => boolean
}

const nameOf = (...parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)

/** Returns the names by which the content of an entry is found in another record. */
function namesOf({ kind, body }: Body<'imported'>): string[] {
  switch (kind) {
    case 'revoke':
      return [nameOf(kind, body.api_key)]
    case 'void':
      return body.keys.map((key) => nameOf(kind, key))
    case 'step':
      return [nameOf(kind, body.step, body.unsigned_hash)]
    case 'charged':
      return [nameOf(kind, body.step, body.unsigned_hash, body.policy)]
    case 'nonce':
      return [nameOf(kind, body.account, body.nonce)]
    case 'allocate':
      return [nameOf(kind, body.workspace, body.curve, body.key_id)]
    case 'sub-account':
      return [nameOf(kind, body.workspace, body.name, body.index)]
    case 'rule':
      return [nameOf(kind, body)]
    case 'seen':
    case 'session':
      return []
  }
}

/** Returns what a restriction forbids, for the operator; null: the entry restricts nothing now. */
function textOf({ kind, body, at }: Body<'imported'>, nowMs: number): string | null {
  const isCounted = at > nowMs - WINDOW_KEPT_MS
  switch (kind) {
    case 'revoke':
      return `API key ${body.api_key}`
    case 'void':
      return `void of ${body.keys.slice(0, 5).join(', ')}${body.keys.length > 5 ? ', …' : ''}`
    case 'nonce':
      return `nonce ${body.nonce} of ${body.account}`
    case 'charged':
      return isCounted ? `charge of ${body.step} to windows of ${body.workspace}` : null
    case 'step': {
      const charges = [...(body.charges ?? []), ...(body.charge ? [body.charge] : [])]
      if (!isCounted || (charges.length === 0 && !body.policy)) return null
      const amounts = charges.map(({ budget, amount }) => `${amount} to ${budget}`)
      return `charge of ${body.step}: ${amounts.join(', ') || 'windows of a policy'}`
    }
    default:
      return null
  }
}

const DROPPABLE = new Set(['revoke', 'void', 'step', 'charged', 'nonce'])
/** What permits something, so that one peer's word is not sufficient. */
const PERMITTING = new Set(['rule', 'allocate', 'sub-account'])

/**
 * Reads the records of both peers for a node that is restored. What permits something is taken over
 * if both peers have it, or if certificates of all three nodes prove it. What only forbids is taken
 * over from one peer, unless the operator drops it: the attacker's absence must not be the default
 * either.
 */
export class PeerRecords {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Reads the records and compares them. Records nothing.
   * @param sources the peers whose records are read
   * @param drop restrictions that the operator drops, as `NODE:HEIGHT`
   * @throws Refusal if a record is damaged or endless, or if something cannot be dropped
   */
  async compare(sources: readonly number[], drop: readonly string[]): Promise<Compared> {
    if (drop.length > 0 && sources.length < 2)
      throw new Refusal(
        'BAD_REQUEST_FIELD',
        'drop: an entry can be dropped only if the record of the other peer was read',
      )
    const wanted = new Map<string, Listed | null>(drop.map((id) => [id, null]))
    const scanned = new Map<number, Scanned>()
    for (const node of sources) scanned.set(node, await this.#scan(node, wanted))
    const others = (node: number): Scanned[] =>
      [...scanned].flatMap(([other, each]) => (other === node ? [] : [each]))
    assertDroppable(wanted, scanned)
    const only = [...scanned].flatMap(([node, { restrictions, highest }]) =>
      [...restrictions, ...highest.values()].filter(
        ({ names }) => !others(node).some((other) => names.every((name) => other.names.has(name))),
      ),
    )
    only.sort((a, b) => a.node - b.node || a.height - b.height)
    const kinds: Record<string, number> = {}
    for (const { kind } of only) kinds[kind] = (kinds[kind] ?? 0) + 1
    return {
      sources,
      dropped: drop,
      onlyAtOne: {
        kinds,
        listed: only
          .slice(0, LIST_MAX)
          .map(({ id, node, height, kind, text }) => ({ id, node, height, kind, text })),
      },
      others: [...scanned].flatMap(([node, { isOther }]) => (isOther ? [node] : [])),
      rules: sources.length < 2 ? [...scanned.values()].flatMap((each) => each.rules) : [],
      isTaken: (node, height, taken) => {
        if (wanted.has(`${node}:${height}`)) return false
        if (!PERMITTING.has(taken.kind)) return true
        const [name] = namesOf(taken)
        const isOfBoth = others(node).some(({ names }) => names.has(name!))
        return isOfBoth || scanned.get(node)!.proven.has(name!)
      },
    }
  }

  /**
   * Imports the records, and ends the restoration.
   * @param last entries that are written together with the end
   */
  async take(
    { sources, dropped, isTaken }: Compared,
    last: () => NewEntry[] = () => [],
  ): Promise<{ imported: number; generation: number }> {
    const { store, peers, log, config } = this.#parts
    let imported = 0
    let generation = store.state.generation
    for (const node of sources) {
      const answer = await peers.call<{ generation: number }>(
        node,
        '/peer/generation',
        {},
        { timeout: config.timeouts_ms.keygen },
      )
      generation = Math.max(generation, z.int().min(0).parse(answer.generation))
      for await (const rows of this.#pages(node)) {
        const entries = rows.flatMap((row): NewEntry[] => {
          const taken = readFrom(node, row)
          const ban = this.#ownBanIn(row)
          return [
            ...(taken && isTaken(node, row.height, taken)
              ? [{ kind: 'imported' as const, body: taken }]
              : []),
            ...(ban ? [{ kind: 'ban' as const, body: ban }] : []),
          ]
        })
        if (entries.length > 0) store.appendAll(entries)
        imported += entries.length
      }
    }
    const without = peers.nodes.filter((node) => !sources.includes(node))
    store.appendAll([
      ...last(),
      {
        kind: 'restored',
        body: {
          generation: generation + 1,
          not_before: store.clock(),
          ...(without.length === 0 ? {} : { without: without[0]! }),
          ...(dropped.length === 0 ? {} : { dropped: [...dropped] }),
        },
      },
    ])
    const choices = { without: without[0] ?? null, dropped: dropped.join(' ') }
    log('alert', 'this node was restored', { generation: generation + 1, imported, ...choices })
    return { imported, generation: generation + 1 }
  }

  /** Reads a peer's record, and notes what the operator wants to drop. */
  async #scan(node: number, wanted: Map<string, Listed | null>): Promise<Scanned> {
    const scanned: Scanned = {
      names: new Set(),
      isOther: false,
      proven: new Set(),
      rules: [],
      restrictions: [],
      highest: new Map(),
    }
    const certified = new Certified(this.#parts, scanned.proven)
    const onOther = (): void => {
      scanned.isOther = true
    }
    for await (const rows of this.#pages(node, onOther))
      for (const row of rows) {
        const taken = readFrom(node, row)
        certified.read(row)
        if (taken) this.#note(scanned, { node, height: row.height, taken }, wanted)
      }
    return scanned
  }

  #note(
    { names, rules, restrictions, highest }: Scanned,
    { node, height, taken }: { node: number; height: number; taken: Body<'imported'> },
    wanted: Map<string, Listed | null>,
  ): void {
    const own = namesOf(taken)
    for (const name of own) names.add(name)
    if (taken.kind === 'rule') rules.push(taken.body.rule)
    const id = `${node}:${height}`
    const listed = { id, node, height, kind: taken.kind, names: own }
    if (wanted.has(id) && DROPPABLE.has(taken.kind)) wanted.set(id, { ...listed, text: '' })
    const text = textOf(taken, this.#parts.store.clock())
    if (text !== null) restrictions.push({ ...listed, text })
    else if (taken.kind === 'step' && taken.body.account !== null) {
      const { account } = taken.body
      const nonce = BigInt(taken.body.nonce!)
      names.add(nameOf('nonce', account, taken.body.nonce))
      if (nonce <= (highest.get(account)?.nonce ?? -1n)) return
      highest.set(account, { ...listed, text: `nonce ${nonce} of ${account}`, nonce })
    }
  }

  /**
   * Reads a peer's record page by page and verifies its chain, up to the bound of its length.
   * @param onOther called if the record does not contain the head that the third node has seen
   * @throws Refusal
   */
  async *#pages(node: number, onOther: () => void = () => {}): AsyncGenerator<Row[]> {
    const { peers, config } = this.#parts
    const { rowsMax, head } = await this.#boundOf(node)
    let isAsSeen = head === null
    let from = 1
    let previous = RecordStore.genesis
    for (;;) {
      const options = { timeout: config.timeouts_ms.keygen }
      const answer: unknown = await peers.call(node, RECORD, { from }, options)
      const { rows } = shapeOfAnswer(pageSchema, answer, node)
      for (const { height, at, kind, body, hash } of rows) {
        if (height !== from || RecordStore.hashOf(height, at, kind, body, previous) !== hash)
          throw damaged(node, `is damaged at height ${height}`)
        if (height === head?.height && hash === head.hash) isAsSeen = true
        previous = hash
        from++
      }
      yield rows
      if (rows.length < PAGE_ROWS) break
      if (from > rowsMax)
        throw new Refusal(
          'PEER_UNAVAILABLE',
          `The record of node ${node} does not end where the third node has seen its head`,
          { node },
        )
    }
    if (!isAsSeen) onOther()
  }

  /** Returns how long a peer's record may be, by what the other peer has seen of it. */
  async #boundOf(
    node: number,
  ): Promise<{ rowsMax: number; head: { height: number; hash: string } | null }> {
    const { peers, config, rowsMax = ROWS_MAX, keyring } = this.#parts
    const unknown = { rowsMax, head: null }
    const third = peers.nodes.find((other) => other !== node)!
    const options = { timeout: config.timeouts_ms.keygen }
    try {
      const answer: unknown = await peers.call(third, '/peer/head-of', { node }, options)
      const { proof } = headSchema.parse(answer)
      if (proof === null || !isProof(proof, node, keyring.identities.get(node)!)) return unknown
      const { height, head } = proof.header
      return { rowsMax: height + GROWTH_MAX, head: { height, hash: head } }
    } catch (error) {
      // The third node is away, and the operator restores without it.
      if (error instanceof Refusal) return unknown
      throw error
    }
  }

  /**
   * Returns a ban that this node reported to the peer before it lost its record. It is written
   * after the backup's keys, so that all keys count as older.
   */
  #ownBanIn(row: Row): Body<'ban'> | null {
    const { config, store } = this.#parts
    const entry = row.kind === 'ban-told' ? entryOf(row) : null
    const ban = entry?.kind === 'ban-told' ? ownBanFrom(entry.body, config) : null
    return ban &&
      !store.state.bans.some(
        (existing) => existing.node === ban.node && existing.identity === ban.identity,
      )
      ? ban
      : null
  }
}

const CERTIFYING = new Set(['key', 'allocate', 'certificates', 'sub-account-set'])

/** Collects what the certificates on a peer's record prove. */
class Certified {
  readonly #parts: Parts
  readonly #proven: Set<string>
  /** Public keys that all three nodes have signed, by the key's ID. */
  readonly #keys = new Map<string, { public_key: string; chain_code: string; epoch: number }>()
  /** Epochs of allocated keys, by the key's ID. */
  readonly #epochs = new Map<string, number>()

  constructor(parts: Parts, proven: Set<string>) {
    this.#parts = parts
    this.#proven = proven
  }

  read(row: Row): void {
    if (!CERTIFYING.has(row.kind)) return
    const { mode } = this.#parts.config
    const { identities } = this.#parts.keyring
    const entry = entryOf(row)
    if (entry.kind === 'key') {
      const { signatures, session: _session, ...ready } = entry.body
      if (isSignedByAll(readyBytes(ready), signatures, identities))
        this.#keys.set(ready.key_id, ready)
    } else if (entry.kind === 'allocate') this.#epochs.set(entry.body.key_id, entry.body.epoch)
    else if (entry.kind === 'certificates') {
      const { workspace, curve, key_id } = entry.body
      const key = this.#keys.get(key_id)
      const epoch = this.#epochs.get(key_id)
      if (!key || epoch === undefined) return
      if (!verifyCertificates({ ...key, ...entry.body, mode, epoch }, identities)) return
      this.#proven.add(nameOf('allocate', workspace, curve, key_id))
    } else if (entry.kind === 'sub-account-set') {
      const { workspace, name, index, certificates } = entry.body
      const bytes = bindingBytes({ workspace, sub_account: name, index, mode })
      if (isSignedByAll(bytes, certificates, identities))
        this.#proven.add(nameOf('sub-account', workspace, name, index))
    }
  }
}

/** @throws Refusal BAD_REQUEST_FIELD */
function assertDroppable(
  wanted: ReadonlyMap<string, Listed | null>,
  scanned: ReadonlyMap<number, Scanned>,
): void {
  for (const [id, entry] of wanted) {
    if (entry === null)
      throw new Refusal('BAD_REQUEST_FIELD', `drop: the entry ${id} cannot be dropped`)
    for (const [node, { names }] of scanned)
      if (node !== entry.node && entry.names.some((name) => names.has(name)))
        throw new Refusal(
          'BAD_REQUEST_FIELD',
          `drop: the entry ${id} cannot be dropped, because node ${node} has it too`,
        )
  }
}

const damaged = (node: number, problem: string): Refusal =>
  new Refusal('HEAD_WENT_BACK', `The record of node ${node} ${problem}`, { node })

/**
 * An entry of a peer that this version cannot parse may be a step or a void, so the restoration
 * fails and the node does not take part in signing.
 */
function readFrom(node: number, row: Row): Body<'imported'> | null {
  try {
    return takenFrom(node, row)
  } catch (error) {
    if (!(error instanceof RecordError)) throw error
    throw new Refusal('RECORD_UNREADABLE', `From node ${node}: ${error.message}`, { node })
  }
}
