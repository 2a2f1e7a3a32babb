import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import { Refusal } from '../errors.ts'
import { prove } from '../intent/request.ts'
import type { Enrolment, State } from '../store/state.ts'
import { callerKey } from '../../testing/prepared.ts'

/**
 * A node verifies a request once. The cached result never decides whether its caller is still
 * allowed to sign.
 */
const { privateKey, publicKey } = await callerKey()
const API_KEY = '6d1a5f0e-7f0f-4a3b-9c61-0d3c2b1a4e5f'
const IAT = 1_800_000_000
const enrolled = {
  api_key: API_KEY,
  public_key_pem: publicKey,
  role: 'full',
  workspace: 'acme',
  sub_account: 1,
  revoked: false,
} as unknown as Enrolment
const stateOf = (enrolment: Enrolment | null) =>
  ({ enrolments: new Map(enrolment ? [[API_KEY, enrolment]] : []) }) as unknown as State
const refusal = async (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
  )

test('refuses a verified request under another key, of a revoked caller, or changed by a letter', async () => {
  const request = await signRequest({
    apiKey: API_KEY,
    privateKey,
    method: 'POST',
    uri: '/dac/v1/transaction',
    body: '{"amount":1}',
    now: IAT,
  })
  const first = await prove(stateOf(enrolled), request, IAT)
  assert.deepEqual(
    await prove(stateOf(enrolled), request, IAT + 40),
    first,
    'its age is nobody’s business here',
  )
  assert.equal(
    await refusal(prove(stateOf({ ...enrolled, revoked: true } as Enrolment), request, IAT)),
    'NOT_ENROLLED',
  )
  assert.equal(await refusal(prove(stateOf(null), request, IAT)), 'NOT_ENROLLED')
  const other = generateKeyPairSync('rsa', {
    modulusLength: 4096,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  assert.equal(
    await refusal(
      prove(stateOf({ ...enrolled, public_key_pem: other.publicKey } as Enrolment), request, IAT),
    ),
    'NOT_AUTHENTIC',
  )
  for (const change of [
    { body: '{"amount":2}' },
    { uri: '/dac/v1/transaction?x' },
    { method: 'PUT', uri: '/dac/v1/other' },
    { token: `${request.token}A` },
  ]) {
    const code = await refusal(prove(stateOf(enrolled), { ...request, ...change }, IAT))
    assert.ok(
      code === 'NOT_AUTHENTIC' || ('uri' in change && code === null),
      `${JSON.stringify(change)}: ${code}`,
    )
  }
  assert.equal(
    await refusal(prove(stateOf(enrolled), request, IAT - 100)),
    'NOT_AUTHENTIC',
    'iat is in the future',
  )
  assert.deepEqual(
    await prove(stateOf({ ...enrolled, role: 'read-only' } as Enrolment), request, IAT).then(
      ({ enrolment }) => enrolment.role,
    ),
    'read-only',
  )
})

test('refuses a request until a minute before its nbf, even if it was verified before', async () => {
  const of = (nbf: number) =>
    signRequest({
      apiKey: API_KEY,
      privateKey,
      method: 'POST',
      uri: '/dac/v1/transaction',
      body: '{}',
      now: IAT,
      claims: { nbf },
    })
  const request = await of(IAT + 1000)
  const reason = async (now: number) =>
    prove(stateOf(enrolled), request, now).then(
      () => null,
      (error: unknown) => (error as Refusal).message,
    )
  assert.equal(await reason(IAT), 'nbf is in the future')
  assert.equal(await reason(IAT + 939), 'nbf is in the future')
  assert.equal(await reason(IAT + 940), null)
  assert.equal(await reason(IAT), 'nbf is in the future')
  assert.equal(await refusal(prove(stateOf(enrolled), await of(IAT - 1000), IAT)), null)
})
