import { instrument } from './instrument.mjs'
import { quickestFirst, surveyed } from './processes.mjs'

/**
 * Number of executions of a place, as a multiple of those without a mutant, at which a loop is
 * considered endless.
 */
const TIMES_OFTENER = 200

/** Runs tests in processes that are new for each mutant and have it from their start. */
class NewProcesses {
  #open
  #withinMs
  #everything
  #skip
  /** The files with tests. The file that detected the last mutant is the first. */
  #files

  /**
   * @param everything positions of the tests
   * @param skip names of tests that are not run
   */
  constructor({ open, withinMs }, files, { everything, skip }) {
    this.#open = open
    this.#withinMs = withinMs
    this.#files = files
    this.#everything = everything
    this.#skip = skip
  }

  /**
   * Runs all tests of these files, or those at the given positions, in one process.
   * @returns the mutant's result
   */
  async run(id, ats, files) {
    const worker = await this.#open(id, files)
    if (worker === null) return 'Killed'
    const { failed, late, gone } = await worker.request(
      'run',
      { mutant: id, skip: this.#skip, ...(ats ? { at: ats } : {}) },
      this.#withinMs(ats ?? this.#everything),
    )
    worker.kill()
    if (late) return 'Timeout'
    return failed === null && !gone ? 'Survived' : 'Killed'
  }

  /**
   * For code that runs while files are loaded: each file separately, because loading an unneeded
   * one may take longest.
   * @returns the mutant's result
   */
  async runByFile(id) {
    for (const file of this.#files) {
      const how = await this.run(id, undefined, [file])
      if (how === 'Survived') continue
      // The same file usually detects neighbouring mutants.
      this.#files = [file, ...this.#files.filter((each) => each !== file)]
      return how
    }
    return 'Survived'
  }
}

/** A process in which many mutants are tested. It is replaced when it becomes unusable. */
class ReusedProcess {
  #worker = null
  #survey
  #open
  #withinMs

  constructor({ survey, open, withinMs }) {
    this.#survey = survey
    this.#open = open
    this.#withinMs = withinMs
  }

  /**
   * Runs the tests at these positions until one detects the mutant. At most twice: in a process
   * that was used for other mutants, and, if that one was unusable, in a new one.
   * @returns `how`: the mutant's result; `isUnclear`: a test fails in a new process even without the
   *   mutant
   */
  async run(id, ats) {
    let left = ats
    for (let isNew = this.#worker === null; left.length > 0; isNew = this.#worker === null) {
      this.#worker ??= await this.#open()
      const hits = TIMES_OFTENER * Math.max(...ats.map((at) => this.#survey.tests[at].covers[id]))
      const { failed, late, gone } = await this.#run({ mutant: id, at: left, hits })
      if (failed === null) break
      const isSound =
        !late && !gone && (await this.#run({ mutant: null, at: [failed] })).failed === null
      // A test that fails only once failed because of a busy machine, so the remaining tests run.
      const second = isSound ? await this.#run({ mutant: id, at: [failed], hits }) : null
      if (second?.failed === null) {
        left = left.slice(left.indexOf(failed) + 1)
        continue
      }
      if (!isSound || second.late || second.gone) {
        this.#worker.kill()
        this.#worker = null
      }
      if (isSound) return { how: 'Killed', isUnclear: false }
      if (late) return { how: 'Timeout', isUnclear: false }
      if (isNew) return { how: 'Survived', isUnclear: true }
    }
    return { how: 'Survived', isUnclear: false }
  }

  async end() {
    if (this.#worker) await this.#worker.end()
  }

  #run(params) {
    return this.#worker.request('run', params, this.#withinMs(params.at))
  }
}

/**
 * Tests one mutant.
 * @param everything positions of the tests
 * @returns its result
 */
async function testMutant({ id }, { survey, once }, { everything, reused, fresh }) {
  const covering = quickestFirst(
    survey,
    everything.filter((at) => survey.tests[at].covers[id] > 0),
  )
  const isStatic = survey.static[id] > 0
  if (covering.length === 0 && !isStatic) return 'NoCoverage'
  const again = covering.filter((at) => !once.has(at))
  const { how, isUnclear } = await reused.run(id, again)
  // In a new process: code that runs while files are loaded, and tests that can run only once.
  const needsNewProcess = isStatic || isUnclear || again.length < covering.length
  if (how !== 'Survived' || !needsNewProcess) return how
  if (isStatic) return fresh.runByFile(id)
  const last = isUnclear ? Infinity : Math.max(...covering.filter((at) => once.has(at)))
  const from = everything.slice(0, last + 1)
  const first = await fresh.run(id, from)
  return first === 'Survived' ? first : fresh.run(id, from)
}

/**
 * Tests the mutants of TypeScript files. All of them are in one copy, and each is activated in a
 * process with loaded tests. A test that fails with a mutant runs again without it. If it still
 * fails, an earlier test has left a state behind, and the mutant is tested again in a new process.
 * If the result is still unclear, all tests run in their order in a process that has the mutant
 * from its start, as they passed without it.
 *
 * @param isNamed returns whether a file is selected
 * @param longest milliseconds that a test may take without a mutant; longer tests are not used
 * @param isSelected returns whether a mutant is tested
 * @param save is called with the finished mutants
 * @param log prints a line
 * @returns the mutants with their results: `Killed`, `Timeout`, `Survived`, `NoCoverage`
 */
export async function typescript(
  copy,
  { mutate, tests: files },
  { jobs, isNamed, longest, isSelected, save, log },
) {
  const mutants = (await instrument(copy, mutate, isNamed)).filter(isSelected)
  if (mutants.length === 0) return []
  const measured = await surveyed(copy, files, longest)
  const { tests } = measured.survey
  const everything = [...tests.keys()].filter((at) => tests[at].ms <= longest)
  const skip = tests.filter(({ ms }) => ms > longest).map(({ name }) => name)
  log(
    `${mutants.length} mutants, ${everything.length} tests, of which ${measured.once.size} run but once in a process`,
  )
  const fresh = new NewProcesses(measured, files, { everything, skip })
  const waiting = [...mutants]
  const ended = []
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      const reused = new ReusedProcess(measured)
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const how = await testMutant(mutant, measured, { everything, reused, fresh })
        ended.push({ ...mutant, how })
        if (how === 'Survived' || how === 'NoCoverage')
          log(`${mutant.file}:${mutant.line} ${how}: ${mutant.what}`)
        if (ended.length % 50 === 0) {
          save(ended)
          log(`${ended.length} of ${mutants.length} tried`)
        }
      }
      await reused.end()
    }),
  )
  return ended
}
