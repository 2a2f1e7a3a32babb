import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makeRecoveryFiles } from './key-files.ts'
import { filesBelow, readManifest, writeManifest } from './manifest.ts'
import { restoreBackup } from './restore.ts'
import { makeRecoveryPair, seal } from './sealed.ts'
import { signingKeyOf } from './signature.ts'
import { migrate } from '../../core/database/migrate.ts'
import { openDatabase } from '../../core/database/pool.ts'
import { lockDataDir } from '../../core/data-dir.ts'
import { runUnit } from '../../../testing/hosts/unit-command.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/**
 * Tests with an external PostgreSQL of the operator. They need PostgreSQL on this machine (Debian
 * package postgresql).
 */
const CLI = fileURLToPath(new URL('../../../bin/custody.mjs', import.meta.url))
const roots = existsSync('/usr/lib/postgresql')
  ? readdirSync('/usr/lib/postgresql')
      .map(Number)
      .sort((a, b) => b - a)
  : []
const bin = roots
  .map((version) => `/usr/lib/postgresql/${version}/bin`)
  .find((path) => existsSync(join(path, 'initdb')))
const missing =
  bin === undefined ? 'no PostgreSQL server is installed: the package postgresql' : false

/**
 * Asserts that nothing is left anywhere if the nodes cannot be restored from their backups, so that
 * the same command can be repeated.
 */
