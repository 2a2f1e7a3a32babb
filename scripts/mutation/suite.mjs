/**
 * Replaces `node:test` while mutants are tested (worker.mjs): tests are stored instead of run, and
 * each can run separately and repeatedly in one process. It implements the functions of node:test
 * that this project's tests use, and rejects the others.
 */
const { mock } = process.getBuiltinModule('node:test')
export { mock }

/** The tests in the order of their definition, each with its surrounding hooks. */
export const tests = []
const groupOf = (name, parent) => ({
  name,
  parent,
  before: [],
  after: [],
  beforeEach: [],
  afterEach: [],
  isReady: false,
})
const root = groupOf('', null)
const groups = [root]
let current = root

const partsOf = (name, second, third) =>
  typeof second === 'function'
    ? { name, options: {}, run: second }
    : { name, options: second ?? {}, run: third }

export function test(...args) {
  const { name, options, run } = partsOf(...args)
  if (options.skip || options.todo || !run) return
  tests.push({ name, run, group: current })
}
test.skip = () => undefined
test.todo = () => undefined
test.only = test
export const it = test

export function describe(...args) {
  const { name, options, run } = partsOf(...args)
  if (options.skip || options.todo || !run) return
  within(name, run)
}
describe.skip = () => undefined
export const suite = describe

/** Assigns the tests that are defined while `load` runs to a group. */
export function within(name, load) {
  const outer = current
  current = groupOf(name, outer)
  groups.push(current)
  const back = () => {
    current = outer
  }
  const made = load()
  if (typeof made?.then === 'function') return made.finally(back)
  back()
  return undefined
}

const hook = (when) => (run) => {
  current[when].push(run)
}
export const before = hook('before')
export const after = hook('after')
export const beforeEach = hook('beforeEach')
export const afterEach = hook('afterEach')
export default Object.assign(test, {
  test,
  it,
  describe,
  suite,
  before,
  after,
  beforeEach,
  afterEach,
  mock,
})

const lineage = (group) => (group === null ? [] : [...lineage(group.parent), group])

async function runBody(name, run) {
  const ends = []
  const context = {
    name,
    mock,
    after: (end) => {
      ends.push(end)
    },
    diagnostic: () => undefined,
    signal: new AbortController().signal,
    skip: () => undefined,
    test: async (...args) => {
      const part = partsOf(...args)
      await runBody(`${name}: ${part.name}`, part.run)
    },
  }
  const tracked = new Proxy(context, {
    get(target, key) {
      if (key in target || typeof key === 'symbol' || key === 'then') return target[key]
      throw new Error(`scripts/mutation/suite.mjs does not know t.${key}`)
    },
  })
  try {
    await run(tracked)
  } finally {
    for (const end of ends.reverse()) await end()
    mock.reset()
  }
}

async function begin(group) {
  if (group.isReady) return
  for (const start of group.before) await start()
  group.isReady = true
}

/** Runs the groups' before hooks, ahead of all tests. */
export async function beginAll() {
  for (const each of groups) await begin(each)
}

/**
 * Runs one test with its surrounding hooks.
 * @throws the error of the test
 */
export async function runTest({ name, run, group }) {
  const line = lineage(group)
  for (const each of line) await begin(each)
  for (const each of line) for (const start of each.beforeEach) await start()
  try {
    await runBody(name, run)
  } finally {
    for (const each of line.toReversed()) for (const end of each.afterEach) await end()
  }
}

/** Runs the groups' after hooks. */
export async function endAll() {
  for (const each of groups.toReversed())
    if (each.isReady) for (const end of each.after) await end()
}
