import type { DatabaseSync } from 'node:sqlite'
import type { Proof } from '../envelope.ts'

/** A peer's head as the peer itself signed it. */
export interface SeenHead {
  node: number
  height: number
  hash: string
  generation: number
  proof: Proof
}

interface Row {
  node: number
  generation: number
  height: number
  proof: string
}

/**
 * The newest head of each peer, on disk beside the record: within the record it would move this
 * node's own head, whose news its peers would write down in turn, for ever. Each row is the peer's
 * own signature, so nobody else can raise one.
 */
export class PeerHeads {
  readonly #database: DatabaseSync
  readonly #kept = new Map<number, string>()
  readonly #upsert
  /** What is known now, never less than before; set by whoever hears the peers. */
  source: () => readonly SeenHead[] = () => []

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#upsert =
      database.prepare(`INSERT INTO peer_head (node, generation, height, proof) VALUES (?, ?, ?, ?)
      ON CONFLICT (node) DO UPDATE
      SET generation = excluded.generation, height = excluded.height, proof = excluded.proof`)
  }

  /** Whether a peer has shown more than is on disk. */
  get isBehind(): boolean {
    return this.#news().length > 0
  }

  #news(): [SeenHead, string][] {
    const named = this.source().map((head): [SeenHead, string] => [
      head,
      `${head.generation}/${head.height}`,
    ])
    return named.filter(([head, name]) => this.#kept.get(head.node) !== name)
  }

  /** Within a transaction of the caller's. Answers what to call once it is committed. */
  write(): () => void {
    const news = this.#news()
    for (const [{ node, generation, height, proof }] of news)
      this.#upsert.run(node, generation, height, JSON.stringify(proof))
    return () => {
      for (const [{ node }, name] of news) this.#kept.set(node, name)
    }
  }

  /** Proofs as they were kept; to be verified by whoever uses them. */
  read(): { node: number; proof: unknown }[] {
    const rows = this.#database
      .prepare('SELECT node, generation, height, proof FROM peer_head')
      .all() as unknown as Row[]
    return rows.map(({ node, generation, height, proof }) => {
      this.#kept.set(node, `${generation}/${height}`)
      return { node, proof: JSON.parse(proof) as unknown }
    })
  }
}
