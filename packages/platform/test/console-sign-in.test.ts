// Who gets into the control panel and who does not, on the real server and database, without chains or nodes.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { firstOwnerToken } from '../src/people/invitations.ts'
import { useApi } from './api-support.ts'
import { Authenticator, Browser, codeOf, join, type Somebody } from './console-stage.ts'

const api = useApi()
let now = Date.UTC(2026, 5, 1)
const STEP_MS = 30_000
let owner: Somebody
let workspace = ''
before(async () => {
  await api.started
  api.now = () => now
  const token = await firstOwnerToken(api.services)
  assert.ok(token)
  const browser = new Browser(api)
  assert.deepEqual((await browser.ask('GET', `/invitations/${token}`)).body, {
    workspace: null, role: 'owner', email: null, is_first: true, is_reset: false, expires_at: new Date(now + 7 * 86_400_000).toISOString(),
  })
  owner = await join(api, null, 'owner', { named: 'acme' })
  workspace = (await api.database.one<{ id: string }>(`select id from workspaces where name = 'acme'`))?.id as string
  assert.equal(await firstOwnerToken(api.services), null, 'there is an owner')
  assert.equal((await browser.ask('GET', `/invitations/${token}`)).status, 410)
})

const signIn = async (who: Somebody, browser = new Browser(api)) => {
  now += STEP_MS
  const first = await browser.ask<{ mfa_token: string }>('POST', '/sign-in/password', { email: who.email, password: who.password })
  assert.equal(first.status, 200, first.text)
  const second = await browser.ask('POST', '/sign-in/totp', { mfa_token: first.body.mfa_token, code: codeOf(who.secret, now) })
  assert.equal(second.status, 200, second.text)
  return browser
}

test('the first owner names a workspace, and is signed in by a cookie that no page reads', async () => {
  const { status, body } = await owner.browser.ask<{ workspaces: unknown; person: { email: string; has_totp: boolean; recovery_codes_left: number } }>('GET', '/session')
  assert.equal(status, 200)
  assert.deepEqual(body.workspaces, [{ name: 'acme', role: 'owner', sub_accounts: [] }])
  assert.equal(body.person.recovery_codes_left, 10)
  const again = await signIn(owner)
  const stolen = again.cookie
  const { headers } = await again.ask('POST', '/sign-out')
  assert.match(headers['set-cookie']?.[0] ?? '', /^custody=; Max-Age=0; Path=\/console; HttpOnly; SameSite=Strict$/)
  again.cookie = stolen
  assert.equal((await again.ask('GET', '/me/sessions')).status, 401)
})

test('a passkey', async () => {
  const phone = new Authenticator()
  const { invite } = await import('../src/people/invitations.ts')
  const { token } = await invite(api.services, api.database, { workspaceId: workspace, role: 'viewer', email: null, person: null, by: null })
  const browser = new Browser(api)
  const options = await browser.ask<{ challenge_id: string; options: { challenge: string; user: { id: string } } }>('POST', `/join/${token}/passkey/options`, { email: 'phone@example.test', name: 'Phone' })
  assert.equal(options.status, 200, options.text)
  const made = await browser.ask('POST', `/join/${token}/passkey`, { challenge_id: options.body.challenge_id, response: phone.create(options.body.options, browser.origin) })
  assert.equal(made.status, 200, made.text)
  const other = new Browser(api)
  const asked = await other.ask<{ challenge_id: string; options: { challenge: string } }>('POST', '/sign-in/passkey/options')
  assert.equal(asked.status, 200, asked.text)
  const shown = await other.ask('POST', '/sign-in/passkey', { challenge_id: asked.body.challenge_id, response: phone.get(asked.body.options, other.origin) })
  assert.equal(shown.status, 200, shown.text)
  const user = await api.user('acme')
  assert.ok(user)
  const read = await other.ask('GET', '/workspaces/acme/sub-accounts/main/api/dac/v1/transactions?limit=3')
  assert.equal(read.status, 200, read.text)
})
