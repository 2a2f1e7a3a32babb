// Attacks by people who had access earlier: with links that they created or received, and with
// sessions of a removed factor.
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
  takeLink,
  type Somebody,
} from '../../../testing/console-fixture.ts'

const api = useApi()
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
beforeEach(() => {
  now += 2 * 60_000
})

const ask = <T = Problem>(who: { browser: Browser }, method: string, path: string, body?: object) =>
  who.browser.ask<T>(method, `/workspaces/acme${path}`, body)
const tokenOf = (link: unknown): string => String(link).split('#').at(-1) as string
/** Creates an invitation link as a person in the panel. */
async function inviteBy(who: Somebody, role: string, email?: string): Promise<string> {
  const { status, body, text } = await ask<{ link: string }>(who, 'POST', '/invitations', {
    role,
    ...(email === undefined ? {} : { email }),
  })
  assert.equal(status, 200, text)
  return tokenOf(body.link)
}
const assertClosed = async (token: string, who?: Somebody) => {
  const seen = await new Browser(api).ask<Problem>('POST', '/join/invitation', {
    invitation: token,
  })
  assert.deepEqual([seen.status, seen.body.code], [410, 'INVITATION_CLOSED'], seen.text)
  await assert.rejects(takeLink(api, token), /INVITATION_CLOSED/)
  if (who === undefined) return
  const taken = await who.browser.ask<Problem>('POST', '/join', { invitation: token })
  assert.equal(taken.status, 410, taken.text)
}
const rolesOf = async (who: Somebody) =>
  (
    await api.database.query<{ role: string }>(
      'select role from memberships where person_id = $1 and workspace_id = $2',
      [who.id, workspace],
    )
  ).map(({ role }) => role)

test('attack: a removed person cannot rejoin by an invitation that they made or received', async () => {
  const mallory = await join(api, workspace, 'owner')
  const links = [
    await inviteBy(mallory, 'owner'),
    await inviteBy(mallory, 'viewer', mallory.email),
    await inviteBy(owner, 'admin', mallory.email),
  ]
  const others = await inviteBy(owner, 'viewer', 'guest@example.test')
  assert.equal((await ask(owner, 'DELETE', `/people/${mallory.id}`)).status, 200)
  for (const token of links) await assertClosed(token, mallory)
  assert.deepEqual(await rolesOf(mallory), [])
  const { body: open } = await ask<{ email: string | null }[]>(owner, 'GET', '/invitations')
  assert.deepEqual(
    open.map(({ email }) => email),
    ['guest@example.test'],
    'invitations of others stay',
  )
  await takeLink(api, others, { email: 'guest@example.test' })
  const log = await api.database.one<{ details: { withdrawn_invitations: string[] } }>(
    `select details from audit_log where workspace_id = $1 and action = 'person.removed'
      order by seq desc limit 1`,
    [workspace],
  )
  assert.equal(log?.details.withdrawn_invitations.length, 3)
})

test('attack: a demoted person cannot regain a role by an earlier invitation', async () => {
  const mallory = await join(api, workspace, 'owner')
  const links = [
    await inviteBy(mallory, 'owner'),
    await inviteBy(mallory, 'owner', mallory.email),
    await inviteBy(owner, 'owner', mallory.email),
  ]
  assert.equal((await ask(owner, 'PATCH', `/people/${mallory.id}`, { role: 'viewer' })).status, 200)
  now += 30_000
  const { body } = await mallory.browser.ask<{ mfa_token: string }>('POST', '/sign-in/password', {
    email: mallory.email,
    password: mallory.password,
  })
  await mallory.browser.ask('POST', '/sign-in/totp', {
    mfa_token: body.mfa_token,
    code: codeOf(mallory.secret, now),
  })
  for (const token of links) await assertClosed(token, mallory)
  assert.deepEqual(await rolesOf(mallory), ['viewer'])

  const admin = await join(api, workspace, 'admin')
  const link = await inviteBy(admin, 'viewer')
  assert.equal((await ask(owner, 'PATCH', `/people/${admin.id}`, { role: 'owner' })).status, 200)
  await takeLink(api, link)
})

