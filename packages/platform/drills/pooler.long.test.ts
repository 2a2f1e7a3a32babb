import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
} from '../testing/harness.ts'

/**
 * Tests of the platform behind a real PgBouncer in transaction mode, where each statement may run
 * in another session than the one before.
 */

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path))
const skip =
  PGBOUNCER === undefined ? 'PgBouncer is not installed (Debian: apt-get install pgbouncer)' : false
const ETH_TO = '0x00000000000000000000000000000000000000b1'

const folder = mkdtempSync(join(tmpdir(), 'custody-pooler-'))
const platform = new TestPlatform()
const undo: (() => Promise<void> | void)[] = []
after(async () => {
  await platform.remove()
  for (const step of undo.reverse()) await step()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Starts PgBouncer with the file in `deploy/pgbouncer`, with the paths of this test and few
 * sessions.
 */
async function startPooler(socketOfServer: string): Promise<string> {
  const changed = new Map([
    ['custody', ` host=${socketOfServer} dbname=custody user=custody`],
    ['listen_addr', ''],
    ['unix_socket_dir', ` ${folder}`],
    ['auth_type', ' any'],
    ['auth_file', ''],
    ['default_pool_size', ' 3'],
  ])
  const text = readFileSync(
    new URL('../../../deploy/pgbouncer/pgbouncer.ini', import.meta.url),
    'utf8',
  )
    .split('\n')
    .map((line) => {
      const [name = ''] = line.split(' =')
      return changed.has(name) ? `${name} =${changed.get(name)}` : line
    })
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, text.join('\n'))
  // PgBouncer refuses to run as root, so it runs as another user.
  const as =
    process.getuid?.() === 0 ? ['unshare', '--user', '--map-user=65534', '--map-group=65534'] : []
  const [command = '', ...args] = [...as, PGBOUNCER as string, file]
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  undo.push(
    () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.once('exit', () => resolve())
        child.kill('SIGINT')
        // The signal ends PgBouncer without waiting for the remaining clients.
        child.kill('SIGKILL')
      }),
  )
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (/process up/.test(said)) resolve()
    })
    child.once('exit', (code) => reject(new Error(`PgBouncer ended with ${String(code)}: ${said}`)))
  })
  return `postgresql://custody@/custody?host=${encodeURIComponent(folder)}&port=6432`
}

test(
  'a transfer succeeds through a transaction pooler; without the setting an error names it',
  { skip },
  async () => {
    mkdirSync(join(folder, 'home'))
    const postgres = await startEmbeddedPostgres(join(folder, 'home'))
    undo.push(() => postgres.stop())
    const socket = new URL(postgres.adminUrl.replace('@/', '@h/')).searchParams.get(
      'host',
    ) as string
    const url = await startPooler(socket)
    await assert.rejects(
      platform.start({ DATABASE_URL: url }),
      /CUSTODY_DATABASE_POOLER=transaction/,
    )
    await platform.start({ DATABASE_URL: url, CUSTODY_DATABASE_POOLER: 'transaction' })
    // The harness connects to the database directly, without the pooler.
    writeFileSync(
      join(platform.home, 'runtime.json'),
      JSON.stringify({ database_url: postgres.adminUrl }),
      { mode: 0o600 },
    )
    const user = await platform.user('pooled')
    await fundedWallet(platform, user, 'ETH', '5')
    const body = transferBody('ETH', '1', ETH_TO, { sequence_id: 'pooled-1' })
    const created = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
    assert.equal(created.status, 200, created.text)
    await assertConfirmed(user, created.body.id)
    assert.equal(
      (await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)).body.id,
      created.body.id,
    )

    // Settings of a transaction end with the transaction, and no state remains in a session.
    const pooled = openDatabase(url, { pooled: true, max: 1 })
    undo.push(() => pooled.close())
    const limits = `select current_setting('statement_timeout') statement,
      current_setting('idle_in_transaction_session_timeout') idle`
    assert.deepEqual(await pooled.transaction((tx) => tx.query(limits)), [
      { statement: '30s', idle: '1min' },
    ])
    assert.deepEqual(await pooled.query(limits), [{ statement: '0', idle: '0' }])
    const direct = platform.database
    const sessions = await direct.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = 'custody' and pid <> pg_backend_pid()
        and backend_type = 'client backend'`,
    )
    assert.ok(sessions.length > 0 && sessions.length <= 3, `${sessions.length} sessions for all`)
    assert.deepEqual(await pooled.query('select name from pg_prepared_statements'), [])
    assert.deepEqual(await direct.query(`select 1 from pg_locks where locktype = 'advisory'`), [])
  },
)
