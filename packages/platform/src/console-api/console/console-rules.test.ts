// Tests the permissions of each role in the control panel, the access to data of others, and the
// audit entries, for every route.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { before, test } from 'node:test'
import { canonicalPublicKey, fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import { keyWithLines } from '../../../../request-auth/testing/support.ts'
import { panelEndpoints } from '../../server/app/panel.ts'
import { documentOf } from './document.ts'
import { publish } from '../../events/events/publish.ts'
import { isAllowed, readRange } from '../../core/http/authentication/ip-allow-list.ts'
import { emit } from '../../core/ledger/post.ts'
import { createApiUser, revokeApiUser } from '../../server/operator/api-users.ts'
import { readPublicKey } from '../../server/operator/cli/typed.ts'
import { inviteToConsole, listConsolePeople, resetPerson } from '../../server/operator/console.ts'
import { distributorOf } from '../../events/webhooks/distribute.ts'
import { BrokenLog, verifyLog, type AuditLine } from '../people/audit-chain.ts'
import type { PanelEndpoint } from '../people/endpoint.ts'
import { ROLES, includesRole, type Role } from '../people/roles.ts'
import * as fc from '../../../../../testing/property.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { Browser, join, type Somebody } from '../../../testing/console-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { call as callAt, PUBLIC_KEY, type User } from '../../../testing/harness.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

const clock = new ManualClock()
const api = useApi({}, [], clock)
/** Sends a request that is signed with the time of the test's clock. */
const call: typeof callAt = (user, method, path, body, options = {}) =>
  callAt(user, method, path, body, {
    ...options,
    sign: { now: Math.floor(clock.now() / 1000), ...options.sign },
  })
type Owner = User & { workspaceId: string; subAccountId: string }
let acme: Owner
let evil: Owner
const people = {} as Record<Role, Somebody>
let stranger: Somebody

before(async () => {
  await api.started
  const listening = new AbortController()
  const feed = api.services.feed.run(listening.signal)
  api.beside.push(() => {
    listening.abort()
    return feed
  })
  acme = await api.user('acme')
  evil = await api.user('evil corp')
  for (const role of ROLES) people[role] = await join(api, acme.workspaceId, role)
  stranger = await join(api, evil.workspaceId, 'owner')
  // The operator may create this link whether or not the workspace has an owner.
  assert.match(
    String((await inviteToConsole(api.services, { workspace: 'acme', role: 'owner' }))['link']),
    /\/console\/join#[\w-]{43}$/,
  )
})

/**
 * Role or sign-in state that each route requires. A route that is missing here fails the test. The
 * routes below `/api/` mirror the read endpoints of the API and are open to every member.
 */
const NEEDS: Record<string, PanelEndpoint['needs']> = {
  'GET /session': 'nobody',
  'GET /openapi.json': 'nobody',
  'POST /sign-in/password': 'nobody',
  'POST /sign-in/totp': 'nobody',
  'POST /sign-in/recovery': 'nobody',
  'POST /sign-in/recovery-code': 'nobody',
  'POST /sign-in/passkey/options': 'nobody',
  'POST /sign-in/passkey': 'nobody',
  'POST /join/invitation': 'nobody',
  'POST /join/passkey/options': 'nobody',
  'POST /join/passkey': 'nobody',
  'POST /join/password': 'nobody',
  'POST /join/totp': 'nobody',
  'POST /join': 'anybody',
  'POST /sign-out': 'anybody',
  'GET /me/sessions': 'anybody',
  'DELETE /me/sessions/{id}': 'anybody',
  'POST /me/sessions/revoke-others': 'anybody',
  'GET /me/passkeys': 'anybody',
  'POST /me/passkeys/options': 'anybody',
  'POST /me/passkeys': 'anybody',
  'DELETE /me/passkeys/{id}': 'anybody',
  'POST /me/password': 'anybody',
  'DELETE /me/password': 'anybody',
  'POST /me/totp': 'anybody',
  'POST /me/totp/confirm': 'anybody',
  'POST /me/recovery-codes': 'anybody',
  'POST /me/confirm/totp': 'anybody',
  'POST /me/confirm/recovery': 'anybody',
  'POST /me/confirm/passkey/options': 'anybody',
  'POST /me/confirm/passkey': 'anybody',
  'GET W/people': 'viewer',
  'PATCH W/people/{id}': 'admin',
  'DELETE W/people/{id}': 'viewer',
  'GET W/invitations': 'admin',
  'POST W/invitations': 'admin',
  'DELETE W/invitations/{id}': 'admin',
  'GET W/audit-log': 'admin',
  'GET W/audit-log/export': 'admin',
  'GET W/views': 'viewer',
  'PUT W/views': 'viewer',
  'GET W/api-users': 'viewer',
  'POST W/api-users': 'operator',
  'PATCH W/api-users/{api_key}': 'admin',
  'POST W/api-users/{api_key}/revoke': 'operator',
  'GET W/health': 'viewer',
  'GET W/settings': 'viewer',
  'GET S/overview': 'viewer',
  'GET S/attention': 'viewer',
  'GET S/waiting': 'viewer',
  'GET S/series': 'viewer',
  'GET S/transactions/export': 'viewer',
  'GET S/transactions/{id}/story': 'viewer',
}
const W = '/workspaces/{workspace}'
const S = `${W}/sub-accounts/{sub_account}`
const shortOf = ({ method, path }: PanelEndpoint) =>
  `${method} ${path.replace('/console/api', '').replace(S, 'S').replace(W, 'W')}`
const isMirror = (each: PanelEndpoint) => shortOf(each).includes(' S/api/')
/** Streaming endpoints are left out because their responses do not end. */
const ended = panelEndpoints.filter(({ streams }) => !streams)
const ofWorkspace = ended.filter(({ path }) => path.includes('{workspace}'))
const concrete = ({ path }: PanelEndpoint, workspace = 'acme', subAccount = 'main') =>
  path
    .replace('/console/api', '')
    .replace('{workspace}', encodeURIComponent(workspace))
    .replace('{sub_account}', subAccount)
    .replace('{asset}', 'BTC')
    .replace('{network}', 'ETH')
    .replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000')

test('the table of roles contains every route, with the role that the route declares', () => {
  const rolesOf = Object.fromEntries(
    panelEndpoints.filter((each) => !isMirror(each)).map((each) => [shortOf(each), each.needs]),
  )
  assert.deepEqual(rolesOf, NEEDS)
  // A session alone is not enough for the routes that change a factor.
  assert.deepEqual(
    panelEndpoints
      .filter(({ isSensitive }) => isSensitive)
      .map(shortOf)
      .toSorted(),
    [
      'DELETE /me/passkeys/{id}',
      'DELETE /me/password',
      'POST /me/passkeys',
      'POST /me/passkeys/options',
      'POST /me/password',
      'POST /me/recovery-codes',
      'POST /me/totp',
      'POST /me/totp/confirm',
    ],
  )
  const mirrored = panelEndpoints.filter(isMirror)
  assert.equal(mirrored.length, 57)
  assert.ok(mirrored.every(({ needs }) => needs === 'viewer'))
  // These routes only read, although some use POST. No route of the panel writes data that the API
  // writes.
  assert.deepEqual(
    mirrored.filter(({ method }) => method !== 'GET').map(({ path }) => path.split('/api/').at(-1)),
    [
      'dac/v1/validate-address',
      'dac/v1/policy/evaluate',
      'dac/v1/policy/simulate',
      'dac/v1/estimate-fee',
      'dac/v1/prepaid-fee',
    ],
  )
})

test('each route admits the roles in the table, and a refusal names the missing role', async () => {
  for (const role of ROLES) {
    for (const each of ofWorkspace) {
      const { status, body, text } = await people[role].browser.ask<Problem>(
        each.method,
        concrete(each),
      )
      const name = `${role}: ${shortOf(each)} ${status} ${text.slice(0, 200)}`
      assert.notEqual(status, 500, name)
      assert.notEqual(status, 401, name)
      if (includesRole(role, each.needs as Role)) assert.notEqual(body.code, 'ROLE_REQUIRED', name)
      else assert.deepEqual([status, body.code], [403, 'ROLE_REQUIRED'], name)
      assert.notEqual(body.message, 'this workspace does not exist', name)
    }
  }
})

test('at every route, a person who is not a member gets the response for an unknown workspace', async () => {
  const nobody = new Browser(api)
  for (const each of ofWorkspace) {
    const foreign = await stranger.browser.ask<Problem>(each.method, concrete(each))
    const none = await stranger.browser.ask<Problem>(each.method, concrete(each, 'no such one'))
    const shown = ({ status, body: { code, message } }: typeof foreign) => ({
      status,
      code,
      message,
    })
    assert.deepEqual(
      shown(foreign),
      { status: 404, code: 'NOT_FOUND', message: 'this workspace does not exist' },
      shortOf(each),
    )
    assert.deepEqual(shown(none), shown(foreign))
    const {
      status,
      body: { code },
    } = await nobody.ask<Problem>(each.method, concrete(each))
    assert.deepEqual([status, code], [401, 'SIGN_IN_REQUIRED'], shortOf(each))
  }
  for (const each of ended.filter(({ needs }) => needs === 'anybody')) {
    assert.equal((await nobody.ask(each.method, concrete(each))).status, 401, shortOf(each))
  }
  // A sub-account of another workspace is not accessible, and neither are the ids of its people,
  // keys or transactions.
  assert.equal(
    (await stranger.browser.ask('GET', '/workspaces/evil%20corp/sub-accounts/none/overview'))
      .status,
    404,
  )
  for (const path of [`people/${people.viewer.id}`, `api-users/${acme.apiKey}`]) {
    assert.equal(
      (
        await stranger.browser.ask(
          'PATCH',
          `/workspaces/evil%20corp/${path}`,
          path.startsWith('p') ? { role: 'viewer' } : { label: 'x' },
        )
      ).status,
      404,
    )
  }
  assert.equal(
    (await stranger.browser.ask('POST', `/workspaces/evil%20corp/api-users/${acme.apiKey}/revoke`))
      .status,
    404,
  )
  assert.equal((await call(acme, 'GET', '/dac/v1/supported-assets')).status, 200)
})

test('every route refuses changes requested by another site for a signed-in person', async () => {
  const { browser } = people.owner
  for (const each of panelEndpoints.filter(({ method }) => method !== 'GET')) {
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
    ]) {
      const { status, body } = await browser.ask<Problem>(each.method, concrete(each), {}, headers)
      assert.deepEqual([status, body.code], [403, 'FOREIGN_ORIGIN'], shortOf(each))
    }
  }
  const old = new Browser(api)
  Object.assign(old, { cookie: browser.cookie, headers: {} })
  const path = '/workspaces/acme/views'
  assert.equal(
    (await old.ask('PUT', path, { views: [] })).status,
    200,
    'a browser that says its origin alone',
  )
  assert.equal(
    (await old.ask('PUT', path, { views: [] }, { origin: 'http://evil.test' })).status,
    403,
  )
  assert.equal((await old.ask('PUT', path, { views: [] }, { origin: 'null' })).status, 403)
  assert.equal(
    (await browser.ask('PUT', path, { views: [] }, { 'content-type': 'text/plain' })).status,
    415,
  )
  // A foreign host name that resolves to this server, over an unencrypted connection, is refused.
  const rebound = new Browser(api)
  Object.assign(rebound, { cookie: browser.cookie, host: 'evil.test' })
  assert.deepEqual((await rebound.ask<Problem>('GET', '/session')).body.code, 'HTTPS_REQUIRED')
})

