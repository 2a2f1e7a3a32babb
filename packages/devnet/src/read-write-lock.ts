/**
 * Allows many readers or one writer. Requests are readers; the writer creates a block and writes it
 * to disk, so that no request sees a block that is not yet on disk.
 */
export class ReadWriteLock {
  #readers = 0
  #writing = false
  readonly #waitingWriters: (() => void)[] = []
  readonly #waitingReaders: (() => void)[] = []

  async read<T>(work: () => Promise<T>): Promise<T> {
    while (this.#writing || this.#waitingWriters.length > 0) {
      await new Promise<void>((resolve) => this.#waitingReaders.push(resolve))
    }
    this.#readers += 1
    try {
      return await work()
    } finally {
      this.#readers -= 1
      this.#wake()
    }
  }

  async write<T>(work: () => Promise<T>): Promise<T> {
    while (this.#writing || this.#readers > 0) {
      await new Promise<void>((resolve) => this.#waitingWriters.push(resolve))
    }
    this.#writing = true
    try {
      return await work()
    } finally {
      this.#writing = false
      this.#wake()
    }
  }

  #wake(): void {
    if (this.#writing || this.#readers > 0) return
    const writer = this.#waitingWriters.shift()
    if (writer) return writer()
    for (const reader of this.#waitingReaders.splice(0)) reader()
  }
}
