import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeEntry, openKek, parseKeyFile, readKek } from '../index.ts'
import { crc32c } from '../crc32c.ts'
import { is, keepsTheContract } from '../../testing/contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'kek-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const surroundings = { folder, env: {} }
const words = (name: string) => ({ purpose: 'test', name })
const file = (name: string, text: string, mode = 0o600): string => {
  const path = join(folder, name)
  writeFileSync(path, text, { mode })
  return path
}

test('a key file passes the provider tests, and only its owner can read it', async () => {
  for (const path of ['kek', 'kek-2']) await makeEntry({ kind: 'file', path }, surroundings, words)
  await keepsTheContract(
    { kind: 'file', path: 'kek' },
    { kind: 'file', path: 'kek-2' },
    surroundings,
  )
  const kek = await openKek({ kind: 'file', path: 'kek' }, surroundings)
  chmodSync(join(folder, 'kek'), 0o640)
  await assert.rejects(kek.wrap(new Uint8Array(32), {}), is('SETTING', /mode 600/))
  file('short', 'x'.repeat(31))
  await assert.rejects(
    (await openKek({ kind: 'file', path: 'short' }, surroundings)).wrap(new Uint8Array(32), {}),
    is('SETTING', /32 bytes/),
  )
  await assert.rejects(
    (await openKek({ kind: 'file', path: 'none' }, surroundings)).wrap(new Uint8Array(32), {}),
    is('SETTING', /ENOENT/),
  )
})

test('a passphrase passes the provider tests, and a wrong one differs from changed bytes', async () => {
  const salt = '00'.repeat(16)
  const right = {
    kind: 'passphrase' as const,
    salt,
    file: file('right', 'three nodes, two of them sign\n'),
  }
  const wrong = { ...right, file: file('wrong', 'three nodes, two of them sigh\n') }
  await keepsTheContract(right, wrong, surroundings)
  const wrapped = await (await openKek(right, surroundings)).wrap(new Uint8Array(32), {})
  await assert.rejects(
    (await openKek(wrong, surroundings)).unwrap(wrapped, {}),
    is('REFUSED', /passphrase: file: this is not the key/),
  )
  const short = await openKek({ ...right, file: file('too-short', 'short\n') }, surroundings)
  await assert.rejects(short.wrap(new Uint8Array(32), {}), is('SETTING', /12 characters/))
  const open = await openKek(
    { ...right, file: file('open', 'readable by everybody\n', 0o644) },
    surroundings,
  )
  chmodSync(join(folder, 'open'), 0o644)
  await assert.rejects(
    open.wrap(new Uint8Array(32), {}),
    is('SETTING', /accessible to other users/),
  )
  await assert.rejects(
    openKek({ kind: 'passphrase', salt }, surroundings),
    is('SETTING', /CUSTODY_SIGNER_PASSPHRASE_FILE/),
  )
  const credential = await openKek(
    { ...right, file: 'credential:right' },
    { folder, env: { CREDENTIALS_DIRECTORY: folder } },
  )
  await credential.unwrap(wrapped, {})
  const bare = await openKek({ ...right, file: 'credential:right' }, surroundings)
  await assert.rejects(bare.wrap(new Uint8Array(32), {}), is('SETTING', /LoadCredential/))
})

test('reads a provider from one line or from a file, and reports invalid settings', () => {
  assert.deepEqual(readKek('--kek', 'vault:address=https://v:8200,key=node-1,token_file=/run/t'), {
    kind: 'vault',
    address: 'https://v:8200',
    mount: 'transit',
    key: 'node-1',
    token_file: '/run/t',
    auth_mount: 'approle',
  })
  assert.deepEqual(readKek('--kek', 'file'), { kind: 'file', path: 'kek' })
  assert.deepEqual(readKek('--kek', `@${file('kek.json', '{"kind":"passphrase","file":"a,b"}')}`), {
    kind: 'passphrase',
    file: 'a,b',
  })
  for (const [typed, words] of [
    [
      'usb:x=1',
      /--kek: the provider must be one of file, passphrase, pkcs11, aws-kms, gcp-kms, vault/,
    ],
    ['vault:address=https://v,key=a', /--kek: vault: requires token_file/],
    ['vault:key', /name=value/],
    ['aws-kms:key=alias/x,credentials_file=c', /aws-kms key: must be the ARN/],
    ['gcp-kms:key=x,credentials_file=c', /gcp-kms key: must be projects/],
    ['pkcs11:module=m,token=t,key=k', /pkcs11 pin_file/],
    ['pkcs11:module=m,token=t,key=k,pin_file=p,pin=123456', /pin/],
    ['@/nowhere', /cannot be read/],
  ] as const) {
    assert.throws(() => readKek('--kek', typed), is('SETTING', words), typed)
  }
  // The error does not contain the PIN that was entered.
  assert.throws(
    () => readKek('--kek', 'pkcs11:module=m,token=t,key=k,pin_file=p,pin=123456'),
    (error: Error) => !error.message.includes('123456'),
  )
  for (const text of ['', '{}', '{"version":1,"keys":[]}', '{"version":2,"keys":[]}']) {
    assert.throws(() => parseKeyFile(text, 'keys.json'), is('SETTING', /keys\.json/))
  }
})

test('calculates CRC-32C as defined in RFC 3720', () => {
  assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283)
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa)
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43)
})
