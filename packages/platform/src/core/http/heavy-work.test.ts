import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { waitFor } from '../../../../../testing/wait-for.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call } from '../../../testing/harness.ts'
import { endpoints } from '../../server/app/endpoints.ts'
import { panelEndpoints } from '../../server/app/panel.ts'
import { NodeUnavailable } from '../signing/nodes.ts'
import { HeavyWork } from './heavy-work.ts'

const api = useApi()
before(() => api.started)

const EVALUATION = {
  method: 'POST',
  uri: '/dac/v1/transaction',
  body: {
    asset: 'ETH',
    amount: '0.1',
    destination_address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
  },
}

test('all operations that simulate, evaluate, export or query exchanges at once are heavy', () => {
  const heavy = (list: readonly { method: string; path: string; heavy?: unknown }[]) =>
    list.filter((each) => each.heavy).map(({ method, path }) => `${method} ${path}`)
  assert.deepEqual(heavy(endpoints), [
    'GET /dac/v1/statement/export',
    'POST /dac/v1/policy/evaluate',
    'POST /dac/v1/policy/simulate',
    'POST /dac/v1/exchange-accounts/{id}/test',
    'POST /dac/v1/conversions/quote',
  ])
  const panel = heavy(panelEndpoints)
  // The mirror of the API in the panel has the same costs.
  for (const path of ['policy/evaluate', 'policy/simulate', 'statement/export'])
    assert.ok(
      panel.some((each) => each.endsWith(`/api/dac/v1/${path}`)),
      path,
    )
  const exports = panelEndpoints.filter(({ path }) => path.endsWith('/export'))
  assert.deepEqual(
    exports.map(({ heavy: cost }) => cost?.kind),
    ['export', 'export', 'export'],
  )
})

test('one request of a workspace runs, some wait in order, and others are refused', async () => {
  const work = new HeavyWork()
  const heavy = { kind: 'policy evaluation', weight: 1, waiting: 1 } as const
  const order: string[] = []
  const first = await work.start('w', heavy)
  const second = work.start('w', heavy).then((end) => {
    order.push('second')
    return end
  })
  await assert.rejects(work.start('w', heavy), { code: 'CONCURRENT_REQUEST', status: 429 })
  // Other workspaces and kinds have turns of their own.
  const others = [
    await work.start('other', heavy),
    await work.start('w', { ...heavy, kind: 'export' }),
  ]
  for (const end of others) end()
  assert.deepEqual(order, [])
  first()
  first()
  const end = await second
  await assert.rejects(work.start('w', { ...heavy, waiting: 0 }), { code: 'CONCURRENT_REQUEST' })
  end()
  const next = await work.start('w', { ...heavy, waiting: 0 })
  next()
})

test('evaluations of a workspace run one at a time, and do not block another workspace', async () => {
  const user = await api.user(randomUUID())
  const other = await api.user(randomUUID())
  const askNode = api.askNode.bind(api)
  let running = 0
  let most = 0
  const held = Promise.withResolvers<void>()
  api.askNode = async (node) => {
    running++
    most = Math.max(most, running)
    await held.promise
    running--
    throw new NodeUnavailable(node, 'is away')
  }
  try {
    const evaluate = (as: typeof user) =>
      call<Problem>(as, 'POST', '/dac/v1/policy/evaluate', EVALUATION)
    let refused: Awaited<ReturnType<typeof evaluate>> | undefined
    const all = Array.from({ length: 10 }, () =>
      evaluate(user).then((answer) => {
        if (answer.status === 429) refused = answer
        return answer.status
      }),
    )
    const first = await waitFor('a refusal', async () => refused)
    assert.equal(first.body.code, 'CONCURRENT_REQUEST', first.text)
    assert.equal(first.headers.get('retry-after'), '1')
    await waitFor('the running evaluation', async () => (running >= 2 ? true : null))
    // Each evaluation asks two nodes.
    assert.equal(most, 2)
    const neighbour = evaluate(other)
    await waitFor('the evaluation of another workspace', async () => (running >= 4 ? true : null))
    held.resolve()
    const statuses = await Promise.all(all)
    assert.deepEqual(
      [429, 503].map((status) => statuses.filter((each) => each === status).length),
      [1, 9],
    )
    assert.equal((await neighbour).status, 503)
    // Failed work has ended, too.
    assert.equal((await evaluate(user)).status, 503)
  } finally {
    held.resolve()
    api.askNode = askNode
  }
})

test('a heavy request counts several times against the rate limit of its key', async () => {
  const user = await api.user(randomUUID(), { rateLimit: 4 })
  const minute = Math.floor(Date.now() / 60_000) * 60_000
  const { now } = api
  api.now = () => minute + 90_000
  try {
    const sign = { now: Math.floor(api.now() / 1000) }
    const ask = () => call(user, 'POST', '/dac/v1/policy/evaluate', EVALUATION, { sign })
    const first = await ask()
    assert.equal(first.status, 503, first.text)
    assert.equal(first.headers.get('x-rate-limit-remaining'), '1')
    const second = await ask()
    assert.deepEqual([second.status, second.headers.get('x-rate-limit-remaining')], [503, '0'])
    const third = await ask()
    assert.deepEqual([third.status, third.body['code']], [429, 'RATE_LIMITED'])
  } finally {
    api.now = now
  }
})
