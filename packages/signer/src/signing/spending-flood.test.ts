import assert from 'node:assert/strict'
import test from 'node:test'
import { ModelNode } from '../../testing/spending-model.ts'
import type { Verdict } from '../policy/order.ts'

/** One hostile node that sends more charges than it can have made. */
const PAGES = 301
const PAGE = 500
const KEPT_BYTES = 32 * 1024 * 1024

function threeNodes(): [ModelNode, ModelNode, ModelNode] {
  const nodes = [1, 2, 3].map((node) => new ModelNode(node))
  const byNumber = new Map(nodes.map((node) => [node.node, node]))
  for (const node of nodes) {
    node.keptBytesMax = KEPT_BYTES
    node.start(byNumber, async () => {})
  }
  return nodes as [ModelNode, ModelNode, ModelNode]
}

/** A payment that is charged to one window of a policy. */
const payment = (step: string): Verdict =>
  ({
    step,
    unsignedHash: step,
    order: { workspace: 'w' },
    charges: [],
    policy: { charges: [{ key: 'a day', hours: 24, amounts: new Map([['BTC', 1n]]) }] },
  }) as unknown as Verdict

/** Makes a node answer with many pages of steps, and returns how many were read. */
function flood(node: ModelNode, textOf: (height: number) => string, pages = PAGES): () => number {
  let read = 0
  node.record.height = pages * PAGE
  node.handlers.set('/peer/spending', async (_node, body) => {
    const { after } = body as { after: number }
    read++
    return {
      generation: 0,
      to: after + PAGE,
      is_last: after + PAGE >= pages * PAGE,
      steps: Array.from({ length: PAGE }, (_, at) => ({
        step: textOf(after + at),
        transaction: textOf(after + at),
        charges: [{ budget: 'b', amount: '1' }],
        height: after + at + 1,
        age_ms: 0,
      })),
    }
  })
  return () => read
}
const long = (height: number): string => `€ ${height} `.padEnd(700, 'x')

/** Whether a node knows the charges of a peer. */
const knows = (node: ModelNode, peer: number): boolean =>
  [...node.shared.other(peer, []).recorded.windowNames()].length > 0

test('attack: 301 pages of 500 steps are refused at a bound, and honest nodes continue', async () => {
  const [one, two, three] = threeNodes()
  three.write(payment('honest'))
  await two.shared.prepare(3)
  const read = flood(one, long)
  const before = process.memoryUsage().heapUsed
  await assert.rejects(two.shared.prepare(1), { code: 'TOO_BUSY' })
  const grown = process.memoryUsage().heapUsed - before
  assert.ok(read() < 40, `${read()} pages were read`)
  assert.ok(grown < 8 * KEPT_BYTES, `${grown} bytes`)
  // Each further order would otherwise read them all again.
  const pages = read()
  for (let times = 0; times < 20; times++)
    await assert.rejects(two.shared.prepare(1), { code: 'TOO_BUSY' })
  assert.equal(read(), pages)
  assert.ok(knows(two, 3))
  three.write(payment('again'))
  const other = await two.shared.hear(3, three.tell(2, []), [])
  assert.equal(other.recorded.steps.length, 2)
})

test('texts of two bytes per character count twice', async () => {
  const pagesOf = async (text: (height: number) => string): Promise<number> => {
    const [one, two] = threeNodes()
    const read = flood(one, text)
    await assert.rejects(two.shared.prepare(1), { code: 'TOO_BUSY' })
    return read()
  }
  const [narrow, wide] = [
    await pagesOf((height) => `${height} `.padEnd(700, 'x')),
    await pagesOf(long),
  ]
  assert.ok(narrow > 1.5 * wide, `${narrow} and ${wide} pages`)
})

test('a peer that uses more than its half makes way for the other peer', async () => {
  const [one, two, three] = threeNodes()
  const most = Math.floor((0.8 * KEPT_BYTES) / 3200 / PAGE)
  flood(one, long, most)
  await two.shared.prepare(1)
  assert.ok(two.shared.other(1, []).recorded.steps.length > 0)
  flood(three, long, Math.floor(most / 2))
  await two.shared.prepare(3)
  assert.equal(two.shared.other(1, []).recorded.steps.length, 0)
  assert.ok(two.shared.other(3, []).recorded.steps.length > 0)
  await assert.rejects(two.shared.prepare(1), { code: 'TOO_BUSY' })
})

test('refuses a height far above the head that the peer has signed', async () => {
  const [one, two] = threeNodes()
  one.write(payment('a'))
  let pages = 0
  const answer = one.handlers.get('/peer/spending')!
  one.handlers.set('/peer/spending', async (...call) => {
    pages++
    return answer(...call)
  })
  await assert.rejects(two.shared.hear(1, { ...one.tell(2, []), to: 5_000_000 }, []), {
    code: 'PEER_UNAVAILABLE',
  })
  assert.equal(pages, 0)
  one.handlers.set('/peer/spending', async (...call) => ({
    ...((await answer(...call)) as object),
    to: 5_000_000,
  }))
  await assert.rejects(two.shared.prepare(1), { code: 'PEER_UNAVAILABLE' })
})
