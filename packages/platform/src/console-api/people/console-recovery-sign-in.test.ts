// Tests of the sign-in by e-mail address and recovery code for people without a password, on the
// real server and database.
import assert from 'node:assert/strict'
import { before, beforeEach, test } from 'node:test'
import { resetPerson } from '../../server/operator/console.ts'
import { invite } from './invitations.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import {
  Authenticator,
  Browser,
  codeOf,
  join,
  type Somebody,
} from '../../../testing/console-fixture.ts'

interface SignedIn {
  person: { id: string; recovery_codes_left: number; passkeys: number }
}

const api = useApi()
const MINUTE_MS = 60_000
const WRONG = '0000-0000-0000-0000'
let now = Date.UTC(2026, 5, 1)
let owner: Somebody
let workspace = ''
let people = 0

before(async () => {
  await api.started
  api.now = () => now
  owner = await join(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })
  workspace = (
    await api.database.one<{ id: string }>(`select id from workspaces where name = 'acme'`)
  )?.id as string
})
// The clock advances by a day, so failures of the previous test expire, including those counted for
// the client address.
beforeEach(() => {
  now += 86_400_001
})

/** Accepts an invitation link with a new passkey. */
async function takeByPasskey(token: string, email: string) {
  const browser = new Browser(api)
  const phone = new Authenticator()
  const begun = await browser.ask<{
    challenge_id: string
    options: { challenge: string; user: { id: string } }
  }>('POST', '/join/passkey/options', { invitation: token, email, name: 'Passkey' })
  assert.equal(begun.status, 200, begun.text)
  const joined = await browser.ask<SignedIn>('POST', '/join/passkey', {
    challenge_id: begun.body.challenge_id,
    response: phone.create(begun.body.options, browser.origin),
  })
  assert.equal(joined.status, 200, joined.text)
  return { email, browser, phone, person: joined.body.person }
}

async function makeCodes(browser: Browser): Promise<string[]> {
  const made = await browser.ask<{ recovery_codes: string[] }>('POST', '/me/recovery-codes')
  assert.equal(made.status, 200, made.text)
  return made.body.recovery_codes
}

/**
 * Registers a person by passkey, without a password.
 * @param withCodes whether the person creates recovery codes
 */
async function passkeyPerson(withCodes = true) {
  const email = `passkey${++people}@example.test`
  const { token } = await invite(api.services, api.database, {
    workspaceId: workspace,
    role: 'viewer',
    email: null,
    person: null,
    by: null,
  })
  const { browser, phone, person } = await takeByPasskey(token, email)
  return { email, browser, phone, codes: withCodes ? await makeCodes(browser) : [], id: person.id }
}

const byCode = (email: string, code: string, browser = new Browser(api)) =>
  browser.ask<SignedIn & Problem>('POST', '/sign-in/recovery-code', { email, code })

/**
 * Asserts that an attempt is refused. Returns the response without the values that differ between
 * any two requests.
 */
async function refused(attempt: ReturnType<Browser['ask']>, status: number, code: string) {
  const { status: answered, body, text, headers } = await attempt
  const problem = body as unknown as Problem & {
    locked_until?: string
    request_id?: string
    instance?: string
  }
  assert.deepEqual([answered, problem.code], [status, code], text)
  assert.equal(headers['set-cookie'], undefined)
  return { ...problem, request_id: '', instance: '' }
}

const linesOf = async (email: string) =>
  await api.database.query<{ action: string; details: unknown }>(
    'select action, details from audit_log where actor_name = $1 order by seq',
    [email],
  )

