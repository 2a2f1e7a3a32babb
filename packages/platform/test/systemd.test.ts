import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const UNITS = fileURLToPath(new URL('../../../deploy/systemd/', import.meta.url))
const COMMAND = '/opt/custody/bin/custody'
/** In tenths: systemd calls up to 2.0 safe. */
const EXPOSURE_MAX = '15'

const there = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' })
const skip = there.status === 0 ? false : 'there is no systemd-analyze (Debian: systemd)'
const folder = mkdtempSync(join(tmpdir(), 'custody-units-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** The unit as it would be on a host, but for where the bundle is. */
function placed(name: string, as: string): string {
  const text = readFileSync(join(UNITS, name), 'utf8')
  assert.ok(text.includes(`ExecStart=${COMMAND} `))
  const file = join(folder, as)
  writeFileSync(file, text.replace(COMMAND, process.execPath))
  return file
}

for (const [name, as] of [['custody@.service', 'custody@worker.service'], ['custody-signer.service', 'custody-signer.service']] as const) {
  test(`${name} is a unit without fault, and shuts its process in`, { skip }, () => {
    const file = placed(name, as)
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
    assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, '', ''])
    const judged = spawnSync('systemd-analyze', ['security', '--no-pager', '--offline=true', `--threshold=${EXPOSURE_MAX}`, file], { encoding: 'utf8' })
    assert.equal(judged.status, 0, judged.stdout.slice(-400) + judged.stderr)
    const text = readFileSync(file, 'utf8')
    for (const line of ['NoNewPrivileges=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet=', 'Restart=always']) assert.ok(text.includes(`${line}\n`), line)
    assert.match(text, /^LoadCredential=/m)
    assert.doesNotMatch(text, /^Environment=(DATABASE_URL|CUSTODY_SECRETS_KEY)/m, 'the environment of a unit is shown to everybody')
  })
}
