import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { Network } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import { LEVELS, type RiskLevel } from './levels.ts'
import { sealToken } from './policy.ts'
import { ProviderError, type Provider } from './providers/provider.ts'
import { unfreezeAddress } from './unfreeze-address.ts'
import { createMetrics } from '../../core/metrics.ts'
import { screenAgain } from '../transactions/screening.ts'
import type { Database } from '../../core/database/pool.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { Secrets } from '../../core/secrets.ts'
import type { Application } from '../../server/app/application.ts'
import { runStep } from '../../core/engine/run.ts'
import { fixtureServices } from '../../../testing/chains/chain-fixture.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import {
  createTestDatabase,
  openTestDatabase,
  type TestDatabase,
} from '../../../testing/test-database.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Runs events in random order over the real step functions and the real database. A transfer or
 * deposit that involves a frozen or sanctioned address, or that has no recent clear result of a
 * provider, must never be signed or credited. A transfer that is unfrozen must continue exactly
 * once.
 */
const OMNIBUS = `0x${'a'.repeat(40)}`
const PARTIES = [1, 2, 3].map((n) => `0x${String(n).repeat(40)}`)
const TEN_MINUTES_MS = 600_000
let created: TestDatabase
let database: Database

before(async () => {
  created = await createTestDatabase()
  database = openTestDatabase(created)
})
after(async () => {
  await database.close()
  await created.remove()
})

/**
 * Fixture that plays the provider: the actual risk of each address, and the levels that the
 * provider has reported.
 */
class Fixture {
  now = Date.UTC(2026, 0, 1)
  isUp = true
  readonly truth = new Map<string, RiskLevel>()
  readonly sanctioned = new Set<string>()
  readonly said: { address: string; level: RiskLevel | null; at: number }[] = []
  policy: { levels: RiskLevel[]; deposits: boolean; withdrawals: boolean } | null = null
  services!: Application
  workspace = ''
  subAccount = ''
  wallet = ''
  readonly apiKey = randomUUID()
  readonly transactions: string[] = []
  readonly passed = new Set<string>()

  async open(): Promise<void> {
    const provider: Provider = {
      screen: async (_token, { address }) => {
        if (!this.isUp) throw new ProviderError('unreachable', 'down')
        const level = this.truth.get(address) ?? null
        this.now += 1
        this.said.push({ address, level, at: this.now })
        return level
      },
      verifyToken: async () => true,
    }
    const environment = { ...systemEnvironment(), now: () => this.now }
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    this.services = fixtureServices(
      {
        environment,
        database,
        log: silent,
        metrics: createMetrics(),
        aml: {
          providers: { CHAINALYSIS: provider },
          sanctions: { has: (_: Network, address: string) => this.sanctioned.has(address) },
          secrets: new Secrets(new Uint8Array(32), environment),
        },
      },
      { ETH: {} },
    )
    const name = randomUUID()
    this.workspace = (await database.one<{ id: string }>(
      'insert into workspaces (name) values ($1) returning id',
      [name],
    ))!.id
    this.subAccount = (await database.one<{ id: string }>(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [this.workspace],
    ))!.id
    this.wallet = (await database.one<{ id: string }>(
      `insert into wallets (workspace_id, sub_account_id, asset, network)
        values ($1, $2, 'ETH', 'ETH') returning id`,
      [this.workspace, this.subAccount],
    ))!.id
    await database.query(
      `insert into api_users (api_key, sub_account_id, role, public_key_pem)
        values ($1, $2, 'full', '')`,
      [this.apiKey, this.subAccount],
    )
    await database.query(
      `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
        kind) values ('ETH', $1, $2, $3, 0, 'omnibus')`,
      [`of ${this.workspace}`, this.workspace, this.subAccount],
    )
  }

