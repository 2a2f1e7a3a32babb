import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makeRecoveryFiles } from './key-files.ts'
import { filesBelow, writeManifest, type Manifest, type Trust } from './manifest.ts'
import { restoreBackup, trustOf, verifyBackup } from './restore.ts'
import { seal } from './sealed.ts'
import { signatureKeyOf, signingKeyOf, signManifest } from './signature.ts'
import { takeBackup } from './take.ts'
import { embeddedData, startEmbeddedPostgres } from '../../core/database/embedded.ts'
import { openDatabase } from '../../core/database/pool.ts'
import { prepareDatabase } from '../../../testing/prepared-database.ts'

/**
 * Attacks by someone who can write to the backup folder. The backup is a real one of a real
 * database. Each attack changes the folder and is tried with the original manifest, and with
 * recomputed hashes that the operator was tricked into accepting. Three kinds (a changed file, a
 * link, and a changed manifest) are also tried with forged signatures.
 */
const CLI = fileURLToPath(new URL('../../../bin/custody.mjs', import.meta.url))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'custody-tampered-')))
const place = (name: string): string => join(folder, name)
const [home, whole, marker, outside] = [
  place('home'),
  place('whole'),
  place('marker'),
  place('outside'),
]
const keys = makeRecoveryFiles(null)
const secret = keys.secret.trim()
const { public: sealing, signature_key: signatureKey } = JSON.parse(keys.public) as {
  public: string
  signature_key: string
}
const SECRETS_KEY = Buffer.alloc(32, 7)
const TRUST: Trust = { manifestSha256: null, signatureKey }
const UNPROVED: Trust = { manifestSha256: null, signatureKey: null }
let printed = ''

before(async () => {
  await prepareDatabase(home)
  const server = await startEmbeddedPostgres(home)
  const database = openDatabase(server.adminUrl, { max: 1 })
  await database.query("insert into workspaces (name) values ('acme')")
  await database.close()
  await server.stop()
  writeFileSync(join(home, 'secrets.key'), SECRETS_KEY)
  mkdirSync(join(home, 'signers', 'platform'), { recursive: true })
  writeFileSync(join(home, 'signers', 'platform', 'tls.key'), 'client key')
  for (const [name, text] of [
    ['key', keys.secret],
    ['key.pub', keys.public],
    ['key.sign', keys.signing],
  ] as const) {
    writeFileSync(place(name), text, { mode: 0o600 })
  }
  printed = (
    await takeBackup({
      home,
      out: whole,
      network: 'local',
      databaseUrl: null,
      walArchive: null,
      secretsKey: null,
      recoveryKey: sealing,
      signingKey: keys.signing.trim(),
      withNodes: false,
      askNode: () => assert.fail('no node is asked'),
      report: () => undefined,
      clock: () => new Date('2026-01-31T12:00:00Z'),
    })
  ).manifestSha256
})
/** Deletes the copies, because each copy and each restored home is as large as the backup. */
afterEach(() => {
  for (const name of readdirSync(folder)) {
    if (!['home', 'whole', 'key', 'key.pub', 'key.sign'].includes(name))
      rmSync(place(name), { recursive: true, force: true })
  }
})
after(() => rmSync(folder, { recursive: true, force: true }))

const manifestOf = (from: string): Manifest =>
  JSON.parse(readFileSync(join(from, 'manifest.json'), 'utf8')) as Manifest
const hashOf = (from: string): string =>
  createHash('sha256')
    .update(readFileSync(join(from, 'manifest.json')))
    .digest('hex')
const everything = (at: string): string[] =>
  existsSync(at) ? readdirSync(at, { recursive: true }).map(String).sort() : []

/**
 * Restores a backup.
 * @param report called with each progress message of the restore
 */
const restore = (
  from: string,
  to: string,
  trust: Trust,
  report: (line: string) => void = () => undefined,
): Promise<Manifest> =>
  restoreBackup({
    home: to,
    from,
    network: 'local',
    databaseUrl: null,
    secretsKey: null,
    recoverySecret: secret,
    trust,
    nodeSecrets: new Map(),
    askNode: () => assert.fail('no node is asked'),
    report,
    wal: null,
    until: null,
    archive: null,
  })

