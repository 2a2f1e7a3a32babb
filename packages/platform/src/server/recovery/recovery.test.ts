import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import type { Database } from '../../core/database/pool.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { noteIncoming } from '../../custody/auto-forwarding/incoming.ts'
import { compareRecords } from './compare-records.ts'
import {
  createTestDatabase,
  openTestDatabase,
  type TestDatabase,
} from '../../../testing/test-database.ts'
import {
  addressAt,
  FEE,
  START,
  STRANGER,
  RecoveryFixture,
} from '../../../testing/hosts/recovery-fixture.ts'

/**
 * Tests that transactions that the nodes recorded are restored as rows and ledger entries of a
 * database that has lost them.
 */
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

const OMNIBUS = addressAt(1, 0)
const DEPOSIT = addressAt(1, 1)
const TANK = addressAt(0, 0)
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const

async function openFixture(): Promise<RecoveryFixture> {
  const made = new RecoveryFixture(database)
  await made.open()
  return made
}

interface Step {
  kind: 'pay' | 'fuel' | 'sweep'
  pair: number
  amount: number
  chain: 'deep' | 'shallow' | 'absent'
  isKnown: boolean
}

/**
 * Signs a transaction after the backup. A known transaction was created before the backup and not
 * signed by then.
 */
async function happen(
  at: RecoveryFixture,
  { kind, pair, amount, chain, isKnown }: Step,
  order: number,
): Promise<{ id: string | null; sequence: string }> {
  const sequence = `s-${order}`
  const id = randomUUID()
  const value = BigInt(amount) * 10n ** 12n
  const pay = ['pay', 'sequence', at.workspace, 1, 'ETH', sequence]
  const o = {
    pay: {
      from: [1, 0] as [number, number],
      to: STRANGER,
      amount: value,
      step: ['pay', JSON.stringify(pay)],
      intent: pay,
      id,
    },
    fuel: {
      from: [0, 0] as [number, number],
      to: OMNIBUS,
      amount: value,
      step: ['fuel', 'sweep', at.workspace, 1, 'ETH', order],
    },
    sweep: {
      from: [1, 1] as [number, number],
      to: OMNIBUS,
      amount: value,
      step: ['sweep', at.workspace, 1, 'ETH', 1],
    },
  }[kind]
  if (kind === 'pay' && isKnown) {
    await database.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
        amount, fee_asset, source_type, source_id, destination_type, destination_id, state, status,
        sequence_id, plan)
       select $1, 'WITHDRAWAL', workspace_id, sub_account_id, id, 'ETH', 'ETH', $2, 'ETH',
         'INTERNAL', $3, 'EXTERNAL', $4, 'QUEUED',
         'pending', $5, '{"fee_reserve":"0"}' from wallets where id = $6`,
      [id, value.toString(), OMNIBUS, STRANGER, sequence, at.walletId],
    )
    await database.query('select ledger_post($1, $2, $3, $4)', [
      at.workspaceId,
      'reserve',
      id,
      JSON.stringify([
        { wallet: at.walletId, asset: 'ETH', kind: 'available', amount: (-value).toString() },
        { wallet: at.walletId, asset: 'ETH', kind: 'reserved', amount: value.toString() },
      ]),
    ])
  }
  const made = at.sign(kind, o)
  at.record(PAIRS[pair] as readonly number[], kind, made, o)
  if (chain !== 'absent') at.mine(made, addressAt(...o.from), o.to, value, chain === 'deep')
  return { id: kind === 'pay' ? id : null, sequence }
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('pay' as const, 'pay' as const, 'fuel' as const, 'sweep' as const),
  pair: fc.nat(2),
  amount: fc.integer({ min: 1, max: 900 }),
  chain: fc.constantFrom('deep' as const, 'deep' as const, 'shallow' as const, 'absent' as const),
  isKnown: fc.boolean(),
})

test('for any node records, and wherever recovery stops, the ledger ends equal to the chain', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.nat(12),
      fc.nat(3),
      async (steps, crashAt, down) => {
        const at = await openFixture()
        if (down > 0) at.down.add(down)
        const done: Awaited<ReturnType<typeof happen>>[] = []
        for (const [order, each] of steps.entries()) done.push(await happen(at, each, order))
        assert.match(
          (await compareRecords(at.services)) ?? '',
          /older than their records; run: npx custody reconcile$/,
        )
        at.crashAt = crashAt
        await at
          .reconcile()
          .catch((error: Error) => assert.equal(error.message, 'the process ended here'))
        at.crashAt = -1
        const report = await at.reconcile()
        assert.deepEqual(report.unadopted, [])
        assert.equal(at.services.hold.because, null)
        // From here on the chain includes the transactions that it lacked.
        await at.work()
        const rows = await at.transactions()
        assert.equal(rows.length, steps.length, 'one row for each')
        for (const [order, { id, sequence }] of done.entries()) {
          const { chain, isKnown } = steps[order] as Step
          if (id === null) continue
          const row = rows.find((each) => each.id === id)
          assert.deepEqual(
            [row?.state, row?.sequence_id],
            [chain === 'deep' ? 'CONFIRMED' : 'CONFIRMING', sequence],
          )
          if (!isKnown)
            assert.ok(
              await database.one(
                `select 1 from idempotency where wallet_id = $1 and sequence_id = $2
                    and transaction_id = $3`,
                [at.walletId, sequence, id],
              ),
            )
        }
        assert.equal(
          new Set(at.sent).size,
          steps.filter(({ chain }) => chain === 'absent').length,
          'only what is not on the chain is sent',
        )
        const books = await at.books()
        const again = await at.reconcile()
        assert.deepEqual(
          [again.transactions, again.users, again.wallets, again.deposits, again.watched],
          [[], [], [], [], []],
        )
        assert.deepEqual(await at.books(), books, 'a second run changes nothing')
        // The pending transactions are mined, and then the balance of every address agrees with
        // the ledger.
        at.height = 200
        for (const { hash, kind, source_id: from, destination_id: to, amount } of rows) {
          if (hash !== null && !at.mined.has(hash))
            at.mine({ hash }, from as string, to as string, BigInt(amount))
          assert.ok(kind !== null)
        }
        await database.query(
          `update network_scans set height = 200, final_height = 195 where network = 'ETH'`,
        )
        await at.work()
        assert.ok((await at.transactions()).every(({ status }) => status === 'confirmed'))
        const { audit } = await at.reconcile()
        assert.deepEqual(audit?.differences, [])
      },
    ),
    { numRuns: Number(process.env['CUSTODY_TEST_RUNS'] ?? 25) },
  )
})

const payOf = (at: RecoveryFixture, sequence: string, amount = 5n) => {
  const intent = ['pay', 'sequence', at.workspace, 1, 'ETH', sequence]
  return {
    from: [1, 0] as [number, number],
    to: STRANGER,
    amount,
    step: ['pay', JSON.stringify(intent)],
    intent,
    id: randomUUID(),
  }
}

test('recovery skips records that only a lying node reports, and restores the others', async () => {
  const at = await openFixture()
  const good = payOf(at, 'good')
  const made = at.sign('pay', good)
  at.record([1, 2], 'pay', made, good)
  at.mine(made, OMNIBUS, STRANGER, good.amount)
  // A record whose signatures belong to another transaction.
  const forged = payOf(at, 'forged', START / 2n)
  at.record([3], 'pay', { ...at.sign('pay', forged), signatures: made.signatures }, forged)
  // A payment to a foreign address that is recorded as a sweep, and as a fuel transaction.
  const named = payOf(at, 'named')
  const named2 = payOf(at, 'named-2')
  at.record([3], 'sweep', at.sign('pay', named), { step: ['sweep', at.workspace, 1, 'ETH', 1] })
  at.record([3], 'fuel', at.sign('pay', named2), { step: ['fuel', 'x'] })
  // The same transaction is recorded with different ids by the two nodes.
  const disputed = payOf(at, 'disputed')
  at.record([3, 1], 'pay', at.sign('pay', disputed), disputed, { transaction_id: randomUUID() })
  // A payment of another, unknown workspace, and a payment on another network.
  const foreign = payOf(at, 'foreign')
  at.record([3], 'pay', at.sign('pay', foreign), foreign, { workspace: 'nobody' })
  const odd = payOf(at, 'odd')
  const oddMade = at.sign('pay', odd)
  at.record([3], 'pay', { ...oddMade, unsigned: { ...oddMade.unsigned, network: 'MARS' } }, odd)
  const report = await at.reconcile()
  await at.work()
  assert.deepEqual(
    report.transactions.map(({ id, amount, hash }) => [id, amount, hash]),
    [[good.id, '0.000000000000000005', made.hash]],
  )
  assert.deepEqual(report.unadopted.map(({ reason }) => reason.replace(/:.*/, '')).sort(), [
    'it does not match the purpose that the signer nodes recorded, fuel',
    'it does not match the purpose that the signer nodes recorded, sweep',
    'its signatures do not verify',
    'the network MARS is not in the registry',
    'the signer nodes reported different data for it',
    'the workspace nobody does not exist, and no two signer nodes have an API user of it',
  ])
  assert.equal(report.ok, false)
  assert.deepEqual(
    (await at.transactions()).map(({ id, state }) => [id, state]),
    [[good.id, 'CONFIRMED']],
  )
  // The false report delays no other transfer, and is reported again.
  assert.equal(await compareRecords(at.services), null)
  assert.equal((await at.reconcile()).unadopted.length, 6)
})

test('a transaction that was signed and never mined is sent again, unchanged, and not booked', async () => {
  const at = await openFixture()
  const pay = payOf(at, 'waiting', 7n)
  const made = at.sign('pay', pay)
  at.record([2, 3], 'pay', made, pay)
  await at.reconcile()
  await at.work()
  assert.deepEqual([...new Set(at.sent)], [made.raw])
  const balance = async (kind: string) =>
    (
      await database.one<{ sum: string }>(
        `select coalesce(sum(balance), 0)::text sum from ledger_accounts where wallet_id = $1
          and kind = $2`,
        [at.walletId, kind],
      )
    )?.sum
  assert.deepEqual(
    [await balance('available'), await balance('reserved')],
    [(START - 7n).toString(), '7'],
  )
  at.mine(made, OMNIBUS, STRANGER, 7n)
  await at.work()
  assert.deepEqual(
    [await balance('available'), await balance('reserved')],
    [(START - 7n).toString(), '0'],
  )
  const float = await database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where workspace_id = $1 and kind = 'float'
      and address = $2`,
    [at.workspaceId, OMNIBUS],
  )
  assert.equal(
    float?.balance,
    (-FEE).toString(),
    'the fee was the tank’s, whose fuel is not recorded here',
  )
})

