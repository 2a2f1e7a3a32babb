import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const MODULES = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so',
  '/usr/lib/aarch64-linux-gnu/softhsm/libsofthsm2.so',
]
const module = MODULES.find((path) => existsSync(path))

/** Reason for skipping tests that need a token; false if they can run. */
export const withoutToken: string | false = module
  ? false
  : 'SoftHSM is not installed (Debian: softhsm2)'
const PIN = '738193'

/**
 * Creates a SoftHSM token in its own folder, without a key. The module reads SOFTHSM2_CONF of the
 * process when it is first loaded, so each process has one folder of tokens.
 */
export function makeToken(
  folder: string,
  label: string,
): { module: string; token: string; pinFile: string; conf: string } {
  const place = mkdtempSync(join(folder, 'hsm-'))
  const conf = join(place, 'softhsm2.conf')
  mkdirSync(join(place, 'tokens'))
  writeFileSync(
    conf,
    `directories.tokendir = ${join(place, 'tokens')}\nobjectstore.backend = file\nlog.level = ERROR\n`,
  )
  const args = ['--init-token', '--free', '--label', label, '--pin', PIN, '--so-pin', '11223344']
  const { status, stderr } = spawnSync('softhsm2-util', args, {
    env: { ...process.env, SOFTHSM2_CONF: conf },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`softhsm2-util: ${stderr}`)
  const pinFile = join(place, 'pin')
  writeFileSync(pinFile, `${PIN}\n`, { mode: 0o600 })
  return { module: module!, token: label, pinFile, conf }
}
