interface Waiting<Item, Answer> {
  item: Item
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Gathers what is asked at the same time, so that one call answers many: who comes while nothing is
 * under way waits for nobody, and the more come the fewer calls each of them costs.
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
   * @param answer answers all items, in their order. What it throws is thrown to all of them: an
   *   item that is at fault alone has an answer that says so
   * @param most items of one call
   * @param lanes calls under way at a time
   * @param pause before a call, where nobody waits for its answer: more come together
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

  /** True where nothing waits and nothing is under way. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#running === 0
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#call()
    })
  }

  /**
   * Begins once all that has arrived with this item has asked: what comes in one turn of the event
   * loop goes together.
   */
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

  async #run(asked: readonly Waiting<Item, Answer>[]): Promise<void> {
    this.#running++
    try {
      const answers = await this.#answer(asked.map(({ item }) => item))
      if (answers.length !== asked.length)
        throw new Error(`${answers.length} results for ${asked.length} requests`)
      asked.forEach(({ resolve }, at) => resolve(answers[at] as Answer))
    } catch (error) {
      for (const { reject } of asked) reject(error)
    } finally {
      this.#running--
      if (this.#waiting.length > 0) this.#call()
    }
  }
}