test('users and revocations are restored only if two nodes report them', async () => {
  const at = await openFixture()
  const enrol = (subAccount: number) => ({
    api_key: randomUUID(),
    public_key_pem: 'pem',
    role: 'full',
    workspace: at.workspace,
    sub_account: subAccount,
  })
  const [both, single, gone] = [enrol(2), enrol(3), enrol(2)]
  const addRecord = (node: number, kind: string, body: Record<string, unknown>) =>
    at.records[node - 1]?.push({ kind, at: 1, body })
  for (const node of [1, 2]) addRecord(node, 'enrol', both)
  addRecord(3, 'enrol', single)
  for (const node of [1, 2, 3]) addRecord(node, 'enrol', gone)
  for (const node of [2, 3]) addRecord(node, 'revoke', { api_key: gone.api_key })
  addRecord(1, 'revoke', { api_key: both.api_key })
  const { users } = await at.reconcile()
  assert.deepEqual(
    users.map(({ api_key: key, done }) => [key, done]),
    [
      [both.api_key, 'created'],
      [gone.api_key, 'created'],
    ],
  )
  const rows = await database.query<{ api_key: string; revoked: boolean; path_index: number }>(
    `select api_key, revoked_at is not null revoked, s.path_index from api_users u
      join sub_accounts s on s.id = u.sub_account_id where s.workspace_id = $1`,
    [at.workspaceId],
  )
  assert.deepEqual(
    new Map(rows.map((row) => [row.api_key, [row.revoked, row.path_index]])),
    new Map([
      [both.api_key, [false, 2]],
      [gone.api_key, [true, 2]],
    ]),
  )
})

