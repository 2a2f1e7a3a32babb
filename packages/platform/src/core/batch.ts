interface Waiting<Item, Answer> {
  item: Item
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Combines concurrent requests into fewer calls. A request starts a call immediately if no call is
 * in progress; otherwise it waits and is combined with the other waiting requests.
 */
export class Batch<Item, Answer> {
  readonly #answer: (items: readonly Item[]) => Promise<readonly Answer[]>
  readonly #most: number
  readonly #lanes: number
  readonly #pause: (() => Promise<void>) | null
  #waiting: Waiting<Item, Answer>[] = []
  #running = 0
  #isCalled = false

  /**
   * Creates an empty batch.
   * @param answer processes all items and returns their results in the same order. Its exception
   *   rejects all of them, so an error of a single item must be returned as its result
   * @param most maximum number of items of one call
   * @param lanes maximum number of concurrent calls
   * @param pause awaited before a call, if no caller waits for its result, so that more items are
   *   combined
   */
  constructor(
    answer: (items: readonly Item[]) => Promise<readonly Answer[]>,
    {
      most,
      lanes,
      pause = null,
    }: { most: number; lanes: number; pause?: (() => Promise<void>) | null },
  ) {
    this.#answer = answer
    this.#most = most
    this.#lanes = lanes
    this.#pause = pause
  }

  /** Whether no item waits and no call is in progress. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#running === 0
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#call()
    })
  }

  /** Starts a call after all items of the current turn of the event loop have been added. */
  #call(): void {
    if (this.#isCalled || this.#running >= this.#lanes) return
    this.#isCalled = true
    const begin = () => {
      this.#isCalled = false
      void this.#run(this.#waiting.splice(0, this.#most))
      if (this.#waiting.length > 0) this.#call()
    }
    if (this.#pause && this.#waiting.length < this.#most) void this.#pause().then(begin)
    else setImmediate(begin)
  }

  async #run(waiting: readonly Waiting<Item, Answer>[]): Promise<void> {
    this.#running++
    try {
      const answers = await this.#answer(waiting.map(({ item }) => item))
      if (answers.length !== waiting.length)
        throw new Error(`${answers.length} results for ${waiting.length} requests`)
      waiting.forEach(({ resolve }, at) => resolve(answers[at] as Answer))
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    } finally {
      this.#running--
      if (this.#waiting.length > 0) this.#call()
    }
  }
}
