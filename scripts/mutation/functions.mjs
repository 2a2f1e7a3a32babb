import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { quickestFirst, surveyed } from './processes.mjs'

/**
 * Tests mutants of the database's functions. Each replaces its function in the databases that a
 * process with loaded tests has open. The tests run, the fastest first, until one fails, which is
 * repeated with the original function, as for a mutant of TypeScript (typescript.mjs). A mutant
 * that none of them detects is tested in a new process whose databases were created with it, which
 * also runs the tests that can run only once per process.
 *
 * @param mutants with their file's text
 * @param copyOf creates a copy of the project
 * @param keep is called with the finished mutants
 * @returns the mutants with their results; `Refused`: PostgreSQL rejects the function, so no test
 *   ran
 */
export async function functions(mutants, files, { jobs, copyOf, keep, told }) {
  if (mutants.length === 0) return []
  const waiting = [...mutants]
  const ended = []
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      const copy = copyOf()
      const { survey, once, open, withinMs } = await surveyed(copy, files)
      const everything = [...survey.tests.keys()]
      const again = quickestFirst(
        survey,
        everything.filter((at) => !once.has(at)),
      )
      told(
        `${mutants.length} mutants of SQL, ${everything.length} tests, of which ${once.size} run but once in a process`,
      )
      let worker = null
      const define = async (text) => {
        const answer = await worker.ask('define', { sql: text })
        if (answer.databases === 0) throw new Error('no database is known to the tests')
        return answer.refused ?? null
      }

      /** Runs tests with the changed function in databases that were created without it. */
      const changed = async ({ file, text }) => {
        const original = readFileSync(join(copy, file), 'utf8')
        for (let fresh = worker === null; again.length > 0; fresh = true) {
          if (worker === null) {
            worker = await open()
            await worker.ask('begin')
          }
          if ((await define(text)) !== null) return 'Refused'
          const { failed, late, gone } = await worker.ask(
            'run',
            { mutant: null, at: again },
            withinMs(again),
          )
          if (!late && !gone) await define(original)
          if (failed === null) break
          const isSound =
            !late &&
            !gone &&
            (await worker.ask('run', { mutant: null, at: [failed] }, withinMs([failed]))).failed ===
              null
          if (!isSound) {
            worker.kill()
            worker = null
          }
          if (late) return 'Timeout'
          if (isSound) return 'Killed'
          if (fresh) break
        }
        return 'Survived'
      }

      /** Runs tests with the changed function from the start of the process. */
      const afresh = async ({ file, text }) => {
        const original = readFileSync(join(copy, file))
        writeFileSync(join(copy, file), text)
        try {
          const other = await open()
          if (other === null) return 'Killed'
          const { failed, late, gone } = await other.ask(
            'run',
            { mutant: null, at: everything },
            withinMs(everything),
          )
          other.kill()
          if (late) return 'Timeout'
          return failed === null && !gone ? 'Survived' : 'Killed'
        } finally {
          writeFileSync(join(copy, file), original)
        }
      }

      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        let how = await changed(mutant)
        if (how === 'Survived') how = await afresh(mutant)
        const { key, file, line, what } = mutant
        ended.push({ key, file, line, what, how })
        if (how === 'Survived') told(`${file}:${line} ${how}: ${what}`)
        if (ended.length % 20 === 0) {
          keep(ended)
          told(`${ended.length} of ${mutants.length} mutants of SQL`)
        }
      }
      if (worker) await worker.end()
    }),
  )
  return ended
}