test('recovery needs two nodes, and one node alone releases no funds', async () => {
  const at = await openFixture()
  const pay = payOf(at, 'x')
  at.record([1, 2], 'pay', at.sign('pay', pay), pay)
  await compareRecords(at.services)
  assert.match(at.services.hold.because ?? '', /1 transactions/)
  at.down.add(1).add(2)
  await assert.rejects(at.reconcile(), /two signer nodes must return/)
  await compareRecords(at.services)
  assert.match(at.services.hold.because ?? '', /fewer than two signer nodes/)
  at.down.clear()
  await at.reconcile()
  assert.equal(at.services.hold.because, null)
  // The compared part of the records is marked, so that the next comparison reads little.
  const marks = await database.query<{ node: number; height: string }>(
    'select node, height::text from signer_marks order by node',
  )
  assert.deepEqual(
    marks.map(({ height }) => height),
    ['2', '2', '0'],
  )
})

test('a recovered cancellation releases the amount, whether or not its transfer was known', async () => {
  for (const isKnown of [false, true]) {
    const at = await openFixture()
    const pay = payOf(at, 'cancelled', 9n)
    const first = at.sign('pay', pay)
    at.record([1, 2], 'pay', first, pay)
    if (isKnown) await at.reconcile()
    const cancel = { ...pay, to: OMNIBUS, amount: 0n, nonce: 0, price: 2_000_000_000n }
    const second = at.sign('cancel', cancel)
    at.record([1, 2], 'cancel', second, cancel)
    const report = await at.reconcile()
    assert.deepEqual(
      report.transactions.map(({ id, hash, done }) => [id, hash, done]),
      [[pay.id, second.hash, isKnown ? 'replacement' : 'created']],
    )
    at.mine(second, OMNIBUS, OMNIBUS, 0n)
    await at.work()
    const [row, ...more] = await at.transactions()
    assert.deepEqual(
      [row?.state, row?.status, row?.hash, more.length],
      ['CANCELLED', 'failed', second.hash, 0],
    )
    const held = await database.query<{ kind: string; balance: string }>(
      'select kind, balance::text from ledger_accounts where wallet_id = $1 order by kind',
      [at.walletId],
    )
    assert.deepEqual(
      held.filter(({ kind }) => kind !== 'unswept').map(({ kind, balance }) => [kind, balance]),
      [
        ['available', START.toString()],
        ['reserved', '0'],
      ],
    )
    assert.equal((await at.reconcile()).transactions.length, 0)
  }
})

