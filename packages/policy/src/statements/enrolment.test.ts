import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { NOW, policyWith } from '../../testing/documents.ts'
import { statementsOf } from '../../testing/statements.ts'
import type { EnrolmentFacts } from '../facts.ts'
import { statementSentences } from '../sentences/statement-sentence.ts'
import { enrolmentApproval } from './enrolment.ts'
import { SHAPES, statementBytes, statementHash, type Statement } from './shapes.ts'

const policy = policyWith([])
const facts: EnrolmentFacts = {
  api_key: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  fingerprint: 'ab'.repeat(32),
  role: 'full',
  sub_account: 'main',
}
const signedBy = (by: string, fields: Partial<EnrolmentFacts> = {}): Statement => {
  const { v, mode, workspace, nodes, key } = statementsOf(policy).approval
  const own = { v, mode, workspace, nodes, by, key, at: NOW, expires: NOW + 3600 }
  return { ...own, ...enrolmentApproval(policy, { ...facts, ...fields }) }
}

test('the approval of an enrolment states the API key, its public key, role and sub-account', () => {
  const statement = SHAPES.approval.parse(signedBy('alice'))
  assert.deepEqual(statementSentences(statement).slice(0, 3), [
    'alice approves the following.',
    `Enrol the API key ${facts.api_key} with role full for sub-account "main".`,
    `The fingerprint of its public key is ${facts.fingerprint}.`,
  ])
})

test('the bytes of the approval of an enrolment stay as they are', () => {
  const own = `{"api_key":"${facts.api_key}","fingerprint":"${facts.fingerprint}","role":"full","sub_account":"main"}`
  const subject = createHash('sha256').update(own).digest('hex')
  const text = new TextDecoder().decode(statementBytes(signedBy('alice')))
  assert.equal(
    text,
    `custody/approval/v1\n{"action":"enrolment","at":${NOW},"by":"alice","decision":"approve","expires":${NOW + 3600},"facts":${own},"id":"${facts.api_key}","key":"k1","mode":"mainnet","nodes":"${'ab'.repeat(32)}","policy":{"hash":"${policy.hash}","number":1},"subject":"${subject}","v":1,"workspace":"acme"}`,
  )
})

test('approvals of different enrolments are different statements, with different subjects', () => {
  const all = [
    signedBy('alice'),
    signedBy('alice', { api_key: 'another' }),
    signedBy('alice', { fingerprint: 'cd'.repeat(32) }),
    signedBy('alice', { role: 'read-only' }),
    signedBy('alice', { sub_account: 'other' }),
  ]
  assert.equal(new Set(all.map(statementHash)).size, all.length)
  assert.equal(new Set(all.map((each) => 'subject' in each && each.subject)).size, all.length)
})
