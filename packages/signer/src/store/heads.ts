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
 * The newest head of each peer, in a table next to the record. As an entry it would change this
 * node's own head, which its peers would record in turn, endlessly. Each row has the peer's own
 * signature, so no other party can increase it.
 */
export class PeerHeads {
  readonly #database: DatabaseSync
  readonly #heads = new Map<number, string>()
  readonly #upsert
  /** Returns the current heads, which never decrease; set by the module that receives them. */
  source: () => readonly SeenHead[] = () => []

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#upsert =
      database.prepare(`INSERT INTO peer_head (node, generation, height, proof) VALUES (?, ?, ?, ?)
      ON CONFLICT (node) DO UPDATE
      SET generation = excluded.generation, height = excluded.height, proof = excluded.proof`)
  }

  /** Whether a peer has shown a higher head than the stored one. */
  get isBehind(): boolean {
    return this.#news().length > 0
  }

  #news(): [SeenHead, string][] {
    const named = this.source().map((head): [SeenHead, string] => [
      head,
      `${head.generation}/${head.height}`,
    ])
    return named.filter(([head, name]) => this.#heads.get(head.node) !== name)
  }

  /**
   * Writes the heads within the caller's database transaction. Returns a function to be called
   * after the commit.
   */
  write(): () => void {
    const news = this.#news()
    for (const [{ node, generation, height, proof }] of news)
      this.#upsert.run(node, generation, height, JSON.stringify(proof))
    return () => {
      for (const [{ node }, name] of news) this.#heads.set(node, name)
    }
  }

  /** Returns the stored proofs, which the caller must verify. */
  read(): { node: number; proof: unknown }[] {
    const rows = this.#database
      .prepare('SELECT node, generation, height, proof FROM peer_head')
      .all() as unknown as Row[]
    return rows.map(({ node, generation, height, proof }) => {
      this.#heads.set(node, `${generation}/${height}`)
      return { node, proof: JSON.parse(proof) as unknown }
    })
  }
}
