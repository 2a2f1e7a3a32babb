import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passkeyProblem, type Attempt } from './passkey-problem.ts'

const WINDOWS = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0.0.0'
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15'
const attempt: Attempt = { action: 'create', elapsedMs: 800, timeoutMs: 120_000, userAgent: MAC }
/** Errors of `navigator.credentials` by WebAuthn Level 3, sections 5.1.3 and 5.1.4. */
const NAMES = [
  'NotAllowedError',
  'AbortError',
  'NotSupportedError',
  'InvalidStateError',
  'SecurityError',
  'ConstraintError',
  'UnknownError',
]
const named = (name: string) => Object.assign(new Error(`text of ${name}`), { name })

test('no message claims that the person cancelled the request', () => {
  for (const name of NAMES)
    for (const action of ['create', 'sign'] as const)
      for (const userAgent of [WINDOWS, MAC])
        for (const elapsedMs of [0, 119_999, 120_000]) {
          const { code, message } = passkeyProblem(named(name), {
            ...attempt,
            action,
            userAgent,
            elapsedMs,
          })
          assert.doesNotMatch(message, /you cancelled/i, name)
          assert.doesNotMatch(code, /CANCEL/, name)
          assert.notEqual(message, '')
        }
})

test('names RS256 as a possible cause and the way out, if no passkey was created', () => {
  for (const name of ['NotAllowedError', 'AbortError'])
    for (const [userAgent, text] of [
      [WINDOWS, /Windows Hello on this computer may support RS256 only: choose another device/],
      [MAC, /may support RS256 only, as Windows Hello on some computers does/],
    ] as const) {
      const { code, message } = passkeyProblem(named(name), { ...attempt, userAgent })
      assert.equal(code, 'NOT_USED')
      assert.match(message, text)
      assert.match(message, /the browser does not say why/)
      assert.match(message, /ES256 or Ed25519.*a phone, a security key.*keygen --type ed25519/)
    }
})

test('a refusal of the algorithms is stated as known', () => {
  const { code, message } = passkeyProblem(named('NotSupportedError'), attempt)
  assert.equal(code, 'ALGORITHM')
  assert.match(message, /^This authenticator supports neither ES256 nor Ed25519\./)
  assert.match(message, /a phone, a security key/)
  assert.equal(
    passkeyProblem(named('NotSupportedError'), { ...attempt, action: 'sign' }).code,
    'PASSKEY',
  )
})

test('the algorithm is no possible cause of a signature that failed', () => {
  const { code, message } = passkeyProblem(named('NotAllowedError'), { ...attempt, action: 'sign' })
  assert.equal(code, 'NOT_USED')
  assert.match(message, /the dialog was closed, or this device does not have the passkey/)
  assert.doesNotMatch(message, /RS256/)
})

test('an expired time, an existing passkey, another domain and other errors have their own message', () => {
  for (const [name, elapsedMs, code, text] of [
    ['NotAllowedError', 120_000, 'TIMED_OUT', /within 120 seconds/],
    ['InvalidStateError', 1, 'EXISTS', /already has this passkey/],
    ['SecurityError', 1, 'DOMAIN', /"npx custody approver run"/],
    ['UnknownError', 1, 'PASSKEY', /^text of UnknownError$/],
  ] as const) {
    const problem = passkeyProblem(named(name), { ...attempt, elapsedMs })
    assert.equal(problem.code, code)
    assert.match(problem.message, text)
  }
  assert.deepEqual(passkeyProblem('odd', attempt), { code: 'PASSKEY', message: 'odd' })
})
