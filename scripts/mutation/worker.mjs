// A process in which mutants are tested. The arguments are the test files; requests and responses
// use IPC. See mutate.mjs.
import { registerHooks } from 'node:module'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'

const suite = new URL('suite.mjs', import.meta.url).href
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test'
      ? { url: suite, format: 'module', shortCircuit: true }
      : next(specifier, context),
})
const { beginAll, endAll, runTest, tests, within } = await import(suite)
const { defineInEach } = await import('./databases.mjs')

/**
 * State that the instrumented code reads: the active mutant, and the counters of executed places.
 */
// oxlint-disable-next-line no-underscore-dangle -- Stryker's name
const state = (globalThis.__stryker__ ??= {})
/** Unhandled error, which is attributed to the running test. */
let stray = null
const keep = (error) => {
  stray ??= error
}
process.on('unhandledRejection', keep)
process.on('uncaughtException', keep)

async function isPassed(test) {
  stray = null
  try {
    await runTest(test)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    if (stray) throw stray
    return { ok: true }
  } catch (error) {
    return { ok: false, why: String(error?.message ?? error).slice(0, 300) }
  }
}

const handlers = {
  /** Runs each test once without a mutant, and returns its coverage and duration. */
  async survey() {
    const results = []
    for (const [at, test] of tests.entries()) {
      state.currentTestId = String(at)
      const began = performance.now()
      const { ok, why } = await isPassed(test)
      state.currentTestId = undefined
      results.push({
        name: test.name,
        ok,
        why,
        ms: performance.now() - began,
        covers: state.mutantCoverage?.perTest[at] ?? {},
      })
    }
    return { tests: results, static: state.mutantCoverage?.static ?? {} }
  },
  /** Runs these tests in order with a mutant (null: none), until the first failure. */
  async run({ mutant, at, hits, skip = [] }) {
    state.activeMutant = mutant ?? undefined
    state.hitCount = hits === undefined ? undefined : 0
    state.hitLimit = hits
    try {
      for (const each of at ?? tests.keys()) {
        if (skip.includes(tests[each].name)) continue
        const { ok, why } = await isPassed(tests[each])
        if (!ok) return { failed: each, why }
      }
      return { failed: null }
    } finally {
      state.activeMutant = undefined
    }
  },
  /** Runs the tests' before hooks, so that the databases exist. */
  async begin() {
    await beginAll()
    return {}
  },
  /** Replaces the function of the same name in each database of the tests. */
  async define({ sql }) {
    return defineInEach(sql)
  },
  async end() {
    await endAll()
    return {}
  },
}

for (const file of process.argv.slice(2))
  await within(basename(file), () => import(pathToFileURL(file).href))
process.on('message', async ({ id, what, ...params }) => {
  let response
  try {
    response = await handlers[what](params)
  } catch (error) {
    response = { broken: String(error?.stack ?? error) }
  }
  process.send({ id, ...response }, () => {
    if (what === 'end') process.exit(0)
  })
})
process.send({ id: 0, ready: true })