test('attack: a Host header of localhost from another machine does not count as local access', async () => {
  const session = '/console/api/session'
  const from = async (remoteAddress: string, host: string, more: Record<string, string> = {}) => {
    const { statusCode, body } = await api.server.inject({
      method: 'GET',
      url: session,
      remoteAddress,
      headers: { host, ...more },
    })
    return [statusCode, (JSON.parse(body) as Problem).code]
  }
  for (const remote of ['203.0.113.5', '2001:db8::5', '10.0.0.2', '::ffff:203.0.113.5']) {
    for (const host of ['localhost', 'localhost:8080', '127.0.0.1:8080', '[::1]:8080']) {
      assert.deepEqual(await from(remote, host), [403, 'HTTPS_REQUIRED'], `${remote} as ${host}`)
    }
  }
  for (const remote of ['127.0.0.1', '127.0.0.2', '::1', '::ffff:127.0.0.1']) {
    assert.deepEqual(await from(remote, 'localhost:8080'), [200, undefined], remote)
    assert.deepEqual(await from(remote, 'evil.test'), [403, 'HTTPS_REQUIRED'], remote)
  }
  // Sends requests over a real connection, as nginx and Caddy forward them, both with and without
  // trusted proxies.
  for (const trustProxy of [0, 1]) {
    Object.assign(api.services.settings, { trustProxy })
    for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
      const { status, body } = await new Browser(api).ask<Problem>('GET', '/session', undefined, {
        [header]: '203.0.113.5',
      })
      assert.deepEqual([status, body.code], [403, 'HTTPS_REQUIRED'], header)
    }
  }
  Object.assign(api.services.settings, { trustProxy: 0 })
})

