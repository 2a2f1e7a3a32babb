// History of the documents in force, as a node reads it from its own record.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalText, documentHash } from '@custody/policy'
import { policyWith } from '../../../policy/testing/documents.ts'
import {
  DAY_S,
  possessionsOf,
  proposalOf,
  signedBy,
  successorOf,
} from '../../../policy/testing/governance.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import { policyVersions } from './versions.ts'

const workspace = 'acme'
const texts = (signed: readonly unknown[]) => signed.map((each) => JSON.stringify(each))

test('lists each document that came into force, newest first, with those who signed it', async () => {
  const nodes = new PolicyNodes()
  const { document } = policyWith([])
  const possessions = texts(possessionsOf(document))
  const listed = (node: number, page: { before?: number; limit: number } = { limit: 20 }) =>
    policyVersions(nodes.node(node), workspace, page)
  assert.deepEqual(listed(1), [])
  for (const node of [1, 2]) {
    const first = { workspace, document: canonicalText(document), possessions }
    nodes.node(node).exchange.type({ kind: 'first', ...first })
    await nodes.node(node).exchange.announce()
  }
  await nodes.ping()
  const start = nodes.now

  const present = async (fields: object, by: string[]) => {
    const governance = nodes.node(1).policies.current(workspace)!
    const next = successorOf(governance, fields)
    const { approvals } = proposalOf(governance, next, by, { at: nodes.now })
    nodes.node(1).exchange.present({
      kind: 'change',
      workspace,
      document: canonicalText(next),
      possessions: [],
      approvals: texts(approvals),
    })
    await nodes.node(1).exchange.announce()
    return next
  }
  const vetoed = await present({ stop: { group: 'treasury' } }, ['alice', 'bob'])
  const governance = nodes.node(1).policies.current(workspace)!
  nodes.node(1).exchange.present({
    kind: 'statement',
    workspace,
    signed: JSON.stringify(
      signedBy(governance, 'carol', 'veto', {
        at: nodes.now,
        expires: nodes.now + 3600,
        next: { number: 2, hash: documentHash(vetoed) },
      }),
    ),
  })
  await nodes.node(1).exchange.announce()
  const second = await present({ stop: { group: 'compliance' } }, ['alice', 'carol'])
  assert.deepEqual(
    listed(1).map(({ number }) => number),
    [1],
    'a pending document is not listed',
  )
  nodes.now += DAY_S + 1

  for (const node of [1, 2, 3]) {
    const [latest, first, ...more] = listed(node)
    assert.deepEqual(more, [])
    assert.deepEqual(
      [latest?.number, latest?.hash, latest?.since],
      [2, documentHash(second), start + DAY_S],
    )
    assert.equal(latest?.document, canonicalText(second))
    assert.deepEqual(latest?.signed_by, [
      { person: 'alice', key: 'k1', at: start },
      { person: 'carol', key: 'k1', at: start },
    ])
    assert.deepEqual([first?.number, first?.hash], [1, documentHash(document)])
    assert.deepEqual([latest?.kind, first?.kind], ['change', 'first'])
    assert.deepEqual(first?.signed_by[0], { person: 'alice', key: 'k1', at: null })
  }
  const numbers = (page: { before?: number; limit: number }) =>
    listed(2, page).map(({ number }) => number)
  assert.deepEqual(numbers({ limit: 1 }), [2])
  assert.deepEqual(numbers({ before: 2, limit: 1 }), [1])
  assert.deepEqual(numbers({ before: 1, limit: 1 }), [])
  nodes.stop()
})
