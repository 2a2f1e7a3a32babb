// Tests of the sign-in to the control panel: which people are admitted and which are refused, on
// the real server and database, without chains or nodes.
import assert from 'node:assert/strict'
import { before, beforeEach, test } from 'node:test'
import { networkOf } from '../../core/http/client-network.ts'
import { forgetSignIns } from './forget.ts'
import { invite } from './invitations.ts'
import { hashPassword, isPassword, PASSWORD_COST } from './password.ts'
import { stepOfCode } from './totp.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import {
  Authenticator,
  Browser,
  codeOf,
  join,
  type Somebody,
} from '../../../testing/console-fixture.ts'

const api = useApi()
const MINUTE_MS = 60_000
let now = Date.UTC(2026, 5, 1)
let owner: Somebody
let workspace = ''

before(async () => {
  await api.started
  api.now = () => now
  owner = await join(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })
  workspace = (
    await api.database.one<{ id: string }>(`select id from workspaces where name = 'acme'`)
  )?.id as string
})
// The clock advances between tests, because a code is accepted only once and the number of sign-ins
// per minute and address is limited.
beforeEach(() => {
  now += 2 * MINUTE_MS
})

const begin = (who: { email: string; password: string }, browser: Browser) =>
  browser.ask<{ mfa_token: string } & Problem>('POST', '/sign-in/password', {
    email: who.email,
    password: who.password,
  })

/**
 * Signs a person in by password and authenticator app, at a later time step than the previous
 * sign-in.
 */
async function signIn(who: Somebody, browser = new Browser(api)): Promise<Browser> {
  now += 30_000
  const { body } = await begin(who, browser)
  const { status, text } = await browser.ask('POST', '/sign-in/totp', {
    mfa_token: body.mfa_token,
    code: codeOf(who.secret, now),
  })
  assert.equal(status, 200, text)
  return browser
}

const refused = async (
  request: Promise<{ status: number; body: unknown; text: string }>,
  status: number,
  code: string,
) => {
  const answer = await request
  assert.equal(answer.status, status, answer.text)
  assert.equal((answer.body as Problem).code, code, answer.text)
  return answer.body as Problem & { locked_until?: string }
}

const linkFor = (o: { role?: 'owner' | 'viewer'; email?: string; person?: string } = {}) =>
  invite(api.services, api.database, {
    workspaceId: o.person === undefined ? workspace : null,
    role: o.role ?? 'viewer',
    email: o.email ?? null,
    person: o.person ?? null,
    by: null,
  }).then(({ token }) => token)

/** Registers a person by passkey. */
async function joinByPasskey(phone: Authenticator, email: string, token: string) {
  const browser = new Browser(api)
  const request = await browser.ask<{
    challenge_id: string
    options: { challenge: string; user: { id: string } }
  }>('POST', '/join/passkey/options', { invitation: token, email, name: 'Phone' })
  assert.equal(request.status, 200, request.text)
  const response = phone.create(request.body.options, browser.origin)
  return {
    browser,
    asked: request.body,
    made: await browser.ask('POST', '/join/passkey', {
      challenge_id: request.body.challenge_id,
      response,
    }),
  }
}

/**
 * Signs in by passkey.
 * @param change the attacker's change to the response
 */
async function showPasskey(
  phone: Authenticator,
  o: { origin?: string; flags?: number; challenge?: string } = {},
  browser = new Browser(api),
) {
  const request = await browser.ask<{ challenge_id: string; options: { challenge: string } }>(
    'POST',
    '/sign-in/passkey/options',
  )
  assert.equal(request.status, 200, request.text)
  const response = phone.get(
    { challenge: o.challenge ?? request.body.options.challenge },
    o.origin ?? browser.origin,
    o.flags,
  )
  return {
    browser,
    response,
    id: request.body.challenge_id,
    shown: await browser.ask('POST', '/sign-in/passkey', {
      challenge_id: request.body.challenge_id,
      response,
    }),
  }
}

