import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { verifyWebhook, WebhookError } from './index.ts'
import * as fc from '../../../testing/property.ts'

/** The worked example of the Standard Webhooks specification, 1.0.0. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const NOW = 1_614_265_330
const BODY = '{"test": 2432232314}'
const HEADERS = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': String(NOW),
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof WebhookError, String(error))
    return error.code
  }
  return 'believed'
}

test('accepts the specification’s example as text or bytes, with Node or Request headers', () => {
  for (const headers of [HEADERS, new Headers(HEADERS)]) {
    for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)])
      assert.deepEqual(verifyWebhook(headers, body, SECRET, { now: NOW }), { test: '2432232314' })
  }
  assert.deepEqual(verifyWebhook(HEADERS, BODY, SECRET.slice(6), { now: NOW }), {
    test: '2432232314',
  })
})

test('refuses forged or changed messages, another id, time or secret, and unknown schemes', () => {
  const other = `whsec_${randomBytes(32).toString('base64')}`
  const check = (changes: object, body: string | Uint8Array = BODY, secret = SECRET, now = NOW) =>
    codeOf(() => verifyWebhook({ ...HEADERS, ...changes }, body, secret, { now }))
  assert.equal(check({}), 'believed')
  assert.equal(check({}, BODY.replace(' ', '')), 'SIGNATURE', 'JSON that was written again')
  assert.equal(check({}, `${BODY}\n`), 'SIGNATURE')
  assert.equal(check({ 'webhook-id': 'msg_other' }), 'SIGNATURE')
  assert.equal(check({ 'webhook-timestamp': String(NOW + 1) }), 'SIGNATURE')
  assert.equal(check({}, BODY, other), 'SIGNATURE')
  for (const signature of [
    'v1,',
    'v1',
    'v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    'v1a,x',
    'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    'v1,g0hM9SsE',
  ])
    assert.equal(check({ 'webhook-signature': signature }), 'SIGNATURE', signature)
  for (const name of Object.keys(HEADERS)) {
    assert.equal(check({ [name]: undefined }), 'HEADER')
    assert.equal(check({ [name]: '' }), 'HEADER')
    assert.equal(check({ [name]: ['a', 'b'] }), 'HEADER')
  }
  for (const time of ['now', '1e9', '-1', '1614265330.5', ' 1614265330'])
    assert.equal(check({ 'webhook-timestamp': time }), 'TIMESTAMP', time)
})

test("refuses a replay older than five minutes, or older than the caller's limit", () => {
  for (const [now, toleranceS, result] of [
    [NOW + 300, undefined, 'believed'],
    [NOW - 300, undefined, 'believed'],
    [NOW + 301, undefined, 'TIMESTAMP'],
    [NOW - 301, undefined, 'TIMESTAMP'],
    [NOW + 11, 10, 'TIMESTAMP'],
    [NOW + 10, 10, 'believed'],
    [NOW + 1, 0, 'TIMESTAMP'],
  ] as const)
    assert.equal(
      codeOf(() =>
        verifyWebhook(HEADERS, BODY, SECRET, {
          now,
          ...(toleranceS === undefined ? {} : { toleranceS }),
        }),
      ),
      result,
    )
  assert.equal(
    codeOf(() => verifyWebhook(HEADERS, BODY, SECRET)),
    'TIMESTAMP',
    'the clock is this machine’s',
  )
})

test('during a secret rotation, either of two signatures suffices', () => {
  const other = `whsec_${randomBytes(32).toString('base64')}`
  const sign = (secret: string) =>
    `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update(`${HEADERS['webhook-id']}.${NOW}.${BODY}`)
      .digest('base64')}`
  const both = { ...HEADERS, 'webhook-signature': `${sign(other)} ${sign(SECRET)}` }
  for (const secret of [SECRET, other])
    assert.equal(
      codeOf(() => verifyWebhook(both, BODY, secret, { now: NOW })),
      'believed',
    )
})

test('an invalid secret is reported as an error of the calling program', () => {
  for (const secret of [
    '',
    'whsec_',
    'whsec_short',
    'whsec_!!!',
    `whsec_${randomBytes(65).toString('base64')}`,
  ])
    assert.throws(() => verifyWebhook(HEADERS, BODY, secret, { now: NOW }), TypeError, secret)
})

test("this library and the standard's own library accept each other's signatures", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 24, maxLength: 64 }),
      fc.json(),
      fc.uuid(),
      fc.boolean(),
      (key, body, id, isSpoilt) => {
        const secret = `whsec_${Buffer.from(key).toString('base64')}`
        const at = new Date()
        const signature = new Webhook(secret).sign(id, at, body)
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': isSpoilt
            ? `v1,${Buffer.from(signature.slice(3), 'base64').reverse().toString('base64')}`
            : signature,
        }
        const theirs = () => {
          try {
            new Webhook(secret).verify(body, headers)
            return 'believed'
          } catch {
            return 'SIGNATURE'
          }
        }
        const ours = codeOf(() => verifyWebhook(headers, body, secret))
        // The signature does not depend on numbers that JSON.parse rounds.
        assert.equal(ours === 'BODY' ? 'believed' : ours, theirs())
      },
    ),
    { numRuns: 100 },
  )
})

test('returns amounts of an event as exact strings, and counts as numbers', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const body =
    '{"type":"deposit.confirmed","timestamp":"2026-01-01T00:00:00.000Z","data":{"amount":0.123456789012345678,"confirmations":6},"id":"i","object":"o","version":3}'
  const signature = new Webhook(secret).sign('i', new Date(NOW * 1000), body)
  const event = verifyWebhook(
    { 'webhook-id': 'i', 'webhook-timestamp': String(NOW), 'webhook-signature': signature },
    body,
    secret,
    { now: NOW },
  )
  assert.deepEqual(
    [event.data['amount'], event.data['confirmations'], event.version],
    ['0.123456789012345678', 6, 3],
  )
})
