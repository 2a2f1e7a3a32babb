// The analysis thread: its results, and whose job comes next.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, policyRegistry } from '@custody/chains'
import { checkDocument, diff, lint } from '@custody/policy'
import { allow, documentWith } from '../../../../../policy/testing/documents.ts'
import { waitFor } from '../../../../../../testing/wait-for.ts'
import { Analysis, analysisOf } from './analysis.ts'
import { work, type Job } from './jobs.ts'

const document = checkDocument(documentWith([allow('pay')], { mode: 'local' }))
const surroundings = { panelOrigins: [], enrolled: [] }
const job: Job = { kind: 'review', next: document, previous: document, surroundings }

/** A queue whose jobs end when the test ends them, with a clock that the test moves. */
function queue() {
  const started: string[] = []
  const state = { now: 0, ended: 0 }
  let calls: { at: number; call: () => void }[] = []
  let end: ((ms: number) => void) | null = null
  const doer = {
    do(one: Job) {
      started.push(one.next.workspace)
      return new Promise<{ result: unknown; ms: number }>((done) => {
        end = (ms) => done({ result: one.next.workspace, ms })
      })
    },
    end: () => (state.ended += 1),
  }
  const analysis = new Analysis(doer, {
    now: () => state.now,
    after(ms, call) {
      const entry = { at: state.now + ms, call }
      calls.push(entry)
      return () => (calls = calls.filter((each) => each !== entry))
    },
  })
  const run = (workspace: string) =>
    analysis.run(workspace, { ...job, next: { ...document, workspace } })
  /** Ends the present job, which has taken some time. */
  const finish = async (ms: number) => {
    const before = started.length
    state.now += ms
    end?.(ms)
    end = null
    await new Promise(setImmediate)
    return started.length - before
  }
  const pass = (ms: number) => {
    state.now += ms
    for (const { at, call } of calls.filter((each) => each.at <= state.now)) {
      calls = calls.filter((each) => each.call !== call)
      assert.ok(at <= state.now)
      call()
    }
  }
  return { started, state, run, finish, pass }
}

test('jobs of a workspace that has used the thread start after those of others', async () => {
  const { started, run, finish, pass } = queue()
  const results = [run('a'), run('a'), run('a'), run('b'), run('c')]
  assert.deepEqual(started, ['a'])
  await finish(1000)
  assert.deepEqual(started, ['a', 'b'])
  await finish(10)
  assert.deepEqual(started, ['a', 'b', 'c'])
  // Nothing else waits, but the workspace rests four times as long as its job took.
  assert.equal(await finish(10), 0)
  pass(3979)
  assert.equal(started.length, 3)
  pass(1)
  assert.deepEqual(started, ['a', 'b', 'c', 'a'])
  await finish(1)
  pass(4)
  await finish(1)
  assert.deepEqual(await Promise.all(results), ['a', 'a', 'a', 'b', 'c'])
})

test('a thread without jobs ends after a minute', async () => {
  const { state, run, finish, pass } = queue()
  const first = run('a')
  await finish(1)
  await first
  pass(59_000)
  const second = run('b')
  await finish(1)
  await second
  pass(59_000)
  assert.equal(state.ended, 0)
  pass(1000)
  assert.equal(state.ended, 1)
})

test('the thread returns the same findings, differences and results as this process', async () => {
  const registry = loadRegistry('local')
  const analysis = analysisOf(registry)
  const next = checkDocument({
    ...document,
    number: 2,
    previous: 'ab'.repeat(32),
    rules: [...document.rules, { id: 'never', effect: 'deny', match: { sub_accounts: ['x'] } }],
  })
  assert.deepEqual(
    await analysis.run('a', { kind: 'review', next, previous: document, surroundings }),
    {
      findings: lint(next, {
        registry: policyRegistry(registry),
        previous: document,
        ...surroundings,
      }),
      differences: diff(document, next),
    },
  )
  const simulate = { kind: 'simulate', next, current: null, acts: [], forwards: [] } as const
  assert.deepEqual(await analysis.run('b', simulate), work(registry, simulate))
})

test('a failed job fails alone, and the event loop continues while a job runs', async () => {
  const analysis = analysisOf(loadRegistry('local'))
  const broken = { kind: 'review', next: null, previous: null } as unknown as Job
  const failed = assert.rejects(analysis.run('a', broken), /null/)
  const worked = analysis.run('b', job)
  let isDone = false
  void worked.then(() => (isDone = true))
  let turns = 0
  await waitFor('the job', () => {
    turns++
    return isDone
  })
  assert.ok(turns > 1)
  await failed
  assert.ok('findings' in (await worked))
})