test('recovery books a drain to the tank, and both of two sweeps of one address', async () => {
  const at = await openFixture()
  const drain = {
    from: [0, 0] as [number, number],
    to: STRANGER,
    amount: 1000n,
    step: ['drain', 'order-1'],
  }
  const drained = at.sign('drain', drain)
  at.record([2, 3], 'drain', drained, drain)
  at.mine(drained, TANK, STRANGER, 1000n)
  for (const amount of [20n, 30n]) {
    const sweep = {
      from: [1, 1] as [number, number],
      to: OMNIBUS,
      amount,
      step: ['sweep', at.workspace, 1, 'ETH', 1],
    }
    const made = at.sign('sweep', sweep)
    at.record([1, 3], 'sweep', made, sweep)
    at.mine(made, DEPOSIT, OMNIBUS, amount)
  }
  await at.reconcile()
  await at.work()
  assert.deepEqual(
    (await at.transactions())
      .map(({ kind, state, plan }) => [kind, state, plan['order'] ?? null])
      .sort(),
    [
      ['DRAIN', 'CONFIRMED', 'order-1'],
      ['SWEEP', 'CONFIRMED', null],
      ['SWEEP', 'CONFIRMED', null],
    ],
  )
  assert.deepEqual((await at.reconcile()).audit?.differences, [])
})

