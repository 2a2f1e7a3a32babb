import { fork } from 'node:child_process'
import { join } from 'node:path'
import { instrument } from './instrument.mjs'

const here = import.meta.dirname
/** A test that takes so many times as long as without a mutant, and this much more, does not end. */
const TIMES_LONGER = 5
const MS_LONGER = 10_000
/** A place that is passed so many times as often as without a mutant is a loop without end. */
const TIMES_OFTENER = 200
const START_MS = 300_000

/** One process with all tests loaded; what is asked of it is answered, or it is killed. */
class Worker {
  #child
  #waiting = new Map()
  #asked = 0
  ready

  constructor(copy, files, mutant) {
    this.#child = fork(join(here, 'worker.mjs'), files.map((file) => join(copy, file)), {
      cwd: copy, stdio: ['ignore', 'ignore', 'ignore', 'ipc'], detached: true,
      env: { ...process.env, ...mutant === undefined ? {} : { __STRYKER_ACTIVE_MUTANT__: mutant } },
    })
    WORKERS.add(this)
    this.ready = this.#answer(0, START_MS)
    this.#child.on('message', ({ id, ...answer }) => this.#waiting.get(id)?.(answer))
    this.#child.on('exit', () => {
      WORKERS.delete(this)
      for (const heard of this.#waiting.values()) heard({ gone: true })
    })
  }

  #answer(id, withinMs) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => heard({ late: true }), withinMs)
      const heard = (answer) => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(answer)
      }
      this.#waiting.set(id, heard)
    })
  }

  /** @returns the answer, or `{ late }` or `{ gone }` */
  async ask(what, given = {}, withinMs = START_MS) {
    const id = ++this.#asked
    const answer = this.#answer(id, withinMs)
    if (!this.#child.connected) return { gone: true }
    this.#child.send({ id, what, ...given }, () => undefined)
    const heard = await answer
    if (heard.broken) throw new Error(heard.broken)
    return heard
  }

  kill() {
    try {
      process.kill(-this.#child.pid, 'SIGKILL')
    } catch { /* it has ended */ }
  }

  async end() {
    await this.ask('end', {}, 30_000)
    this.kill()
  }
}

const WORKERS = new Set()
/** What is left of them is ended with this process. */
export const killAll = () => WORKERS.forEach((worker) => worker.kill())

/**
 * Tries the mutants of files of TypeScript. All of them stand in one copy, and each is switched on in a process in which the tests
 * were loaded before. A test that fails under a mutant is run again without it: where it still fails, what went before has left
 * something behind, and the mutant is tried anew in a fresh process.
 * @param only of which files, by a part of their names @param isAsked which mutants are tried @param keep is told of those that ended
 * @returns the mutants, each with how it ended: `Killed`, `Timeout`, `Survived`, `NoCoverage`
 */
export async function typescript(copy, { mutate, tests: files }, { jobs, only, isAsked, keep, told }) {
  const mutants = (await instrument(copy, mutate, only)).filter(isAsked)
  const open = async (mutant) => {
    const worker = new Worker(copy, files, mutant)
    const started = await worker.ready
    if (!started.ready) worker.kill()
    return started.ready ? worker : null
  }
  const first = await open()
  if (first === null) throw new Error(`the tests cannot be loaded: ${files.join(' ')}`)
  const survey = await first.ask('survey', {}, 30 * 60_000)
  const bad = survey.tests?.filter(({ ok }) => !ok) ?? [{ name: 'all of them', why: 'their process ended' }]
  if (bad.length > 0) {
    first.kill()
    throw new Error(`tests fail without a change: ${bad.map(({ name, why }) => `${name}: ${why}`).join('; ')}`)
  }
  // The second time by itself: what fails then can only be run from the beginning of its process.
  const once = new Set()
  for (const at of survey.tests.keys()) if ((await first.ask('run', { mutant: null, at: [at] })).failed !== null) once.add(at)
  await first.end()
  const withinMs = (ats) => ats.reduce((sum, at) => sum + survey.tests[at].ms, 0) * TIMES_LONGER + MS_LONGER
  const everything = [...survey.tests.keys()]
  told(`${mutants.length} mutants, ${everything.length} tests, of which ${once.size} run but once in a process`)

  /** Whether all tests pass, or these, in a fresh process that has the mutant from its start. */
  const afresh = async (id, ats) => {
    const worker = await open(id)
    if (worker === null) return 'Killed'
    const { failed, late, gone } = await worker.ask('run', { mutant: id, at: ats }, withinMs(ats))
    worker.kill()
    if (late) return 'Timeout'
    return failed === null && !gone ? 'Survived' : 'Killed'
  }

  const waiting = [...mutants]
  const ended = []
  await Promise.all(Array.from({ length: jobs }, async () => {
    let worker = null
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const { id } = mutant
      const covering = everything.filter((at) => survey.tests[at].covers[id] > 0).sort((a, b) => survey.tests[a].ms - survey.tests[b].ms)
      const isStatic = survey.static[id] > 0
      let how = covering.length === 0 && !isStatic ? 'NoCoverage' : 'Survived'
      const again = covering.filter((at) => !once.has(at))
      let left = again
      // Twice: in a process that others were tried in before, and where that was spoilt in a fresh one.
      for (let fresh = worker === null; left.length > 0; fresh = worker === null) {
        worker ??= await open()
        const hits = TIMES_OFTENER * Math.max(...again.map((at) => survey.tests[at].covers[id]))
        const { failed, late, gone } = await worker.ask('run', { mutant: id, at: left, hits }, withinMs(left))
        if (failed === null) break
        const isSound = !late && !gone && (await worker.ask('run', { mutant: null, at: [failed] }, withinMs([failed]))).failed === null
        // A test that fails but once failed of a busy machine: the others are asked.
        const second = isSound ? await worker.ask('run', { mutant: id, at: [failed], hits }, withinMs([failed])) : null
        if (second?.failed === null) {
          left = left.slice(left.indexOf(failed) + 1)
          continue
        }
        if (!isSound || second.late || second.gone) {
          worker.kill()
          worker = null
        }
        if (isSound || fresh || late) {
          how = late ? 'Timeout' : 'Killed'
          break
        }
      }
      // From the start of a process: what is read while files are loaded, and tests that run but once.
      if (how === 'Survived' && (isStatic || again.length < covering.length)) {
        const from = isStatic ? everything : everything.slice(0, Math.max(...covering.filter((at) => once.has(at))) + 1)
        how = await afresh(id, from)
        if (how !== 'Survived' && !isStatic) how = await afresh(id, from)
      }
      ended.push({ ...mutant, how })
      if (ended.length % 50 === 0) {
        keep(ended)
        told(`${ended.length} of ${mutants.length} tried`)
      }
    }
    if (worker) await worker.end()
  }))
  return ended
}
