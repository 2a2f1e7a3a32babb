import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ROOT } from '../testing/documents.ts'
import { whyNoProduction } from '../testing/hosts/production-hosts.ts'

/**
 * Tests of the commands of the pages about production, run with bundles: without a checkout, npm,
 * Node on the host, or a network.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-production-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const versions = existsSync('/usr/lib/postgresql')
  ? readdirSync('/usr/lib/postgresql')
      .map(Number)
      .sort((a, b) => b - a)
  : []
const postgres = versions
  .map((version) => `/usr/lib/postgresql/${version}/bin`)
  .find((path) => existsSync(join(path, 'initdb')))
const skip =
  whyNoProduction() ??
  (postgres === undefined ? 'no PostgreSQL server is installed: the package postgresql' : false)

test(
  'the documented commands install, back up, restore and upgrade bundles',
  { skip },
  async (t) => {
    for (const kind of ['platform', 'signer']) {
      const { status, stderr } = spawnSync(
        process.execPath,
        [join(ROOT, 'scripts/bundle.mjs'), '--for', kind, '--out', join(folder, kind)],
        { encoding: 'utf8' },
      )
      assert.equal(status, 0, stderr)
    }
    // Addresses in the pages; no other address is reachable in this namespace.
    const network =
      'ip link set lo up; for n in 1 2 3; do ip address add 10.0.0.$n/32 dev lo; done; exec "$@"'
    const child = spawn(
      'unshare',
      [
        '--net',
        '--pid',
        '--fork',
        '--kill-child',
        '--mount-proc',
        'sh',
        '-euc',
        network,
        'sh',
        process.execPath,
        join(ROOT, 'packages/platform/testing/hosts/production-scenario.ts'),
        folder,
        postgres as string,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => {
        said += part
      })
    const status = await new Promise((resolve) => {
      child.once('close', resolve)
    })
    assert.equal(status, 0, said)
    for (const line of said.trim().split('\n')) t.diagnostic(line)
  },
)