test('recovery books a drain whose order was started before, and failed then', async () => {
  const at = await openFixture()
  const step = ['drain', 'order-1']
  const drain = { from: [0, 0] as [number, number], to: STRANGER, amount: 1000n, step }
  const drained = at.sign('drain', drain)
  at.record([2, 3], 'drain', drained, drain)
  at.mine(drained, TANK, STRANGER, 1000n)
  await database.transaction(async (tx) => {
    const id = randomUUID()
    await insertTransaction(tx, {
      id,
      kind: 'DRAIN',
      state: 'QUEUED',
      workspace_id: at.workspaceId,
      network: 'ETH',
      asset: 'ETH',
      amount: 1000n,
      fee: 10n,
      fee_asset: 'ETH',
      source_type: 'GAS_TANK',
      source_id: TANK,
      destination_type: 'EXTERNAL',
      destination_id: STRANGER,
      plan: { order: 'order-1', reserved_fee: '10' },
    })
    await tx.query(
      `update transactions set state = 'FAILED', status = 'failed', next_run_at = null,
         failure_reason = 'ORDER_APPROVAL' where id = $1`,
      [id],
    )
  })
  assert.deepEqual((await at.reconcile()).unadopted, [])
  await at.work()
  assert.deepEqual((await at.transactions()).map(({ kind, state }) => [kind, state]).sort(), [
    ['DRAIN', 'CONFIRMED'],
    ['DRAIN', 'FAILED'],
  ])
  assert.deepEqual((await at.reconcile()).audit?.differences, [])
})

test('recovery distinguishes a fuel transaction and a sweep with identical bytes', async () => {
  const at = await openFixture()
  const amount = 10n ** 12n
  const fuel = {
    from: [0, 0] as [number, number],
    to: OMNIBUS,
    amount,
    step: ['fuel', 'sweep', at.workspace, 1, 'ETH', 0],
  }
  const sweep = {
    from: [1, 1] as [number, number],
    to: OMNIBUS,
    amount,
    step: ['sweep', at.workspace, 1, 'ETH', 1],
  }
  const [fuelled, swept] = [at.sign('fuel', fuel), at.sign('sweep', sweep)]
  assert.equal(fuelled.unsigned.bytes, swept.unsigned.bytes)
  at.record([1, 2], 'fuel', fuelled, fuel)
  at.record([1, 2], 'sweep', swept, sweep)
  at.mine(fuelled, TANK, OMNIBUS, amount)
  at.mine(swept, DEPOSIT, OMNIBUS, amount)
  assert.deepEqual((await at.reconcile()).unadopted, [])
  await at.work()
  assert.deepEqual((await at.transactions()).map(({ kind, state }) => [kind, state]).sort(), [
    ['FUEL', 'CONFIRMED'],
    ['SWEEP', 'CONFIRMED'],
  ])
  assert.deepEqual((await at.reconcile()).audit?.differences, [])
})