test('attack: a sign-in link of a removed person is refused, even if made during the removal', async () => {
  const mallory = await join(api, workspace, 'admin')
  const made = await invite(api.services, api.database, {
    workspaceId: workspace,
    role: 'operator',
    email: null,
    person: null,
    by: mallory.id,
  })
  const above = await invite(api.services, api.database, {
    workspaceId: workspace,
    role: 'owner',
    email: null,
    person: null,
    by: mallory.id,
  })
  await assertClosed(above.token, mallory)
  await api.database.query('delete from memberships where person_id = $1 and workspace_id = $2', [
    mallory.id,
    workspace,
  ])
  await assertClosed(made.token, mallory)
  // An operator's link belongs to no person in the panel.
  const { token } = await invite(api.services, api.database, {
    workspaceId: workspace,
    role: 'viewer',
    email: null,
    person: null,
    by: null,
  })
  await takeLink(api, token)
})

test('attack: invitations made by a person during their own removal are invalid', async () => {
  for (let round = 0; round < 5; round++) {
    const mallory = await join(api, workspace, 'owner')
    now += 60_000
    const [removed, ...links] = await Promise.all([
      ask(owner, 'DELETE', `/people/${mallory.id}`),
      ...Array.from({ length: 4 }, () =>
        ask<{ link?: string; code?: string }>(mallory, 'POST', '/invitations', { role: 'owner' }),
      ),
    ])
    assert.equal(removed.status, 200, removed.text)
    for (const { body } of links)
      if (body.link !== undefined) await assertClosed(tokenOf(body.link))
    const open = await api.database.query(
      `select 1 from invitations where invited_by = $1 and accepted_at is null
        and revoked_at is null`,
      [mallory.id],
    )
    assert.equal(open.length, 0)
  }
})

test('an invitation for an e-mail address can be accepted by that address only', async () => {
  const token = await inviteBy(owner, 'admin', 'Wanted@Example.test')
  await assert.rejects(
    takeLink(api, token, { email: 'thief@example.test' }),
    /the invitation is for another e-mail address/,
  )
  const thief = await join(api, workspace, 'viewer')
  const taken = await thief.browser.ask<Problem>('POST', '/join', { invitation: token })
  assert.deepEqual([taken.status, taken.body.code], [403, 'ROLE_REQUIRED'], taken.text)
  assert.deepEqual(await rolesOf(thief), ['viewer'])
  await takeLink(api, token, { email: 'wanted@example.test' })
})

const reset = async (who: Somebody): Promise<string> =>
  tokenOf((await resetPerson(api.services, { email: who.email }))['link'])

test('attack: a replaced reset link, or one whose sibling was used, sets no factors', async () => {
  const victim = await join(api, workspace, 'viewer')
  const first = await reset(victim)
  const second = await reset(victim)
  await assertClosed(first)
  await takeLink(api, second, { email: victim.email })
  await assertClosed(second)
  // Two links with the same creation time, as an older version could create them: only one can be
  // used.
  const [one, other] = await Promise.all(
    [1, 2].map(() =>
      invite(api.services, api.database, {
        workspaceId: null,
        role: 'viewer',
        email: victim.email,
        person: victim.id,
        by: null,
      }),
    ),
  )
  const begun = new Browser(api)
  const half = await begun.ask<{ totp_token: string; secret: string }>('POST', '/join/password', {
    invitation: other?.token,
    email: victim.email,
    name: 'Mallory',
    password: victim.password,
  })
  assert.equal(half.status, 200, half.text)
  now += 60_000
  await takeLink(api, one?.token as string, { email: victim.email })
  now += 60_000
  const late = await begun.ask<Problem>('POST', '/join/totp', {
    totp_token: half.body.totp_token,
    code: codeOf(half.body.secret, now),
  })
  assert.deepEqual([late.status, late.body.code], [410, 'INVITATION_CLOSED'], late.text)
  await assertClosed(other?.token as string)
  const another = await join(api, workspace, 'viewer')
  const theirs = await reset(another)
  await reset(victim)
  assert.equal(
    (await new Browser(api).ask('POST', '/join/invitation', { invitation: theirs })).status,
    200,
    'links of others stay',
  )
})