test('accepts RFC 6238 codes of the current, previous and next time step, and no others', () => {
  // Test vectors of RFC 6238, appendix B, for SHA-1. They have eight digits, of which the app
  // displays six. The secret is 12345678901234567890.
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  for (const [second, code] of [
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ] as const) {
    const step = Math.floor(second / 30)
    assert.equal(stepOfCode(secret, code, second * 1000), step)
    assert.equal(stepOfCode(secret, code, (second + 30) * 1000), step)
    assert.equal(stepOfCode(secret, code, (second - 30) * 1000), step)
    assert.equal(stepOfCode(secret, code, (second + 60) * 1000), null)
    assert.equal(stepOfCode(secret, code.slice(1), second * 1000), null)
  }
})

test('a password hash keeps its scrypt cost and accepts any Unicode form of the password', async () => {
  const environment = systemEnvironment()
  const stored = await hashPassword(environment, 'Straße é', { log2N: 4, r: 8, p: 1 })
  assert.match(stored, /^scrypt\$4\$8\$1\$/)
  assert.equal(await isPassword('Straße e\u0301', stored, PASSWORD_COST), true)
  assert.equal(await isPassword('Strasse é', stored, PASSWORD_COST), false)
  assert.equal(await isPassword('', null, { log2N: 4, r: 8, p: 1 }), false)
  assert.notEqual(stored, await hashPassword(environment, 'Straße é', { log2N: 4, r: 8, p: 1 }))
})

