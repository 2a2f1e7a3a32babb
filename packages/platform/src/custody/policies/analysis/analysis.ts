import type { Registry } from '@custody/chains'
import { Worker } from 'node:worker_threads'
import type { Job, ResultOf } from './jobs.ts'

/**
 * A workspace's next job starts when this multiple of the time of its last one has passed since that
 * job, so that one workspace uses at most a fifth of the thread while others wait.
 */
const REST = 4
/** Time in milliseconds after which a thread without jobs ends. It uses 60 MB. */
const IDLE_MS = 60_000

/** Does jobs one after the other, somewhere else than in the event loop. */
interface Doer {
  /** `ms`: time that the job took, without the start of the doer. */
  do(job: Job): Promise<{ result: unknown; ms: number }>
  /** Ends it, so that it uses no memory. The next job starts it again. */
  end(): void
}

/** What the queue reads and sets of time; milliseconds. */
interface Time {
  now(): number
  /**
   * Calls a function later, and returns a function that cancels the call.
   * @param isIdle the call keeps no process running
   */
  after(ms: number, call: () => void, isIdle: boolean): () => void
}

const REAL_TIME: Time = {
  now: () => performance.now(),
  after(ms, call, isIdle) {
    const timer = setTimeout(call, ms)
    if (isIdle) timer.unref()
    return () => clearTimeout(timer)
  },
}

interface Waiting {
  workspace: string
  job: Job
  done: (result: unknown) => void
  failed: (error: unknown) => void
}

/**
 * The queue of the analysis thread. A job is never refused: the jobs of a workspace that has used the
 * thread for long start later than those of others. Stops, vetoes and decisions need no analysis.
 */
export class Analysis {
  readonly #doer: Doer
  readonly #time: Time
  readonly #waiting: Waiting[] = []
  /** Time from which the next job of a workspace may start. */
  readonly #rests = new Map<string, number>()
  #isBusy = false
  #cancel = (): void => undefined

  constructor(doer: Doer, time: Time = REAL_TIME) {
    this.#doer = doer
    this.#time = time
  }

  /** Returns the result of a job when its turn has come. */
  run<J extends Job>(workspace: string, job: J): Promise<ResultOf<J>> {
    return new Promise((done, failed) => {
      this.#waiting.push({ workspace, job, done: done as Waiting['done'], failed })
      this.#next()
    })
  }

  #next(): void {
    if (this.#isBusy) return
    this.#cancel()
    const now = this.#time.now()
    for (const [workspace, rest] of this.#rests) if (rest <= now) this.#rests.delete(workspace)
    const at = this.#waiting.findIndex(({ workspace }) => !this.#rests.has(workspace))
    if (at >= 0) {
      const [waiting] = this.#waiting.splice(at, 1) as [Waiting]
      void this.#start(waiting)
      return
    }
    if (this.#waiting.length === 0) {
      this.#cancel = this.#time.after(IDLE_MS, () => this.#doer.end(), true)
      return
    }
    const rests = this.#waiting.map(({ workspace }) => this.#rests.get(workspace) ?? now)
    this.#cancel = this.#time.after(Math.min(...rests) - now, () => this.#next(), false)
  }

  async #start({ workspace, job, done, failed }: Waiting): Promise<void> {
    this.#isBusy = true
    try {
      const { result, ms } = await this.#doer.do(job)
      this.#rests.set(workspace, this.#time.now() + ms * REST)
      done(result)
    } catch (error) {
      failed(error)
    } finally {
      this.#isBusy = false
      this.#next()
    }
  }
}

/** Response of the thread. */
type Answer = { result: unknown; ms: number } | { error: string }

/** How a job ends. */
interface Ending {
  done: (answer: { result: unknown; ms: number }) => void
  fail: (error: unknown) => void
}

/** Does jobs in a thread of this process, which has the same registry. */
class ThreadDoer implements Doer {
  readonly #mode: string | undefined
  #worker: Worker | null = null
  #ending: Ending | null = null

  constructor(registry: Registry) {
    this.#mode = registry.networks[0]?.mode
  }

  do(job: Job): Promise<{ result: unknown; ms: number }> {
    const worker = (this.#worker ??= this.#started())
    worker.ref()
    return new Promise((done, fail) => {
      this.#ending = { done, fail }
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage(job)
    })
  }

  #started(): Worker {
    const worker = new Worker(new URL('thread.ts', import.meta.url), {
      workerData: this.#mode,
      execArgv: [],
    })
    worker.on('message', (answer: Answer) => {
      worker.unref()
      const ending = this.#ending
      this.#ending = null
      if ('result' in answer) ending?.done(answer)
      else ending?.fail(new Error(answer.error))
    })
    const broken = (error: unknown): void => {
      if (this.#worker === worker) this.#worker = null
      else return
      this.#ending?.fail(error)
      this.#ending = null
    }
    worker.on('error', broken)
    worker.on('exit', (code) => broken(new Error(`the analysis thread ended with code ${code}`)))
    return worker
  }

  end(): void {
    const worker = this.#worker
    this.#worker = null
    void worker?.terminate()
  }
}

const analyses = new WeakMap<Registry, Analysis>()

/** Returns the analysis thread of this process, which starts with its first job. */
export function analysisOf(registry: Registry): Analysis {
  const known = analyses.get(registry) ?? new Analysis(new ThreadDoer(registry))
  analyses.set(registry, known)
  return known
}