test('attack: of concurrently created reset links, exactly one is valid', async () => {
  const victim = await join(api, workspace, 'viewer')
  await Promise.all([1, 2, 3, 4].map(() => reset(victim)))
  const open = await api.database.query(
    'select 1 from invitations where person_id = $1 and revoked_at is null',
    [victim.id],
  )
  assert.equal(open.length, 1)
})

/** Signs a person in by passkey. */
async function byPasskey(phone: Authenticator): Promise<Browser> {
  const browser = new Browser(api)
  const { body } = await browser.ask<{ challenge_id: string; options: { challenge: string } }>(
    'POST',
    '/sign-in/passkey/options',
  )
  const response = phone.get({ challenge: body.options.challenge }, browser.origin)
  const { status, text } = await browser.ask('POST', '/sign-in/passkey', {
    challenge_id: body.challenge_id,
    response,
  })
  assert.equal(status, 200, text)
  return browser
}

async function addPasskey(who: Somebody): Promise<{ phone: Authenticator; id: string }> {
  const phone = new Authenticator()
  const { body } = await who.browser.ask<{
    challenge_id: string
    options: { challenge: string; user: { id: string } }
  }>('POST', '/me/passkeys/options')
  const made = await who.browser.ask<{ id: string }>('POST', '/me/passkeys', {
    challenge_id: body.challenge_id,
    response: phone.create(body.options, who.browser.origin),
    name: 'phone',
  })
  assert.equal(made.status, 200, made.text)
  return { phone, id: made.body.id }
}

test("attack: removing a lost phone's passkey ends the phone's session, and no other session", async () => {
  const who = await join(api, workspace, 'viewer')
  const { phone, id } = await addPasskey(who)
  const thief = await byPasskey(phone)
  assert.equal((await thief.ask('GET', '/me/sessions')).status, 200)
  assert.equal((await who.browser.ask('DELETE', `/me/passkeys/${id}`)).status, 200)
  assert.equal((await thief.ask('GET', '/me/sessions')).status, 401)
  assert.equal((await who.browser.ask('GET', '/me/sessions')).status, 200)
})

test('attack: replacing an authenticator app or removing a password ends sessions opened with it', async () => {
  const who = await join(api, workspace, 'viewer')
  const signIn = async (secret: string) => {
    const browser = new Browser(api)
    now += 60_000
    const { body } = await browser.ask<{ mfa_token: string }>('POST', '/sign-in/password', {
      email: who.email,
      password: who.password,
    })
    const { status, text } = await browser.ask('POST', '/sign-in/totp', {
      mfa_token: body.mfa_token,
      code: codeOf(secret, now),
    })
    assert.equal(status, 200, text)
    return browser
  }
  const thief = await signIn(who.secret)
  const { body: app } = await who.browser.ask<{ totp_token: string; secret: string }>(
    'POST',
    '/me/totp',
  )
  now += 60_000
  assert.equal(
    (
      await who.browser.ask('POST', '/me/totp/confirm', {
        totp_token: app.totp_token,
        code: codeOf(app.secret, now),
      })
    ).status,
    200,
  )
  assert.equal((await thief.ask('GET', '/me/sessions')).status, 401)
  const again = await signIn(app.secret)
  await addPasskey(who)
  const removed = await who.browser.ask('DELETE', '/me/password')
  assert.equal(removed.status, 200, removed.text)
  assert.equal((await again.ask('GET', '/me/sessions')).status, 401)
  assert.equal((await who.browser.ask('GET', '/me/sessions')).status, 200)
})
