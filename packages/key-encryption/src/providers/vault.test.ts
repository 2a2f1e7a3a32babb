import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openKek } from '../index.ts'
import type { SettingsOf } from '../settings.ts'
import { policyOf, startBao, withoutBao, type Bao } from '../../testing/bao.ts'
import { is, keepsTheContract } from '../../testing/contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'kek-vault-'))
const surroundings = { folder, env: {} }
let bao: Bao
let settings: SettingsOf<'vault'>

before(async () => {
  if (withoutBao) return
  bao = await startBao(folder)
  for (const key of ['node-1', 'node-2'])
    await bao.admin('POST', `transit/keys/${key}`, { type: 'aes256-gcm96' })
  settings = {
    kind: 'vault',
    address: bao.address,
    mount: 'transit',
    key: 'node-1',
    auth_mount: 'approle',
    token_file: await bao.tokenFile('node-1'),
  }
})
after(async () => {
  await bao?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'Vault transit passes the provider tests, with a token that has no other permissions',
  { skip: withoutBao },
  async () => {
    await keepsTheContract(
      settings,
      { ...settings, key: 'node-2', token_file: await bao.tokenFile('node-2') },
      surroundings,
    )
  },
)

test('an AppRole logs in with a secret id from a file', { skip: withoutBao }, async () => {
  await bao.admin('POST', 'sys/auth/approle', { type: 'approle' })
  await bao.admin('PUT', 'sys/policies/acl/node-1', { policy: policyOf('node-1') })
  await bao.admin('POST', 'auth/approle/role/node-1', { token_policies: 'node-1', token_ttl: '1m' })
  const read = async (method: string, path: string) =>
    ((await bao.admin(method, path)).body as { data: Record<string, string> }).data
  const secret = join(folder, 'secret-id')
  writeFileSync(secret, (await read('POST', 'auth/approle/role/node-1/secret-id'))['secret_id']!, {
    mode: 0o600,
  })
  const { token_file: _, ...rest } = settings
  const by = {
    ...rest,
    role_id: (await read('GET', 'auth/approle/role/node-1/role-id'))['role_id']!,
    secret_id_file: secret,
  }
  const kek = await openKek(by, surroundings)
  await kek.unwrap(await kek.wrap(new Uint8Array(32), {}), {})
  writeFileSync(secret, 'another', { mode: 0o600 })
  await assert.rejects(kek.wrap(new Uint8Array(32), {}), is('DENIED', /secret_id_file/))
})

test(
  'a rotated, forbidden, missing or sealed key has its own message',
  { skip: withoutBao },
  async () => {
    const kek = await openKek(settings, surroundings)
    const old = await kek.wrap(new Uint8Array(32).fill(3), {})
    await bao.admin('POST', 'transit/keys/node-1/rotate')
    const next = await kek.wrap(new Uint8Array(32), {})
    assert.deepEqual([old.kek_version, next.kek_version], ['1', '2'])
    assert.deepEqual(Buffer.from(await kek.unwrap(old, {})), Buffer.alloc(32, 3))
    await assert.rejects(
      kek.unwrap({ ...old, kek_version: '2' }, {}),
      is('REFUSED', /another version/),
    )
    await assert.rejects(
      kek.unwrap({ ...old, kek_version: '9', text: old.text.replace('v1', 'v9') }, {}),
      is('NO_KEY', /version/),
    )
    await bao.admin('POST', 'transit/keys/node-1/config', { min_decryption_version: 2 })
    await assert.rejects(kek.unwrap(old, {}), is('NO_KEY', /min_decryption_version/))
    await assert.rejects(
      (await openKek({ ...settings, key: 'node-2' }, surroundings)).wrap(new Uint8Array(32), {}),
      is('DENIED', /permission denied: token_file/),
    )
    const gone = { ...settings, key: 'gone', token_file: await bao.tokenFile('gone') }
    await assert.rejects((await openKek(gone, surroundings)).unwrap(old, {}), is('NO_KEY', /key/))
    await bao.admin('PUT', 'sys/seal')
    await assert.rejects(kek.wrap(new Uint8Array(32), {}), is('AWAY', /^vault: sealed$/))
    await bao.unseal()
    await kek.wrap(new Uint8Array(32), {})
  },
)

test('responses of a Vault server are limited in time and size', async () => {
  const token = join(folder, 'token')
  writeFileSync(token, 'a-token', { mode: 0o600 })
  let mode = 'silent'
  let requestCount = 0
  const server = createServer((_, response) => {
    requestCount++
    if (mode === 'long') response.end('x'.repeat(100_000))
    else if (mode === 'drips') response.write('{')
    else if (mode === 'other') response.end('{"data":{"ciphertext":"vault:v1:AA,","plaintext":7}}')
    else if (mode === 'broken') response.destroy()
    else if (mode === 'later') {
      if (requestCount < 3) response.writeHead(500).end()
      else response.end('{"data":{"ciphertext":"vault:v1:AAAA"}}')
    }
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const emulator = {
    kind: 'vault' as const,
    address,
    mount: 'transit',
    key: 'k',
    auth_mount: 'approle',
    token_file: token,
  }
  const kek = await openKek(emulator, { ...surroundings, timeoutMs: 80 })
  for (const [next, words] of [
    ['silent', /did not respond within 80 ms/],
    ['drips', /did not respond within|interrupted/],
    ['long', /more than 65536 bytes/],
    ['other', /unknown format/],
    ['broken', /cannot be reached|interrupted/],
  ] as const) {
    mode = next
    await assert.rejects(kek.wrap(new Uint8Array(32), {}), is('AWAY', words), next)
  }
  requestCount = 0
  mode = 'later'
  assert.equal((await kek.wrap(new Uint8Array(32), {})).kek_version, '1')
  assert.equal(requestCount, 3)
  server.closeAllConnections()
  await new Promise((resolve) => {
    server.close(resolve)
  })
  await assert.rejects(
    kek.wrap(new Uint8Array(32), {}),
    is('AWAY', /cannot be reached \(ECONNREFUSED\)/),
  )
  for (const wrong of ['http://vault.example', 'ftp://x', 'https://user:password@vault.example']) {
    await assert.rejects(
      openKek({ ...emulator, address: wrong }, surroundings),
      is('SETTING', /vault: address/),
    )
  }
})