test('a person without a password signs in with a recovery code, which ends all other sessions', async () => {
  const who = await passkeyPerson()
  const [first = '', second = ''] = who.codes
  const browser = new Browser(api)
  const signedIn = await byCode(
    ` ${who.email.toUpperCase()} `,
    first.toLowerCase().replaceAll('-', ' '),
    browser,
  )
  assert.equal(signedIn.status, 200, signedIn.text)
  assert.deepEqual([signedIn.body.person.id, signedIn.body.person.recovery_codes_left], [who.id, 9])
  assert.equal((await browser.ask('GET', '/me/sessions')).status, 200)
  assert.equal(
    (await who.browser.ask('GET', '/me/sessions')).status,
    401,
    'the session of the lost device',
  )
  assert.deepEqual((await linesOf(who.email)).slice(-2), [
    { action: 'recovery_code.used', details: { codes_left: 9, sessions_ended: 1 } },
    { action: 'session.opened', details: { factor: 'recovery', user_agent: '' } },
  ])
  await refused(byCode(who.email, first), 401, 'SIGN_IN_FAILED')
  // The new session counts as a recent sign-in, so the person can create a passkey and remove the
  // lost one.
  const options = await browser.ask<{
    challenge_id: string
    options: { challenge: string; user: { id: string } }
  }>('POST', '/me/passkeys/options')
  assert.equal(options.status, 200, options.text)
  const added = await browser.ask('POST', '/me/passkeys', {
    challenge_id: options.body.challenge_id,
    response: new Authenticator().create(options.body.options, browser.origin),
    name: 'New phone',
  })
  assert.equal(added.status, 200, added.text)
  assert.equal((await byCode(who.email, second)).status, 200)
})

test('one recovery code sent twelve times concurrently opens at most one session', async () => {
  const who = await passkeyPerson()
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => byCode(who.email, who.codes[0] as string)),
  )
  assert.equal(
    answers.filter(({ status }) => status === 200).length,
    1,
    answers.map(({ text }) => text).join('\n'),
  )
  const open = await api.database.query(
    'select id from sessions where person_id = $1 and ended_at is null',
    [who.id],
  )
  assert.equal(open.length, 1)
  const used = await api.database.query(
    'select 1 from recovery_codes where person_id = $1 and used_at is not null',
    [who.id],
  )
  assert.equal(used.length, 1)
})

test('every failed sign-in by recovery code has the same response and the same cost', async () => {
  const [passkey, withoutCodes] = [await passkeyPerson(), await passkeyPerson(false)]
  const withPassword = await join(api, workspace, 'viewer')
  // Every attempt computes one hash, whatever is stored.
  let hashes = 0
  const { people: real } = api.services
  const cost = real.passwordCost
  Object.defineProperty(real, 'passwordCost', { configurable: true, get: () => (hashes++, cost) })
  const answers = []
  for (const [email, code] of [
    ['nobody@example.test', passkey.codes[0]],
    [passkey.email, WRONG],
    [withoutCodes.email, WRONG],
    [withPassword.email, withPassword.recovery[0]],
    [withPassword.email, WRONG],
    [withoutCodes.email, passkey.codes[0]],
    [passkey.email, ''],
  ] as const) {
    answers.push(await refused(byCode(email, code as string), 401, 'SIGN_IN_FAILED'))
    assert.equal(hashes, answers.length, email)
  }
  Object.defineProperty(real, 'passwordCost', { configurable: true, writable: true, value: cost })
  assert.equal(
    new Set(answers.map((answer) => JSON.stringify(answer))).size,
    1,
    JSON.stringify(answers),
  )
  // Guesses by a stranger add no entry to an owner's audit log and use up no code.
  assert.deepEqual(
    (await linesOf(passkey.email)).filter(({ action }) => action === 'sign_in.failed'),
    [],
  )
  const left = await api.database.query(
    'select 1 from recovery_codes where person_id = any($1) and used_at is not null',
    [[passkey.id, withPassword.id]],
  )
  assert.deepEqual(left, [])
})

test('a person with a password must enter it before a recovery code', async () => {
  const who = await passkeyPerson()
  assert.equal(
    (await who.browser.ask('POST', '/me/password', { password: owner.password })).status,
    200,
  )
  await refused(byCode(who.email, who.codes[0] as string), 401, 'SIGN_IN_FAILED')
  const browser = new Browser(api)
  const begin = (password: string) =>
    browser.ask<{ mfa_token: string }>('POST', '/sign-in/password', { email: who.email, password })
  await refused(begin('not this one at all'), 401, 'SIGN_IN_FAILED')
  const {
    status,
    text,
    body: { mfa_token },
  } = await begin(owner.password)
  assert.equal(status, 200, text)
  await refused(
    browser.ask('POST', '/sign-in/totp', { mfa_token, code: codeOf(owner.secret, now) }),
    401,
    'SIGN_IN_FAILED',
  )
  assert.equal(
    (await browser.ask('POST', '/sign-in/recovery', { mfa_token, code: who.codes[0] })).status,
    200,
  )
})

