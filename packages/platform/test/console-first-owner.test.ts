// How the first owner of an installation joins, on a real server and an empty database.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, test } from 'node:test'
import { firstOwnerToken } from '../src/people/invitations.ts'
import { useApi, type Problem } from './api-support.ts'
import { Browser, join } from './console-stage.ts'

const api = useApi()
const now = Date.UTC(2026, 5, 1)
before(async () => {
  await api.started
  api.now = () => now
})

const refused = async (asked: Promise<{ status: number; body: unknown; text: string }>, status: number, code: string) => {
  const answer = await asked
  assert.equal(answer.status, status, answer.text)
  assert.equal((answer.body as Problem).code, code, answer.text)
}

test('the first owner joins by a link of the start, which is stored as its hash, is replaced by the next one, and works once', async () => {
  const old = await firstOwnerToken(api.services)
  const token = await firstOwnerToken(api.services) as string
  const browser = new Browser(api)
  await refused(browser.ask('GET', `/invitations/${old}`), 410, 'INVITATION_CLOSED')
  assert.deepEqual((await browser.ask('GET', `/invitations/${token}`)).body, {
    workspace: null, role: 'owner', email: null, is_first: true, is_reset: false, expires_at: new Date(now + 7 * 86_400_000).toISOString(),
  })
  const stored = await api.database.one<{ hash: string }>(`select encode(token_hash, 'hex') hash from invitations where revoked_at is null`)
  assert.equal(stored?.hash, createHash('sha256').update(token).digest('hex'))
  const said = { email: ' Owner@Example.test', name: 'Owner', password: 'correct horse battery staple' }
  await refused(browser.ask('POST', `/join/${token}/password`, said), 400, 'INVALID_REQUEST')
  const owner = await join(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })
  assert.equal(await firstOwnerToken(api.services), null, 'there is an owner')
  await refused(browser.ask('GET', `/invitations/${token}`), 410, 'INVITATION_CLOSED')
  await refused(browser.ask('GET', `/invitations/${'x'.repeat(43)}`), 404, 'NOT_FOUND')
  const { body } = await owner.browser.ask<{ workspaces: unknown; person: object }>('GET', '/session')
  assert.deepEqual(body, {
    person: { id: owner.id, email: 'owner@example.test', name: 'owner@example.test', has_password: true, has_totp: true, recovery_codes_left: 10, passkeys: 0 },
    workspaces: [{ name: 'acme', role: 'owner', sub_accounts: [] }], passkeys_available: true, network: 'local', version: '0.1.0',
  })
})
