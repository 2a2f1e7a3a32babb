// Policy changes on the page, with a platform in this process that may lie.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkDocument, compile, documentHash, type PolicyDocument } from '@custody/policy'
import { assertionOf, newPasskey } from '../../../policy/testing/passkeys.ts'
import {
  alice,
  approvalOf,
  documentOf,
  NOW_S,
  place,
  TestPlatform,
  trust,
} from '../../testing/fixture.ts'
import { ApproverError } from '../errors.ts'
import { changeStatement, type Choice, type DetailedChange } from '../verify/change.ts'
import { Documents } from '../verify/documents.ts'
import type { ChallengeView, ChangeView } from '../views.ts'
import { callsOf } from './calls.ts'

const ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
const inForce = documentOf()
const added = newPasskey('a2')
const approval = await approvalOf(inForce)
const SIGNER = { by: 'alice', at: NOW_S, expires: NOW_S + 86_400 }

/** Returns the next document: a higher limit, and a second passkey of alice. */
const nextOf = (fields: object = {}): PolicyDocument =>
  checkDocument({
    ...inForce,
    number: 2,
    previous: documentHash(inForce),
    people: inForce.people.map((each) =>
      each.id === 'alice' ? { ...each, keys: [...each.keys, added.key] } : each,
    ),
    rules: inForce.rules.map((rule) => ({ ...rule, amount: { max: { ETH: '20' } } })),
    ...fields,
  })

function changeOf(document = nextOf(), fields: object = {}): DetailedChange {
  const { mode, workspace, nodes } = document
  return {
    id: ID,
    state: 'open',
    document,
    statement: {
      v: 1,
      mode,
      workspace,
      nodes,
      policy: { number: 1, hash: documentHash(inForce) },
      next: { number: 2, hash: documentHash(document) },
      acts_at: NOW_S + 90_000,
    },
    needs: [{ group: 'admins', k: 2, have: 0 }],
    missing: [{ person: 'alice', key: 'a2' }],
    have: [],
    expires_at: new Date((NOW_S + 500_000) * 1000).toISOString(),
    ...fields,
  }
}

function start(proposed = changeOf()) {
  const platform = new TestPlatform(structuredClone(approval))
  platform.inForce = inForce
  platform.proposed = proposed
  const calls = callsOf({
    config: {
      version: 1,
      person: 'alice',
      platform: 'http://platform.example',
      api_key: '',
      private_key_file: '',
      trust_file: '',
      document_file: null,
      origin: 'http://localhost:24873',
      host: null,
      port: 24_873,
    },
    place,
    trust,
    documents: new Documents(mkdtempSync(join(tmpdir(), 'custody-approver-')), null),
    platform,
    now: () => NOW_S * 1000,
  })
  const call = async <T>(name: string, input: object = {}): Promise<T> =>
    (await calls.get(name)?.(input as Record<string, unknown>)) as T
  /** Reads the change as the page does, and asks for the challenge of a choice. */
  const begin = async (fields: object = {}) => {
    const { review } = await call<ChangeView>('change', { id: ID })
    return call<ChallengeView>('change-challenge', {
      id: ID,
      key: 'a1',
      choice: 'approve',
      review: review ?? '',
      ...fields,
    })
  }
  return { platform, call, begin }
}

const fails = (code: string, work: Promise<unknown>) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof ApproverError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  })

const verified = {
  inForce: compile(inForce, place.registry),
  next: compile(nextOf(), place.registry),
  acts_at: NOW_S + 90_000,
}

test('displays what a change changes, computed from both documents', async () => {
  const { call } = start()
  const view = await call<ChangeView>('change', { id: ID })
  assert.equal(view.refusal, null)
  assert.deepEqual([view.number, view.hash], [2, documentHash(nextOf())])
  assert.deepEqual(
    view.differences.map(({ tendency }) => tendency),
    ['widens', 'widens'],
  )
  assert.match(view.differences.map(({ sentence }) => sentence).join(' '), /20 ETH/)
  assert.deepEqual(
    [view.keys.map(({ id }) => id), view.new_keys.map(({ id }) => id)],
    [['a1'], ['a2']],
  )
})

