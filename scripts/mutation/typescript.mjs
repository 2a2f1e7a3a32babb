import { instrument } from './instrument.mjs'
import { quickestFirst, surveyed } from './processes.mjs'

/**
 * Number of executions of a place, as a multiple of those without a mutant, at which a loop is
 * considered endless.
 */
const TIMES_OFTENER = 200

/**
 * Tests the mutants of TypeScript files. All of them are in one copy, and each is activated in a
 * process with loaded tests. A test that fails with a mutant runs again without it. If it still
 * fails, an earlier test has left a state behind, and the mutant is tested again in a new process.
 * If the result is still unclear, all tests run in their order in a process that has the mutant
 * from its start, as they passed without it.
 *
 * @param only part of the names of the files
 * @param isAsked returns whether a mutant is tested
 * @param keep is called with the finished mutants
 * @returns the mutants with their results: `Killed`, `Timeout`, `Survived`, `NoCoverage`
 */
export async function typescript(
  copy,
  { mutate, tests: files },
  { jobs, only, isAsked, keep, told },
) {
  const mutants = (await instrument(copy, mutate, only)).filter(isAsked)
  if (mutants.length === 0) return []
  const { survey, once, open, withinMs } = await surveyed(copy, files)
  const everything = [...survey.tests.keys()]
  told(
    `${mutants.length} mutants, ${everything.length} tests, of which ${once.size} run but once in a process`,
  )

  /**
   * Runs all tests of these files, or those at the given positions, in a new process that has the
   * mutant from its start.
   */
  const afresh = async (id, ats, some = files) => {
    const worker = await open(id, some)
    if (worker === null) return 'Killed'
    const { failed, late, gone } = await worker.ask(
      'run',
      { mutant: id, ...(ats ? { at: ats } : {}) },
      withinMs(ats ?? everything),
    )
    worker.kill()
    if (late) return 'Timeout'
    return failed === null && !gone ? 'Survived' : 'Killed'
  }
  /**
   * For code that runs while files are loaded: each file separately, because loading an unneeded
   * one may take longest.
   */
  let inOrder = files
  const byFile = async (id) => {
    for (const file of inOrder) {
      const how = await afresh(id, undefined, [file])
      if (how === 'Survived') continue
      // The same file usually detects neighbouring mutants.
      inOrder = [file, ...inOrder.filter((each) => each !== file)]
      return how
    }
    return 'Survived'
  }

  const waiting = [...mutants]
  const ended = []
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      let worker = null
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const { id } = mutant
        const covering = quickestFirst(
          survey,
          everything.filter((at) => survey.tests[at].covers[id] > 0),
        )
        const isStatic = survey.static[id] > 0
        let how = covering.length === 0 && !isStatic ? 'NoCoverage' : 'Survived'
        let isUnclear = false
        const again = covering.filter((at) => !once.has(at))
        let left = again
        // At most twice: in a process that was used for other mutants, and, if that one was
        // unusable, in a new one.
        for (let fresh = worker === null; left.length > 0; fresh = worker === null) {
          worker ??= await open()
          const hits = TIMES_OFTENER * Math.max(...again.map((at) => survey.tests[at].covers[id]))
          const { failed, late, gone } = await worker.ask(
            'run',
            { mutant: id, at: left, hits },
            withinMs(left),
          )
          if (failed === null) break
          const isSound =
            !late &&
            !gone &&
            (await worker.ask('run', { mutant: null, at: [failed] }, withinMs([failed]))).failed ===
              null
          // A test that fails only once failed because of a busy machine, so the remaining tests
          // run.
          const second = isSound
            ? await worker.ask('run', { mutant: id, at: [failed], hits }, withinMs([failed]))
            : null
          if (second?.failed === null) {
            left = left.slice(left.indexOf(failed) + 1)
            continue
          }
          if (!isSound || second.late || second.gone) {
            worker.kill()
            worker = null
          }
          if (isSound || late) {
            how = late ? 'Timeout' : 'Killed'
            break
          }
          isUnclear = fresh
          if (fresh) break
        }
        // In a new process: code that runs while files are loaded, and tests that can run only
        // once.
        if (how === 'Survived' && (isStatic || isUnclear || again.length < covering.length)) {
          const last = isUnclear ? Infinity : Math.max(...covering.filter((at) => once.has(at)))
          const from = everything.slice(0, last + 1)
          how = isStatic ? await byFile(id) : await afresh(id, from)
          if (how !== 'Survived' && !isStatic) how = await afresh(id, from)
        }
        ended.push({ ...mutant, how })
        if (how === 'Survived' || how === 'NoCoverage')
          told(`${mutant.file}:${mutant.line} ${how}: ${mutant.what}`)
        if (ended.length % 50 === 0) {
          keep(ended)
          told(`${ended.length} of ${mutants.length} tried`)
        }
      }
      if (worker) await worker.end()
    }),
  )
  return ended
}