async function notRestored(databaseUrl: string, whole: string, folder: string): Promise<void> {
  const [from, home] = [join(folder, 'with-nodes'), join(folder, 'cut')]
  cpSync(whole, from, { recursive: true })
  const key = makeRecoveryPair()
  const peers = {
    nodes: [1, 2, 3].map((node) => ({
      node,
      host: '127.0.0.1',
      port: node,
      certificate: '',
      identity: '',
    })),
  }
  const secrets = {
    secrets_key: null,
    identity: { 'peers.json': JSON.stringify(peers) },
    ports: null,
  }
  writeFileSync(
    join(from, 'secrets.sealed'),
    JSON.stringify(seal(JSON.stringify(secrets), key.public)),
  )
  mkdirSync(join(from, 'nodes'))
  for (const { node } of peers.nodes)
    writeFileSync(join(from, 'nodes', `node-${node}.json`), 'no backup')
  const secret = join(folder, 'node-secret')
  writeFileSync(secret, 'ab'.repeat(32))
  const { manifest } = readManifest(from, { manifestSha256: null, signatureKey: null })
  rmSync(join(from, 'manifest.json'))
  const nodes = peers.nodes.map(({ node }) => ({ node, keys: 1, record_height: 1 }))
  writeManifest(
    from,
    { ...manifest, secrets: true, nodes, files: await filesBelow(from) },
    signingKeyOf(key.secret),
  )
  const printed: string[] = []
  const restore = () =>
    restoreBackup({
      home,
      from,
      network: manifest.network,
      databaseUrl,
      secretsKey: null,
      recoverySecret: key.secret,
      trust: { manifestSha256: null, signatureKey: null },
      nodeSecrets: new Map([1, 2, 3].map((node) => [node, secret])),
      askNode: () => assert.fail('no node was made'),
      report: (line) => printed.push(line),
      wal: null,
      until: null,
      archive: null,
    })
  for (let again = 0; again < 2; again++) {
    await assert.rejects(
      restore(),
      /^Error: node 1: .*; the partial restore was removed from .* and in the database: correct this, and run the same command again$/s,
    )
    assert.deepEqual(readdirSync(home), [])
  }
  assert.doesNotMatch(printed.join(), /database: restored/)
  const database = openDatabase(databaseUrl, { max: 1 })
  const tables = await database.query(
    `select 1 from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  await database.close()
  assert.deepEqual(tables, [])
  // Simulates the home of a process that was killed during a restore.
  writeFileSync(join(home, 'restore-unfinished'), '')
  await assert.rejects(
    restore(),
    /contains an interrupted restore: remove its contents, and run the same command again/,
  )
  assert.throws(() => lockDataDir(home), /contains an interrupted restore/)
}

/**
 * Runs the command of the timer's unit, which makes a signed backup in a folder named after the
 * time.
 */
function backedUpByTimer(databaseUrl: string, folder: string): void {
  const [keys, backups, home] = [
    join(folder, 'keys'),
    join(folder, 'backups'),
    join(folder, 'backup-home'),
  ]
  for (const path of [keys, backups, home]) mkdirSync(path, { mode: 0o700 })
  const files = makeRecoveryFiles(null)
  writeFileSync(join(keys, 'recovery.key.pub'), files.public)
  writeFileSync(join(keys, 'recovery.key.sign'), files.signing, { mode: 0o600 })
  const places = { '/etc/custody/backup': keys, '/backups': backups }
  const env = {
    PATH: `${bin}:${process.env['PATH']}`,
    CUSTODY_HOME: home,
    CUSTODY_SIGNERS: keys,
    DATABASE_URL: databaseUrl,
  }
  const { status, stdout, stderr } = runUnit('custody-backup.service', 'ExecStart', places, env)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /files, .*, signed$/m)
  const [name = '', ...others] = readdirSync(backups)
  assert.deepEqual(others, [])
  assert.match(name, /^\d{4}-\d\d-\d\dT\d{6}Z$/)
  assert.ok(stdout.includes(`backup: ${join(backups, name)}`))
  const verified = spawnSync(
    process.execPath,
    [
      CLI,
      'restore',
      '--in',
      join(backups, name),
      '--verify',
      '--recovery-key',
      join(keys, 'recovery.key.pub'),
    ],
    { encoding: 'utf8', env },
  )
  assert.equal(verified.status, 0, verified.stderr)
  // systemd and Kubernetes mount some secrets with this mode. The unit must not pass the file on
  // with it.
  chmodSync(join(keys, 'recovery.key.sign'), 0o440)
  const open = runUnit('custody-backup.service', 'ExecStart', places, env)
  assert.equal(open.status, 1, open.stderr)
  assert.match(open.stderr, /recovery\.key\.sign cannot be used: other users may read it/)
}

test(
  'dumps and restores an external database with PostgreSQL’s own programs',
  { skip: missing },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'custody-external-'))
    // PostgreSQL refuses to run as root, so the command is run as another user.
    const wrap =
      process.getuid?.() === 0 ? ['unshare', '--user', '--map-user=65534', '--map-group=65534'] : []
    const run = (name: string, ...args: string[]): [string, string[]] => {
      const [first, ...rest] = [...wrap, join(bin as string, name), ...args]
      return [first as string, rest]
    }
    const made = spawnSync(
      ...run(
        'initdb',
        '--pgdata',
        join(folder, 'data'),
        '--username',
        'custody',
        '--auth',
        'trust',
        '--no-sync',
      ),
      { encoding: 'utf8' },
    )
    assert.equal(made.status, 0, made.stderr)
    const server = spawn(
      ...run(
        'postgres',
        '-D',
        join(folder, 'data'),
        '-k',
        folder,
        '-c',
        'listen_addresses=',
        '-c',
        'fsync=off',
      ),
      { stdio: 'ignore' },
    )
    const urlOf = (name: string, password = '') =>
      `postgresql://custody${password}@/${name}?host=${encodeURIComponent(folder)}`
    const home = join(folder, 'home')
    mkdirSync(home, { mode: 0o700 })
    const cli = (url: string, at: string, ...words: string[]) =>
      spawnSync(process.execPath, [CLI, ...words], {
        encoding: 'utf8',
        env: { PATH: `${bin}:${process.env['PATH']}`, CUSTODY_HOME: at, DATABASE_URL: url },
      })
    try {
      const admin = openDatabase(urlOf('postgres'), { max: 1, onError: () => undefined })
      await waitFor('PostgreSQL', () => admin.one('select 1').catch(() => null))
      for (const name of ['first', 'second', 'third']) await admin.query(`create database ${name}`)
      await admin.close()
      const first = openDatabase(urlOf('first'), { max: 1 })
      await migrate(first)
      await first.query("insert into workspaces (name) values ('acme')")
      await first.close()
      const out = join(folder, 'backup')
      const taken = cli(
        urlOf('first', ':s3cret'),
        home,
        'backup',
        '--out',
        out,
        '--without-nodes',
        '--without-secrets',
        '--json',
      )
      assert.equal(taken.status, 0, taken.stderr)
      assert.match(
        taken.stderr,
        /^database: PostgreSQL \d+, \d+ migrations \(pg_dump \(PostgreSQL\) /m,
      )
      assert.doesNotMatch(
        taken.stderr + taken.stdout + readFileSync(join(out, 'manifest.json'), 'utf8'),
        /s3cret/,
      )
      assert.match(taken.stderr, /WARNING: the manifest is not signed\. Store its hash/)
      backedUpByTimer(urlOf('first', ':s3cret'), folder)
      const proof = [
        '--manifest-sha256',
        (JSON.parse(taken.stdout) as { manifest_sha256: string }).manifest_sha256,
      ]
      const fresh = join(folder, 'fresh')
      const unproved = cli(urlOf('second'), fresh, 'restore', '--in', out, '--without-secrets')
      assert.match(
        unproved.stderr,
        /--recovery-secret, --recovery-key or --manifest-sha256 is required/,
      )
      const result = cli(
        urlOf('first'),
        fresh,
        'restore',
        '--in',
        out,
        '--without-secrets',
        ...proof,
      )
      assert.match(result.stderr, /the database of DATABASE_URL is not empty/)
      const embedded = spawnSync(
        process.execPath,
        [CLI, 'restore', '--in', out, '--without-secrets', ...proof],
        { encoding: 'utf8', env: { PATH: process.env['PATH'], CUSTODY_HOME: fresh } },
      )
      assert.match(embedded.stderr, /set DATABASE_URL to an empty database/)
      assert.equal(existsSync(fresh), false)
      const restored = cli(
        urlOf('second'),
        fresh,
        'restore',
        '--in',
        out,
        '--without-secrets',
        ...proof,
      )
      assert.equal(restored.status, 0, restored.stderr)
      const second = openDatabase(urlOf('second'), { max: 1 })
      assert.deepEqual(await second.query('select name from workspaces'), [{ name: 'acme' }])
      assert.deepEqual(
        (await migrate(second)).filter((name) => /^\d/.test(name)),
        [],
        'nothing is left to migrate',
      )
      await second.close()
      await notRestored(urlOf('third'), out, folder)
      const nowhere = spawnSync(
        process.execPath,
        [CLI, 'backup', '--out', join(folder, 'none'), '--without-nodes', '--without-secrets'],
        {
          encoding: 'utf8',
          env: { PATH: '/nowhere', CUSTODY_HOME: home, DATABASE_URL: urlOf('first') },
        },
      )
      assert.match(
        nowhere.stderr,
        /pg_dump was not found: install PostgreSQL's client programs \(Debian: postgresql-client\)/,
      )
      assert.deepEqual(
        [
          nowhere.status,
          existsSync(join(folder, 'none')),
          existsSync(join(folder, 'none.partial')),
        ],
        [1, false, false],
      )
    } finally {
      const gone = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGINT')
      await gone
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
