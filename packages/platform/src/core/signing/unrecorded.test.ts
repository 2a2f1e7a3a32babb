// When a transaction may take another nonce: no node has recorded this nonce or a later one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemEnvironment } from '../environment.ts'
import { createMetrics } from '../metrics.ts'
import { NodeRefused, NodeUnavailable } from './nodes.ts'
import { signOrder, type SignOrder } from './sign.ts'
import type { Signing } from './signing.ts'

type Answers = (leader: number, partner: number) => Record<string, unknown> | 'away'

/** Returns whether no signature exists by the refusals of nodes that miss a nonce. */
async function isUnrecorded(account: string, answers: Answers): Promise<boolean> {
  const signers = {
    peers: [{ node: 1 }, { node: 2 }, { node: 3 }],
    isPenalised: () => false,
    penalise: () => undefined,
    async call(node: number, _method: string, path: string, body: { partner: number }) {
      if (path === '/status') return {}
      const answer = answers(node, body.partner)
      if (answer === 'away') throw new NodeUnavailable(node, 'is away')
      throw new NodeRefused(node, 409, { error: 'NONCE_GAP', message: 'gap', ...answer })
    },
  }
  const services = { signers, environment: systemEnvironment(), metrics: createMetrics() }
  const order = { unsigned: { inputs: [{}] } } as unknown as SignOrder
  const outcome = await signOrder(services as unknown as Signing, order, account)
  assert.equal(outcome.kind, 'unavailable')
  return outcome.kind === 'unavailable' && outcome.isUnrecorded
}

const ACCOUNTS = Array.from({ length: 20 }, (_, at) => `account ${at}`)
const assertEach = async (expected: boolean, answers: Answers) => {
  for (const account of ACCOUNTS)
    assert.equal(await isUnrecorded(account, answers), expected, account)
}

test('a transaction is unrecorded if each node states it, about itself', async () => {
  await assertEach(true, (leader) => ({ unrecorded: leader }))
  await assertEach(true, (leader, node) => ({ unrecorded: leader, node }))
})

test('a transaction may be recorded if one node does not state the contrary', async () => {
  for (const node of [1, 2, 3]) {
    await assertEach(false, (leader) => (leader === node ? {} : { unrecorded: leader }))
    await assertEach(false, (leader) => (leader === node ? 'away' : { unrecorded: leader }))
  }
})

test('attack: a node states that another one has recorded nothing', async () => {
  await assertEach(false, (leader, partner) => ({ unrecorded: leader === 1 ? 1 : partner }))
  await assertEach(false, () => ({ unrecorded: 1 }))
  await assertEach(false, () => ({ unrecorded: true }))
})