test('each sign-in replaces the HttpOnly session cookie, and the earlier cookie is refused', async () => {
  const browser = await signIn(owner)
  const first = browser.cookie
  assert.match(first, /^custody=[\w-]{43}$/)
  await signIn(owner, browser)
  assert.notEqual(browser.cookie, first)
  const stolen = new Browser(api)
  stolen.cookie = first
  await refused(stolen.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  // Session fixation: a cookie that an attacker set before the sign-in is not accepted and is
  // replaced.
  const fixed = new Browser(api)
  fixed.cookie = `custody=${'A'.repeat(43)}`
  await signIn(owner, fixed)
  assert.notEqual(fixed.cookie, `custody=${'A'.repeat(43)}`)
  const twice = new Browser(api)
  twice.cookie = `${fixed.cookie}; custody=${'A'.repeat(43)}`
  await refused(twice.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  const { headers } = await browser.ask('POST', '/sign-out')
  assert.equal(
    headers['set-cookie']?.[0],
    'custody=; Max-Age=0; Path=/console; HttpOnly; SameSite=Strict',
  )
  const rows = await api.database.query<{ row: string }>(
    'select row_to_json(s)::text row from sessions s',
  )
  assert.ok(
    rows.every(({ row }) => !row.includes(first.slice(8))),
    'the token itself is stored nowhere',
  )
})

test('an unknown e-mail address and a wrong password get the same response', async () => {
  const browser = new Browser(api)
  const [unknown, wrong] = [
    await refused(
      begin({ email: 'nobody@example.test', password: owner.password }, browser),
      401,
      'SIGN_IN_FAILED',
    ),
    await refused(begin({ ...owner, password: 'wrong' }, browser), 401, 'SIGN_IN_FAILED'),
  ]
  assert.equal(unknown.message, wrong.message)
  await refused(begin({ email: 'no address', password: 'x' }, browser), 400, 'INVALID_REQUEST')
  await signIn(owner)
})

test('a code is accepted once, within its time, and a sign-in allows five attempts', async () => {
  const who = await join(api, workspace, 'viewer')
  await signIn(who)
  const used = codeOf(who.secret, now)
  const browser = new Browser(api)
  const {
    body: { mfa_token },
  } = await begin(who, browser)
  await refused(
    browser.ask('POST', '/sign-in/totp', { mfa_token, code: used }),
    401,
    'SIGN_IN_FAILED',
  )
  await refused(
    browser.ask('POST', '/sign-in/totp', { mfa_token, code: codeOf(who.secret, now - 30_000) }),
    401,
    'SIGN_IN_FAILED',
  )
  now += 5 * MINUTE_MS
  await refused(
    browser.ask('POST', '/sign-in/totp', { mfa_token, code: codeOf(who.secret, now) }),
    401,
    'SIGN_IN_FAILED',
  )
  await refused(
    browser.ask('POST', '/sign-in/totp', {
      mfa_token: 'A'.repeat(43),
      code: codeOf(who.secret, now),
    }),
    401,
    'SIGN_IN_FAILED',
  )
  const logged = await api.database.query(
    `select details from audit_log where action = 'sign_in.failed' and actor_name = $1`,
    [who.email],
  )
  assert.deepEqual(logged, [{ details: { factor: 'totp' } }, { details: { factor: 'totp' } }])
})

test('a recovery code signs in once, in any letter case or spacing; new codes replace old ones', async () => {
  const who = await join(api, workspace, 'viewer')
  const [first = '', second = ''] = who.recovery
  assert.match(first, /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/)
  const by = async (code: string) => {
    const browser = new Browser(api)
    const {
      body: { mfa_token },
    } = await begin(who, browser)
    return {
      browser,
      answer: await browser.ask<{ person: { recovery_codes_left: number } }>(
        'POST',
        '/sign-in/recovery',
        { mfa_token, code },
      ),
    }
  }
  const { browser, answer } = await by(first.toLowerCase().replaceAll('-', ' '))
  assert.equal(answer.body.person.recovery_codes_left, 9)
  await refused(
    by(first).then(({ answer: again }) => again),
    401,
    'SIGN_IN_FAILED',
  )
  const { body } = await browser.ask<{ recovery_codes: string[] }>('POST', '/me/recovery-codes')
  assert.equal(new Set(body.recovery_codes).size, 10)
  await refused(
    by(second).then(({ answer: old }) => old),
    401,
    'SIGN_IN_FAILED',
  )
  assert.equal((await by(body.recovery_codes[0] as string)).answer.status, 200)
})

test('failed sign-ins lock an e-mail address for doubling times, and a success resets the count', async () => {
  const who = await join(api, workspace, 'viewer')
  for (const email of [who.email, 'nobody2@example.test']) {
    const browser = new Browser(api)
    for (let failure = 0; failure < 5; failure++)
      await refused(begin({ email, password: 'wrong' }, browser), 401, 'SIGN_IN_FAILED')
    const locked = await begin({ email, password: who.password }, browser)
    const { locked_until } = await refused(Promise.resolve(locked), 429, 'RATE_LIMITED')
    assert.equal(locked.headers['retry-after'], '60')
    assert.equal(locked_until, new Date(now + MINUTE_MS).toISOString())
    now += MINUTE_MS
    await refused(begin({ email, password: 'wrong' }, browser), 401, 'SIGN_IN_FAILED')
    now += MINUTE_MS
    await refused(begin({ email, password: who.password }, browser), 429, 'RATE_LIMITED')
    now += MINUTE_MS
  }
  await signIn(who)
  for (let failure = 0; failure < 4; failure++)
    await refused(begin({ ...who, password: 'wrong' }, new Browser(api)), 401, 'SIGN_IN_FAILED')
  await signIn(who)
  // Concurrent attempts are counted together.
  now += 5 * MINUTE_MS
  const all = await Promise.all(
    Array.from({ length: 12 }, () => begin({ ...who, password: 'wrong' }, new Browser(api))),
  )
  assert.deepEqual(all.map(({ status }) => status).sort(), [
    ...Array<number>(5).fill(401),
    ...Array<number>(7).fill(429),
  ])
  await refused(begin(who, new Browser(api)), 429, 'RATE_LIMITED')
  now += 86_400_001
  await forgetSignIns(api.services)
  assert.deepEqual(await api.database.query('select subject from sign_in_failures'), [])
  await signIn(who)
})

test('clients are counted by IPv4 address or IPv6 /64 network', () => {
  for (const [ip, counted] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ] as const)
    assert.equal(networkOf(ip), counted)
})

test('one client address can start a limited number of sign-ins per minute', async () => {
  const browser = new Browser(api)
  now = Math.ceil(now / MINUTE_MS) * MINUTE_MS
  for (let count = 0; count < 60; count++) await browser.ask('POST', '/sign-in/passkey/options')
  await refused(browser.ask('POST', '/sign-in/passkey/options'), 429, 'RATE_LIMITED')
  now += MINUTE_MS
  assert.equal((await browser.ask('POST', '/sign-in/passkey/options')).status, 200)
})

test('a passkey signs in only for its site and challenge and with user verification', async () => {
  const phone = new Authenticator()
  const { made, asked: request } = await joinByPasskey(phone, 'phone@example.test', await linkFor())
  assert.equal(made.status, 200, made.text)
  assert.deepEqual(
    (request.options as unknown as { pubKeyCredParams: { alg: number }[] }).pubKeyCredParams.map(
      ({ alg }) => alg,
    ),
    [-8, -7, -257],
  )
  const good = await showPasskey(phone)
  assert.equal(good.shown.status, 200, good.shown.text)
  await refused(
    good.browser.ask('POST', '/sign-in/passkey', {
      challenge_id: good.id,
      response: good.response,
    }),
    401,
    'SIGN_IN_FAILED',
  )
  for (const attack of [{ origin: 'https://evil.test' }, { flags: 0x01 }, { challenge: 'AAAA' }]) {
    await refused(
      showPasskey(phone, attack).then(({ shown }) => shown),
      401,
      'SIGN_IN_FAILED',
    )
  }
  // Simulates a copy of the authenticator that was made earlier, with a lower counter.
  phone.counter = 0
  await refused(
    showPasskey(phone).then(({ shown }) => shown),
    401,
    'SIGN_IN_FAILED',
  )
  phone.counter += 10
  assert.equal((await showPasskey(phone)).shown.status, 200)
  await refused(
    showPasskey(new Authenticator()).then(({ shown }) => shown),
    401,
    'SIGN_IN_FAILED',
  )
  // A passkey that was created for another site is refused.
  const browser = new Browser(api)
  const token = await linkFor()
  const { body } = await browser.ask<{
    challenge_id: string
    options: { challenge: string; user: { id: string } }
  }>('POST', '/join/passkey/options', {
    invitation: token,
    email: 'other@example.test',
    name: 'Other',
  })
  const response = new Authenticator().create(body.options, 'http://localhost:1')
  await refused(
    browser.ask('POST', '/join/passkey', { challenge_id: body.challenge_id, response }),
    401,
    'SIGN_IN_FAILED',
  )
  assert.equal(
    (await browser.ask('POST', '/join/invitation', { invitation: token })).status,
    200,
    'nothing was taken',
  )
})

test('passkeys are refused at an IP address, and the error names the host that supports them', async () => {
  const browser = new Browser(api)
  browser.host = browser.host.replace('localhost', '127.0.0.1')
  const { message } = await refused(
    browser.ask('POST', '/sign-in/passkey/options'),
    409,
    'PASSKEY_UNAVAILABLE',
  )
  assert.match(message, /http:\/\/localhost:\d+\/console/)
  assert.equal(
    (await browser.ask<{ passkeys_available: boolean }>('GET', '/session')).body.passkeys_available,
    false,
  )
})

test('an invitation is accepted once, by its addressee; a person with an account signs in first', async () => {
  const token = await linkFor({ role: 'viewer', email: 'invited@example.test' })
  const browser = new Browser(api)
  const said = { email: 'else@example.test', name: 'Else', password: owner.password }
  await refused(
    browser.ask('POST', '/join/password', { ...said, invitation: token }),
    400,
    'INVALID_REQUEST',
  )
  await refused(
    browser.ask('POST', '/join/password', {
      invitation: await linkFor(),
      ...said,
      email: owner.email,
    }),
    400,
    'INVALID_REQUEST',
  )
  await refused(
    browser.ask('POST', '/join/password', {
      invitation: await linkFor(),
      ...said,
      workspace: 'mine',
    }),
    400,
    'INVALID_REQUEST',
  )
  await refused(
    browser.ask('POST', '/join/password', {
      invitation: await linkFor(),
      ...said,
      password: 'short',
    }),
    400,
    'INVALID_REQUEST',
  )
  const guessed = await refused(
    browser.ask('POST', '/join/password', {
      invitation: await linkFor(),
      ...said,
      password: 'password1234',
    }),
    400,
    'INVALID_REQUEST',
  )
  assert.equal(guessed.field, 'password')
  const other = await api.user('other')
  const { token: elsewhere } = await invite(api.services, api.database, {
    workspaceId: other.workspaceId,
    role: 'viewer',
    email: null,
    person: null,
    by: null,
  })
  await refused(browser.ask('POST', '/join', { invitation: elsewhere }), 401, 'SIGN_IN_REQUIRED')
  const who = await join(api, workspace, 'viewer')
  await refused(who.browser.ask('POST', '/join', { invitation: token }), 403, 'ROLE_REQUIRED')
  const before = who.browser.cookie
  const { body } = await who.browser.ask<{ workspaces: { name: string }[] }>('POST', '/join', {
    invitation: elsewhere,
  })
  assert.deepEqual(
    body.workspaces.map(({ name }) => name),
    ['acme', 'other'],
  )
  assert.notEqual(who.browser.cookie, before)
  await refused(
    who.browser.ask('POST', '/join', { invitation: elsewhere }),
    410,
    'INVITATION_CLOSED',
  )
  const old = new Browser(api)
  old.cookie = before
  await refused(old.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  now += 7 * 86_400_000
  await refused(
    browser.ask('POST', '/join/invitation', { invitation: token }),
    410,
    'INVITATION_CLOSED',
  )
  // An invitation with a lower role does not reduce the person's role.
  await signIn(owner, owner.browser)
  await owner.browser.ask('POST', '/join', { invitation: await linkFor() })
  assert.equal(
    (await owner.browser.ask<{ workspaces: { role: string }[] }>('GET', '/session')).body
      .workspaces[0]?.role,
    'owner',
  )
})

test('if two people use one invitation concurrently, one of them joins', async () => {
  const token = await linkFor()
  const phones = [new Authenticator(), new Authenticator()]
  const begun = await Promise.all(
    phones.map(async (phone, at) => {
      const browser = new Browser(api)
      const { body } = await browser.ask<{
        challenge_id: string
        options: { challenge: string; user: { id: string } }
      }>('POST', '/join/passkey/options', {
        invitation: token,
        email: `twin${at}@example.test`,
        name: 'Twin',
      })
      return {
        browser,
        id: body.challenge_id,
        response: phone.create(body.options, browser.origin),
      }
    }),
  )
  const answers = await Promise.all(
    begun.map(({ browser, id, response }) =>
      browser.ask('POST', '/join/passkey', { challenge_id: id, response }),
    ),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 410])
  assert.deepEqual(
    await api.database.query(`select count(*)::int from people where email like 'twin%'`),
    [{ count: 1 }],
  )
})

test('a session ends after 12 idle hours or 7 days, or when its owner ends it', async () => {
  const who = await join(api, workspace, 'viewer')
  const [a, b] = [await signIn(who), await signIn(who)]
  const { body } = await a.ask<{ id: string; is_current: boolean }[]>('GET', '/me/sessions')
  assert.equal(body.length, 3)
  const own = body.find(({ is_current }) => is_current)?.id
  await refused(owner.browser.ask('DELETE', `/me/sessions/${own}`), 404, 'NOT_FOUND')
  await refused(a.ask('DELETE', '/me/sessions/nonsense'), 404, 'NOT_FOUND')
  assert.deepEqual((await b.ask('POST', '/me/sessions/revoke-others')).body, { ended: 2 })
  await refused(a.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  for (let day = 0; day < 13; day++) {
    now += 11 * 3_600_000
    assert.equal((await b.ask('GET', '/me/sessions')).status, 200)
  }
  const idle = await signIn(who)
  now += 12 * 3_600_000
  await refused(idle.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  now += 14 * 3_600_000
  await refused(b.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
})

test('changing sign-in factors requires a recent sign-in, and the last factor cannot be removed', async () => {
  const phone = new Authenticator()
  const { browser } = await joinByPasskey(phone, 'factors@example.test', await linkFor())
  const [passkey] = (await browser.ask<{ id: string }[]>('GET', '/me/passkeys')).body
  await refused(browser.ask('DELETE', `/me/passkeys/${passkey?.id}`), 409, 'LAST_FACTOR')
  now += 16 * MINUTE_MS
  for (const [method, path, body] of [
    ['POST', '/me/passkeys/options', {}],
    ['DELETE', `/me/passkeys/${passkey?.id}`, {}],
    ['POST', '/me/totp', {}],
    ['POST', '/me/password', { password: owner.password }],
    ['POST', '/me/recovery-codes', {}],
    ['DELETE', '/me/password', {}],
  ] as const)
    await refused(browser.ask(method, path, body), 403, 'RECENT_SIGN_IN_REQUIRED')
  const before = browser.cookie
  const request = await browser.ask<{ challenge_id: string; options: { challenge: string } }>(
    'POST',
    '/me/confirm/passkey/options',
  )
  const shown = {
    challenge_id: request.body.challenge_id,
    response: phone.get(request.body.options, browser.origin),
  }
  await refused(owner.browser.ask('POST', '/me/confirm/passkey', shown), 401, 'SIGN_IN_REQUIRED')
  assert.equal((await browser.ask('POST', '/me/confirm/passkey', shown)).status, 200)
  assert.notEqual(browser.cookie, before)
  // A password can be used for sign-in only after an authenticator app is set up.
  assert.deepEqual((await browser.ask('POST', '/me/password', { password: owner.password })).body, {
    has_totp: false,
  })
  await refused(
    begin({ email: 'factors@example.test', password: owner.password }, new Browser(api)),
    401,
    'SIGN_IN_FAILED',
  )
  await refused(browser.ask('DELETE', `/me/passkeys/${passkey?.id}`), 409, 'LAST_FACTOR')
  const { body: app } = await browser.ask<{
    totp_token: string
    secret: string
    otpauth_uri: string
  }>('POST', '/me/totp')
  assert.match(
    app.otpauth_uri,
    /^otpauth:\/\/totp\/Custody:factors%40example\.test\?issuer=Custody&secret=[A-Z2-7]{32}&algorithm=SHA1&digits=6&period=30$/,
  )
  await refused(
    browser.ask('POST', '/me/totp/confirm', { totp_token: app.totp_token, code: '000000' }),
    401,
    'SIGN_IN_FAILED',
  )
  const {
    body: { recovery_codes },
  } = await browser.ask<{ recovery_codes: string[] }>('POST', '/me/totp/confirm', {
    totp_token: app.totp_token,
    code: codeOf(app.secret, now),
  })
  assert.equal(recovery_codes.length, 10)
  const who: Somebody = {
    email: 'factors@example.test',
    password: owner.password,
    secret: app.secret,
    recovery: recovery_codes,
    browser,
    id: '',
  }
  assert.equal((await browser.ask('DELETE', `/me/passkeys/${passkey?.id}`)).status, 200)
  await refused(
    showPasskey(phone).then(({ shown: gone }) => gone),
    401,
    'SIGN_IN_FAILED',
  )
  await refused(browser.ask('DELETE', '/me/password'), 409, 'LAST_FACTOR')
  const second = await signIn(who)
  now += 20 * MINUTE_MS
  await refused(second.ask('POST', '/me/confirm/totp', { code: '000000' }), 401, 'SIGN_IN_FAILED')
  assert.equal(
    (await second.ask('POST', '/me/confirm/totp', { code: codeOf(app.secret, now) })).status,
    200,
  )
  await refused(
    second.ask('POST', '/me/password', { password: 'another long password' }),
    400,
    'INVALID_REQUEST',
  )
  await refused(
    second.ask('POST', '/me/password', { current: 'wrong', password: 'another long password' }),
    401,
    'SIGN_IN_FAILED',
  )
  const own = { current: who.password, password: who.email }
  assert.match(
    (await refused(second.ask('POST', '/me/password', own), 400, 'INVALID_REQUEST')).message,
    /^password: it is made of your name/,
  )
  assert.equal(
    (
      await second.ask('POST', '/me/password', {
        current: who.password,
        password: 'another long password',
      })
    ).status,
    200,
  )
  await refused(browser.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  await signIn({ ...who, password: 'another long password' })
})

test('an operator’s reset link sets new factors and ends every session of the person', async () => {
  const who = await join(api, workspace, 'viewer')
  const token = await linkFor({ person: who.id, email: who.email })
  assert.deepEqual(
    await signIn(who)
      .then((browser) => browser.ask('GET', '/session'))
      .then(({ status }) => status),
    200,
  )
  const phone = new Authenticator()
  const { made } = await joinByPasskey(phone, who.email, token)
  assert.equal(made.status, 200, made.text)
  assert.equal((await showPasskey(phone)).shown.status, 200)
  await refused(who.browser.ask('GET', '/me/sessions'), 401, 'SIGN_IN_REQUIRED')
  await refused(begin(who, new Browser(api)), 401, 'SIGN_IN_FAILED')
  assert.equal(
    (await new Browser(api).ask('POST', '/join/invitation', { invitation: token })).status,
    410,
  )
})

test('no log and no table contains a token, a code or a secret in clear text', async () => {
  const lines: string[] = []
  const { log } = api.services
  Object.assign(api.services, {
    log: { ...log, info: (...all: unknown[]) => lines.push(JSON.stringify(all)) },
  })
  const token = await linkFor()
  const browser = new Browser(api)
  await browser.ask('POST', '/join/password', {
    invitation: token,
    email: 'x',
    name: 'x',
    password: 'x',
  })
  await browser.ask('POST', '/join/invitation', { invitation: token, unknown: 1 })
  Object.assign(api.services, { log })
  assert.ok(lines.length >= 2 && lines.every((line) => !line.includes(token)), lines.join('\n'))
  const all = await api.database.query<{ row: string }>(
    `select row_to_json(t)::text row from people t union all select row_to_json(t)::text
      from recovery_codes t
     union all select row_to_json(t)::text from sign_in_steps t
       union all select row_to_json(t)::text from audit_log t
     union all select row_to_json(t)::text from invitations t`,
  )
  const stored = all.map(({ row }) => row).join('\n')
  for (const secret of [owner.secret, owner.password, ...owner.recovery, token])
    assert.ok(!stored.includes(secret))
})

test('in a bundle, the panel displays the bundle’s command instead of npx', async () => {
  const before = process.env['CUSTODY_BUNDLE']
  const browser = new Browser(api)
  try {
    process.env['CUSTODY_BUNDLE'] = 'platform'
    assert.equal(
      (await browser.ask<{ command: string }>('GET', '/session')).body.command,
      'custody',
    )
    // The base differs from that of other tests, because the text of a document is cached.
    api.services.checkout.base = 'http://bundle.test'
    for (const path of ['/openapi.json', '/openapi.json?amounts=string']) {
      const text = await (await fetch(`${api.base}${path}`)).text()
      assert.match(text, /custody verify-reserves/)
      assert.doesNotMatch(text, /npx custody/)
    }
    delete process.env['CUSTODY_BUNDLE']
    assert.equal(
      (await browser.ask<{ command: string }>('GET', '/session')).body.command,
      'npx custody',
    )
  } finally {
    api.services.checkout.base = 'http://pay.test'
    if (before === undefined) delete process.env['CUSTODY_BUNDLE']
    else process.env['CUSTODY_BUNDLE'] = before
  }
})
