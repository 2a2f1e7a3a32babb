import { Refusal } from '../errors.ts'

interface Waiting {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

/** Messages of a three-party run, one for each sender and round, stored until the run ends. */
export class Mailbox {
  readonly #boxes = new Map<string, Map<string, unknown>>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #expiry = new Map<string, number>()
  static readonly boxesMax = 32

  /**
   * Opens a mailbox; messages for mailboxes that are not open are rejected.
   * @throws Refusal TOO_BUSY
   */
  open(name: string, expiresAt: number, now: number): void {
    this.expire(now)
    if (this.#boxes.size >= Mailbox.boxesMax)
      throw new Refusal('TOO_BUSY', 'Too many runs are open')
    this.#boxes.set(name, new Map())
    this.#expiry.set(name, expiresAt)
  }

  /** Closes expired mailboxes. */
  expire(now: number): void {
    for (const [name, at] of this.#expiry) if (at < now) this.close(name)
  }

  has(name: string): boolean {
    return this.#boxes.has(name)
  }

  put(name: string, round: number, from: number, message: unknown): void {
    const box = this.#boxes.get(name)
    if (!box) throw new Refusal('SESSION_ABORTED', 'This run does not exist')
    const slot = `${round}/${from}`
    // Only the first message of a round from a party is accepted; a second one is refused.
    if (box.has(slot)) throw new Refusal('SESSION_ABORTED', 'This round was already received')
    box.set(slot, message)
    this.#waiting.get(`${name}/${slot}`)?.resolve(message)
  }

  async take(name: string, round: number, from: number, timeoutMs: number): Promise<unknown> {
    const box = this.#boxes.get(name)
    if (!box) throw new Refusal('SESSION_ABORTED', 'The run is closed')
    const slot = `${round}/${from}`
    if (box.has(slot)) return box.get(slot)
    const wait = `${name}/${slot}`
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(wait, { resolve, reject })
        timer = setTimeout(() => {
          reject(
            new Refusal('PEER_UNAVAILABLE', `node ${from} sent no message in round ${round}`, {
              node: from,
            }),
          )
        }, timeoutMs)
      })
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(wait)
    }
  }

  /** Closes a mailbox. Callers that wait for one of its messages are rejected immediately. */
  close(name: string): void {
    this.#boxes.delete(name)
    this.#expiry.delete(name)
    for (const [wait, { reject }] of this.#waiting) {
      if (wait.startsWith(`${name}/`)) reject(new Refusal('SESSION_ABORTED', 'The run was closed'))
    }
  }
}
