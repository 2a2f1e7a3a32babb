// Texts of the errors of statements: what is wrong, and in which field.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOf, NOW, policyWith } from '../../testing/documents.ts'
import { newPasskey } from '../../testing/passkeys.ts'
import { signWith, statementsOf } from '../../testing/statements.ts'
import { PolicyError } from '../error.ts'
import type { Statement } from './shapes.ts'
import { isSignedByKey, readSigned, verifyStatement } from './verify.ts'

const policy = policyWith([])
const base = (kind: Statement['kind'], fields: object = {}): Statement =>
  ({ ...statementsOf(policy)[kind], ...fields }) as Statement
const messageOf = (call: () => unknown): string => {
  try {
    call()
  } catch (error) {
    assert.ok(error instanceof PolicyError, String(error))
    return `${error.code} ${error.message}`
  }
  return 'verified'
}
const verdict = (statement: Statement, suspended: string[] = [], signer = 'alice'): string =>
  messageOf(() =>
    verifyStatement(policy, signWith(keyOf(signer), statement), {
      now_s: NOW,
      suspended: new Set(suspended),
    }),
  )

test('states which field of a statement is wrong, and what is expected', () => {
  const stop = (fields: object) => base('stop', fields)
  const target = (person: string, key = 'k1') => base('suspend', { target: { person, key } })
  const next = { number: 3, hash: 'ab'.repeat(32) }
  for (const [statement, expected] of [
    [stop({ mode: 'local' }), 'OTHER_WORKSPACE mode: is not that of the document'],
    [
      base('veto', { policy: { number: 2, hash: policy.hash } }),
      `OTHER_POLICY policy: is not the document 1 with hash ${policy.hash}`,
    ],
    [base('veto', { next }), 'OTHER_POLICY next.number: must be 2'],
    [stop({ at: NOW + 61, expires: NOW + 99 }), 'NOT_YET at: is in the future; check both clocks'],
    [stop({ at: NOW, expires: NOW }), 'SHAPE expires: must be 1 to 604800 seconds after at'],
    [stop({ at: NOW - 9, expires: NOW }), 'EXPIRED expires: the statement has expired'],
    [stop({ by: 'zoe' }), 'UNKNOWN_PERSON by: zoe is not in the document'],
    [stop({ key: 'k9' }), 'UNKNOWN_KEY key: k9 is not a key of alice'],
    [target('zoe'), 'UNKNOWN_PERSON target.person: zoe is not in the document'],
    [target('bob', 'k9'), 'UNKNOWN_KEY target.key: k9 is not a key of bob'],
    [target('alice'), 'NOT_ALLOWED by: the document does not allow this statement of alice'],
    [stop({ by: 'carol' }), 'SIGNATURE signature: does not verify with the key'],
  ] as const)
    assert.equal(verdict(statement), expected)
  assert.equal(verdict(base('resume'), ['alice/k1']), 'KEY_SUSPENDED key: k1 of alice is suspended')
})

test('a member of any group of the quorum may approve a change and the end of a stop', () => {
  const approvals = [
    { group: 'admins', k: 1 },
    { group: 'treasury', k: 1 },
  ]
  const { change } = policy.document
  const of = policyWith([], { change: { ...change, approvals }, resume: { approvals } })
  for (const kind of ['change', 'resume'] as const)
    for (const [by, expected] of [
      ['alice', 'verified'],
      ['dan', 'verified'],
      ['compliance', 'NOT_ALLOWED by: the document does not allow this statement of compliance'],
    ] as const) {
      const statement = { ...statementsOf(of)[kind], by } as Statement
      const verify = () =>
        verifyStatement(of, signWith(keyOf(by), statement), { now_s: NOW, suspended: new Set() })
      assert.equal(messageOf(verify), expected, kind)
    }
})

test('a statement without a proof of the form of its key is not signed', () => {
  const statement = base('stop')
  assert.equal(isSignedByKey(keyOf('alice').key, statement, {}), false)
  assert.equal(isSignedByKey(newPasskey('p1').key, statement, { signature: 'A' }), false)
})

test('a statement is read with the path of the field that is wrong', () => {
  const read = (statement: unknown) =>
    messageOf(() => readSigned(JSON.stringify({ statement, signature: 'x' })))
  assert.equal(read(base('stop')), 'verified')
  assert.equal(
    read({ ...base('approval'), action: 'stake' }),
    'SHAPE statement: must have the facts of its action',
  )
  assert.equal(read(base('stop', { v: 2 })).split(':')[0], 'SHAPE statement.v')
  assert.match(read(base('stop', { nodes: 'x' })), /^SHAPE statement\.nodes: must be 64/)
  assert.match(
    messageOf(() => readSigned('{')),
    /^FORMAT /,
  )
  assert.match(
    messageOf(() => readSigned(`"${'x'.repeat(8_192)}"`)),
    /^FORMAT .*8192/,
  )
})

test('each kind of statement needs a member of its own group', () => {
  const groups = {
    ...policy.document.groups,
    vetoers: ['carol'],
    stoppers: ['dan'],
    enders: ['erin'],
  }
  const { change } = policy.document
  const of = policyWith([], {
    groups,
    change: { ...change, veto: 'vetoers' },
    stop: { group: 'stoppers' },
    resume: { approvals: [{ group: 'enders', k: 1 }] },
  })
  const allowed = (kind: Statement['kind']) =>
    ['alice', 'carol', 'dan', 'erin', 'frank'].filter((by) => {
      const target = { person: kind === 'revoke' ? by : 'bob', key: 'k1' }
      const fields = kind === 'suspend' || kind === 'revoke' ? { by, target } : { by }
      const statement = { ...statementsOf(of)[kind], ...fields } as Statement
      const verify = () =>
        verifyStatement(of, signWith(keyOf(by), statement), { now_s: NOW, suspended: new Set() })
      const result = messageOf(verify)
      assert.match(result, /^(?:verified$|NOT_ALLOWED by: )/)
      return result === 'verified'
    })
  const everyone = ['alice', 'carol', 'dan', 'erin', 'frank']
  assert.deepEqual(allowed('approval'), everyone)
  assert.deepEqual(allowed('possession'), everyone)
  assert.deepEqual(allowed('revoke'), everyone)
  assert.deepEqual(allowed('change'), ['alice', 'carol'])
  assert.deepEqual(allowed('veto'), ['carol'])
  assert.deepEqual(allowed('stop'), ['dan'])
  assert.deepEqual(allowed('suspend'), ['dan'])
  assert.deepEqual(allowed('resume'), ['erin'])
})

test('the fields of an assertion are base64url without padding', () => {
  const statement = base('stop')
  const passkey = { client_data: 'AA', authenticator_data: 'AA', signature: 'AA' }
  const read = (fields: object) =>
    messageOf(() => readSigned(JSON.stringify({ statement, passkey: { ...passkey, ...fields } })))
  assert.equal(read({}), 'verified')
  for (const field of Object.keys(passkey))
    for (const text of ['', '=AA', 'AA=', 'A+', '/A'])
      assert.equal(
        read({ [field]: text }),
        `SHAPE passkey.${field}: must be base64url without padding`,
      )
})
