// Policy files, which people pass on to each other, so their content may be anything.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allow, keyOf, policyWith } from '../../testing/documents.ts'
import { signWith, statementsOf } from '../../testing/statements.ts'
import { PolicyError } from '../error.ts'
import { policyFileValue, readPolicyFile } from './policy-file.ts'

const policy = policyWith([allow('pay')])
const { document } = policy
const possession = signWith(keyOf('alice'), statementsOf(policy).possession)
const change = signWith(keyOf('alice'), statementsOf(policy).change)

test('reads a document alone, or with signed statements, which remain unchanged', () => {
  assert.deepEqual(readPolicyFile(JSON.stringify(document)), {
    document,
    possessions: [],
    approvals: [],
  })
  const file = { document, possessions: [possession], approvals: [change] }
  const read = readPolicyFile(JSON.stringify(file))
  assert.equal(JSON.stringify(policyFileValue(read)), JSON.stringify(file))
  const { approvals: _, ...without } = file
  assert.deepEqual(policyFileValue(readPolicyFile(JSON.stringify(without))), without)
})

test('refuses other files, and names the field', () => {
  for (const [text, code, message] of [
    ['text', 'FILE', /^is not valid JSON \(/],
    ['{"document":1,"document":2}', 'FILE', /^is not valid JSON \(.*"document" appears twice/],
    ['[]', 'FILE', /^must contain a JSON object$/],
    ['null', 'FILE', /^must contain a JSON object$/],
    ['1', 'FILE', /^must contain a JSON object$/],
    ['{}', 'FILE', /^must contain a policy document, or an object with the field "document"$/],
    [
      JSON.stringify({ document, proofs: [] }),
      'FILE',
      /^proofs: is not a field of a policy file; its fields are document, possessions, approvals$/,
    ],
    [JSON.stringify({ document, possessions: {} }), 'FILE', /^possessions: must be a list/],
    [JSON.stringify({ document, possessions: [possession, {}] }), 'FILE', /^possessions\[1\]: /],
    [JSON.stringify({ document, approvals: [null] }), 'FILE', /^approvals\[0\]: /],
    [JSON.stringify({ ...document, number: 0 }), 'SHAPE', /^number: /],
    [JSON.stringify({ document: { ...document, number: 0 } }), 'SHAPE', /^number: /],
  ] as const)
    assert.throws(
      () => readPolicyFile(text),
      (error) => {
        assert.ok(error instanceof PolicyError, String(error))
        assert.equal(error.code, code, text)
        assert.match(error.message, message)
        return true
      },
    )
})
