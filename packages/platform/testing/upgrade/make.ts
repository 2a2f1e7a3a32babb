// Makes a fixture of upgrade.long.test.ts: the database (as SQL) and the data directory (as text)
// that a version leaves behind when it is killed, with transfers in every state. That version
// itself runs this script; see README.md in this folder.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/core/database/embedded.ts'
import { migrate } from '../../src/core/database/migrate.ts'
import { openDatabase, type Database, type Queryable } from '../../src/core/database/pool.ts'
import {
  call,
  fundedWallet,
  PRIVATE_KEY,
  TestPlatform,
  terminal,
  transferBody,
  type Transfer,
  type User,
} from '../harness.ts'
import { writeAsText } from './text-files.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const [to] = process.argv.slice(2)
if (to === undefined) throw new Error('usage: make.ts FOLDER')

const PAYEES: Record<string, string> = {
  BTC: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  ETH: '0x00000000000000000000000000000000000000aa',
}
const AMOUNTS: Record<string, string> = { BTC: '0.1', ETH: '1' }
/**
 * States of the unfinished transfers, in the order of their nonces at the account: a transfer that
 * is built later is signed later.
 */
const STATES = ['CONFIRMING', 'BROADCASTING', 'SIGNED', 'SHOWN', 'SIGNING', 'QUEUED']
/** Placeholder of the webhook's URL, which the test replaces with its own receiver. */
const HOOK = 'http://127.0.0.1:9/hook'

/**
 * Returns the statements that create the tables of this version, as `migrate` runs them on an empty
 * database.
 */
async function tables(): Promise<string[]> {
  const home = mkdtempSync(join(tmpdir(), 'custody-tables-'))
  const postgres = await startEmbeddedPostgres(home)
  const database = openDatabase(postgres.adminUrl)
  const said: string[] = []
  await migrate({
    ...database,
    transaction: (work) =>
      database.transaction((tx) =>
        work({
          ...tx,
          query: ((text: string, values?: unknown[]) => {
            if (values === undefined && !/^\s*select/i.test(text))
              said.push(text.trim().replace(/;?$/, ';'))
            return tx.query(text, values)
          }) as Queryable['query'],
        }),
      ),
  })
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
  return said
}

/**
 * Returns every row of every table, and the value of each sequence. Triggers and references are
 * disabled while the rows are inserted.
 */
async function rows(database: Database): Promise<string[]> {
  const said = ['set session_replication_role = replica;']
  const all = await database.query<{ name: string; columns: string }>(
    `select c.relname name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) columns from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' group by 1 order by 1`,
  )
  for (const { name, columns } of all) {
    const dump = await database.one<{ text: string | null }>(
      `select string_agg(row_to_json(t)::text, E',\\n') as text from ${name} t`,
    )
    said.push(`delete from ${name};`)
    if (!dump?.text) continue
    if (dump.text.includes('$rows$')) throw new Error(`${name}: its rows hold the quote`)
    said.push(
      `insert into ${name} (${columns}) overriding system value select ${columns} from json_populate_recordset(null::${name}, $rows$[\n${
        dump.text
      }\n]$rows$);`,
    )
  }
  const sequences = await database.query<{ name: string; last: string | null }>(
    `select sequencename name, last_value::text last from pg_sequences where schemaname = 'public' order by 1`,
  )
  for (const { name, last } of sequences)
    if (last !== null) said.push(`select setval('${name}', ${last});`)
  return [...said, 'set session_replication_role = origin;']
}

