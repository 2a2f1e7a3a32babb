// Fields that only the platform states: they neither count, nor stop the service of an honest caller.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkDocument, documentHash, LIMITS } from '@custody/policy'
import { signRequest } from '@custody/request-auth'
import { allow, documentWith, keyOf } from '../../../policy/testing/documents.ts'
import {
  API_KEY,
  approval,
  approvalOf,
  caller,
  decided,
  document,
  documentOf,
  NEEDS,
  NOW_S,
  place,
  refuses,
  verify,
  withFacts,
  withHave,
  withStatement,
} from '../../testing/approval-question.ts'
import { keySigner, signDecision } from './approvals.ts'
import type { GivenDecision } from './parts.ts'

const PEM = keyOf('dan').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
const PEOPLE = ['dan', 'erin', 'compliance']
const complete = PEOPLE.map((name) => decided(approval, name))

test('a decision under an earlier document that was not passed is ignored, with the reason', async () => {
  const next = documentOf({ number: 2, previous: documentHash(document) })
  const current = await approvalOf({ document: next })
  const have = [decided(approval, 'dan'), ...PEOPLE.map((name) => decided(current, name))]
  const verified = await verify({ ...current, have }, { documents: [next] })
  assert.deepEqual(
    verified.decisions.map(({ by, status, reason }) => [by, status, reason === null]),
    [
      ['dan', 'ignored', false],
      ['dan', 'valid', true],
      ['erin', 'valid', true],
      ['compliance', 'valid', true],
    ],
  )
  assert.deepEqual([verified.approved_by, verified.is_complete], [PEOPLE, true])
  const fewer = await verify({ ...current, have: have.slice(0, 1) }, { documents: [next] })
  assert.deepEqual([fewer.approved_by, fewer.is_complete], [[], false])
})

test('a decision of a clock that is ahead does not count yet', async () => {
  const ahead = decided(approval, 'dan', { at: NOW_S + 90 })
  const { decisions, approved_by } = await verify(withHave(ahead))
  assert.deepEqual([decisions[0]?.status, approved_by], ['ignored', []])
  assert.match(decisions[0]?.reason ?? '', /future/)
})

test('attack: decisions and quorums beyond the limits of an approval are refused', async () => {
  const dan = decided(approval, 'dan')
  const many = (length: number) => Array.from({ length }, () => dan)
  const most = 2 * LIMITS.approvals
  assert.deepEqual((await verify(withHave(...many(most)))).approved_by, ['dan'])
  await refuses('SHAPE', /have contains more than 16/, withHave(...many(most + 1)))
  const needs = Array.from({ length: LIMITS.approvalGroups + 1 }, () => NEEDS[0])
  await refuses('SHAPE', /needs contains more than 8/, { ...approval, needs })
  for (const k of [-5, 0.5, LIMITS.people + 1])
    await refuses('SHAPE', /list of quorums/, { ...approval, needs: [{ group: 'admins', k }] })
})

test('lists a person once whose decision the platform repeats', async () => {
  const dan = decided(approval, 'dan')
  const later = decided(approval, 'dan', { at: NOW_S - 4 })
  const verified = await verify(withHave(dan, dan, later))
  assert.deepEqual(verified.approved_by, ['dan'])
  assert.deepEqual(
    verified.decisions.map(({ at }) => at),
    [NOW_S - 5, NOW_S - 4],
  )
})

test('is not complete beside a valid rejection', async () => {
  const rejection = decided(approval, 'frank', { decision: 'reject' })
  for (const state of ['open', 'approved']) {
    const verified = await verify({ ...withHave(...complete, rejection), state })
    assert.deepEqual([verified.rejected_by, verified.is_complete], [['frank'], false])
  }
  assert.equal((await verify(withHave(...complete))).is_complete, true)
})

test('is not complete by a rule for own addresses, because only the nodes know those', async () => {
  for (const own of ['sub_account', 'workspace']) {
    const rule = {
      ...allow('own'),
      match: { action: ['transfer'], assets: ['ETH'], to: { own } },
      approvals: [{ group: 'compliance', k: 1 }],
    }
    const only = checkDocument(documentWith([rule], { nodes: place.nodes }))
    const of = await approvalOf({ document: only })
    const verified = await verify(
      { ...of, needs: [], have: [decided(of, 'compliance')] },
      { documents: [only] },
    )
    assert.deepEqual(
      [verified.rule, verified.requires_own_address, verified.is_complete],
      ['own', true, false],
    )
    assert.deepEqual(verified.needs, [{ group: 'compliance', k: 1, have: 1, may_approve: [] }])
  }
  assert.equal((await verify(approval)).requires_own_address, false)
})

test('attack: another largest fee than the cap of the network is refused', async () => {
  for (const fee_max of ['1', null, '9'.repeat(70)])
    await refuses('REGISTRY', /largest fee is/, withFacts({ fee_max }))
})

test('attack: a state, number or text of another form is refused with a short message', async () => {
  const { policy } = approval.statement
  for (const value of [
    { ...approval, state: 'OPEN' },
    withStatement({ policy: { ...policy, number: { toString: 1 } } }),
    withStatement({ policy: { ...policy, number: [['1']] } }),
    withStatement({ policy: { ...policy, hash: 'x'.repeat(5000) } }),
  ])
    await refuses('SHAPE', /^.{1,200}$/, value)
  const forged = `acme\n\u001B[2K\u2028{"level":"info"}${'x'.repeat(5000)}`
  await refuses('OTHER_PLACE', /^[^\p{C}\u2028]{1,600}$/u, withStatement({ workspace: forged }))
})

test('refuses a present time that is not a whole number of seconds', async () => {
  const expired = decided(approval, 'dan', { at: NOW_S - 80, expires: NOW_S - 70 })
  for (const now_s of [Number.NaN, Infinity, -1, 0.5])
    await assert.rejects(verify(withHave(expired), { now_s }), TypeError)
  const verified = await verify(approval)
  const signer = { ...keySigner(PEM), sign: () => assert.fail('it signed') }
  for (const options of [{ now_s: Number.NaN }, { now_s: NOW_S, valid_s: Number.NaN }])
    await assert.rejects(signDecision(verified, 'approve', signer, options), TypeError)
})

test('refuses a request with a query, for which the nodes sign nothing', async () => {
  const uri = '/dac/v1/transaction?a=1'
  const { body } = approval.request
  const request = await signRequest({
    apiKey: API_KEY,
    privateKey: caller.privateKey,
    method: 'POST',
    uri,
    body,
    now: NOW_S - 10,
    nonce: 'nonce-1',
  })
  await refuses('REQUEST', /the path differs/, { ...approval, request })
})

test('refuses a decision of another form', async () => {
  const extra = { ...decided(approval, 'dan'), extra: 1 } as GivenDecision
  await refuses('DECISION', /unknown form/, withHave(extra))
})
