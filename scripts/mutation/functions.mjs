import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { quickestFirst, surveyed } from './processes.mjs'

/** Tests that one job runs in its copy of the project. `again`: those that can run repeatedly. */
class Job {
  #copy
  #open
  #withinMs
  #everything
  #again
  /** The process whose databases were created without a mutant. */
  #worker = null

  constructor(copy, { open, withinMs }, { everything, again }) {
    this.#copy = copy
    this.#open = open
    this.#withinMs = withinMs
    this.#everything = everything
    this.#again = again
  }

  /** Returns the mutant's result; `Refused`: PostgreSQL rejects the function. */
  async test(mutant) {
    const how = await this.#testInExisting(mutant)
    return how === 'Survived' ? this.#testInNew(mutant) : how
  }

  async end() {
    if (this.#worker) await this.#worker.end()
  }

  /** Replaces the function in all databases; returns PostgreSQL's error, or null. */
  async #define(text) {
    const response = await this.#worker.request('define', { sql: text })
    if (response.databases === 0) throw new Error('no database is known to the tests')
    return response.refused ?? null
  }

  /** Runs tests with the changed function in databases that were created without it. */
  async #testInExisting({ file, text }) {
    const original = readFileSync(join(this.#copy, file), 'utf8')
    for (let isNew = this.#worker === null; this.#again.length > 0; isNew = true) {
      if (this.#worker === null) {
        this.#worker = await this.#open()
        await this.#worker.request('begin')
      }
      if ((await this.#define(text)) !== null) return 'Refused'
      const { failed, late, gone } = await this.#run(this.#worker, this.#again)
      if (!late && !gone) await this.#define(original)
      if (failed === null) break
      const isSound = !late && !gone && (await this.#run(this.#worker, [failed])).failed === null
      if (!isSound) {
        this.#worker.kill()
        this.#worker = null
      }
      if (late) return 'Timeout'
      if (isSound) return 'Killed'
      if (isNew) break
    }
    return 'Survived'
  }

  /** Runs tests with the changed function from the start of the process. */
  async #testInNew({ file, text }) {
    const original = readFileSync(join(this.#copy, file))
    writeFileSync(join(this.#copy, file), text)
    try {
      const worker = await this.#open()
      if (worker === null) return 'Killed'
      const { failed, late, gone } = await this.#run(worker, this.#everything)
      worker.kill()
      if (late) return 'Timeout'
      return failed === null && !gone ? 'Survived' : 'Killed'
    } finally {
      writeFileSync(join(this.#copy, file), original)
    }
  }

  #run(worker, ats) {
    return worker.request('run', { mutant: null, at: ats }, this.#withinMs(ats))
  }
}

/**
 * Tests mutants of the database's functions. Each replaces its function in the databases that a
 * process with loaded tests has open. The tests run, the fastest first, until one fails, which is
 * repeated with the original function, as for a mutant of TypeScript (typescript.mjs). A mutant
 * that none of them detects is tested in a new process whose databases were created with it, which
 * also runs the tests that can run only once per process.
 *
 * @param mutants with their file's text
 * @param copyOf creates a copy of the project
 * @param save is called with the finished mutants
 * @param log prints a line
 * @returns the mutants with their results; `Refused`: PostgreSQL rejects the function, so no test
 *   ran
 */
export async function functions(mutants, files, { jobs, copyOf, save, log }) {
  if (mutants.length === 0) return []
  const waiting = [...mutants]
  const ended = []
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      const copy = copyOf()
      const measured = await surveyed(copy, files)
      const { survey, once } = measured
      const everything = [...survey.tests.keys()]
      const again = quickestFirst(
        survey,
        everything.filter((at) => !once.has(at)),
      )
      log(
        `${mutants.length} mutants of SQL, ${everything.length} tests, of which ${once.size} run but once in a process`,
      )
      const job = new Job(copy, measured, { everything, again })
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const how = await job.test(mutant)
        const { key, file, line, what } = mutant
        ended.push({ key, file, line, what, how })
        if (how === 'Survived') log(`${file}:${line} ${how}: ${what}`)
        if (ended.length % 20 === 0) {
          save(ended)
          log(`${ended.length} of ${mutants.length} mutants of SQL`)
        }
      }
      await job.end()
    }),
  )
  return ended
}
