import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { migrate } from '../src/database/migrate.ts'
import { openDatabase } from '../src/database/pool.ts'
import { waitFor } from './harness.ts'

/** A PostgreSQL of the operator's own, where this machine has one: Debian's package postgresql. */
const CLI = fileURLToPath(new URL('../bin/custody.mjs', import.meta.url))
const roots = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').map(Number).sort((a, b) => b - a) : []
const bin = roots.map((version) => `/usr/lib/postgresql/${version}/bin`).find((path) => existsSync(join(path, 'initdb')))
const missing = bin === undefined ? 'no PostgreSQL server is installed: the package postgresql' : false

test('a database of the operator’s own is dumped and restored by PostgreSQL’s own programs', { skip: missing, timeout: 90_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'custody-external-'))
  // PostgreSQL refuses to run as root.
  const wrap = process.getuid?.() === 0 ? ['unshare', '--user', '--map-user=65534', '--map-group=65534'] : []
  const run = (name: string, ...args: string[]): [string, string[]] => {
    const [first, ...rest] = [...wrap, join(bin as string, name), ...args]
    return [first as string, rest]
  }
  const made = spawnSync(...run('initdb', '--pgdata', join(folder, 'data'), '--username', 'custody', '--auth', 'trust', '--no-sync'), { encoding: 'utf8' })
  assert.equal(made.status, 0, made.stderr)
  const server = spawn(...run('postgres', '-D', join(folder, 'data'), '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off'), { stdio: 'ignore' })
  const urlOf = (name: string, password = '') => `postgresql://custody${password}@/${name}?host=${encodeURIComponent(folder)}`
  const home = join(folder, 'home')
  mkdirSync(home, { mode: 0o700 })
  const cli = (url: string, at: string, ...words: string[]) => spawnSync(process.execPath, [CLI, ...words], {
    encoding: 'utf8', env: { PATH: `${bin}:${process.env['PATH']}`, CUSTODY_HOME: at, DATABASE_URL: url },
  })
  try {
    const admin = openDatabase(urlOf('postgres'), { max: 1, onError: () => undefined })
    await waitFor('PostgreSQL', () => admin.one('select 1').catch(() => null))
    for (const name of ['first', 'second']) await admin.query(`create database ${name}`)
    await admin.close()
    const first = openDatabase(urlOf('first'), { max: 1 })
    await migrate(first)
    await first.query("insert into workspaces (name) values ('acme')")
    await first.close()
    const out = join(folder, 'backup')
    const taken = cli(urlOf('first', ':s3cret'), home, 'backup', '--out', out, '--without-nodes', '--without-secrets', '--json')
    assert.equal(taken.status, 0, taken.stderr)
    assert.match(taken.stderr, /^database: PostgreSQL \d+, \d+ migrations \(pg_dump \(PostgreSQL\) /m)
    assert.doesNotMatch(taken.stderr + taken.stdout + readFileSync(join(out, 'manifest.json'), 'utf8'), /s3cret/)
    const fresh = join(folder, 'fresh')
    const over = cli(urlOf('first'), fresh, 'restore', '--in', out, '--without-secrets')
    assert.match(over.stderr, /the database of DATABASE_URL is not empty/)
    const embedded = spawnSync(process.execPath, [CLI, 'restore', '--in', out, '--without-secrets'], { encoding: 'utf8', env: { PATH: process.env['PATH'], CUSTODY_HOME: fresh } })
    assert.match(embedded.stderr, /set DATABASE_URL to an empty one/)
    assert.equal(existsSync(fresh), false)
    const restored = cli(urlOf('second'), fresh, 'restore', '--in', out, '--without-secrets')
    assert.equal(restored.status, 0, restored.stderr)
    const second = openDatabase(urlOf('second'), { max: 1 })
    assert.deepEqual(await second.query('select name from workspaces'), [{ name: 'acme' }])
    assert.deepEqual((await migrate(second)).filter((name) => /^\d/.test(name)), [], 'nothing is left to migrate')
    await second.close()
    const nowhere = spawnSync(process.execPath, [CLI, 'backup', '--out', join(folder, 'none'), '--without-nodes', '--without-secrets'], {
      encoding: 'utf8', env: { PATH: '/nowhere', CUSTODY_HOME: home, DATABASE_URL: urlOf('first') },
    })
    assert.match(nowhere.stderr, /pg_dump is not there: install PostgreSQL's client programs/)
    assert.deepEqual([nowhere.status, existsSync(join(folder, 'none')), existsSync(join(folder, 'none.partial'))], [1, false, false])
  } finally {
    const gone = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGINT')
    await gone
    rmSync(folder, { recursive: true, force: true })
  }
})
