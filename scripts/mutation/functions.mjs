import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { quickestFirst, surveyed } from './processes.mjs'

/**
 * Tries mutants of the database's functions. Each is put in place of its function in the databases
 * that a process of loaded tests has open, and the tests run, the quickest first, until one fails;
 * that one is run again with the function as it was, as for a mutant of TypeScript
 * (typescript.mjs). What none of them noticed for certain is tried in a fresh process whose
 * databases were made with it: there those tests run too that run but once in a process.
 * @param mutants with their file's text @param copyOf makes a copy of the project @param keep is
 *   told of those that ended @returns the mutants, each with how it ended; `Refused`: PostgreSQL
 *   does not take it for a function, so that no test was asked
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

      /** With the function changed while they run, in databases that were made without. */
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

      /** With the function changed from the start. */
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
