import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { NOW, policyWith } from '../../testing/documents.ts'
import { statementsOf } from '../../testing/statements.ts'
import type { EnrolmentFacts, OrderFacts } from '../facts.ts'
import { statementSentences } from '../sentences/statement-sentence.ts'
import { enrolmentApproval, orderApproval, type TankOrder } from './operator-input.ts'
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

test('the approval of an enrolment states the person who owns the key', () => {
  const person = SHAPES.approval.parse(signedBy('alice', { person: 'dan' }))
  assert.equal(
    statementSentences(person)[1],
    `Enrol the API key ${facts.api_key} with role full for sub-account "main" as a key of dan.`,
  )
  assert.notEqual(statementHash(person), statementHash(signedBy('alice')))
  assert.equal(
    SHAPES.approval.safeParse(signedBy('alice', { person: 'Dan; and more' })).success,
    false,
  )
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

const drain: TankOrder = {
  order: 'order-1',
  action: 'drain',
  facts: {
    network: 'XRP',
    asset: 'XRP',
    decimals: 6,
    amount: null,
    to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
    tag: '7',
    resource: null,
  },
}
const stake: TankOrder = {
  order: 'order-2',
  action: 'tank-stake',
  facts: {
    network: 'TRX',
    asset: 'TRX',
    decimals: 6,
    amount: '1500000',
    to: null,
    tag: null,
    resource: 'ENERGY',
  },
}
const orderedBy = (by: string, order: TankOrder): Statement => {
  const { v, mode, workspace, nodes, key } = statementsOf(policy).approval
  const own = { v, mode, workspace, nodes, by, key, at: NOW, expires: NOW + 3600 }
  return { ...own, ...orderApproval(policy, order) } as Statement
}

test('the approval of an order states what the order does with the gas tank, and its ID', () => {
  const sentencesOf = (order: TankOrder) =>
    statementSentences(SHAPES.approval.parse(orderedBy('alice', order))).slice(0, 3)
  assert.deepEqual(sentencesOf(drain), [
    'alice approves the following.',
    'Send the whole balance of the gas tank of XRP, in XRP, to rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh with tag "7".',
    'Order order-1 of the operators.',
  ])
  const untagged = { ...drain, facts: { ...drain.facts, tag: null } }
  assert.match(sentencesOf(untagged)[1]!, /to rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh without tag\.$/)
  assert.deepEqual(sentencesOf(stake).slice(1), [
    'Stake 1.5 TRX of the gas tank of TRX for ENERGY.',
    'Order order-2 of the operators.',
  ])
})

test('the bytes of the approval of an order stay as they are', () => {
  const own =
    '{"amount":"1500000","asset":"TRX","decimals":6,"network":"TRX","resource":"ENERGY","tag":null,"to":null}'
  const subject = createHash('sha256').update(own).digest('hex')
  assert.equal(
    new TextDecoder().decode(statementBytes(orderedBy('alice', stake))),
    `custody/approval/v1\n{"action":"tank-stake","at":${NOW},"by":"alice","decision":"approve","expires":${NOW + 3600},"facts":${own},"id":"order-2","key":"k1","mode":"mainnet","nodes":"${'ab'.repeat(32)}","policy":{"hash":"${policy.hash}","number":1},"subject":"${subject}","v":1,"workspace":"acme"}`,
  )
})

test('approvals of different orders are different statements', () => {
  const withFacts = (order: TankOrder, fields: Partial<OrderFacts>): TankOrder => ({
    ...order,
    facts: { ...order.facts, ...fields },
  })
  const all = [
    drain,
    { ...drain, order: 'order-3' },
    withFacts(drain, { to: 'rPEPPER7kfTD9w2To4CQk6UCfuHM9c6GDY' }),
    withFacts(drain, { tag: null }),
    withFacts(drain, { network: 'XLM' }),
    stake,
    withFacts(stake, { amount: '1500001' }),
    withFacts(stake, { resource: 'BANDWIDTH' }),
  ].map((order) => orderedBy('alice', order))
  assert.equal(new Set(all.map(statementHash)).size, all.length)
})

test('an order has the facts of its action, and no others', () => {
  const isValid = (order: TankOrder, fields: object = {}): boolean =>
    SHAPES.approval.safeParse(
      orderedBy('alice', { ...order, facts: { ...order.facts, ...fields } }),
    ).success
  assert.ok(isValid(drain) && isValid(stake))
  assert.equal(isValid(drain, { amount: '1' }), false)
  assert.equal(isValid(drain, { to: null }), false)
  assert.equal(isValid(drain, { resource: 'ENERGY' }), false)
  assert.equal(isValid(stake, { amount: null }), false)
  assert.equal(isValid(stake, { resource: null }), false)
  assert.equal(isValid(stake, { to: 'TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE' }), false)
  assert.equal(isValid(stake, { tag: '1' }), false)
})