test('with a public address, only pages of its origin may request changes, whatever the Host', async () => {
  Object.assign(api.services.settings, { publicUrl: 'https://custody.example.test' })
  try {
    const ask = async (origin: string, remoteAddress: string) =>
      (
        await api.server.inject({
          method: 'POST',
          url: '/console/api/sign-in/passkey/options',
          remoteAddress,
          payload: '{}',
          headers: { host: 'localhost', origin, 'content-type': 'application/json' },
        })
      ).statusCode
    assert.equal(await ask('http://localhost', '203.0.113.5'), 403)
    assert.equal(await ask('https://custody.example.test', '203.0.113.5'), 200)
    assert.equal(await ask('http://localhost', '127.0.0.1'), 200)
  } finally {
    Object.assign(api.services.settings, { publicUrl: null })
  }
})

test('over https, the cookie is bound to the host, and only the public name is same-origin', async () => {
  const { settings } = api.services
  Object.assign(settings, { publicUrl: 'https://custody.example.test' })
  try {
    const browser = new Browser(api)
    browser.host = 'custody.example.test'
    browser.headers = { origin: 'https://custody.example.test' }
    const { body } = await browser.ask<{ options: { rpId: string } }>(
      'POST',
      '/sign-in/passkey/options',
    )
    assert.equal(body.options.rpId, 'custody.example.test')
    const { headers } = await people.viewer.browser.ask(
      'POST',
      '/sign-out',
      {},
      { cookie: people.viewer.browser.cookie.replace('custody', '__Host-custody') },
    )
    assert.equal(
      headers['set-cookie']?.[0],
      '__Host-custody=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax',
    )
  } finally {
    Object.assign(settings, { publicUrl: null })
  }
  people.viewer = await join(api, acme.workspaceId, 'viewer')
})

test('a session and an API key read the same data of a sub-account', async () => {
  const { browser } = people.viewer
  for (const path of [
    '/dac/v1/transactions',
    '/dac/v1/gas-tanks',
    '/dac/v1/supported-assets',
    '/dac/v1/webhooks',
    '/dac/v1/events',
    '/dac/v1/prices',
  ]) {
    const [bySession, byKey] = await Promise.all([
      browser.ask('GET', `/workspaces/acme/sub-accounts/main/api${path}`),
      call(acme, 'GET', path),
    ])
    assert.equal(bySession.status, 200, bySession.text)
    assert.equal(bySession.text, byKey.text, path)
  }
  const { status, body } = await browser.ask<Problem>(
    'GET',
    '/workspaces/acme/sub-accounts/main/api/dac/v1/transactions?pages=2',
  )
  assert.deepEqual([status, body.code], [400, 'UNKNOWN_FIELD'])
  assert.equal(
    (await browser.ask('POST', '/workspaces/acme/sub-accounts/main/api/dac/v1/transaction', {}))
      .status,
    404,
  )
})

test('an event stream ends with its session, without sending further events', async () => {
  const who = await join(api, acme.workspaceId, 'viewer')
  const response = await who.browser.open(
    'GET',
    '/console/api/workspaces/acme/sub-accounts/main/api/dac/v1/events/stream',
  )
  assert.equal(response.statusCode, 200)
  let text = ''
  response.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const closed = new Promise((resolve) => response.once('end', resolve))
  const createUser = async (label: string) => {
    await emit(
      api.database,
      acme.workspaceId,
      acme.subAccountId,
      'wallet.updated',
      JSON.stringify({ id: randomUUID(), label }),
    )
    while ((await publish(api.services, distributorOf(api.services))) > 0);
    api.services.feed.ring()
  }
  await createUser('first')
  await waitFor('the first event', async () => text.includes('first'), { pauseMsMax: 20 })
  await who.browser.ask('POST', '/sign-out')
  await createUser('second')
  await closed
  assert.ok(!text.includes('second'), text)
})