let copies = 0
function copyOfWhole(): string {
  const copy = place(`copy-${copies++}`)
  // With the times of the files, by which `rehash` recognizes those that an attack has not changed.
  execFileSync('cp', ['-a', whole, copy])
  return copy
}

/**
 * Rewrites the manifest as the attacker would: with the hashes of the folder's current files,
 * following links.
 */
async function rehash(from: string, change: (manifest: Manifest) => void): Promise<void> {
  const manifest = manifestOf(from)
  const listed = new Map(manifest.files.map((file) => [file.path, file]))
  for (const name of everything(from)) {
    if (name === 'manifest.json' || name === 'manifest.sig') continue
    const stat = statSync(join(from, name), { throwIfNoEntry: false })
    if (!stat?.isFile()) continue
    const original = statSync(join(whole, name), { throwIfNoEntry: false })
    if (stat.mtimeMs === original?.mtimeMs && stat.size === original.size) continue
    const bytes = readFileSync(join(from, name))
    listed.set(name, {
      path: name,
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
  }
  manifest.files = [...listed.values()].filter(({ path }) => existsSync(join(from, path)))
  change(manifest)
  writeFileSync(join(from, 'manifest.json'), `${JSON.stringify(manifest, null, 1)}\n`)
}

interface Attack {
  name: string
  change: (from: string) => void
  /** Further changes to the manifest when hashes are recomputed. */
  list?: (manifest: Manifest) => void
  /** Whether forged manifests are tried too. */
  isForged?: true
  /** Expected error with the original manifest: the file and the reason. */
  unlisted: RegExp
  /**
   * Expected error with recomputed hashes and a hash that the operator accepted: the file and the
   * reason.
   */
  listed: RegExp
}

const run = `'touch ${marker}'`
const setting =
  (file: string, lines: string) =>
  (from: string): void =>
    writeFileSync(join(from, 'database', file), `${lines}\n`)
const settings = (file: string, lines: string): Pick<Attack, 'change' | 'unlisted' | 'listed'> => ({
  change: setting(file, lines),
  unlisted: new RegExp(`database/${file.replace('.', '\\.')} does not belong to the backup`),
  listed: new RegExp(
    `database/${file.replace('.', '\\.')} is a database setting, which this platform writes itself`,
  ),
})
const commands: Record<string, string> = {
  recovery_end_command: `recovery_end_command = ${run}`,
  archive_command: `archive_mode = always\narchive_command = ${run}`,
  restore_command: `restore_command = ${run}`,
  archive_cleanup_command: `archive_cleanup_command = ${run}`,
  ssl_passphrase_command: `ssl = on\nssl_passphrase_command = ${run}\nssl_passphrase_command_supports_reload = on`,
  shared_preload_libraries: `shared_preload_libraries = '${outside}/evil'`,
  include: `include '${outside}/evil.conf'`,
}
const firstTable = (from: string): string =>
  manifestOf(from)
    .files.map(({ path }) => path)
    .find((path) => /^database\/base\/\d+\/\d+$/.test(path)) as string

const ATTACKS: Attack[] = [
  {
    name: `${Object.keys(commands).join(', ')} in postgresql.auto.conf`,
    ...settings('postgresql.auto.conf', Object.values(commands).join('\n')),
  },
  {
    name: 'postgresql.conf',
    ...settings('postgresql.conf', commands['recovery_end_command'] as string),
  },
  { name: 'pg_hba.conf', ...settings('pg_hba.conf', 'host all all all trust') },
  { name: 'pg_ident.conf', ...settings('pg_ident.conf', 'map root custody') },
  ...['standby.signal', 'recovery.signal', 'recovery.conf'].map((name) => ({
    name,
    change: setting(name, ''),
    unlisted: new RegExp(`database/${name} does not belong to the backup`),
    listed: new RegExp(`database/${name} would change how the database recovers`),
  })),
  {
    name: 'a tablespace_map',
    change: setting('tablespace_map', `16384 ${outside}`),
    unlisted: /database\/tablespace_map does not belong to the backup/,
    listed: /database\/tablespace_map belongs to a tablespace: tablespaces are not supported/,
  },
  {
    name: 'a link of a tablespace',
    list: (manifest) =>
      manifest.files.push({
        path: 'database/pg_tblspc/16384/file',
        bytes: 1,
        sha256: '0'.repeat(64),
      }),
    change: (from) => {
      mkdirSync(join(from, 'database', 'pg_tblspc'), { recursive: true })
      symlinkSync(outside, join(from, 'database', 'pg_tblspc', '16384'))
    },
    unlisted: /database\/pg_tblspc\/16384 does not belong to the backup, and is a symbolic link/,
    listed:
      /database\/pg_tblspc\/16384\/file belongs to a tablespace: tablespaces are not supported/,
  },
  {
    name: 'a line of backup_label',
    isForged: true,
    change: (from) =>
      appendFileSync(join(from, 'database', 'backup_label'), 'INCREMENTAL FROM LSN: 0/1\n'),
    unlisted: /database\/backup_label has \d+ bytes, not \d+/,
    listed:
      /database\/backup_label contains a line that a backup of this platform does not have: "INCREMENTAL/,
  },
  {
    name: 'no backup_label',
    change: (from) => unlinkSync(join(from, 'database', 'backup_label')),
    unlisted: /database\/backup_label is missing/,
    listed: /database\/backup_label is not listed/,
  },
  {
    name: 'a symbolic link in place of a file',
    isForged: true,
    change: (from) => {
      const path = join(from, firstTable(from))
      copyFileSync(path, join(outside, 'table'))
      unlinkSync(path)
      symlinkSync(join(outside, 'table'), path)
    },
    unlisted: /database\/base\/\d+\/\d+ is a symbolic link/,
    listed: /database\/base\/\d+\/\d+ is a symbolic link/,
  },
  {
    name: 'a folder that is a symbolic link',
    change: (from) => {
      const path = join(from, dirname(firstTable(from)))
      const moved = join(outside, `base-${copies}`)
      cpSync(path, moved, { recursive: true })
      rmSync(path, { recursive: true })
      symlinkSync(moved, path)
    },
    unlisted: /database\/base\/\d+ does not belong to the backup, and is a symbolic link/,
    listed: /database\/base\/\d+ does not belong to the backup, and is a symbolic link/,
  },
  {
    name: 'a hard link in place of a file',
    change: (from) => linkSync(join(from, firstTable(from)), join(outside, `hard-${copies}`)),
    unlisted: /database\/base\/\d+\/\d+ is a hard link: it has a second name/,
    listed: /database\/base\/\d+\/\d+ is a hard link: it has a second name/,
  },
  {
    name: 'a FIFO in place of a file',
    change: (from) => {
      const path = join(from, firstTable(from))
      unlinkSync(path)
      execFileSync('mkfifo', [path])
    },
    list: (manifest) =>
      manifest.files.push({ path: firstTable(whole), bytes: 0, sha256: '0'.repeat(64) }),
    unlisted: /database\/base\/\d+\/\d+ is not a regular file/,
    listed: /database\/base\/\d+\/\d+ (?:is not a regular file|is listed twice)/,
  },
  {
    name: 'a file more',
    change: (from) => writeFileSync(join(from, 'authorized_keys'), 'ssh-ed25519 …'),
    unlisted: /authorized_keys does not belong to the backup/,
    listed: /authorized_keys is not part of a PostgreSQL data folder that can be restored/,
  },
  {
    name: 'a folder more',
    change: (from) => mkdirSync(join(from, 'database', 'pg_more')),
    list: (manifest) => manifest.folders.push('pg_more'),
    unlisted: /database\/pg_more does not belong to the backup/,
    listed: /pg_more is not a folder of a PostgreSQL data folder that can be restored/,
  },
  {
    name: 'an absolute name',
    change: (from) => writeFileSync(join(from, 'more'), 'text'),
    list: (manifest) =>
      Object.assign(manifest.files.find(({ path }) => path === 'more') as object, {
        path: join(outside, 'absolute'),
      }),
    unlisted: /more does not belong to the backup/,
    listed: /outside\/absolute is outside the backup/,
  },
  {
    name: 'a name with ..',
    change: (from) => writeFileSync(join(from, 'more'), 'text'),
    list: (manifest) =>
      Object.assign(manifest.files.find(({ path }) => path === 'more') as object, {
        path: 'database/../../outside/dots',
      }),
    unlisted: /more does not belong to the backup/,
    listed: /database\/\.\.\/\.\.\/outside\/dots is outside the backup/,
  },
  {
    name: 'a folder with ..',
    isForged: true,
    change: (from) => writeFileSync(join(from, 'more'), 'text'),
    list: (manifest) => manifest.folders.push('../../outside/folder'),
    unlisted: /more does not belong to the backup/,
    listed: /\.\.\/\.\.\/outside\/folder is not a folder of a PostgreSQL data folder/,
  },
  {
    name: 'a name twice',
    change: (from) => appendFileSync(join(from, firstTable(from)), ' '),
    list: (manifest) =>
      manifest.files.push({
        ...(manifest.files.find(({ path }) => path === firstTable(whole)) as Manifest['files'][0]),
      }),
    unlisted: /database\/base\/\d+\/\d+ has \d+ bytes, not \d+/,
    listed: /database\/base\/\d+\/\d+ is listed twice/,
  },
]

/**
 * Asserts that nothing was executed and that neither the home nor the attacker's target was
 * written.
 */
function assertUntouched(to: string, before: string[], what: string): void {
  assert.equal(existsSync(marker), false, `${what}: a command of the backup ran`)
  assert.deepEqual(everything(to), [], `${what}: something was written`)
  assert.deepEqual(
    everything(outside),
    before,
    `${what}: something was written outside of the home`,
  )
}

for (const attack of ATTACKS) {
  test(`refuses a backup with ${attack.name}, whatever its manifest says`, async () => {
    mkdirSync(outside, { recursive: true })
    writeFileSync(join(outside, 'evil.conf'), commands['recovery_end_command'] as string)
    const to = place('restored')
    const from = copyOfWhole()
    attack.change(from)
    const before = everything(outside)
    const refused = async (expected: RegExp, trust: Trust, what: string): Promise<void> => {
      await assert.rejects(
        restore(from, to, trust),
        (error: Error) => (assert.match(error.message, expected, what), true),
        what,
      )
      // A line that only PostgreSQL can interpret is found in the copy, which is then removed.
      if (existsSync(to)) assert.deepEqual(readdirSync(to), [], what)
      assertUntouched(to, before, what)
    }
    await refused(attack.unlisted, TRUST, 'with the manifest as it was')
    if (attack.isForged) await assert.rejects(verifyBackup(from, UNPROVED), attack.unlisted)
    await rehash(from, attack.list ?? (() => undefined))
    if (attack.isForged) await refusesForged(from, attack, refused)
    rmSync(join(from, 'manifest.sig'))
    if (attack.isForged)
      await refused(/has no signature .*only with --manifest-sha256/s, TRUST, 'without a signature')
    await refused(
      attack.listed,
      { manifestSha256: hashOf(from), signatureKey: null },
      'with a hash that the operator accepted',
    )
  })
}

/** Tries a folder whose hashes the attacker has recomputed. */
async function refusesForged(
  from: string,
  attack: Attack,
  refused: (expected: RegExp, trust: Trust, what: string) => Promise<void>,
): Promise<void> {
  // An attack that uses a link keeps the content, so the recomputed manifest equals the signed one.
  const forged =
    /not authentic: manifest\.json is not the manifest that was signed: it or manifest\.sig was changed/
  const changed = hashOf(from) === printed ? attack.listed : forged
  await refused(changed, TRUST, 'with hashes computed again')
  await assert.rejects(verifyBackup(from, TRUST), changed)
  await refused(
    hashOf(from) === printed ? attack.listed : /does not have the hash of --manifest-sha256/,
    { manifestSha256: printed, signatureKey: null },
    'with hashes computed again, by the hash',
  )
  const own = signManifest(readFileSync(join(from, 'manifest.json')), 'ab'.repeat(32))
  writeFileSync(join(from, 'manifest.sig'), JSON.stringify(own))
  await refused(
    /not authentic: manifest\.sig was made with another key/,
    TRUST,
    'signed by the attacker',
  )
  writeFileSync(join(from, 'manifest.sig'), JSON.stringify({ ...own, key: signatureKey }))
  await refused(forged, TRUST, 'signed by the attacker, with the name of the right key')
}

test('restores an untouched backup verified by signature or by hash, database first, then keys', async () => {
  for (const [name, trust] of [
    ['by-key', trustOf(UNPROVED, secret)],
    ['by-hash', { manifestSha256: printed, signatureKey: null }],
  ] as const) {
    const to = place(name)
    const messages: string[] = []
    await restore(whole, to, trust, (line) => {
      messages.push(line)
      if (line !== 'database: restored') return
      assert.deepEqual(
        [existsSync(join(to, 'secrets.key')), existsSync(join(to, 'signers'))],
        [false, false],
        'keys came before the recovery',
      )
      assert.equal(
        existsSync(join(embeddedData(to), 'postmaster.pid')),
        false,
        'the server still runs',
      )
    })
    assert.deepEqual(messages.slice(-2), ['database: restored', 'secrets: restored'])
    assert.deepEqual(readFileSync(join(to, 'secrets.key')), SECRETS_KEY)
    assert.equal(readFileSync(join(to, 'signers', 'platform', 'tls.key'), 'utf8'), 'client key')
    assert.equal(readFileSync(join(embeddedData(to), 'postgresql.auto.conf'), 'utf8'), '')
    for (const left of ['recovery.signal', 'backup_label', 'backup_label.old'])
      assert.equal(existsSync(join(embeddedData(to), left)), false, left)
    const server = await startEmbeddedPostgres(to)
    const database = openDatabase(server.adminUrl, { max: 1 })
    assert.deepEqual(await database.query('select name from workspaces'), [{ name: 'acme' }])
    assert.deepEqual(
      await database.query(
        `select setting from pg_settings where name in ('archive_command', 'restore_command',
            'recovery_end_command') and setting not in ('', '(disabled)')`,
      ),
      [],
    )
    await database.close()
    await server.stop()
  }
})

test('restores a backup of an earlier version by its hash alone, without its settings', async () => {
  const from = copyOfWhole()
  const all = Object.entries(commands)
    .filter(([name]) => name !== 'include')
    .map(([, lines]) => lines)
    .join('\n')
  mkdirSync(outside, { recursive: true })
  setting('postgresql.auto.conf', all)(from)
  setting('postgresql.conf', all)(from)
  setting('pg_hba.conf', 'local all all reject')(from)
  setting('pg_ident.conf', '')(from)
  await rehash(from, (manifest) => Object.assign(manifest, { version: 1 }))
  rmSync(join(from, 'manifest.sig'))
  const to = place('earlier')
  await assert.rejects(
    restore(from, to, TRUST),
    /has no signature \(manifest\.sig\).* restored only with --manifest-sha256/s,
  )
  await assert.rejects(
    restoreBackup({
      home: to,
      from,
      network: 'local',
      databaseUrl: null,
      secretsKey: null,
      recoverySecret: null,
      trust: UNPROVED,
      nodeSecrets: new Map(),
      askNode: () => assert.fail('no node is asked'),
      report: () => undefined,
      wal: null,
      until: null,
      archive: null,
    }),
    /--recovery-secret, --recovery-key or --manifest-sha256 is required/,
  )
  assert.equal(existsSync(to), false)
  await restore(from, to, { manifestSha256: hashOf(from), signatureKey: null })
  assert.equal(existsSync(marker), false, 'a command of the backup ran')
  assert.equal(readFileSync(join(embeddedData(to), 'postgresql.auto.conf'), 'utf8'), '')
  assert.doesNotMatch(
    readFileSync(join(embeddedData(to), 'postgresql.conf'), 'utf8') +
      readFileSync(join(embeddedData(to), 'pg_hba.conf'), 'utf8'),
    /touch|evil|reject/,
  )
})

test('refuses a file that changes after its verification, and removes the partial restore', async () => {
  const from = copyOfWhole()
  const to = place('raced')
  const table = firstTable(from)
  await assert.rejects(
    restore(from, to, TRUST, (line) => {
      if (!/signed by the recovery key/.test(line)) return
      const bytes = readFileSync(join(from, table))
      bytes[0] = (bytes[0] as number) ^ 1
      writeFileSync(join(from, table), bytes)
    }),
    new RegExp(`${table} was changed; the partial restore was removed`),
  )
  assert.deepEqual(everything(to), [])
})

test('a failure between database and keys removes everything, and a second attempt succeeds', async () => {
  const to = place('twice')
  await assert.rejects(
    restore(whole, to, TRUST, (line) => {
      if (line === 'database: restored') throw new Error('the disk is full')
    }),
    /the disk is full; the partial restore was removed from .*run the same command again/,
  )
  assert.deepEqual(everything(to), [])
  await restore(whole, to, TRUST)
  assert.deepEqual(readFileSync(join(to, 'secrets.key')), SECRETS_KEY)
})

test('sealed secrets cannot write outside the data directory, even with an authentic manifest', async () => {
  const from = copyOfWhole()
  const secrets = {
    secrets_key: null,
    identity: { '../../../outside/planted': 'text' },
    ports: null,
  }
  writeFileSync(
    join(from, 'secrets.sealed'),
    JSON.stringify(seal(JSON.stringify(secrets), sealing)),
  )
  const manifest = manifestOf(from)
  for (const name of ['manifest.json', 'manifest.sig']) rmSync(join(from, name))
  writeManifest(from, { ...manifest, files: await filesBelow(from) }, signingKeyOf(secret))
  const to = place('sealed')
  await assert.rejects(
    restore(from, to, TRUST),
    /secrets\.sealed contains fields that a backup does not have: identity/,
  )
  assert.deepEqual([everything(to), existsSync(join(outside, 'planted'))], [[], false])
})

test('refuses a data directory that is a link, and a log archive path with a quote', async () => {
  const [to, target] = [place('linked'), place('target')]
  mkdirSync(target)
  symlinkSync(target, to)
  await assert.rejects(
    restore(whole, to, TRUST),
    /linked is a symbolic link: set CUSTODY_HOME to the folder itself/,
  )
  const wal = place("wal'; touch marker; '")
  mkdirSync(wal)
  await assert.rejects(
    restoreBackup({
      home: place('quoted'),
      from: whole,
      network: 'local',
      databaseUrl: null,
      secretsKey: null,
      recoverySecret: secret,
      trust: TRUST,
      wal,
      nodeSecrets: new Map(),
      askNode: () => assert.fail('no node is asked'),
      report: () => undefined,
      until: null,
      archive: null,
    }),
    /--wal: the name must not contain quotes/,
  )
  assert.deepEqual([everything(target), existsSync(place('quoted'))], [[], false])
})

test('the CLI reports what was verified, in its output and exit code', () => {
  const cli = (...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...words], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], CUSTODY_HOME: place('cli') },
    })
    return { status, text: stdout + stderr }
  }
  const verified = (...words: string[]) => cli('restore', '--in', whole, '--verify', ...words)
  for (const [words, expected] of [
    [
      ['--recovery-key', place('key.pub')],
      /: authentic, signed by the recovery key; undamaged, \d+ files/,
    ],
    [['--recovery-secret', place('key')], /: authentic, signed by the recovery key/],
    [['--manifest-sha256', printed], /: authentic, the manifest has the given hash/],
  ] as const) {
    const { status, text } = verified(...words)
    assert.match(text, expected)
    assert.equal(status, 0, text)
  }
  const unproved = verified()
  assert.match(unproved.text, /: undamaged, but its authenticity is not proved: \d+ files/)
  assert.doesNotMatch(unproved.text, new RegExp(printed), 'the hash is not offered for copying')
  assert.equal(unproved.status, 2)
  const wrong = verified('--manifest-sha256', 'ab'.repeat(32))
  assert.match(wrong.text, /does not have the hash of --manifest-sha256/)
  assert.equal(wrong.status, 1)
  assert.match(
    verified('--manifest-sha256', 'short').text,
    /--manifest-sha256: must be 64 hexadecimal digits/,
  )
  const again = cli('backup-key', '--from', place('key'), '--out', place('again'))
  assert.equal(again.status, 0, again.text)
  assert.deepEqual(
    [
      existsSync(place('again')),
      readFileSync(place('again.pub'), 'utf8'),
      readFileSync(place('again.sign'), 'utf8'),
    ],
    [false, keys.public, keys.signing],
  )
  writeFileSync(place('old.pub'), `${sealing}\n`)
  assert.match(
    verified('--recovery-key', place('old.pub')).text,
    /contains no "signature_key", because an earlier version wrote it.*backup-key --from SECRET/,
  )
  const bare = cli('restore', '--in', whole, '--without-secrets')
  assert.deepEqual([bare.status, existsSync(place('cli'))], [1, false])
  assert.match(bare.text, /--recovery-secret, --recovery-key or --manifest-sha256 is required/)
  assert.equal(signatureKeyOf(keys.signing.trim()), signatureKey)
})
