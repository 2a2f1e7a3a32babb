// Tests how the first owner of an installation joins, on a real server and an empty database.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { announceFirstOwner, FIRST_OWNER_LINK } from '../../server/app/first-owner.ts'
import type { Application } from '../../server/app/application.ts'
import { firstOwnerInvitation } from './invitations.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { Browser, join as joinAs } from '../../../testing/console-fixture.ts'

const api = useApi()
const now = Date.UTC(2026, 5, 1)
before(async () => {
  await api.started
  api.now = () => now
})

const refused = async (
  request: Promise<{ status: number; body: unknown; text: string }>,
  status: number,
  code: string,
) => {
  const answer = await request
  assert.equal(answer.status, status, answer.text)
  assert.equal((answer.body as Problem).code, code, answer.text)
}

test('prints the first owner’s link to a terminal; without one, writes it to a private file', async () => {
  const home = mkdtempSync(join(tmpdir(), 'custody-first-owner-'))
  const file = join(home, FIRST_OWNER_LINK)
  try {
    const services: Application = { ...api.services, settings: { ...api.services.settings, home } }
    const printed = await announceFirstOwner(services, 8080, true)
    assert.match(String(printed), /^console http:\/\/localhost:8080\/console\/join#[\w-]{43}$/)
    assert.equal(existsSync(file), false)
    const line = await announceFirstOwner(services, 8080, false)
    assert.equal(
      line,
      `console: the first owner can join with the link in ${file} until ${new Date(now + 3_600_000).toISOString()}`,
    )
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const token = /^http:\/\/localhost:8080\/console\/join#([\w-]{43})\n$/.exec(
      readFileSync(file, 'utf8'),
    )?.[1] as string
    const browser = new Browser(api)
    const { body } = await browser.ask<{ is_first: boolean }>('POST', '/join/invitation', {
      invitation: token,
    })
    assert.equal(body.is_first, true)
    // The next start replaces the file and the invitation link, even if the file was replaced by a
    // symbolic link.
    const other = join(home, 'other')
    writeFileSync(other, 'other')
    rmSync(file)
    symlinkSync(other, file)
    await announceFirstOwner(services, 8080, false)
    assert.deepEqual([lstatSync(file).isFile(), readFileSync(other, 'utf8')], [true, 'other'])
    await refused(
      browser.ask('POST', '/join/invitation', { invitation: token }),
      410,
      'INVITATION_CLOSED',
    )
  } finally {
    rmSync(home, { recursive: true })
  }
})

test('the first owner’s link can be used once, and is replaced at the next start', async () => {
  const tokenOf = async (): Promise<string | null> =>
    (await firstOwnerInvitation(api.services))?.token ?? null
  const old = await tokenOf()
  const token = (await tokenOf()) as string
  const browser = new Browser(api)
  await refused(
    browser.ask('POST', '/join/invitation', { invitation: old }),
    410,
    'INVITATION_CLOSED',
  )
  assert.deepEqual((await browser.ask('POST', '/join/invitation', { invitation: token })).body, {
    workspace: null,
    role: 'owner',
    email: null,
    is_first: true,
    is_reset: false,
    expires_at: new Date(now + 3_600_000).toISOString(),
  })
  const stored = await api.database.one<{ hash: string }>(
    `select encode(token_hash, 'hex') hash from invitations where revoked_at is null`,
  )
  assert.equal(stored?.hash, createHash('sha256').update(token).digest('hex'))
  const said = {
    email: ' Owner@Example.test',
    name: 'Owner',
    password: 'correct horse battery staple',
  }
  await refused(
    browser.ask('POST', '/join/password', { ...said, invitation: token }),
    400,
    'INVALID_REQUEST',
  )
  const owner = await joinAs(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })
  assert.equal(await tokenOf(), null, 'there is already an owner')
  await refused(
    browser.ask('POST', '/join/invitation', { invitation: token }),
    410,
    'INVITATION_CLOSED',
  )
  await refused(
    browser.ask('POST', '/join/invitation', { invitation: 'x'.repeat(43) }),
    404,
    'NOT_FOUND',
  )
  const { body } = await owner.browser.ask<{ workspaces: unknown; person: object }>(
    'GET',
    '/session',
  )
  assert.deepEqual(body, {
    person: {
      id: owner.id,
      email: 'owner@example.test',
      name: 'owner@example.test',
      has_password: true,
      has_totp: true,
      recovery_codes_left: 10,
      passkeys: 0,
    },
    workspaces: [{ name: 'acme', role: 'owner', sub_accounts: [] }],
    passkeys_available: true,
    network: 'local',
    version: '0.1.0',
    command: 'npx custody',
  })
})