test('a person cannot assign or remove a higher role, and the last owner cannot be removed', async () => {
  const { owner, admin } = people
  const ask = (who: Somebody, method: string, path: string, body?: object) =>
    who.browser.ask<Problem>(method, `/workspaces/acme${path}`, body)
  const victim = await join(api, acme.workspaceId, 'viewer')
  assert.equal(
    (await ask(admin, 'PATCH', `/people/${owner.id}`, { role: 'viewer' })).body.code,
    'ROLE_REQUIRED',
  )
  assert.equal(
    (await ask(admin, 'PATCH', `/people/${victim.id}`, { role: 'admin' })).body.code,
    'ROLE_REQUIRED',
  )
  assert.equal(
    (await ask(admin, 'PATCH', `/people/${admin.id}`, { role: 'owner' })).body.code,
    'ROLE_REQUIRED',
  )
  assert.equal((await ask(admin, 'DELETE', `/people/${owner.id}`)).body.code, 'ROLE_REQUIRED')
  assert.equal((await ask(victim, 'DELETE', `/people/${admin.id}`)).body.code, 'ROLE_REQUIRED')
  assert.equal(
    (await ask(admin, 'POST', '/invitations', { role: 'owner' })).body.code,
    'ROLE_REQUIRED',
  )
  assert.equal(
    (await ask(admin, 'PATCH', `/people/${victim.id}`, { role: 'operator' })).status,
    200,
  )
  assert.equal((await ask(victim, 'GET', '/people')).status, 401, 'no old session has the new role')
  assert.equal(
    (await ask(owner, 'PATCH', `/people/${owner.id}`, { role: 'viewer' })).body.code,
    'LAST_OWNER',
  )
  assert.equal((await ask(owner, 'DELETE', `/people/${owner.id}`)).body.code, 'LAST_OWNER')
  // Two owners leave concurrently: one of them remains.
  const second = await join(api, acme.workspaceId, 'owner')
  const third = await join(api, acme.workspaceId, 'owner')
  assert.equal((await ask(second, 'PATCH', `/people/${owner.id}`, { role: 'admin' })).status, 200)
  const left = await Promise.all([
    ask(second, 'DELETE', `/people/${second.id}`),
    ask(third, 'DELETE', `/people/${third.id}`),
  ])
  assert.deepEqual(left.map(({ status }) => status).sort(), [200, 409])
  const still = left[0]?.status === 200 ? third : second
  const before = still.browser.cookie
  assert.equal(
    (await ask(still, 'POST', '/invitations', { role: 'owner', email: 'new@example.test' })).status,
    200,
  )
  const [open] = (
    await still.browser.ask<{ id: string; email: string }[]>('GET', '/workspaces/acme/invitations')
  ).body.filter(({ email }) => email !== null)
  assert.equal((await ask(admin, 'DELETE', `/invitations/${open?.id}`)).body.code, 'ROLE_REQUIRED')
  assert.equal((await ask(still, 'DELETE', `/invitations/${open?.id}`)).status, 200)
  people.owner = await join(api, acme.workspaceId, 'owner')
  assert.equal((await ask(still, 'PATCH', `/people/${still.id}`, { role: 'viewer' })).status, 200)
  assert.notEqual(still.browser.cookie, before, 'his own session gets another token')
  assert.equal((await ask(still, 'GET', '/audit-log')).body.code, 'ROLE_REQUIRED')
  assert.match(
    String((await resetPerson(api.services, { email: victim.email }))['link']),
    /\/console\/join#/,
  )
  await assert.rejects(
    resetPerson(api.services, { email: 'nobody@example.test' }),
    /no user of the control panel/,
  )
  const { people: listed } = (await listConsolePeople(api.services, {
    workspace: 'evil corp',
  })) as { people: { email: string }[] }
  assert.deepEqual(
    listed.map(({ email }) => email),
    [stranger.email],
  )
})

test('accepts valid address ranges for a key, and matches the addresses within them', () => {
  for (const [ranges, ip, inside] of [
    [[], '203.0.113.7', true],
    [['203.0.113.0/24'], '203.0.113.7', true],
    [['203.0.113.0/24'], '203.0.114.7', false],
    [['203.0.113.0/24'], '::ffff:203.0.113.7', true],
    [['203.0.113.7'], '203.0.113.7', true],
    [['203.0.113.7'], '203.0.113.8', false],
    [['2001:db8::/32'], '2001:db8:1::5', true],
    [['2001:db8::/32'], '2001:db9::5', false],
    [['2001:db8::1'], '2001:db8:0::1', true],
    [['10.0.0.0/8', '::1'], '::1', true],
    [['::/0'], '203.0.113.7', false],
    [['0.0.0.0/0'], '::1', false],
    [['0.0.0.0/0'], 'unix', false],
  ] as [string[], string, boolean][]) {
    assert.equal(
      isAllowed(
        ranges.map((range) => readRange(range) ?? assert.fail(range)),
        ip,
      ),
      inside,
      `${ip} in ${ranges.join()}`,
    )
  }
  for (const wrong of [
    '',
    '10',
    '10.1',
    '0x7f.1',
    '10.0.0.0/33',
    '2001:db8::/129',
    '::ffff:10.0.0.0/104',
    'localhost',
    '10.0.0.0/',
    ' 10.0.0.1',
    '10.0.0.1\n',
  ]) {
    assert.equal(readRange(wrong), null, wrong)
  }
})

test('a key is accepted only from its addresses, as reported by trusted proxies', async () => {
  const user = await api.user('acme', { subAccount: 'ranged' })
  const set = (ip_allow_list: string[]) =>
    people.admin.browser.ask<Problem>('PATCH', `/workspaces/acme/api-users/${user.apiKey}`, {
      ip_allow_list,
    })
  const ask = (headers: Record<string, string> = {}) =>
    call<Problem>(user, 'GET', '/dac/v1/supported-assets', undefined, { headers })
  assert.equal((await ask()).status, 200)
  assert.equal((await set(['198.51.100.0/24', 'nonsense'])).body.field, 'ip_allow_list.1')
  assert.equal((await set(['198.51.100.0/24'])).status, 200)
  const { status, body } = await ask()
  assert.deepEqual([status, body.code], [403, 'IP_NOT_ALLOWED'])
  const forged = await call<Problem>(user, 'GET', '/dac/v1/supported-assets', undefined, {
    sign: { uri: '/dac/v1/other' } as never,
  })
  assert.equal(forged.status, 401, 'who cannot sign learns nothing of the list')
  assert.equal(
    (await ask({ 'x-forwarded-for': '198.51.100.9' })).status,
    403,
    'anybody may write this',
  )
  Object.assign(api.services.settings, { trustProxy: 1 })
  assert.equal((await ask({ 'x-forwarded-for': '198.51.100.9' })).status, 200)
  assert.equal((await ask({ 'x-forwarded-for': '198.51.100.9, 203.0.113.1' })).status, 403)
  Object.assign(api.services.settings, { trustProxy: 0 })
  assert.equal((await set([])).status, 200)
  assert.equal((await ask()).status, 200)
})