  async create(kind: 'WITHDRAWAL' | 'DEPOSIT', party: string): Promise<void> {
    const id = randomUUID()
    this.transactions.push(id)
    const out = kind === 'WITHDRAWAL'
    await database.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
        amount, fee_asset, source_type, source_id, destination_type, destination_id, state, status,
        created_at)
       values ($1, $2, $3, $4, $5, 'ETH', 'ETH', 5, 'ETH', 'X', $6, 'X', $7, $8, 'pending', $9)`,
      [
        id,
        kind,
        this.workspace,
        this.subAccount,
        this.wallet,
        out ? OMNIBUS : party,
        out ? party : OMNIBUS,
        out ? 'CREATED' : 'SCREENING',
        new Date(this.now),
      ],
    )
    if (!out)
      await database.query(
        `insert into deposits (transaction_id, network, txid, position, address, sender, senders,
          senders_complete, block_height, block_hash, asset, amount, occurrence, workspace_id)
          values ($1, 'ETH', $4, -1, $2, $3, jsonb_build_array($3::text), true, 1, 'x', 'ETH', 5, 0,
          $5)`,
        [id, `of ${this.workspace}`, party, id, this.workspace],
      )
  }

  async row(id: string): Promise<TransactionRow> {
    return (await database.one<TransactionRow>(
      `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1
        where id = $1 returning *`,
      [id],
    ))!
  }

  /**
   * Runs one step of a transaction. Building and signing are skipped: the state right before
   * signing is set directly.
   */
  async step(id: string): Promise<void> {
    this.now += 1
    const row = await this.row(id)
    if (row.status !== 'pending' || this.passed.has(id)) return
    if (row.state === 'QUEUED' || row.state === 'FUELING') {
      await database.query(
        `update transactions set state = 'SIGNING', attempts = 0, lease_token = null where id = $1`,
        [id],
      )
      return
    }
    if (row.state === 'SIGNING') {
      if (!(await screenAgain(this.services, row)))
        await this.pass(row, row.destination_id as string)
      return
    }
    await runStep(this.services, row)
    const after = await this.row(id)
    if (row.kind === 'DEPOSIT' && after.state === 'CREDITED')
      await this.pass(after, row.source_id as string)
  }

  /** Asserts the conditions that must hold when a transfer is signed or a deposit is credited. */
  async pass(row: TransactionRow, party: string): Promise<void> {
    assert.ok(!this.passed.has(row.id), 'passed twice')
    this.passed.add(row.id)
    assert.ok(!this.sanctioned.has(party), 'a sanctioned address passed')
    const released = await database.one(
      `select 1 from aml_holds h join frozen_addresses f on f.id = h.freeze_id
        where h.transaction_id = $1 and h.released_at is not null and f.address_key = $2`,
      [row.id, party],
    )
    if (released) return
    assert.equal(
      await database.one(
        `select 1 from frozen_addresses where sub_account_id = $1 and address_key = $2
          and unfrozen_at is null`,
        [this.subAccount, party],
      ),
      undefined,
      'a frozen address passed',
    )
    const on = row.kind === 'DEPOSIT' ? this.policy?.deposits : this.policy?.withdrawals
    if (!on) return
    const last = this.said
      .filter(({ address, at }) => address === party && this.now - at <= TEN_MINUTES_MS)
      .at(-1)
    assert.ok(last, 'passed without a recent answer')
    assert.ok(
      last.level === null || !this.policy!.levels.includes(last.level),
      'a flagged address passed',
    )
  }

  async save(levels: RiskLevel[], deposits: boolean, withdrawals: boolean): Promise<void> {
    this.policy = { levels, deposits, withdrawals }
    await database.query(
      `insert into aml_settings (workspace_id, sub_account_id, provider, sealed_token, risk_levels,
        screen_deposits, screen_withdrawals, updated_at)
       values ((select workspace_id from sub_accounts where id = $1), $1, 'CHAINALYSIS', $2, $3, $4,
         $5, $6)
       on conflict (workspace_id, sub_account_id) do update set risk_levels = excluded.risk_levels,
         screen_deposits = excluded.screen_deposits,
         screen_withdrawals = excluded.screen_withdrawals, updated_at = excluded.updated_at`,
      [
        this.subAccount,
        sealToken(this.services, this.subAccount, 'key'),
        levels,
        deposits,
        withdrawals,
        new Date(this.now),
      ],
    )
  }

  /** Sends two concurrent requests to unfreeze an address. Exactly one of them may succeed. */
  async unfreeze(party: string): Promise<void> {
    const frozen = await database.one(
      `select 1 from frozen_addresses where sub_account_id = $1 and address_key = $2
        and unfrozen_at is null`,
      [this.subAccount, party],
    )
    const answered = await this.callUnfreeze(party)
    assert.ok(
      answered === (frozen ? 1 : 0) || this.sanctioned.has(party),
      `${answered} unfreezings of one freeze`,
    )
  }

  async callUnfreeze(party: string): Promise<number> {
    const context = {
      caller: { apiKey: this.apiKey, workspaceId: this.workspace, subAccountId: this.subAccount },
      body: { asset: 'ETH', address: party },
    }
    const done = await Promise.allSettled(
      [1, 2].map(() => unfreezeAddress.handler(context as never, this.services)),
    )
    return done.filter(({ status }) => status === 'fulfilled').length
  }

  /**
   * Checks the ledger: credited amounts are spendable, held amounts are frozen, and no other
   * amounts exist.
   */
  async checkBooks(): Promise<void> {
    const sums = await database.query<{ kind: string; sum: string }>(
      `select kind, sum(balance)::text sum from ledger_accounts where workspace_id = $1
        group by kind`,
      [this.workspace],
    )
    const of = (kind: string) => Number(sums.find((each) => each.kind === kind)?.sum ?? 0)
    const counts = await database.one<{ credited: number; frozen: number }>(
      `select count(*) filter (where state = 'CREDITED')::int credited,
        count(*) filter (where status = 'pending' and plan ? 'frozen_wallet')::int frozen
        from transactions where workspace_id = $1 and kind = 'DEPOSIT'`,
      [this.workspace],
    )
    const totals = await database.one<{ frozen: number; unfrozen: number }>(
      `select count(*) filter (where type = 'address.frozen')::int frozen,
        count(*) filter (where type = 'address.unfrozen')::int unfrozen from events
        where workspace_id = $1`,
      [this.workspace],
    )
    const freezes = await database.one<{ frozen: number; unfrozen: number }>(
      `select count(*)::int frozen, count(unfrozen_at)::int unfrozen from frozen_addresses
        where workspace_id = $1`,
      [this.workspace],
    )
    assert.deepEqual(totals, freezes, 'one event for each freezing and unfreezing')
    assert.deepEqual(
      [of('available'), of('frozen'), of('chain')],
      [5 * counts!.credited, 5 * counts!.frozen, 0 - 5 * (counts!.credited + counts!.frozen)],
    )
  }
}

type Event = (fixture: Fixture) => Promise<void> | void
const party = fc.constantFrom(...PARTIES)
const level = fc.constantFrom<RiskLevel | null>('SEVERE', 'SEVERE', 'LOW', null)
const pick = (fixture: Fixture, at: number) =>
  fixture.transactions[at % Math.max(1, fixture.transactions.length)]
const named = (name: string, run: Event) => Object.assign(run, { toString: () => name })
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.nat(20).map((at) =>
      named(`step ${at}`, async (fixture) => {
        const id = pick(fixture, at)
        if (id) await fixture.step(id)
      }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom('WITHDRAWAL' as const, 'DEPOSIT' as const), party)
      .map(([kind, who]) => named(`${kind} ${who[2]}`, (fixture) => fixture.create(kind, who))),
  },
  {
    weight: 2,
    arbitrary: party.map((who) => named(`unfreeze ${who[2]}`, (fixture) => fixture.unfreeze(who))),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.nat(20), fc.nat(20), party).map(([a, b, who]) =>
      named(`steps ${a} and ${b} while ${who[2]} is unfrozen`, async (fixture) => {
        const [first, second] = [pick(fixture, a), pick(fixture, b)]
        if (first && second && first !== second)
          await Promise.all([fixture.step(first), fixture.step(second), fixture.callUnfreeze(who)])
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(party, level).map(([who, risk]) =>
      named(`risk ${who[2]} ${String(risk)}`, (fixture) => {
        if (risk) fixture.truth.set(who, risk)
        else fixture.truth.delete(who)
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.boolean().map((up) =>
      named(`provider ${up}`, (fixture) => {
        fixture.isUp = up
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 15 }).map((minutes) =>
      named(`+${minutes} min`, (fixture) => {
        fixture.now += minutes * 60_000
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.subarray([...LEVELS], { minLength: 1 }), fc.boolean(), fc.boolean())
      .map(([levels, a, b]) =>
        named(`save ${levels.join()} ${a} ${b}`, async (fixture) => {
          fixture.now += 1000
          await fixture.save(levels, a, b)
          fixture.now += 1000
        }),
      ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(party, fc.boolean()).map(([who, on]) =>
      named(`OFAC ${who[2]} ${on}`, (fixture) => {
        if (on) fixture.sanctioned.add(who)
        else fixture.sanctioned.delete(who)
      }),
    ),
  },
)

test('for any sequence of events, no transfer to or deposit from a frozen address completes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 15, maxLength: 60 }), async (events) => {
      const fixture = new Fixture()
      await fixture.open()
      await fixture.save(['SEVERE'], true, true)
      fixture.now += 1000
      for (const each of events) {
        await each(fixture)
        await fixture.checkBooks()
      }
      // At the end the provider is available and all addresses are unfrozen, so every transfer and
      // deposit passes once.
      fixture.isUp = true
      fixture.truth.clear()
      fixture.sanctioned.clear()
      for (
        let round = 0;
        round < 12 && fixture.passed.size < fixture.transactions.length;
        round++
      ) {
        for (const who of PARTIES) await fixture.unfreeze(who)
        for (const id of fixture.transactions) await fixture.step(id)
      }
      assert.equal(
        fixture.passed.size,
        fixture.transactions.length,
        'a transaction stays held permanently',
      )
      await fixture.checkBooks()
    }),
    { numRuns: Number(process.env['CUSTODY_TEST_RUNS'] ?? 40) },
  )
})

test('a provider is asked once about an address that several transactions have within the cache time', async () => {
  const fixture = new Fixture()
  await fixture.open()
  const party = PARTIES[0] as string
  await fixture.save(['SEVERE'], true, true)
  const create = async (many: number) => {
    for (let at = 0; at < many; at++) await fixture.create('DEPOSIT', party)
    for (const id of fixture.transactions) await fixture.step(id)
  }
  await create(2)
  assert.equal(fixture.said.length, 2, 'without a cache, each transaction asks')
  Object.assign(fixture.services.aml, { cacheMs: 120_000 })
  await create(6)
  assert.equal(fixture.said.length, 2, 'all others use the response')
  const rows = await database.query<{ count: string }>(
    `select count(distinct transaction_id)::text count from aml_screenings
      where workspace_id = $1`,
    [fixture.workspace],
  )
  assert.equal(rows[0]?.count, '8', 'each transaction has its evidence')
  fixture.now += 120_001
  await create(2)
  assert.equal(fixture.said.length, 3, 'a response is used for the cache time')
  fixture.now += 1000
  await fixture.save(['SEVERE', 'HIGH'], true, true)
  await create(1)
  assert.equal(fixture.said.length, 4, 'new settings need a new response')
})

test('after six hours without an answer of the provider, one alert is raised, and transfers wait', async () => {
  const fixture = new Fixture()
  await fixture.open()
  await fixture.save(['SEVERE'], true, true)
  fixture.isUp = false
  await fixture.create('WITHDRAWAL', PARTIES[0] as string)
  const [id] = fixture.transactions as [string]
  const alerts = async () =>
    (
      await database.query(
        `select 1 from events where workspace_id = $1 and type = 'aml.screening_overdue'`,
        [fixture.workspace],
      )
    ).length
  for (const hours of [0, 1, 3, 1.9]) {
    fixture.now += hours * 3_600_000
    await fixture.step(id)
    await fixture.step(id)
    assert.deepEqual([(await fixture.row(id)).state, await alerts()], ['SCREENING', 0])
  }
  fixture.now += 600_000
  for (let count = 0; count < 3; count++) await fixture.step(id)
  assert.deepEqual([(await fixture.row(id)).state, await alerts()], ['SCREENING', 1])
  fixture.isUp = true
  await fixture.step(id)
  assert.equal((await fixture.row(id)).state, 'QUEUED')
})

test('a transfer frozen before signing releases its nonce, and is rebuilt when it is released', async () => {
  const fixture = new Fixture()
  await fixture.open()
  await fixture.save(['SEVERE'], true, true)
  const to = PARTIES[0] as string
  await fixture.create('WITHDRAWAL', to)
  const [id] = fixture.transactions as [string]
  for (let count = 0; count < 3; count++) await fixture.step(id)
  assert.equal((await fixture.row(id)).state, 'SIGNING')
  await database.query(`update transactions set attempts = 0 where id = $1`, [id])
  await database.query(
    `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
       fee_max, workspace_id)
       values ($1, $2, 'ETH', 'BUILT', $3, 0, '{}', 1, (select workspace_id from transactions
         where id = $2))`,
    [randomUUID(), id, randomUUID()],
  )
  fixture.truth.set(to, 'SEVERE')
  fixture.now += TEN_MINUTES_MS + 1000
  for (const state of ['SCREENING', 'AML_HELD']) {
    await fixture.step(id)
    assert.equal((await fixture.row(id)).state, state)
  }
  assert.deepEqual(
    await database.query('select 1 from chain_transactions where transaction_id = $1', [id]),
    [],
  )
  await fixture.unfreeze(to)
  for (const state of ['SCREENING', 'FUELING', 'SIGNING']) {
    await fixture.step(id)
    assert.equal((await fixture.row(id)).state, state)
  }
  await fixture.step(id)
  assert.ok(fixture.passed.has(id))
})

testEmittedEvents(() => database, ['address.frozen', 'address.unfrozen', 'aml.screening_overdue'])
