// Determines with which API user a browser's key signs if others have requested API users with the
// same public key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeKeys } from './key-state.ts'
import type { BrowserKey } from './keys.ts'
import type { ApiUser } from './types.ts'

const key = { fingerprint: 'f', workspace: 'acme', sub_account: 'main' } as BrowserKey
const me = { id: 'me', email: 'me@example.test', name: 'Me' }
const stranger = { id: 'stranger', email: 'stranger@example.test', name: 'Stranger' }
const user = (more: Partial<ApiUser>) =>
  ({
    id: 'u',
    api_key: 'u',
    key_fingerprint: 'f',
    sub_account: 'main',
    role: 'full',
    enrolment: 'enrolled',
    revoked_at: null,
    person: me,
    ...more,
  }) as ApiUser
const judged = (...users: ApiUser[]) => {
  const { state, user: result } = judgeKeys([key], users, {
    workspace: 'acme',
    subAccount: 'main',
    personId: 'me',
  })
  return [state, result?.id ?? null]
}

test("attack: another person's API user or request with this public key changes nothing here", () => {
  const others = [
    user({ id: 'x', person: stranger }),
    user({ id: 'y', person: stranger, role: 'read-only' }),
    user({ id: 'z', person: stranger, enrolment: 'pending', api_key: null }),
    user({ id: 'w', person: stranger, revoked_at: '2026-01-01T00:00:00Z' }),
  ]
  for (const other of others) {
    assert.deepEqual(judged(other), ['unknown', null])
    assert.deepEqual(judged(other, user({})), ['ready', 'u'])
    assert.deepEqual(judged(other, user({ enrolment: 'pending', api_key: null })), ['pending', 'u'])
  }
})

test("uses an API user without an owner, but prefers the person's own API user", () => {
  assert.deepEqual(judged(user({ id: 'typed', person: null })), ['ready', 'typed'])
  assert.deepEqual(judged(user({ id: 'typed', person: null }), user({ id: 'own' })), [
    'ready',
    'own',
  ])
  assert.deepEqual(
    judged(user({ id: 'typed', person: null, role: 'read-only' }), user({ id: 'own' })),
    ['ready', 'own'],
  )
})