for (const choice of ['approve', 'reject', 'prove'] as const satisfies Choice[])
  test(`sends the statement to ${choice} a change with the passkey's assertion`, async () => {
    const { platform, call, begin } = start()
    const [key, passkey] = choice === 'prove' ? ['a2', added] : ['a1', alice]
    const challenge = await begin({ key, choice })
    const statement = changeStatement(verified, choice, { ...SIGNER, key })
    const assertion = assertionOf(passkey, statement)
    await call('change-decide', { attempt: challenge.attempt, ...assertion })
    if (choice === 'prove')
      assert.deepEqual(platform.proved, [{ by: 'alice', key: 'a2', passkey: assertion }])
    else
      assert.deepEqual(platform.given, [{ ...SIGNER, key, decision: choice, passkey: assertion }])
    await fails('ATTEMPT', call('change-decide', { attempt: challenge.attempt, ...assertion }))
  })

test('refuses a change whose document, place or number the platform has altered', async () => {
  const change = changeOf()
  const { statement } = change
  const other = nextOf({ rules: [] })
  for (const [fields, why] of [
    [{ document: other }, /does not have the hash and number/],
    [{ document: { v: 1 } }, /kind/],
    [{ id: 'other' }, /another change/],
    [{ statement: { ...statement, nodes: 'ab'.repeat(32) } }, /another installation/],
    [
      { statement: { ...statement, policy: { number: 1, hash: 'ab'.repeat(32) } } },
      /is missing here/,
    ],
    [{ statement: { ...statement, v: 2 } }, /version/],
    [{ statement: { ...statement, acts_at: 1.5 } }, /whole number/],
  ] as const) {
    const { call, begin } = start({ ...change, ...fields } as DetailedChange)
    const view = await call<ChangeView>('change', { id: ID })
    assert.match(view.refusal ?? '', why)
    assert.deepEqual([view.keys, view.differences], [[], []])
    assert.equal(view.review, null)
    await assert.rejects(begin(), ApproverError)
  }
})

for (const [key, choice] of [
  ['a1', 'approve'],
  ['a1', 'reject'],
  ['a2', 'prove'],
] as const)
  test(`attack: a change that is replaced after the page displayed it is not signed to ${choice}`, async () => {
    const other = nextOf({
      rules: inForce.rules.map((rule) => ({ ...rule, amount: { max: { ETH: '1000000' } } })),
    })
    for (const [document, fields] of [
      [other, {}],
      [nextOf(), { statement: { ...changeOf().statement, acts_at: NOW_S + 1 } }],
    ] as const) {
      const { platform, call } = start()
      const { review, hash } = await call<ChangeView>('change', { id: ID })
      assert.equal(hash, documentHash(nextOf()))
      platform.proposed = changeOf(document, fields)
      await fails('CHANGED', call('change-challenge', { id: ID, key, choice, review }))
      await fails('REVIEW', call('change-challenge', { id: ID, key, choice, review: '' }))
      // The other document can be signed only after it was displayed.
      const again = await call<ChangeView>('change', { id: ID })
      assert.deepEqual([again.refusal, again.hash], [null, documentHash(document)])
      const next = { id: ID, key, choice, review: again.review }
      await call<ChallengeView>('change-challenge', next)
      assert.deepEqual([platform.given, platform.proved], [[], []])
    }
  })

test('sends nothing for another statement, passkey, key or state', async () => {
  const { platform, call, begin: ask } = start()
  await fails('NO_PASSKEY', ask({ key: 'a2' }))
  await fails('NO_PASSKEY', ask({ choice: 'prove' }))
  await fails('INPUT', ask({ choice: 'maybe' }))
  await fails('INPUT', ask({ id: '../policy' }))
  const { attempt } = await ask()
  const veto = changeStatement(verified, 'reject', { ...SIGNER, key: 'a1' })
  await fails('PASSKEY', call('change-decide', { attempt, ...assertionOf(alice, veto) }))
  platform.proposed = changeOf(undefined, { state: 'held' })
  await fails('APPROVAL_CLOSED', ask())
  await ask({ choice: 'reject' })
  platform.proposed = changeOf(undefined, { state: 'in_force' })
  await fails('APPROVAL_CLOSED', ask({ choice: 'reject' }))
  assert.deepEqual([platform.given, platform.proved], [[], []])
})
