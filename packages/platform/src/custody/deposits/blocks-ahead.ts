import type { ChainBlock, ChainClient } from '@custody/chains'

/**
 * Maximum number of concurrent requests, and of blocks requested or available, while the scanner
 * catches up.
 */
const AT_ONCE = 8
const AHEAD = 32
/**
 * Maximum number of blocks written in one transaction, and number of transfers after which no
 * further block is added. The latter also limits how much is buffered.
 */
const TOGETHER = 16
const TRANSFERS_MAX = 20_000

interface PendingBlock {
  answer: Promise<ChainBlock | null>
  existing: ChainBlock | null | undefined
}

/** Returns the number of transfers in a block, plus the number of outputs that belong to none. */
const sizeOf = ({ transfers, aside = [] }: ChainBlock): number => transfers.length + aside.length

/**
 * Requests blocks from an endpoint ahead of time, several concurrently, and returns them in order.
 */
export class BlocksAhead {
  readonly #client: Pick<ChainClient, 'block'>
  #pending = new Map<number, PendingBlock>()
  #next = 0
  #last = -1
  #underWay = 0
  /** Number of transfers in the available blocks. */
  #transfers = 0

  constructor(client: Pick<ChainClient, 'block'>) {
    this.#client = client
  }

  /**
   * Returns the block at a height and the following blocks that are already available; empty if the
   * endpoint does not have the block. Does not check that the blocks follow each other.
   * @param last height of the chain's head
   * @throws errors of the client for the first block
   */
  async take(height: number, last: number): Promise<ChainBlock[]> {
    if (!this.#pending.has(height)) {
      this.drop()
      this.#next = height
    }
    this.#last = last
    this.#ask()
    const first = await this.#pending.get(height)?.answer
    const taken: ChainBlock[] = []
    let transfers = 0
    for (let block = first; block && taken.length < TOGETHER && transfers < TRANSFERS_MAX;) {
      taken.push(block)
      transfers += sizeOf(block)
      this.#pending.delete(height + taken.length - 1)
      block = this.#pending.get(height + taken.length)?.existing
    }
    this.#transfers -= transfers
    this.#ask()
    return taken
  }

  /**
   * Discards all requested blocks, because the chain now has other blocks there. Pending responses
   * are ignored.
   */
  drop(): void {
    this.#pending = new Map()
    this.#transfers = 0
    this.#last = -1
  }

  /**
   * Requests the next blocks. The first one is always requested, further ones only within the
   * limits.
   */
  #ask(): void {
    while (
      this.#next <= this.#last &&
      (this.#pending.size === 0 ||
        (this.#underWay < AT_ONCE && this.#pending.size < AHEAD && this.#transfers < TRANSFERS_MAX))
    ) {
      const request: PendingBlock = { answer: this.#client.block(this.#next), existing: undefined }
      const all = this.#pending.set(this.#next++, request)
      this.#underWay++
      // The caller that waits for the block receives the error; errors of discarded blocks are
      // ignored.
      request.answer
        .then(
          (block) => {
            request.existing = block
          },
          () => undefined,
        )
        .finally(() => {
          this.#underWay--
          if (all !== this.#pending) return
          this.#transfers += request.existing ? sizeOf(request.existing) : 0
          this.#ask()
        })
    }
  }
}

/**
 * Returns the leading blocks that follow each other and `last`, since they were requested
 * separately; null if the first block does not follow `last`.
 * @param last hash of the previous block
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