const platform = new TestPlatform()
const folder = mkdtempSync(join(tmpdir(), 'custody-kept-'))
try {
  const made = await tables()
  await platform.start()
  const acme = await platform.user('acme')
  const shop = await platform.user('acme', { subAccount: 'shop' })
  const users: User[] = [acme, shop]
  const address: Record<string, string> = {}
  for (const [asset, amount] of [
    ['BTC', '2'],
    ['ETH', '50'],
    ['USDT_ETH', '500'],
  ] as const) {
    address[asset] = await fundedWallet(platform, acme, asset, amount)
  }
  // One coin for each payment that stays pending.
  for (let each = 0; each < 6; each++) await platform.fund('BTC', address['BTC'] as string, '1')
  const shopAddress = await fundedWallet(platform, shop, 'ETH', '1')
  const send = async (asset: string, name: string): Promise<string> => {
    const body = transferBody(asset, AMOUNTS[asset] as string, PAYEES[asset] as string, {
      sequence_id: `${name}-${asset}`,
    })
    const answer = await call<Transfer>(
      { ...acme, base: platform.base },
      'POST',
      '/dac/v1/transaction',
      body,
    )
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body.id
  }
  for (const asset of Object.keys(PAYEES)) {
    const done = await terminal(acme, await send(asset, 'before'))
    if (done.status !== 'confirmed') throw new Error(`${asset}: ${done.status}`)
  }
  const rule = await call<{ status: string }>(shop, 'POST', '/dac/v1/auto-forwarding', {
    asset: 'ETH',
    min_amount: 0.5,
    daily_cap: 100,
    destination_address: '0x00000000000000000000000000000000000000f9',
    expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
  })
  if (rule.status !== 200 || rule.body.status !== 'active') throw new Error(rule.text)
  const hook = await call(acme, 'POST', '/dac/v1/webhooks', { url: HOOK, events: ['*'] })
  if (hook.status !== 200) throw new Error(hook.text)

  // A transfer stops in the state that its name contains. A SHOWN transfer is signed by the nodes,
  // and the platform cannot record that.
  for (const statement of [
    `create function rest_by_name() returns trigger language plpgsql as $$ begin
       if split_part(new.sequence_id, '-', 1) = new.state then
         new.next_run_at := '2100-01-01'; new.lease_token := null; new.lease_until := null;
       end if; return new; end $$`,
    'create trigger rest_by_name before insert or update on transactions for each row execute function rest_by_name()',
    `create function never_signed() returns trigger language plpgsql as $$ begin
       if exists (select 1 from transactions where id = new.transaction_id and sequence_id like 'SHOWN-%') then raise exception 'held'; end if;
       return new; end $$`,
    `create trigger never_signed before update on chain_transactions for each row
       when (new.state = 'SIGNED' and old.state = 'BUILT') execute function never_signed()`,
  ])
    await platform.database.query(statement)
  const ids: Record<string, Record<string, string>> = {}
  for (const asset of Object.keys(PAYEES)) {
    const own: Record<string, string> = (ids[asset] = {})
    for (const state of STATES) {
      const id = (own[state] = await send(asset, state))
      await waitFor(`${asset} ${state}`, () =>
        platform.database.one(
          state === 'SHOWN'
            ? `select 1 from transactions where id = $1 and state = 'SIGNING' and last_error like '%held%'`
            : `select 1 from transactions where id = $1 and state = '${state}'`,
          [id],
        ),
      ).catch(async (error: unknown) => {
        console.error(
          await platform.database.query(
            'select kind, state, attempts, last_error from transactions order by created_at desc limit 5',
          ),
        )
        throw error
      })
      if (state === 'SHOWN')
        await platform.database.query(
          `update transactions set next_run_at = '2100-01-01' where id = $1`,
          [id],
        )
    }
  }
  await platform.kill()
  for (const statement of [
    'drop trigger never_signed on chain_transactions',
    'drop trigger rest_by_name on transactions',
    'drop function never_signed',
    'drop function rest_by_name',
  ])
    await platform.database.query(statement)
  // The deposit arrives while the platform is stopped, and is credited and forwarded later.
  const { devnet } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as {
    devnet: number
  }
  const control = async (command: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${devnet}/control`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(command),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }
  await control({ command: 'fund', asset: 'ETH', address: shopAddress, amount: '3', tag: null })
  await control({ command: 'mine', network: 'ETH', blocks: 1 })
  const madeAt = Date.now()
  await platform.database.query(
    `update transactions set next_run_at = $1 where status = 'pending'`,
    [new Date(madeAt)],
  )
  const stood = await platform.database.query<{
    asset: string
    state: string
    sequence_id: string
  }>(
    `select asset, state, sequence_id from transactions where kind = 'WITHDRAWAL' and status = 'pending' order by 1, 2`,
  )
  console.log(stood)
  mkdirSync(to, { recursive: true })
  writeFileSync(join(to, 'tables.sql'), `${made.join('\n')}\n`)
  writeFileSync(join(to, 'rows.sql'), `${(await rows(platform.database)).join('\n')}\n`)
  await platform.nodesDown([1, 2, 3], async () => {
    mkdirSync(join(folder, 'home'))
    for (const name of ['signers', 'devnet', 'secrets.key', 'ports.json']) {
      if (existsSync(join(platform.home, name)))
        cpSync(join(platform.home, name), join(folder, 'home', name), {
          recursive: true,
          filter: (each) => !/\.(?:sock|pid)$|\/recovery-\d$/.test(each),
        })
    }
  })
  writeAsText(join(folder, 'home'), PRIVATE_KEY, to)
  writeFileSync(
    join(to, 'about.json'),
    JSON.stringify(
      {
        madeAt,
        hook: HOOK,
        payees: PAYEES,
        ids,
        users: users.map(({ apiKey, workspace }) => ({ apiKey, workspace })),
      },
      null,
      2,
    ),
  )
} finally {
  await platform.remove()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