test("attack: commands in a pasted public key do not run when operators paste the panel's text", async () => {
  const operator = await join(api, acme.workspaceId, 'operator')
  const hostile = keyWithLines(PUBLIC_KEY, ['PEM', 'pwned', 'exit'])
  const body = { sub_account: 'main', role: 'full', public_key_pem: hostile, own: true }
  type Request = {
    id: string
    key_fingerprint: string
    public_key_pem: string
    commands: { command: string }[]
  }
  const { body: made } = await operator.browser.ask<Request>(
    'POST',
    '/workspaces/acme/api-users',
    body,
  )
  const { body: rows } = await operator.browser.ask<Request[]>('GET', '/workspaces/acme/api-users')
  const shown = rows.find(({ id }) => id === made.id)!
  assert.deepEqual(
    [shown.public_key_pem, shown.key_fingerprint],
    [canonicalPublicKey(hostile), fingerprintOfKey(parsePublicKey(hostile))],
  )
  const folder = mkdtempSync(joinPath(tmpdir(), 'paste-'))
  try {
    for (const name of ['npx', 'pwned'])
      writeFileSync(
        joinPath(folder, name),
        `#!/bin/sh\nprintf '%s\\n' "${name}" "$@" >> ${folder}/ran\n`,
        { mode: 0o755 },
      )
    for (const { command } of [...made.commands, ...shown.commands]) {
      assert.ok(!command.includes('\n'), command)
      rmSync(joinPath(folder, 'ran'), { force: true })
      spawnSync('bash', [], {
        input: `${command}\n`,
        env: { PATH: `${folder}:${process.env['PATH'] ?? ''}`, API_KEY: 'key', INDEX: '1' },
        cwd: folder,
      })
      const ran = readFileSync(joinPath(folder, 'ran'), 'utf8').trim().split('\n')
      assert.deepEqual(ran.slice(0, 2), ['npx', 'custody'])
      assert.ok(!ran.includes('pwned'))
      // The command contains the same key whose fingerprint is compared.
      const typed = readPublicKey(ran[ran.indexOf('--public-key') + 1] ?? '')
      assert.equal(fingerprintOfKey(parsePublicKey(typed)), made.key_fingerprint)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('attack: a request with another person’s public key does not return their API user', async () => {
  const [owner, stranger] = [
    await join(api, acme.workspaceId, 'operator'),
    await join(api, acme.workspaceId, 'operator'),
  ]
  const path = '/workspaces/acme/api-users'
  type Row = {
    id: string
    label: string | null
    person: { email: string } | null
    enrolment: string
    ip_allow_list: string[]
    rate_limit: number | null
  }
  const rowOf = async (id: string) =>
    (await owner.browser.ask<Row[]>('GET', path)).body.find((row) => row.id === id)
  const request = async (who: Somebody, label: string, more: object = {}) => {
    const { status, body, text } = await who.browser.ask<{ id: string } & Problem>('POST', path, {
      sub_account: 'main',
      role: 'full',
      public_key_pem: PUBLIC_KEY,
      label,
      own: true,
      ...more,
    })
    return status === 200 ? body.id : text
  }
  const typed = {
    workspace: 'acme',
    sub_account: 'main',
    sub_account_index: 1,
    public_key_pem: PUBLIC_KEY,
    role: 'full',
  }
  // The stranger sends the first request, and repeats it up to the limit for one person.
  const blocking = { ip_allow_list: ['203.0.113.66'], rate_limit: 1 }
  const first = await request(stranger, 'Stranger', blocking)
  for (let times = 1; times < 20; times++)
    assert.match(await request(stranger, 'Stranger', blocking), /^[0-9a-f-]{36}$/)
  assert.match(await request(stranger, 'Stranger', blocking), /20 of your requests are waiting/)
  const own = await request(owner, 'Mine')
  const apiKey = randomUUID()
  await createApiUser(api.services, { ...typed, api_key: apiKey, request: own })
  const row = await rowOf(apiKey)
  assert.deepEqual(
    [row?.label, row?.person?.email, row?.ip_allow_list, row?.rate_limit],
    ['Mine', owner.email, [], null],
  )
  assert.equal((await rowOf(first))?.enrolment, 'pending')
  // A key that the operator enrols without a request belongs to no person in the panel.
  const machine = randomUUID()
  await createApiUser(api.services, { ...typed, api_key: machine })
  const other = await rowOf(machine)
  assert.deepEqual([other?.label, other?.person, other?.ip_allow_list], [null, null, []])
  // Requests that are withdrawn, fulfilled, unknown or of another workspace are refused, and create
  // no API user.
  await stranger.browser.ask('POST', `${path}/${first}/revoke`)
  const made = randomUUID()
  for (const id of [first, own, randomUUID(), 'x', "' or true --"]) {
    await assert.rejects(
      () => createApiUser(api.services, { ...typed, api_key: made, request: id }),
      /--request: workspace acme has no open request/,
    )
  }
  const left = (await owner.browser.ask<Row[]>('GET', path)).body.find(
    ({ enrolment, label }) => enrolment === 'pending' && label === 'Stranger',
  )
  await assert.rejects(
    () =>
      createApiUser(api.services, {
        ...typed,
        workspace: 'elsewhere',
        api_key: made,
        request: left?.id,
      }),
    /--request: workspace elsewhere/,
  )
  await assert.rejects(
    () => createApiUser(api.services, { ...typed, api_key: apiKey, request: left?.id }),
    /was not created for this request/,
  )
  assert.equal(await rowOf(made), undefined)
  // Neither the stranger nor the stranger's removal revokes the owner's key.
  assert.equal((await stranger.browser.ask('POST', `${path}/${apiKey}/revoke`)).status, 404)
  assert.equal(
    (await people.admin.browser.ask('DELETE', `/workspaces/acme/people/${stranger.id}`)).status,
    200,
  )
  assert.equal((await call({ ...acme, apiKey }, 'GET', '/dac/v1/supported-assets')).status, 200)
})

test('a member requests an API user, the operator creates it, and a member revokes it', async () => {
  const operator = await join(api, acme.workspaceId, 'operator')
  const ask = <T>(who: Somebody, method: string, path = '', body?: object) =>
    who.browser.ask<T & Problem>(method, `/workspaces/acme/api-users${path}`, body)
  const params = {
    sub_account: 'main',
    role: 'full',
    public_key_pem: PUBLIC_KEY,
    label: 'Mine',
    ip_allow_list: ['127.0.0.1'],
    own: true,
  }
  assert.equal(
    (await ask(operator, 'POST', '', { ...params, own: false })).body.code,
    'ROLE_REQUIRED',
  )
  assert.equal(
    (await ask(operator, 'POST', '', { ...params, public_key_pem: 'x' })).body.field,
    'public_key_pem',
  )
  const made = await ask<{
    id: string
    key_fingerprint: string
    commands: { where: string; command: string }[]
  }>(operator, 'POST', '', params)
  assert.equal(made.status, 200, made.text)
  assert.deepEqual(
    made.body.commands.map(({ where }) => where),
    ['signer node 1', 'signer node 2', 'signer node 3', 'the platform’s host'],
  )
  assert.match(
    made.body.commands[3]?.command ?? '',
    /custody api-user create --workspace 'acme' --sub-account 'main' --role full --public-key base64:[A-Za-z0-9+/]+={0,2} /,
  )
  assert.ok(
    made.body.commands[3]?.command.endsWith(` --request ${made.body.id}`),
    made.body.commands[3]?.command,
  )
  type Row = {
    id: string
    api_key: string | null
    label: string
    person: { email: string } | null
    enrolment: string
    last_used_at: string | null
    ip_allow_list: string[]
    revoked_at: string | null
  }
  const rows = async () => (await ask<Row[]>(operator, 'GET')).body as unknown as Row[]
  const pending = (await rows()).find(({ id }) => id === made.body.id)
  assert.deepEqual(
    [pending?.api_key, pending?.enrolment, pending?.person?.email],
    [null, 'pending', operator.email],
  )
  // A key with a role other than the requested one does not fulfil the request.
  const typed = {
    workspace: 'acme',
    sub_account: 'main',
    sub_account_index: 1,
    public_key_pem: PUBLIC_KEY,
  }
  await createApiUser(api.services, { ...typed, role: 'read-only', api_key: randomUUID() })
  await assert.rejects(
    () =>
      createApiUser(api.services, {
        ...typed,
        role: 'read-only',
        api_key: randomUUID(),
        request: made.body.id,
      }),
    /^.*--request: workspace acme has no open request/,
  )
  assert.ok((await rows()).some(({ id }) => id === made.body.id))
  const apiKey = randomUUID()
  for (let times = 0; times < 2; times++) {
    await createApiUser(api.services, {
      ...typed,
      role: 'full',
      api_key: apiKey,
      request: made.body.id,
    })
  }
  await createApiUser(api.services, { ...typed, role: 'full', api_key: apiKey })
  const enrolled = (await rows()).find(({ id }) => id === apiKey)
  assert.deepEqual(
    [
      enrolled?.label,
      enrolled?.person?.email,
      enrolled?.enrolment,
      enrolled?.ip_allow_list,
      enrolled?.last_used_at,
    ],
    ['Mine', operator.email, 'enrolled', ['127.0.0.1'], null],
  )
  assert.ok(!(await rows()).some(({ id }) => id === made.body.id))
  const user = { ...acme, apiKey }
  const used = (at: number) =>
    waitFor(
      'the use of the key',
      async () =>
        (await rows()).find(
          ({ id, last_used_at }) => id === apiKey && last_used_at === new Date(at).toISOString(),
        ),
      { pauseMsMax: 20 },
    )
  await call(user, 'GET', '/dac/v1/supported-assets')
  await used(clock.now())
  const first = clock.now()
  clock.advance(59_000)
  await call(user, 'GET', '/dac/v1/supported-assets')
  assert.equal(
    (await rows()).find(({ id }) => id === apiKey)?.last_used_at,
    new Date(first).toISOString(),
    'once a minute',
  )
  clock.advance(1000)
  await call(user, 'GET', '/dac/v1/supported-assets')
  await used(clock.now())
  // The audit log contains every change by a person's own key, and changes of settings by keys of
  // machines.
  const hook = { url: 'http://127.0.0.1:9/', events: ['*'] }
  for (const each of [user, acme])
    assert.equal((await call(each, 'POST', '/dac/v1/webhooks', hook)).status, 200)
  for (const each of [user, acme])
    await call(each, 'POST', '/dac/v1/create-wallet', { asset: 'NOPE' })
  const logged = await api.database.query(
    `select actor_type, actor_id, actor_name, object, ip, details from audit_log
     where action = 'request.signed' and actor_id = any($1) order by seq`,
    [[apiKey, acme.apiKey]],
  )
  const rolesOf = (
    key: string,
    name: string,
    person: string | null,
    object: string,
    body: object,
  ) => ({
    actor_type: 'api_user',
    actor_id: key,
    actor_name: name,
    object,
    ip: '127.0.0.1',
    details: {
      method: 'POST',
      sub_account: 'main',
      body_sha256: createHash('sha256').update(JSON.stringify(body)).digest('hex'),
      person,
    },
  })
  assert.deepEqual(logged, [
    rolesOf(apiKey, operator.email, operator.id, '/dac/v1/webhooks', hook),
    rolesOf(acme.apiKey, acme.apiKey, null, '/dac/v1/webhooks', hook),
    rolesOf(apiKey, operator.email, operator.id, '/dac/v1/create-wallet', { asset: 'NOPE' }),
  ])
  // Operators can revoke only their own keys, admins the keys of all. A request is withdrawn by its
  // own id.
  assert.equal((await ask(operator, 'POST', `/${acme.apiKey}/revoke`)).status, 404)
  const { body } = await ask<{ commands: { command: string }[] }>(
    operator,
    'POST',
    `/${apiKey}/revoke`,
  )
  assert.equal(
    body.commands[0]?.command,
    `npx custody signer revoke --home HOME --api-key ${apiKey}`,
  )
  assert.equal((await call(user, 'GET', '/dac/v1/supported-assets')).status, 401)
  const again = await ask<{ id: string }>(operator, 'POST', '', params)
  assert.equal((await ask(people.admin, 'POST', `/${again.body.id}/revoke`)).status, 200)
  assert.equal((await ask(people.admin, 'PATCH', `/${apiKey}`, { label: 'x' })).status, 404)
  // When a person leaves, their keys and requests end too.
  const leaves = await ask<{ id: string }>(operator, 'POST', '', params)
  const last = randomUUID()
  await createApiUser(api.services, {
    ...typed,
    role: 'full',
    api_key: last,
    request: leaves.body.id,
  })
  const waits = await ask<{ id: string }>(operator, 'POST', '', params)
  const gone = await people.admin.browser.ask<{ api_keys: string[]; commands: object[] }>(
    'DELETE',
    `/workspaces/acme/people/${operator.id}`,
  )
  assert.deepEqual([gone.body.api_keys, gone.body.commands.length], [[last], 3])
  assert.equal(
    (await call({ ...acme, apiKey: last }, 'GET', '/dac/v1/supported-assets')).status,
    401,
  )
  assert.equal((await ask(people.admin, 'POST', `/${waits.body.id}/revoke`)).status, 404)
  const machine = await api.user('acme', { subAccount: 'machines' })
  await revokeApiUser(api.services, { api_key: machine.apiKey })
  assert.equal((await ask(people.admin, 'PATCH', `/${machine.apiKey}`, { label: 'x' })).status, 404)
})

test('saved views are visible only to the person who saved them', async () => {
  const views = [
    { name: 'Late', page: 'transactions', query: 'status=pending' },
    { name: 'ETH', page: 'transactions', query: 'asset=ETH' },
  ]
  const saved = await people.viewer.browser.ask<{ name: string }[]>(
    'PUT',
    '/workspaces/acme/views',
    { views },
  )
  assert.deepEqual(
    saved.body.map(({ name }) => name),
    ['Late', 'ETH'],
  )
  assert.deepEqual((await people.admin.browser.ask('GET', '/workspaces/acme/views')).body, [])
  assert.deepEqual(
    (await people.viewer.browser.ask('GET', '/workspaces/acme/views')).body,
    saved.body,
  )
})

test('the audit log can be exported completely, and any change of the export is detected', async () => {
  const { text, headers } = await people.owner.browser.ask(
    'GET',
    '/workspaces/acme/audit-log/export',
  )
  assert.match(headers['content-type'] ?? '', /ndjson/)
  const lines = text.trimEnd().split('\n')
  const { lines: count, hash } = await verifyLog(lines)
  assert.equal(count, lines.length - 1)
  const { body } = await people.owner.browser.ask<{ data: AuditLine[]; total: number }>(
    'GET',
    '/workspaces/acme/audit-log?limit=500',
  )
  assert.equal(body.total, count)
  assert.equal(body.data[0]?.hash, hash)
  const actions = new Set(body.data.map(({ action }) => action))
  for (const action of [
    'person.joined',
    'session.opened',
    'session.ended',
    'person.role_changed',
    'person.removed',
    'invitation.created',
    'invitation.withdrawn',
    'api_user.requested',
    'api_user.created',
    'api_user.changed',
    'api_user.revoked',
    'api_user.withdrawn',
    'request.signed',
    'views.saved',
    'person.reset_offered',
  ])
    assert.ok(actions.has(action), action)
  const only = async (query: string) =>
    (
      await people.owner.browser.ask<{ data: AuditLine[] }>(
        'GET',
        `/workspaces/acme/audit-log?${query}`,
      )
    ).body.data
  assert.ok((await only('action=api_user')).every(({ action }) => action.startsWith('api_user.')))
  assert.ok(
    (await only(`actor=${people.admin.email}`)).every(
      ({ actor }) => actor.name === people.admin.email,
    ),
  )
  // A part of the name is enough, in any case.
  const [part = ''] = people.admin.email.toUpperCase().split('@')
  assert.deepEqual(await only(`actor=${part}`), await only(`actor=${people.admin.email}`))
  assert.deepEqual(await only('actor=%25'), [])
  assert.deepEqual(await only(`from=${new Date(clock.now() + 1).toISOString()}`), [])
  assert.deepEqual(await verifyLog(lines, body.data.at(-3)?.hash), {
    lines: count,
    hash,
    workspace: acme.workspaceId,
  })
  await assert.rejects(verifyLog(lines, 'ab'.repeat(32)), BrokenLog)
  const foreign = (
    await stranger.browser.ask('GET', '/workspaces/evil%20corp/audit-log/export')
  ).text.split('\n')
  await verifyLog(foreign)
  const broken = (change: (all: string[]) => void) => {
    const copy = [...lines]
    change(copy)
    return copy.join('\n') === lines.join('\n')
      ? Promise.resolve()
      : assert.rejects(verifyLog(copy), BrokenLog)
  }
  await fc.assert(
    fc.asyncProperty(
      fc.nat(lines.length - 2),
      fc.nat(lines.length - 2),
      fc.nat(4000),
      async (at, other, place) => {
        await broken((all) => all.splice(at, 1))
        await broken((all) => all.splice(at))
        await broken((all) => all.splice(at, 0, all[other] as string))
        await broken((all) => ([all[at], all[other]] = [all[other] as string, all[at] as string]))
        await broken((all) => (all[at] = foreign[0] as string))
        await broken((all) => {
          // Changes one letter or digit of a line, inside or outside its hash.
          const line = all[at] as string
          const i = place % line.length
          if (/[a-z0-9]/.test(line[i] as string))
            all[at] = `${line.slice(0, i)}${line[i] === 'a' ? 'b' : 'a'}${line.slice(i + 1)}`
        })
      },
    ),
    { numRuns: 40 },
  )
  await broken((all) => all.pop())
  await broken((all) => all.push(all[0] as string))
  for (const statement of [
    `update audit_log set action = 'nothing'`,
    'delete from audit_log',
    'truncate audit_log',
    'alter table audit_log disable trigger user',
  ])
    await assert.rejects(
      api.database.query(statement),
      /permission denied for table audit_log|must be owner of table audit_log/,
      statement,
    )
  for (const statement of [`update audit_log set action = 'nothing'`, 'delete from audit_log'])
    await assert.rejects(api.admin.query(statement), /rows of audit_log are only added/, statement)
})

test('audit log entries written concurrently form one chain', async () => {
  await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      people.viewer.browser.ask('PUT', '/workspaces/acme/views', {
        views: [{ name: `View ${at}`, page: 'transactions', query: '' }],
      }),
    ),
  )
  await verifyLog(
    (await people.owner.browser.ask('GET', '/workspaces/acme/audit-log/export')).text.split('\n'),
  )
})

const insertMany = (count: number, memo: string) =>
  api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
      fee_asset, source_type, destination_type,
     destination_id, memo, state, status, created_at, confirmed_at, amount_usd)
   select gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'BTC', 'BTC', n, 'BTC', 'INTERNAL', 'EXTERNAL',
     'bcrt1qexample', $3, 'CONFIRMED',
     'confirmed', $4::timestamptz - (n / 7) * interval '1 second', $4, n
   from generate_series(1, $5::int) n`,
    [acme.workspaceId, acme.subAccountId, memo, new Date(clock.now()), count],
  )

/** Parses CSV according to RFC 4180. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] === '\r\n') rows.push([])
  }
  return rows.slice(0, -1)
}

test('exports ten thousand transactions once each, in list order, without formulas', async () => {
  const memo = '=HYPERLINK("http://evil.test"),\r\nx'
  await insertMany(10_000, memo)
  const path = '/workspaces/acme/sub-accounts/main/transactions/export'
  const { text, headers, status } = await people.viewer.browser.ask('GET', `${path}?format=csv`)
  assert.equal(status, 200)
  assert.match(
    headers['content-disposition'] ?? '',
    /^attachment; filename="transactions-acme-main-\d{4}-\d\d-\d\d\.csv"$/,
  )
  assert.equal(text[0], '\ufeff')
  const [head = [], ...rows] = readCsv(text.slice(1))
  assert.equal(rows.length, 10_000)
  const column = (name: string) => rows.map((row) => row[head.indexOf(name)] as string)
  assert.equal(new Set(column('id')).size, 10_000)
  assert.deepEqual(
    column('created_at'),
    column('created_at').toSorted().reverse(),
    'the newest first',
  )
  assert.ok(column('memo').every((cell) => cell === `'${memo.replace('\r\n', '\\u000d\\u000a')}`))
  assert.ok(column('amount').includes('0.00010000') || column('amount').includes('0.0001'))
  const json = JSON.parse((await people.viewer.browser.ask('GET', `${path}?format=json`)).text) as {
    id: string
  }[]
  assert.deepEqual(
    json.map(({ id }) => id),
    column('id'),
  )
  const { body } = await people.viewer.browser.ask<{ data: { id: string }[] }>(
    'GET',
    '/workspaces/acme/sub-accounts/main/api/dac/v1/transactions?limit=500',
  )
  assert.deepEqual(
    body.data.map(({ id }) => id),
    column('id').slice(0, 500),
  )
  assert.equal(
    readCsv((await people.viewer.browser.ask('GET', `${path}?asset=ETH`)).text).length,
    1,
  )
  assert.deepEqual(
    JSON.parse((await people.viewer.browser.ask('GET', `${path}?format=json&status=failed`)).text),
    [],
  )
  assert.equal(
    (await people.viewer.browser.ask<Problem>('GET', `${path}?asset=NONE`)).body.code,
    'UNSUPPORTED_ASSET',
  )
  assert.equal((await people.viewer.browser.open('HEAD', `/console/api${path}`)).statusCode, 200)
})

