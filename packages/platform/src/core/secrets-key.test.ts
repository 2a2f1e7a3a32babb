import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { linkSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startBao, withoutBao } from '../../../key-encryption/testing/bao.ts'
import { systemEnvironment } from './environment.ts'
import { Secrets, secretsKeyStatus, wrapSecretsKey } from './secrets.ts'

const home = mkdtempSync(join(tmpdir(), 'secrets-key-'))
after(() => {
  rmSync(home, { recursive: true, force: true })
})
const environment = systemEnvironment()
const file = join(home, 'secrets.key')
const passphrase = join(home, 'passphrase')
writeFileSync(passphrase, 'twelve letters and more\n', { mode: 0o600 })
const custody = (args: string[], env: NodeJS.ProcessEnv = {}) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, '../../bin/custody.mjs'), 'secrets-key', ...args],
    {
      env: { ...process.env, CUSTODY_HOME: home, ...env },
      encoding: 'utf8',
    },
  )
  return { status, stdout, stderr }
}

test('wrapping the secrets key keeps earlier secrets readable, and deletes the plain key file', async () => {
  const plain = await Secrets.open(home, null, environment)
  const sealed = plain.seal('webhook 1', 'a secret')
  const key = readFileSync(file)
  for (const path of ['secrets.key', './secrets.key', file]) {
    await assert.rejects(wrapSecretsKey(file, { kind: 'file', path }, {}), /wrap itself/)
  }
  assert.deepEqual(readFileSync(file), key)
  assert.equal(secretsKeyStatus(file).provider, 'none')
  linkSync(file, join(home, 'blocks'))
  const { status, stderr } = custody(['wrap', '--kek', `passphrase:file=${passphrase}`])
  assert.equal(status, 0, stderr)
  assert.match(custody(['status']).stdout, /wrapped by passphrase:/)
  assert.deepEqual(readFileSync(join(home, 'blocks')), Buffer.alloc(32))
  const text = readFileSync(file, 'utf8')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(!text.includes(key.toString('base64')) && !text.includes(key.toString('hex')))
  assert.equal((await Secrets.open(home, null, environment)).open('webhook 1', sealed), 'a secret')
  // The second process uses the same database, and has the key file at another path.
  assert.equal(
    (await Secrets.open(join(home, 'other'), `@${file}`, environment)).open('webhook 1', sealed),
    'a secret',
  )
  writeFileSync(passphrase, 'twelve letters and less\n')
  await assert.rejects(
    Secrets.open(home, null, environment),
    /passphrase: file: this is not the key/,
  )
  const before = readFileSync(file)
  await assert.rejects(wrapSecretsKey(file, { kind: 'file', path: 'kek' }, {}), /not the key/)
  assert.deepEqual(readFileSync(file), before)
  writeFileSync(passphrase, 'twelve letters and more\n')
  writeFileSync(join(home, 'broken'), 'x'.repeat(31))
  await assert.rejects(Secrets.open(home, `@${join(home, 'broken')}`, environment), /is not JSON/)
  assert.match(
    custody(['wrap', '--kek', 'file'], {
      CUSTODY_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    }).stderr,
    /contains the key itself/,
  )
})

test(
  'with Vault, the secrets key is read only at the start, and its location is logged once',
  { skip: withoutBao },
  async () => {
    const bao = await startBao(home)
    try {
      await bao.admin('POST', 'transit/keys/platform', { type: 'aes256-gcm96' })
      const settings = {
        kind: 'vault' as const,
        address: bao.address,
        mount: 'transit',
        key: 'platform',
        auth_mount: 'approle',
        token_file: await bao.tokenFile('platform'),
      }
      assert.equal((await wrapSecretsKey(file, settings, {})).kek_version, '1')
      const secrets = await Secrets.open(home, null, environment)
      const sealed = secrets.seal('exchange 1', 'a key')
      await bao.admin('PUT', 'sys/seal')
      assert.equal(secrets.open('exchange 1', sealed), 'a key')
      await assert.rejects(Secrets.open(home, null, environment), {
        name: 'KekError',
        code: 'AWAY',
        message: 'vault: sealed',
      })
      await bao.unseal()
      assert.equal(
        (await Secrets.open(home, null, environment)).open('exchange 1', sealed),
        'a key',
      )
    } finally {
      await bao.stop()
    }
  },
)
