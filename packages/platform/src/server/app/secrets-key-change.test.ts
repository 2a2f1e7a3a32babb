import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SEALED } from './reseal.ts'
import { checkSecretsKey } from './secrets-key.ts'
import type { Database } from '../../core/database/pool.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { Secrets } from '../../core/secrets.ts'
import {
  createTestDatabase,
  openTestDatabase,
  type TestDatabase,
} from '../../../testing/test-database.ts'

/** Tests of `custody secrets-key change` on a real database that has a secret of every kind. */
const home = mkdtempSync(join(tmpdir(), 'custody-reseal-'))
const [oldKey, newKey, otherKey] = [randomBytes(32), randomBytes(32), randomBytes(32)] as [
  Buffer,
  Buffer,
  Buffer,
]
const secretsOf = (key: Buffer) => new Secrets(key, systemEnvironment())
const file = join(home, 'new.key')
let created: TestDatabase
let database: Database

before(async () => {
  created = await createTestDatabase()
  database = openTestDatabase(created)
  writeFileSync(file, `${newKey.toString('base64')}\n`)
})
after(async () => {
  await database.close()
  await created.remove()
  rmSync(home, { recursive: true, force: true })
})

function change(
  key: Buffer,
  ...words: string[]
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../../bin/custody.mjs'), 'secrets-key', 'change', ...words],
    {
      env: {
        ...process.env,
        CUSTODY_HOME: join(home, 'none'),
        DATABASE_URL: created.url,
        DATABASE_MIGRATION_URL: created.ownerUrl,
        CUSTODY_SECRETS_KEY: key.toString('base64'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...said })))
}

interface Opened {
  place: string
  text: string | null
}
/**
 * Returns the content of every sealed column, decrypted with a key; null where the key is wrong.
 */
async function opened(key: Buffer): Promise<Opened[]> {
  const secrets = secretsOf(key)
  const matches: Opened[] = []
  for (const { table, column, id, owner } of SEALED) {
    const rows = await database.query<{ id: string; sealed: Buffer }>(
      `select ${id}::text id, ${column} sealed from ${table} where ${column} is not null`,
    )
    for (const row of rows) {
      let text: string | null = null
      try {
        text = secrets.open(owner(row.id), row.sealed)
      } catch {
        /* The value is sealed with another key. */
      }
      matches.push({ place: `${table}.${column}`, text })
    }
  }
  return matches
}

async function fill(): Promise<void> {
  const old = secretsOf(oldKey)
  const seal = (column: string, id: string, text: string): Buffer =>
    old.seal(
      (SEALED.find((each) => each.column === column) as (typeof SEALED)[number]).owner(id),
      text,
    )
  const [workspace] = (await database.query<{ id: string }>(
    `insert into workspaces (name) values ('acme') returning id`,
  )) as [{ id: string }]
  const [account] = (await database.query<{ id: string }>(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1) returning id`,
    [workspace.id],
  )) as [{ id: string }]
  await database.query(
    `insert into aml_settings (sub_account_id, workspace_id, provider, sealed_token, risk_levels,
      screen_deposits, screen_withdrawals)
     values ($1, $2, 'TRM', $3, '{}', true, true)`,
    [account.id, workspace.id, seal('sealed_token', account.id, 'token')],
  )
  const [webhook, exchange, person, statement] = [
    randomUUID(),
    randomUUID(),
    randomUUID(),
    randomUUID(),
  ] as [string, string, string, string]
  await database.query(
    `insert into webhooks (id, workspace_id, sub_account_id, url, events, format, sealed_secret,
      sealed_previous_secret, secret_made_at, created_at, updated_at)
     values ($1, $2, $3, 'https://example.com/', '{*}', 'standard', $4, $5, now(), now(), now())`,
    [
      webhook,
      workspace.id,
      account.id,
      seal('sealed_secret', webhook, 'whsec_1'),
      seal('sealed_previous_secret', webhook, 'whsec_0'),
    ],
  )
  await database.query(
    `insert into exchange_accounts (id, workspace_id, sub_account_id, exchange, label, key_hash,
       key_hint, allow_withdrawal, permissions, sealed_credentials,
       checked_at, balances_at, created_at, updated_at)
         values ($1, $2, $3, 'kraken', 'main', 'h', '…', false, '{}', $4, now(), now(), now(),
         now())`,
    [exchange, workspace.id, account.id, seal('sealed_credentials', exchange, '{"apiKey":"k"}')],
  )
  await database.query(
    `insert into people (id, email, name, totp_secret, created_at)
      values ($1, 'a@example.com', 'A', $2, now())`,
    [person, seal('totp_secret', person, 'otp')],
  )
  await database.query(
    `insert into reserve_snapshots (id, created_at, statement, holdings, hash, signatures, secret)
      values ($1, now(), '{}', '{}', 'h', '[]', $2)`,
    [statement, seal('secret', statement, 'seed')],
  )
  await database.query(
    `insert into webhook_keys (public_key_pem, sealed_private_key) values ('PEM', $1)`,
    [old.seal('webhook key', 'private')],
  )
  await database.query(`insert into installation (network) values ('local') on conflict do nothing`)
  await checkSecretsKey(database, old, oldKey.toString('base64'))
}

test('every binary column is sealed and listed, or is known to contain no secret', async () => {
  const open = [
    'audit_heads.hash',
    'audit_log.hash',
    'audit_log.prev_hash',
    'invitations.token_hash',
    'passkeys.public_key',
    'recovery_codes.code_hash',
    'reserve_leaves.hash',
    'reserve_leaves.nonce',
    'sessions.token_hash',
    'sign_in_steps.token_hash',
    'workspace_keys.chain_code',
    'workspace_keys.public_key',
  ]
  const columns = await database.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'bytea'`,
  )
  const listed = SEALED.map(({ table, column }) => `${table}.${column}`)
  assert.deepEqual(
    columns
      .map(({ name }) => name)
      .filter((name) => !listed.includes(name) && !open.includes(name)),
    [],
  )
  assert.deepEqual(
    [...listed, ...open].filter((name) => !columns.some((column) => column.name === name)),
    [],
  )
})

