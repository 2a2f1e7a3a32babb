import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeTokenKey, openKek } from '../index.ts'
import type { SettingsOf } from '../settings.ts'
import { is, keepsTheContract } from '../../testing/contract.ts'
import { makeToken, withoutToken } from '../../testing/softhsm.ts'

const folder = mkdtempSync(join(tmpdir(), 'kek-token-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const surroundings = { folder, env: {} }
let settings: SettingsOf<'pkcs11'>

before(async () => {
  if (withoutToken) return
  const { module, token, pinFile, conf } = makeToken(folder, 'custody')
  process.env['SOFTHSM2_CONF'] = conf
  settings = { kind: 'pkcs11', module, token, key: 'node-1', id: '01', pin_file: pinFile }
  await makeTokenKey(settings, surroundings)
  await makeTokenKey({ ...settings, key: 'node-2' }, surroundings)
})

test('a hardware token passes the provider tests', { skip: withoutToken }, async () => {
  await keepsTheContract(settings, { ...settings, key: 'node-2' }, surroundings)
})

test(
  'refusals name the setting; a new key with the same label can decrypt old data',
  { skip: withoutToken },
  async () => {
    const key = new Uint8Array(32).fill(7)
    const wrapped = await (await openKek(settings, surroundings)).wrap(key, { a: 'b' })
    assert.equal(wrapped.kek_version, '01')
    const wrap = async (changed: Partial<typeof settings>) =>
      (await openKek({ ...settings, ...changed }, surroundings)).wrap(key, {})
    const pin = join(folder, 'pin')
    writeFileSync(pin, '000000', { mode: 0o600 })
    await assert.rejects(wrap({ pin_file: pin }), is('DENIED', /pkcs11: pin_file: login/))
    await assert.rejects(
      wrap({ key: 'nobody', id: undefined }),
      is('NO_KEY', /pkcs11: key: .*nobody/),
    )
    await assert.rejects(wrap({ token: 'unplugged' }), is('AWAY', /pkcs11: token: .*unplugged/))
    await assert.rejects(
      wrap({ module: '/nowhere.so' }),
      is('SETTING', /pkcs11: module: .*nowhere/),
    )
    await assert.rejects(makeTokenKey(settings, surroundings), is('SETTING', /already/))
    await makeTokenKey({ ...settings, id: '0a' }, surroundings)
    await assert.rejects(wrap({ id: undefined }), is('SETTING', /several/))
    const next = await openKek({ ...settings, id: '0a' }, surroundings)
    assert.equal((await next.wrap(key, {})).kek_version, '0a')
    assert.deepEqual(Buffer.from(await next.unwrap(wrapped, { a: 'b' })), Buffer.from(key))
    await assert.rejects(next.unwrap({ ...wrapped, kek_version: '0a' }, { a: 'b' }), is('REFUSED'))
    // Eight concurrent calls, as by three nodes in one process: they run one after the other.
    await Promise.all(Array.from({ length: 8 }, () => next.unwrap(wrapped, { a: 'b' })))
  },
)
