import { instrument } from './instrument.mjs'
import { quickestFirst, surveyed } from './processes.mjs'

/** A place that is passed so many times as often as without a mutant is a loop without end. */
const TIMES_OFTENER = 200

/**
 * Tries the mutants of files of TypeScript. All of them stand in one copy, and each is switched on
 * in a process in which the tests were loaded before. A test that fails under a mutant is run again
 * without it: where it still fails, what went before has left something behind, and the mutant is
 * tried anew in a fresh process. Where that says nothing either, all tests run as they stand in a
 * process that has the mutant from its start, as they passed without it.
 * @param only of which files, by a part of their names @param isAsked which mutants are tried
 *   @param keep is told of those that ended
 * @returns the mutants, each with how it ended: `Killed`, `Timeout`, `Survived`, `NoCoverage`
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
   * Whether all tests of these files pass, or those at these places, in a fresh process that has
   * the mutant from its start.
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
   * What is read while files are loaded: each file by itself, as one that is not needed may take
   * longest to load.
   */
  let inOrder = files
  const byFile = async (id) => {
    for (const file of inOrder) {
      const how = await afresh(id, undefined, [file])
      if (how === 'Survived') continue
      // Its neighbours are noticed by the same.
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
        // Twice: in a process that others were tried in before, and where that was spoilt in a
        // fresh one.
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
          // A test that fails but once failed of a busy machine: the others are asked.
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
        // From the start of a process: what is read while files are loaded, and tests that run but
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