test('wrong codes and wrong passwords count towards the same lock of an e-mail address', async () => {
  const who = await passkeyPerson()
  const locks = []
  for (const email of [who.email, 'nobody2@example.test']) {
    for (let failure = 0; failure < 3; failure++)
      await refused(byCode(email, WRONG), 401, 'SIGN_IN_FAILED')
    for (let failure = 0; failure < 2; failure++) {
      await refused(
        new Browser(api).ask('POST', '/sign-in/password', { email, password: 'wrong' }),
        401,
        'SIGN_IN_FAILED',
      )
    }
    locks.push(await refused(byCode(email, who.codes[0] as string), 429, 'RATE_LIMITED'))
  }
  assert.deepEqual(locks[0], locks[1])
  assert.equal(locks[0]?.locked_until, new Date(now + MINUTE_MS).toISOString())
  now += MINUTE_MS
  await refused(byCode(who.email, WRONG), 401, 'SIGN_IN_FAILED')
  now += MINUTE_MS
  await refused(byCode(who.email, who.codes[0] as string), 429, 'RATE_LIMITED')
  now += MINUTE_MS
  assert.equal((await byCode(who.email, who.codes[0] as string)).status, 200)
  // A successful sign-in resets the failure count, so four more failures do not lock the address.
  for (let failure = 0; failure < 4; failure++)
    await refused(byCode(who.email, WRONG), 401, 'SIGN_IN_FAILED')
  assert.equal((await byCode(who.email, who.codes[1] as string)).status, 200)
})

test('concurrent wrong codes are all counted, for unknown and known e-mail addresses', async () => {
  for (const email of [(await passkeyPerson()).email, 'nobody3@example.test']) {
    const all = await Promise.all(Array.from({ length: 12 }, () => byCode(email, WRONG)))
    assert.deepEqual(all.map(({ status }) => status).sort(), [
      ...Array<number>(5).fill(401),
      ...Array<number>(7).fill(429),
    ])
  }
})

test('one client address can try 60 recovery codes per minute over all e-mail addresses', async () => {
  now = Math.ceil(now / MINUTE_MS) * MINUTE_MS + MINUTE_MS
  const statuses = []
  for (let count = 0; count < 61; count++)
    statuses.push((await byCode(`guess${count}@example.test`, WRONG)).status)
  assert.equal(statuses.at(-1), 429)
  now += 86_400_001
  const who = await passkeyPerson()
  assert.equal((await byCode(who.email, who.codes[0] as string)).status, 200)
})

test('recovery codes of an earlier set or from before a password’s removal are refused', async () => {
  const who = await passkeyPerson()
  const renewed = await who.browser.ask<{ recovery_codes: string[] }>('POST', '/me/recovery-codes')
  await refused(byCode(who.email, who.codes[0] as string), 401, 'SIGN_IN_FAILED')
  assert.equal(
    (await who.browser.ask('POST', '/me/password', { password: owner.password })).status,
    200,
  )
  assert.equal((await who.browser.ask('DELETE', '/me/password')).status, 200)
  await refused(byCode(who.email, renewed.body.recovery_codes[0] as string), 401, 'SIGN_IN_FAILED')
})

test('recovery codes are valid until the operator’s reset link is used, and new ones afterwards', async () => {
  const who = await passkeyPerson()
  const [first = '', second = ''] = who.codes
  const { link } = await resetPerson(api.services, { email: who.email })
  const token = /\/join#([^/]+)$/.exec(String(link))?.[1] ?? assert.fail(String(link))
  // The reset link alone changes nothing, so that a person who loses it is not locked out.
  assert.equal((await byCode(who.email, first, who.browser)).status, 200)
  const again = await takeByPasskey(token, who.email)
  assert.deepEqual(
    [again.person.id, again.person.recovery_codes_left, again.person.passkeys],
    [who.id, 0, 1],
  )
  await refused(byCode(who.email, second), 401, 'SIGN_IN_FAILED')
  assert.equal(
    (await who.browser.ask('GET', '/me/sessions')).status,
    401,
    'the session from before the reset',
  )
  assert.equal((await byCode(who.email, (await makeCodes(again.browser))[0] as string)).status, 200)
})
