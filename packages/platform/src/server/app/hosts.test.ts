import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import type { Database } from '../../core/database/pool.ts'
import { AWAY_MS, missingDuties, heartbeatLoop, readRoleHealth } from './health/role-health.ts'
import { loopsOf } from './loops.ts'
import { checkSecretsKey, checkSecretsKeyGiven } from './secrets-key.ts'
import { HeldNetworks, HOLD_MS } from '../../custody/deposits/hold-networks.ts'
import { scanLoop } from '../../custody/deposits/scanner.ts'
import { DatabaseHold } from '../../core/engine/database-hold.ts'
import { claim, LEASE_MS, RENEW_MS } from '../../core/engine/lease.ts'
import { transactionLoop } from '../../core/engine/run.ts'
import type { Checkout } from '../../commerce/invoices/present.ts'
import type { Webhooks } from '../../events/webhooks/webhooks.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Application } from './application.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { Notifier } from '../../core/ledger/notifier.ts'
import { LoadMonitor } from '../../core/load-monitor.ts'
import { isAdoptedSomewhere, whileAdopting } from '../recovery/adopting.ts'
import { compareRecords } from '../recovery/compare-records.ts'
import { Secrets } from '../../core/secrets.ts'
import { NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { signOrder } from '../../core/signing/sign.ts'
import type { Role } from '../../core/settings/settings.ts'
import { useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'
import { adminOf } from '../../../testing/test-database.ts'

// Tests of processes on several hosts, which share only a database and whose clocks are
// approximately synchronized.

const START = Date.UTC(2026, 0, 1)
let now = START
const opened = useDatabase({ migrated: true, now: () => now })
const folder = mkdtempSync(join(tmpdir(), 'custody-hosts-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let database: Database
let fixture: DepositFixture

beforeEach(async () => {
  await opened.started
  now = START
  database = opened.get()
  await database.query('delete from processes')
  fixture = new DepositFixture(database, 'evm')
  await fixture.open()
  fixture.now = START
})

const pass = (ms: number) => {
  now += ms
  fixture.now += ms
}
const signal = new AbortController().signal
const at = (role: Role): Application => ({
  ...fixture.services,
  settings: { ...fixture.services.settings, role },
})
const once = (ended: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    ended.addEventListener('abort', () => resolve())
  })
const holder = (networks = ['ETH']) => new HeldNetworks(fixture.services, randomUUID(), networks)
const tries = (held: HeldNetworks) => held.loop().run(signal)

test('only a worker processes transfers, and only a scanner reads chains', () => {
  const names = (role: Role) => {
    const due = new Notifier(systemEnvironment())
    const services: Application = {
      ...at(role),
      devnet: null,
      networks: {
        all: () => [{ network: { code: 'ETH' }, mempool: null }],
      } as unknown as Networks,
      webhooks: { due } as Webhooks,
      trading: { due },
      exchangeTransfers: { due },
      checkout: { moved: due } as Checkout,
    }
    return loopsOf(services, holder()).map(({ name }) => name)
  }
  assert.deepEqual(names('api'), [])
  assert.deepEqual(names('scanner'), ['clock', 'hold networks', 'scan ETH'])
  assert.ok(
    names('worker').includes('transactions') &&
      !names('worker').some((name) => /scan|hold/.test(name)),
  )
  assert.deepEqual(
    names('all').toSorted(),
    [...new Set([...names('worker'), ...names('scanner')])].toSorted(),
  )
})

test("reports for how long a role has been missing, and which host's clock is ahead", async () => {
  const never = await readRoleHealth(at('api'))
  assert.deepEqual(
    [...missingDuties(never.duties)],
    [
      ['worker', 'no worker has ever run'],
      ['scanner', 'no scanner has ever run'],
    ],
  )
  await heartbeatLoop(at('worker'), randomUUID()).run(signal)
  await heartbeatLoop(at('worker'), randomUUID()).run(signal)
  await heartbeatLoop(at('scanner'), randomUUID()).run(signal)
  const { duties } = await readRoleHealth(at('api'))
  assert.deepEqual(
    duties.map(({ duty, processes }) => [duty, processes]),
    [
      ['api', 0],
      ['worker', 2],
      ['scanner', 1],
    ],
  )
  assert.equal(missingDuties(duties).size, 0)
  pass(AWAY_MS + 23_000)
  await heartbeatLoop(at('worker'), randomUUID()).run(signal)
  assert.deepEqual(
    [...missingDuties((await readRoleHealth(at('api'))).duties)],
    [['scanner', 'no scanner has reported for 43 s']],
  )
  await heartbeatLoop(at('all'), randomUUID()).run(signal)
  assert.equal(
    missingDuties((await readRoleHealth(at('api'))).duties).size,
    0,
    'one that does everything is a scanner too',
  )
  pass(-9000)
  assert.match(
    (await readRoleHealth(at('api'))).ahead ?? '',
    /^the clock of .+ is 9 s ahead of this host's$/,
  )
})

test('one of two scanners scans a network, and the other takes over when the first stops', async () => {
  const [first, second] = [holder(), holder()]
  await tries(first)
  await tries(second)
  assert.deepEqual([first.holds('ETH'), second.holds('ETH')], [true, false])
  for (let s = 0; s < 30; s++) {
    pass(1000)
    await tries(first)
    await tries(second)
  }
  assert.deepEqual(
    [first.holds('ETH'), second.holds('ETH')],
    [true, false],
    'for as long as it lives',
  )
  // The first process was killed, so the second one takes the network over when the hold expires.
  let waitedMs = 0
  for (; !second.holds('ETH'); waitedMs += 1000) {
    assert.ok(waitedMs <= HOLD_MS + 1000, 'taken over in time')
    pass(1000)
    await tries(second)
  }
  assert.equal(first.holds('ETH'), false, 'by its own clock too')
  await second.release()
  await tries(first)
  assert.equal(first.holds('ETH'), true)
})

test('a scanner scans only networks for which it has an endpoint', async () => {
  const other = holder(['BTC'])
  await tries(other)
  assert.deepEqual(
    [other.holds('ETH'), other.holds('BTC'), [...(await other.followed())]],
    [false, false, []],
  )
})

test('a scan whose lease was taken over writes nothing, not even after a reorganisation', async () => {
  const [first, second] = [holder(), holder()]
  await tries(first)
  const chain = fixture.services.networks.get('ETH')
  const scan = scanLoop(fixture.services, chain, first.followed)
  for (let count = 0; count < 3; count++) fixture.chain.mine()
  while (await scan.run(signal)) {
    /* The loop continues while there are more blocks. */
  }
  const height = async () =>
    (
      await database.one<{ height: string }>(
        `select height::text from network_scans where network = 'ETH'`,
      )
    )?.height
  const before = await height()
  const blocks = async () => (await database.query('select 1 from blocks')).length
  const blockCount = await blocks()
  // The scanner rolls back after a reorganisation and is paused before it has written the rollback;
  // another scanner has taken over the network by then.
  fixture.chain.drop(2)
  for (let count = 0; count < 3; count++) fixture.chain.mine()
  const block = chain.client.block.bind(chain.client)
  let isTaken = false
  chain.client.block = async (number) => {
    if (!isTaken) {
      isTaken = true
      pass(HOLD_MS + 1)
      await tries(second)
    }
    return block(number)
  }
  try {
    await assert.rejects(async () => {
      await scan.run(signal)
    }, /was taken over/)
  } finally {
    chain.client.block = block
  }
  assert.equal(second.holds('ETH'), true)
  assert.deepEqual([await height(), await blocks()], [before, blockCount])
})

test("a worker keeps its long-running work, and a dead worker's work is taken over", async () => {
  const tenant = await fixture.tenant(`alice ${randomUUID()}`)
  const id = randomUUID()
  await database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type,
       destination_type, state, status, next_run_at)
     values ($1, 'WITHDRAWAL', $2, $3, $4, 'ETH', 'ETH', 7, 'ETH', 'INTERNAL', 'EXTERNAL',
       'CONFIRMING', 'pending', $5)`,
    [id, tenant.workspace, tenant.subAccount, tenant.wallets['ETH'], new Date(now)],
  )
  const ended = Promise.withResolvers<void>()
  const { kinds } = fixture.services
  const states = kinds.WITHDRAWAL.states.map((rule) =>
    rule.state === 'CONFIRMING' ? { ...rule, run: () => ended.promise } : rule,
  )
  const services = {
    ...fixture.services,
    pressure: new LoadMonitor(),
    work: new Notifier(systemEnvironment()),
    environment: { ...fixture.services.environment, now: () => now, sleep: async () => undefined },
    kinds: { ...kinds, WITHDRAWAL: { ...kinds.WITHDRAWAL, states } },
  }
  const loop = transactionLoop(services)
  await loop.run(signal)
  for (let ms = 0; ms < 3 * LEASE_MS; ms += RENEW_MS) {
    pass(RENEW_MS)
    await loop.run(signal)
    assert.deepEqual(await claim(fixture.services, 10), [], 'it is worked on')
  }
  pass(LEASE_MS + 1)
  assert.deepEqual(
    (await claim(fixture.services, 10)).map((row) => row.id),
    [id],
    'nobody has said that it is',
  )
  const row = await database.one('select last_error from transactions where id = $1', [id])
  assert.equal(row?.last_error, null, 'the step itself goes on')
  ended.resolve()
})

test("only one process at a time adopts the nodes' records, while other hosts continue", async () => {
  await database.query(`insert into installation (network) values ('local') on conflict do nothing`)
  const elsewhere = { ...fixture.services, hold: new DatabaseHold() }
  const environment = {
    ...fixture.services.environment,
    now: () => now,
    sleep: (_ms: number, ended?: AbortSignal) => once(ended as AbortSignal),
  }
  const here = { ...fixture.services, environment }
  await whileAdopting(here, async () => {
    assert.match((await compareRecords(elsewhere)) ?? '', /another process is adopting/)
    assert.throws(() => elsewhere.hold.assertNone(), { code: 'UNAVAILABLE' })
    await assert.rejects(
      whileAdopting(elsewhere, async () => assert.fail('both adopt')),
      /another host is already adopting/,
    )
  })
  assert.equal(await isAdoptedSomewhere(here), false)
  // Simulates a process that dies during the adoption.
  void whileAdopting(here, () => new Promise(() => undefined))
  while (!(await isAdoptedSomewhere(here))) {
    /* Waits until the process has reported that it is adopting. */
  }
  pass(61_000)
  assert.equal(await isAdoptedSomewhere(here), false)
  await whileAdopting(here, async () => undefined)
})

test('a node on an unreachable host is tried once, because each attempt lasts the full time-out', async () => {
  for (let account = 0; account < 12; account++) {
    for (const gone of [1, 2, 3]) {
      const waits: string[] = []
      const blamed: number[] = []
      const call = async (
        first: number,
        _method: string,
        path: string,
        order?: { partner: number },
      ) => {
        const partner = order?.partner
        if (path === '/status') {
          if (first === gone) throw new NodeUnavailable(first, 'no response within 1500 ms')
          return {}
        }
        if (first === gone) {
          waits.push(`${first}`)
          throw new NodeUnavailable(first, 'no response within 6000 ms')
        }
        if (partner === gone) {
          waits.push(`${first} for ${partner}`)
          // The node waits for its partner and has already sent requests to others, so a caller
          // that waits for both nodes also waits for the first one without success.
          throw account % 2 === 0
            ? new NodeUnavailable(first, 'no response within 6000 ms')
            : new NodeUnavailable(first, 'the peer did not answer', 'PEER_UNAVAILABLE')
        }
        return { signatures: [] }
      }
      const services = {
        ...fixture.services,
        environment: systemEnvironment(),
        signers: {
          peers: [1, 2, 3].map((node) => ({ node })),
          call,
          isPenalised: () => false,
          penalise: (node: number) => void blamed.push(node),
        } as unknown as SignerNodes,
      }
      const outcome = await signOrder(
        services,
        { workspace: 'acme', purpose: {}, unsigned: { inputs: [] } } as unknown as Parameters<
          typeof signOrder
        >[1],
        `account ${account}`,
        () => ({ network: 'ETH', raw: '', hash: '' }),
      )
      assert.equal(outcome.kind, 'signed')
      assert.ok(waits.length <= 1, `${gone} is gone: ${waits.join(', ')}`)
      assert.ok(
        blamed.every((node) => node === gone),
        `${gone} is gone, blamed: ${blamed.join(', ')}`,
      )
    }
  }
})

test('a process with another secrets key is refused, and several hosts need an explicit key', async () => {
  const environment = systemEnvironment()
  const [ours, other] = [
    new Secrets(new Uint8Array(32), environment),
    new Secrets(new Uint8Array(32).fill(1), environment),
  ]
  await database.query(`insert into installation (network) values ('local') on conflict do nothing`)
  await database.query('update installation set sealed_mark = null')
  await database.query(
    `insert into webhook_keys (public_key_pem, sealed_private_key) values ($1, $2)
      on conflict do nothing`,
    ['-', ours.seal('webhook key', 'key')],
  )
  await assert.rejects(
    checkSecretsKey(database, other, null),
    /^Error: the secrets\.key of the home: is not the key/,
  )
  await checkSecretsKey(database, ours, 'x')
  await checkSecretsKey(database, ours, 'x')
  await adminOf(database).query('delete from webhook_keys')
  await assert.rejects(
    checkSecretsKey(database, other, 'x'),
    /^Error: CUSTODY_SECRETS_KEY: is not the key that encrypts the secrets of this database/,
  )
  const home = join(folder, 'home')
  assert.throws(
    () => checkSecretsKeyGiven({ role: 'worker', secretsKey: null, home }),
    /^Error: CUSTODY_ROLE=worker: CUSTODY_SECRETS_KEY is required/,
  )
  checkSecretsKeyGiven({ role: 'all', secretsKey: null, home })
  checkSecretsKeyGiven({ role: 'api', secretsKey: 'x', home })
  writeFileSync(join(folder, 'secrets.key'), '')
  checkSecretsKeyGiven({ role: 'scanner', secretsKey: null, home: folder })
})
