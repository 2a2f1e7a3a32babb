import { ApiError } from '../errors.ts'

/**
 * Cost of an operation that takes much more time than others. Its kind of work is done for one
 * request of a workspace at a time in each process, and each request counts several times against
 * the rate limit.
 */
export interface Heavy {
  /** Operations of one kind exclude each other. */
  kind: 'policy simulation' | 'policy evaluation' | 'export' | 'exchange query'
  /** Number of requests as which one request counts. */
  weight: number
  /** Requests of a workspace that wait for their turn; others are refused. */
  waiting: number
}

/** Time in seconds after which a refused caller should send the request again. */
const AGAIN_AFTER_S = 1

/** The heavy work of one process, by workspace and kind. */
export class HeavyWork {
  /** Requests that wait behind the running one. */
  readonly #lines = new Map<string, (() => void)[]>()

  /**
   * Waits for the turn of a request.
   * @returns a function that ends the turn; further calls of it have no effect
   * @throws ApiError `CONCURRENT_REQUEST` if too many requests are waiting
   */
  async start(workspaceId: string, { kind, waiting }: Heavy): Promise<() => void> {
    const name = `${workspaceId} ${kind}`
    const line = this.#lines.get(name)
    if (line === undefined) this.#lines.set(name, [])
    else if (line.length < waiting)
      await new Promise<void>((resolve) => {
        line.push(resolve)
      })
    else
      throw new ApiError(
        'CONCURRENT_REQUEST',
        `another ${kind} of the workspace is in progress; send the request again when it has ended`,
        { retryAfterS: AGAIN_AFTER_S },
      )
    let isEnded = false
    return () => {
      if (isEnded) return
      isEnded = true
      this.#next(name)
    }
  }

  /** Starts the next request of a line; the line ends with its last request. */
  #next(name: string): void {
    const next = this.#lines.get(name)?.shift()
    if (next) next()
    else this.#lines.delete(name)
  }
}
