import { fork } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const here = import.meta.dirname
/**
 * A test times out if it takes this many times as long as without a mutant, plus the additional
 * time below.
 */
const TIMES_LONGER = 5
const MS_LONGER = 10_000
const START_MS = 300_000

function signal(id, name) {
  try {
    process.kill(id, name)
  } catch {
    /* The process has already ended. */
  }
}

/** One process with all tests loaded. Every request gets a response, or the process is killed. */
class Worker {
  #child
  #waiting = new Map()
  #requests = 0
  /** Folder for the files of its tests, including their databases. */
  #folder = mkdtempSync(join(tmpdir(), 'custody-tests-'))
  ready

  constructor(copy, files, mutant) {
    this.#child = fork(
      join(here, 'worker.mjs'),
      files.map((file) => join(copy, file)),
      {
        cwd: copy,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
        detached: true,
        env: {
          ...process.env,
          TMPDIR: this.#folder,
          FUZZ_SHRINK: '0',
          ...(mutant === undefined ? {} : { __STRYKER_ACTIVE_MUTANT__: mutant }),
        },
      },
    )
    WORKERS.add(this)
    this.ready = this.#response(0, START_MS)
    this.#child.on('message', ({ id, ...response }) => this.#waiting.get(id)?.(response))
    this.#child.on('exit', () => {
      for (const settle of this.#waiting.values()) settle({ gone: true })
    })
  }

  #response(id, withinMs) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle({ late: true }), withinMs)
      const settle = (response) => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(response)
      }
      this.#waiting.set(id, settle)
    })
  }

  /**
   * Sends a request to the process.
   * @returns the response, or `{ late }` or `{ gone }`
   */
  async request(what, params = {}, withinMs = START_MS) {
    const id = ++this.#requests
    const responding = this.#response(id, withinMs)
    if (!this.#child.connected) return { gone: true }
    this.#child.send({ id, what, ...params }, () => undefined)
    const response = await responding
    if (response.broken) throw new Error(response.broken)
    return response
  }

  /** Kills the process and its databases, which would otherwise continue to run. */
  kill() {
    if (!WORKERS.delete(this)) return
    signal(-this.#child.pid, 'SIGKILL')
    for (const file of globSync('*/postgres/data/postmaster.pid', { cwd: this.#folder })) {
      signal(Number(readFileSync(join(this.#folder, file), 'utf8').split('\n')[0]), 'SIGKILL')
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async end() {
    await this.request('end', {}, 30_000)
    this.kill()
  }
}

const WORKERS = new Set()
/** Kills the remaining workers when this process ends. */
export const killAll = () => WORKERS.forEach((worker) => worker.kill())

export const quickestFirst = (survey, ats) =>
  ats.toSorted((a, b) => survey.tests[a].ms - survey.tests[b].ms)

/**
 * Runs each test of a copy once without a mutant.
 * @param longest milliseconds; tests that take longer are not repeated
 * @returns `survey`; `once`: tests that can run only at their position; `open`: starts a process
 *   with the tests loaded; `withinMs`: the time limit of a set of tests
 */
export async function surveyed(copy, files, longest = Infinity) {
  const open = async (mutant, some = files) => {
    const worker = new Worker(copy, some, mutant)
    const started = await worker.ready
    if (!started.ready) worker.kill()
    return started.ready ? worker : null
  }
  const first = await open()
  if (first === null) throw new Error(`the tests cannot be loaded: ${files.join(' ')}`)
  const survey = await first.request('survey', {}, 30 * 60_000)
  const bad = survey.tests?.filter(({ ok }) => !ok) ?? [
    { name: 'all of them', why: 'their process ended' },
  ]
  if (bad.length > 0) {
    first.kill()
    throw new Error(
      `tests fail without a change: ${bad.map(({ name, why }) => `${name}: ${why}`).join('; ')}`,
    )
  }
  // Each test runs again, once in a process where all have run, and once in a new process with the
  // fastest first. A test that then fails depends on earlier tests, or on a clean state, so it can
  // run only at its position in a new process.
  const once = new Set()
  const again = async (worker, ats) => {
    for (const at of ats)
      if ((await worker.request('run', { mutant: null, at: [at] })).failed !== null) once.add(at)
    await worker.end()
  }
  const repeated = [...survey.tests.keys()].filter((at) => survey.tests[at].ms <= longest)
  await again(first, repeated)
  const second = await open()
  if (second === null)
    throw new Error(`the tests cannot be loaded a second time: ${files.join(' ')}`)
  await again(
    second,
    quickestFirst(
      survey,
      repeated.filter((at) => !once.has(at)),
    ),
  )
  const withinMs = (ats) =>
    ats.reduce((sum, at) => sum + survey.tests[at].ms, 0) * TIMES_LONGER + MS_LONGER
  return { survey, once, open, withinMs }
}
