import type { ChainBlock, ChainClient } from '@custody/chains'

/** Questions under way at a time, and blocks at hand or under way, while a scan catches up. */
const AT_ONCE = 8
const AHEAD = 32
/**
 * So many blocks are written in one transaction, and no more than hold so many transfers; nor are
 * more kept at hand.
 */
const TOGETHER = 16
const TRANSFERS_MAX = 20_000

interface Asked {
  answer: Promise<ChainBlock | null>
  known: ChainBlock | null | undefined
}

/** Transfers of a block, and outputs that are in none. */
const sizeOf = ({ transfers, aside = [] }: ChainBlock): number => transfers.length + aside.length

/**
 * Asks a node for blocks before they are needed, a few at a time, and hands them out in their
 * order.
 */
export class BlocksAhead {
  readonly #client: Pick<ChainClient, 'block'>
  #asked = new Map<number, Asked>()
  #next = 0
  #last = -1
  #underWay = 0
  /** Transfers of the blocks at hand. */
  #transfers = 0

  constructor(client: Pick<ChainClient, 'block'>) {
    this.#client = client
  }

  /**
   * The block at a height and those after it that are at hand already: none where the node does not
   * have it. Whether they follow each other is not looked at.
   * @param last the highest that there is @throws what the client throws for the first of them
   */
  async take(height: number, last: number): Promise<ChainBlock[]> {
    if (!this.#asked.has(height)) {
      this.drop()
      this.#next = height
    }
    this.#last = last
    this.#ask()
    const first = await this.#asked.get(height)?.answer
    const taken: ChainBlock[] = []
    let transfers = 0
    for (let block = first; block && taken.length < TOGETHER && transfers < TRANSFERS_MAX;) {
      taken.push(block)
      transfers += sizeOf(block)
      this.#asked.delete(height + taken.length - 1)
      block = this.#asked.get(height + taken.length)?.known
    }
    this.#transfers -= transfers
    this.#ask()
    return taken
  }

  /** Forgets what was asked for: the chain has other blocks there. What is under way is let go. */
  drop(): void {
    this.#asked = new Map()
    this.#transfers = 0
    this.#last = -1
  }

  /** The first is always asked for; more only while there is room. */
  #ask(): void {
    while (
      this.#next <= this.#last &&
      (this.#asked.size === 0 ||
        (this.#underWay < AT_ONCE && this.#asked.size < AHEAD && this.#transfers < TRANSFERS_MAX))
    ) {
      const asked: Asked = { answer: this.#client.block(this.#next), known: undefined }
      const all = this.#asked.set(this.#next++, asked)
      this.#underWay++
      // Who waits for it hears of an error; what is dropped before has nobody to hear.
      asked.answer
        .then(
          (block) => {
            asked.known = block
          },
          () => undefined,
        )
        .finally(() => {
          this.#underWay--
          if (all !== this.#asked) return
          this.#transfers += asked.known ? sizeOf(asked.known) : 0
          this.#ask()
        })
    }
  }
}

/**
 * Of blocks that were asked for apart those that stand on one another and on `last`; null: the
 * first does not stand on it.
 */
export function following(
  last: string | undefined,
  blocks: readonly ChainBlock[],
): ChainBlock[] | null {
  const [first] = blocks
  if (first && last !== undefined && first.parent !== last) return null
  const end = blocks.findIndex((block, at) => at > 0 && block.parent !== blocks[at - 1]?.hash)
  return blocks.slice(0, end === -1 ? blocks.length : end)
}