test('overview, time series, health and settings report correct values and no secrets', async () => {
  const ask = async <T>(path: string) => {
    const { status, body, text } = await people.viewer.browser.ask<T>(
      'GET',
      `/workspaces/acme${path}`,
    )
    assert.equal(status, 200, `${path}: ${text}`)
    return body
  }
  const wallet = await api.database.one<{ id: string }>(
    `insert into wallets (workspace_id, sub_account_id, asset, network)
      values ($1, $2, 'BTC', 'BTC') returning id`,
    [acme.workspaceId, acme.subAccountId],
  )
  assert.ok(wallet)
  await api.fund(acme, 'BTC', 150_000_000n)
  const overview = await ask<{
    balances: { asset: string; balance: number; available: number; price_usd: number }[]
    total_usd: number
  }>('/sub-accounts/main/overview')
  assert.deepEqual(
    overview.balances.map(({ asset, balance, available, price_usd }) => [
      asset,
      balance,
      available,
      price_usd,
    ]),
    [['BTC', 1.5, 1.5, 1]],
  )
  assert.equal(overview.total_usd, 1.5)
  const series = (query: string) =>
    ask<{ unit: string; points: { at: string; value: number }[] }>(
      `/sub-accounts/main/series?${query}`,
    )
  const balance = await series('metric=balance&asset=BTC&days=3')
  assert.deepEqual([balance.points[0]?.value, balance.points.at(-1)?.value], [0, 1.5])
  assert.equal(
    balance.points.at(-1)?.at.slice(0, 10),
    new Date(clock.now()).toISOString().slice(0, 10),
  )
  const volume = await series('metric=volume&asset=BTC&days=2')
  assert.deepEqual([volume.unit, volume.points.map(({ value }) => value)], ['BTC', [0, 0.50005]])
  assert.equal((await series('metric=volume&days=2')).points.at(-1)?.value, 50.005)
  for (const query of ['metric=fees', 'metric=fees&network=BTC', 'metric=tank&network=ETH'])
    assert.equal((await series(query)).points.length, 30)
  assert.equal(
    (
      await people.viewer.browser.ask<Problem>(
        'GET',
        '/workspaces/acme/sub-accounts/main/series?metric=balance',
      )
    ).body.field,
    'asset',
  )
  const health = await ask<{
    nodes: { reachable: boolean }[]
    chains: { network: string; ok: boolean }[]
    alerts: { code: string }[]
  }>('/health')
  assert.deepEqual(
    health.nodes.map(({ reachable }) => reachable),
    [false, false, false],
  )
  assert.ok(health.chains.length > 15 && health.alerts.some(({ code }) => code === 'NOTHING_SIGNS'))
  const settings = await ask<{ settings: { name: string }[] }>('/settings')
  assert.ok(
    settings.settings.every(
      ({ name }) => !/URL$|KEY|DATABASE/.test(name) || name === 'CUSTODY_PUBLIC_URL',
    ),
  )
})

test('the panel’s OpenAPI document describes every route once', () => {
  const document = documentOf(panelEndpoints) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(
    operations.toSorted(),
    panelEndpoints.map(({ method, path }) => `${method} ${path}`).toSorted(),
  )
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  assert.equal(new Set(ids).size, ids.length)
})
