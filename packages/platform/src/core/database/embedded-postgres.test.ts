import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertOthersReach, startEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts'
import { APP, OWNER } from './embedded-roles.ts'
import { migrate } from './migrate.ts'
import { openDatabase, type Database } from './pool.ts'
import { roleFacts, TABLE_RIGHTS } from './table-rights.ts'
import { prepareDatabase } from '../../../testing/prepared-database.ts'

const home = mkdtempSync(join(tmpdir(), 'custody-embedded-'))
const lock = join(home, 'postgres', 'data', 'postmaster.pid')
let running: EmbeddedPostgres | null = null
after(async () => {
  await running?.stop()
  rmSync(home, { recursive: true, force: true })
})

async function answer(): Promise<number | undefined> {
  const database = openDatabase((running as EmbeddedPostgres).url, { max: 1 })
  return database
    .one<{ one: number }>('select 1 one')
    .then((row) => row?.one)
    .finally(() => database.close())
}

const skip = existsSync('/proc/self/cmdline') ? false : 'who a process is is read of /proc'

test(
  'PostgreSQL starts although its lock file names a process id of another program',
  { skip },
  async () => {
    await prepareDatabase(home)
    // Simulates a start after a container was killed: its process ids now belong to other programs
    // of the same user.
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
    })
    try {
      writeFileSync(
        lock,
        `${stranger.pid}\n${join(home, 'postgres', 'data')}\n1700000000\n5432\n/tmp\n\n  1 1\nready   \n`,
        { mode: 0o600 },
      )
      running = await startEmbeddedPostgres(home)
      assert.notEqual(running.pid(), stranger.pid)
      assert.equal(await answer(), 1)
      assert.equal(stranger.exitCode, null, 'and it was left alone')
    } finally {
      stranger.kill('SIGKILL')
    }
  },
)

test(
  'PostgreSQL starts although its lock file is empty because the disk was full',
  { skip },
  async () => {
    await running?.stop()
    writeFileSync(lock, '')
    const anHourAgo = Date.now() / 1000 - 3600
    utimesSync(lock, anHourAgo, anHourAgo)
    running = await startEmbeddedPostgres(home)
    assert.equal(await answer(), 1)
  },
)

test(
  'a PostgreSQL server that hangs while stopping is killed and started again',
  { skip },
  async () => {
    const first = running as EmbeddedPostgres
    const hung = first.pid() as number
    const children = readdirSync('/proc').filter(
      (pid) =>
        /^\d+$/.test(pid) &&
        readFileSyncOr(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[1] === String(hung),
    )
    const checkpointer = children.find((pid) =>
      readFileSyncOr(`/proc/${pid}/cmdline`).includes('checkpointer'),
    ) as string
    process.kill(Number(checkpointer), 'SIGSTOP')
    const stopping = first.stop()
    const messages: string[] = []
    running = await startEmbeddedPostgres(home, (what) => messages.push(what))
    await stopping
    assert.notEqual(running.pid(), hung)
    assert.equal(await answer(), 1)
    assert.match(messages.join('\n'), /did not stop in time/)
  },
)

test('a folder that only its owner may enter is named, because the server runs as another user', () => {
  const outer = mkdtempSync(join(tmpdir(), 'custody-reach-'))
  const home = join(outer, 'home')
  mkdirSync(home)
  chmodSync(home, 0o711)
  const closed = () => {
    try {
      assertOthersReach(home)
      return null
    } catch (error) {
      return / cannot enter (\S+):/.exec((error as Error).message)?.[1]
    }
  }
  assert.equal(closed(), outer)
  chmodSync(outer, 0o711)
  assert.notEqual(closed(), outer)
  rmSync(outer, { recursive: true })
})

test('a PostgreSQL server that dies is restarted, and the restart is logged', async () => {
  const messages: string[] = []
  const restarting = Promise.withResolvers<void>()
  await running?.stop()
  running = await startEmbeddedPostgres(home, (what) => {
    messages.push(what)
    restarting.resolve()
  })
  const first = running.pid() as number
  process.kill(first, 'SIGKILL')
  await restarting.promise
  while ((await answer().catch(() => 0)) !== 1) await sleep(50)
  assert.notEqual(running.pid(), first)
  assert.deepEqual(messages, ['PostgreSQL ended; it is restarted'])
})

test('data of an earlier version, which its superuser owns, is given to the owner’s role at the next start', async () => {
  // The state that earlier versions left: one role, the superuser, owned and used everything.
  const admin = openDatabase((running as EmbeddedPostgres).adminUrl, { max: 1 })
  try {
    await admin.query(`insert into workspaces (name) values ('kept')`)
    await admin.query(`do $$ declare each record; begin
      for each in select c.oid::regclass::text "name" from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      loop execute format('alter table %s owner to custody', each.name); end loop;
      for each in select p.oid::regprocedure::text "name" from pg_proc p
        where p.pronamespace = 'public'::regnamespace
      loop execute format('alter function %s owner to custody', each.name); end loop;
    end $$`)
    await admin.query('alter database custody owner to custody')
    for (const role of [APP, OWNER]) {
      await admin.query(`drop owned by ${role}`)
      await admin.query(`drop role ${role}`)
    }
  } finally {
    await admin.close()
  }
  await running?.stop()
  running = await startEmbeddedPostgres(home)
  const { url, ownerUrl } = running
  const [app, owner] = [url, ownerUrl].map((each) => openDatabase(each, { max: 1 })) as [
    Database,
    Database,
  ]
  try {
    await assert.rejects(app.query('select 1 from workspaces'), /permission denied/)
    assert.deepEqual(await migrate(owner, APP), await grantedNames(owner))
    assert.deepEqual(await app.query('select name from workspaces'), [{ name: 'kept' }])
    assert.deepEqual(
      await owner.query(
        `select relname from pg_class where relnamespace = 'public'::regnamespace
          and relkind in ('r', 'S') and relowner <> $1::regrole
         union all select proname from pg_proc where pronamespace = 'public'::regnamespace
          and proowner <> $1::regrole`,
        [OWNER],
      ),
      [],
    )
    assert.deepEqual(await roleFacts(app), { role: APP, superuser: false, owned: 0, beyond: [] })
    // The owner can apply the next migrations.
    await owner.query('alter table workspaces add column later integer')
    await owner.query('drop function prepaid_balance')
  } finally {
    await Promise.all([app.close(), owner.close()])
  }
})

/** Returns the tables and sequences of the schema. */
const grantedNames = async (database: Database): Promise<string[]> => {
  const rows = await database.query<{ name: string }>(
    `select relname "name" from pg_class where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'S') order by 1`,
  )
  const names = rows.map(({ name }) => name)
  assert.ok(Object.keys(TABLE_RIGHTS).every((name) => names.includes(name)))
  return names
}

function readFileSyncOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