test('a key change seals all secrets again, only with the platform stopped and the right old key', async () => {
  await fill()
  const before = await opened(oldKey)
  assert.deepEqual([before.length, before.filter(({ text }) => text === null)], [SEALED.length, []])

  const wrong = await change(otherKey, '--new-key', file)
  assert.equal(wrong.status, 1)
  assert.match(
    wrong.stderr,
    /^custody: aml_settings \S+: sealed_token cannot be decrypted: check that CUSTODY_SECRETS_KEY.* is the key of this database\. Nothing was changed\n$/,
  )
  await database.query(
    `insert into processes (id, role, host, started_at, seen_at)
        values ($1, 'worker', 'host-1', now(), now())`,
    [randomUUID()],
  )
  const running = await change(oldKey, '--new-key', file)
  assert.equal(running.status, 1)
  assert.match(
    running.stderr,
    /^custody: the worker on host-1 was active \d+ s ago: stop every process of the platform, and run this command again 20 s later\n$/,
  )
  await database.query('delete from processes')
  writeFileSync(join(home, 'short'), 'x'.repeat(31))
  for (const [name, said] of [
    ['short', /--new-key: .*short: /],
    ['absent', /--new-key: the file/],
  ] as const) {
    const refused = await change(oldKey, '--new-key', join(home, name))
    assert.deepEqual([refused.status, said.test(refused.stderr)], [1, true], refused.stderr)
  }
  assert.deepEqual(await opened(oldKey), before)

  const done = await change(oldKey, '--new-key', file, '--json')
  assert.equal(done.status, 0, done.stderr)
  assert.deepEqual(JSON.parse(done.stdout), {
    changed: true,
    sealed: {
      aml_settings: 1,
      exchange_accounts: 1,
      people: 1,
      reserve_snapshots: 1,
      webhook_keys: 1,
      webhooks: 2,
      installation: 1,
    },
  })
  for (const key of [oldKey, newKey])
    for (const form of ['base64', 'hex'] as const)
      assert.ok(!`${done.stdout}${done.stderr}`.includes(key.toString(form)))
  assert.deepEqual(await opened(newKey), before)
  assert.deepEqual(
    (await opened(oldKey)).filter(({ text }) => text !== null),
    [],
  )
  await checkSecretsKey(database, secretsOf(newKey), newKey.toString('base64'))
  await assert.rejects(
    checkSecretsKey(database, secretsOf(oldKey), oldKey.toString('base64')),
    /is not the key that encrypts the secrets of this database/,
  )
  // Reserve statements are not changed, because their rows are append-only.
  await assert.rejects(database.query(`update reserve_snapshots set statement = 'x'`))
})