test('a recovered forward belongs to its rule, and its deposits are not forwarded again', async () => {
  const at = await openFixture()
  const rule = randomUUID()
  await database.query(
    `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
       min_amount, daily_cap, destination,
       expires_at, state, request, waiting, created_at)
     select $1, workspace_id, sub_account_id, id, 'ETH', 'ETH', 1, 100, $2,
       now() + interval '1 day', 'ACTIVE', '{}', 3, now() - interval
       '1 day' from wallets where id = $3`,
    [rule, STRANGER, at.walletId],
  )
  const id = randomUUID()
  const forward = {
    from: [1, 0] as [number, number],
    to: STRANGER,
    amount: 10n,
    step: ['forward', rule, id],
    intent: ['forward', rule, id],
    id,
  }
  const made = at.sign('forward', forward)
  at.record([1, 2], 'forward', made, forward)
  at.mine(made, OMNIBUS, STRANGER, 10n)
  await at.reconcile()
  const state = async () =>
    database.one('select waiting::text, ahead::text from forward_rules where id = $1', [rule])
  assert.deepEqual(await state(), { waiting: '0', ahead: '7' })
  const [row] = await at.transactions()
  assert.deepEqual(
    [
      row?.id,
      row?.plan['rule_id'],
      (await database.query('select 1 from forwards where rule_id = $1', [rule])).length,
    ],
    [id, rule, 1],
  )
  for (const [amount, expected] of [
    ['4', { waiting: '0', ahead: '3' }],
    ['9', { waiting: '6', ahead: '0' }],
  ] as const) {
    const deposit = randomUUID()
    await database.query(
      `insert into transactions (id, kind, workspace_id, wallet_id, asset, network, amount,
         fee_asset, source_type, destination_type,
         state, status) values ($1, 'DEPOSIT', $2, $3, 'ETH', 'ETH', $4, 'ETH', 'EXTERNAL',
           'INTERNAL', 'CREDITED', 'confirmed')`,
      [deposit, at.workspaceId, at.walletId, amount],
    )
    await noteIncoming(
      database,
      {
        id: deposit,
        workspace_id: at.workspaceId,
        kind: 'DEPOSIT',
        wallet_id: at.walletId,
        amount,
        created_at: new Date(),
        plan: {},
      } as never,
      new Date(),
    )
    assert.deepEqual(await state(), expected)
  }
})

test('recovery drops an unsigned transaction whose nonce a recovered transaction has used', async () => {
  const at = await openFixture()
  const pay = payOf(at, 'first')
  const made = at.sign('pay', pay)
  at.record([1, 2], 'pay', made, pay)
  at.mine(made, OMNIBUS, STRANGER, pay.amount)
  const other = randomUUID()
  await database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type,
       source_id, destination_type, destination_id, state, status, plan)
     select $1, 'WITHDRAWAL', workspace_id, sub_account_id, id, 'ETH', 'ETH', 1, 'ETH', 'INTERNAL',
       $2, 'EXTERNAL', $3, 'SIGNING',
       'pending', '{"float_taken":"0"}' from wallets where id = $4`,
    [other, OMNIBUS, STRANGER, at.walletId],
  )
  await database.query(
    `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
       fee_max, workspace_id)
       values ($1, $2, 'ETH', 'BUILT', $3, 0, '{"bytes":"00"}', 1,
         (select workspace_id from transactions where id = $2))`,
    [randomUUID(), other, OMNIBUS],
  )
  const report = await at.reconcile()
  assert.deepEqual(
    report.transactions.map(({ id }) => id),
    [pay.id],
  )
  const rows = await database.query<{ state: string; built: string }>(
    `select t.state, c.state built from transactions t
      join chain_transactions c on c.transaction_id = t.id where t.id = $1`,
    [other],
  )
  assert.deepEqual(rows, [{ state: 'FUELING', built: 'VOID' }])
})

test('an unproven report of one node delays no transfer, but a report with signatures does', async () => {
  const at = await openFixture()
  const [forged, real] = [payOf(at, 'forged'), payOf(at, 'real')]
  const other = at.sign('pay', payOf(at, 'other'))
  at.record([3], 'pay', { ...at.sign('pay', forged), signatures: other.signatures }, forged)
  at.record([3], 'pay', at.sign('pay', payOf(at, 'foreign')), payOf(at, 'foreign'), {
    workspace: 'nobody',
  })
  assert.equal(await compareRecords(at.services), null)
  at.record([3], 'pay', at.sign('pay', real), real)
  assert.match((await compareRecords(at.services)) ?? '', /recorded 1 transactions/)
})
