import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openKek } from '../index.ts'
import type { SettingsOf } from '../settings.ts'
import { ACCESS, ARN, OTHER_ARN, signatureOf, startAws } from '../../testing/aws-emulator.ts'
import { is, keepsTheContract } from '../../testing/contract.ts'
import { KEY, startGcp } from '../../testing/gcp-emulator.ts'

const folder = mkdtempSync(join(tmpdir(), 'kek-clouds-'))
const surroundings = { folder, env: {} }
const secret = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 })
  return join(folder, name)
}
let aws: Awaited<ReturnType<typeof startAws>>
let gcp: Awaited<ReturnType<typeof startGcp>>
let byAws: SettingsOf<'aws-kms'>
let byGcp: SettingsOf<'gcp-kms'>

before(async () => {
  aws = await startAws()
  gcp = await startGcp()
  const profile = `[other]\naws_access_key_id = X\n[node]\naws_access_key_id = ${ACCESS.id}\naws_secret_access_key = ${ACCESS.secret}\n`
  byAws = {
    kind: 'aws-kms',
    key: ARN,
    profile: 'node',
    credentials_file: secret('aws', profile),
    endpoint: aws.address,
  }
  byGcp = {
    kind: 'gcp-kms',
    key: KEY,
    credentials_file: secret('gcp.json', JSON.stringify(gcp.account)),
    endpoint: gcp.address,
  }
})
after(async () => {
  await Promise.all([aws.stop(), gcp.stop()])
  rmSync(folder, { recursive: true, force: true })
})

test('our AWS Signature Version 4 equals the examples of its published test suite', () => {
  const headers = { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' }
  const of = (method: string, query = '') =>
    signatureOf(
      { method, path: '/', query, headers, body: '' },
      ['host', 'x-amz-date'],
      '20150830/us-east-1/service/aws4_request',
      ACCESS.secret,
    )
  assert.equal(of('GET'), '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31')
  assert.equal(of('POST'), '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b')
  assert.equal(
    of('POST', 'Param1=value1'),
    '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
  )
})

test('AWS KMS passes the provider tests, with signed requests and the encryption context', async () => {
  await keepsTheContract(byAws, { ...byAws, key: OTHER_ARN }, surroundings)
})

test('AWS KMS: refusals have our own messages, and a response for another key is refused', async () => {
  const kek = await openKek(byAws, surroundings)
  const key = new Uint8Array(32)
  const wrapped = await kek.wrap(key, {})
  aws.throttled = 2
  await kek.wrap(key, {})
  aws.throttled = 3
  await assert.rejects(kek.wrap(key, {}), is('AWAY', /busy/))
  for (const [name, code, words] of [
    ['denied', 'DENIED', /permission denied: credentials_file/],
    ['disabled', 'NO_KEY', /key: is disabled/],
  ] as const) {
    aws[name] = true
    await assert.rejects(kek.unwrap(wrapped, {}), is(code, words))
    aws[name] = false
  }
  aws.answersAs = OTHER_ARN
  await assert.rejects(kek.wrap(key, {}), is('REFUSED', /another key/))
  await assert.rejects(kek.unwrap(wrapped, {}), is('REFUSED', /another key/))
  aws.answersAs = null
  await assert.rejects(
    (await openKek({ ...byAws, key: ARN.replace('1234abcd', '00000000') }, surroundings)).wrap(
      key,
      {},
    ),
    is('NO_KEY'),
  )
  const stale = await openKek(byAws, { ...surroundings, now: () => Date.now() - 3_600_000 })
  await assert.rejects(stale.wrap(key, {}), is('DENIED', /clock/))
  const wrong = {
    ...byAws,
    credentials_file: secret(
      'wrong',
      `[node]\naws_access_key_id=${ACCESS.id}\naws_secret_access_key=wrong\n`,
    ),
  }
  await assert.rejects(
    (await openKek(wrong, surroundings)).wrap(key, {}),
    is('DENIED', /signature/),
  )
  await assert.rejects(
    (await openKek({ ...byAws, profile: 'none' }, surroundings)).wrap(key, {}),
    is('SETTING', /\[none\]/),
  )
})

test('Google Cloud KMS passes the provider tests, with its own token and checksums', async () => {
  await keepsTheContract(byGcp, { ...byGcp, key: KEY.replace('node-1', 'node-2') }, surroundings)
})

test('Google Cloud KMS: refusals have our own messages, and a wrong checksum is refused', async () => {
  const kek = await openKek(byGcp, surroundings)
  const key = new Uint8Array(32)
  const wrapped = await kek.wrap(key, {})
  assert.equal(wrapped.kek_version, '3')
  for (const [name, code, words] of [
    ['denied', 'DENIED', /permission denied: credentials_file/],
    ['disabled', 'NO_KEY', /disabled/],
  ] as const) {
    gcp[name] = true
    await assert.rejects(kek.unwrap(wrapped, {}), is(code, words))
    gcp[name] = false
  }
  for (const field of ['ciphertextCrc32c', 'verifiedPlaintextCrc32c']) {
    gcp.damaged = field
    await assert.rejects(kek.wrap(key, {}), is('AWAY', /checksum/))
  }
  gcp.damaged = 'plaintextCrc32c'
  await assert.rejects(kek.unwrap(wrapped, {}), is('AWAY', /checksum/))
  gcp.damaged = null
  gcp.answersAs = KEY.replace('node-1', 'node-2')
  await assert.rejects(kek.wrap(key, {}), is('REFUSED', /another key/))
  gcp.answersAs = null
  await assert.rejects(
    (await openKek({ ...byGcp, key: KEY.replace('node-1', 'node-9') }, surroundings)).wrap(key, {}),
    is('NO_KEY'),
  )
  const stranger = { ...gcp.account, client_email: 'stranger@p-1.iam.gserviceaccount.com' }
  const other = { ...byGcp, credentials_file: secret('stranger.json', JSON.stringify(stranger)) }
  await assert.rejects(
    (await openKek(other, surroundings)).wrap(key, {}),
    is('DENIED', /credentials_file/),
  )
  await assert.rejects(
    (await openKek({ ...byGcp, credentials_file: secret('none.json', '{}') }, surroundings)).wrap(
      key,
      {},
    ),
    is('SETTING', /service account/),
  )
})
