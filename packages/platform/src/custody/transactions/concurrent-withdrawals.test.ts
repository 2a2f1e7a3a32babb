import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { Withdrawals } from './write-withdrawal.ts'
import { setWallet } from '../../server/operator/wallets.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer, type User } from '../../../testing/harness.ts'

/**
 * Tests that one commit stores several withdrawals of a workspace. Each withdrawal has the same
 * rows as if it were stored alone, or is not stored.
 */
const api = useApi()
before(() => api.started)

const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const COINS = 1_000_000_000n

type RequestBody = Record<string, unknown>
interface Caller {
  user: User
  wallet: string
  workspace: string
  send(amount: string, more?: RequestBody): ReturnType<typeof transfer>
}

const transfer = (user: User, amount: string, more: RequestBody = {}) =>
  call<Transfer & Problem>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', amount, TO, more),
  )

/**
 * Creates `count` sub-accounts of one workspace with ten BTC each. Each has already sent one
 * transfer.
 */
async function callers(count: number): Promise<Caller[]> {
  const workspace = randomUUID()
  const all: Caller[] = []
  for (let n = 0; n < count; n++) {
    const user = await api.user(workspace, { subAccount: `sub-${n}` })
    const { id: wallet } = (
      await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
    ).body
    await api.fund(user, 'BTC', COINS)
    all.push({
      user,
      wallet,
      workspace: user.workspaceId,
      send: (amount, more) => transfer(user, amount, more),
    })
  }
  await api.database.query(`select prepaid_adjust($1, $2, 1000000000, 0)`, [
    all[0]?.workspace,
    randomUUID(),
  ])
  for (const { send } of all) assert.equal((await send('0.1')).status, 200)
  return all
}

/** Returns the arguments that a requested transfer passes to `create_withdrawal`. */
async function bodyOf(one: Caller): Promise<RequestBody> {
  const { withdrawals } = api.services
  let noted: RequestBody = {}
  const noting = { write: (of: string, what: RequestBody) => withdrawals.write(of, (noted = what)) }
  Object.assign(api.services, { withdrawals: noting })
  await one
    .send('0.1', { memo: 'rent' })
    .finally(() => Object.assign(api.services, { withdrawals }))
  return noted
}

/** Returns all rows of a withdrawal, without the values that differ between any two withdrawals. */
async function rowsOf(id: string): Promise<unknown> {
  const own = (row: RequestBody) =>
    JSON.parse(JSON.stringify(row).replaceAll(id, 'ID')) as RequestBody
  const rows = async (sql: string) => (await api.database.query(sql, [id])).map(own)
  return {
    transaction: await rows(
      `select t.*, null created_at, null updated_at, null next_run_at, null sequence_id
        from transactions t where id = $1::uuid`,
    ),
    states: await rows(
      `select state, reason from transaction_states where transaction_id = $1::uuid`,
    ),
    postings: await rows(
      `select e.kind, e.reference, a.kind account, a.asset, p.amount::text, a.overdrawn
         from ledger_entries e
         left join ledger_postings p on p.workspace_id = e.workspace_id and p.entry_id = e.id
         left join ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id
       where e.reference = $1 order by 1, 3`,
    ),
    events: await rows(
      `select type, sub_account_id, payload - 'created_at' payload from events
        where payload->>'id' = $1`,
    ),
    keys: await rows(
      `select wallet_id, payload_hash, response from idempotency where transaction_id = $1::uuid`,
    ),
  }
}

const balances = async (workspace: string) =>
  new Map(
    (
      await api.database.query<{ name: string; balance: string }>(
        `select coalesce(wallet_id::text, '') || ' ' || kind "name", balance::text
          from ledger_accounts where workspace_id = $1`,
        [workspace],
      )
    ).map(({ name, balance }) => [name, BigInt(balance)]),
  )

/**
 * Asserts that each account equals the sum of its postings and that each ledger entry is balanced.
 */
async function assertBooks(workspace: string): Promise<void> {
  assert.deepEqual(
    await api.database.query(
      `select a.id from ledger_accounts a where a.workspace_id = $1
       and a.balance <> (
         select coalesce(sum(amount), 0) from ledger_postings p
           where p.workspace_id = a.workspace_id and p.account_id = a.id)`,
      [workspace],
    ),
    [],
  )
  assert.deepEqual(
    await api.database.query(
      `select entry_id from ledger_postings where workspace_id = $1 group by entry_id
        having sum(amount) <> 0`,
      [workspace],
    ),
    [],
  )
}

const many = async (workspace: string, all: readonly RequestBody[]) =>
  (
    await api.database.one<{ ids: string[] }>('select write_withdrawals($1, $2) ids', [
      workspace,
      JSON.stringify(all),
    ])
  )?.ids as string[]

test('batched withdrawals write the same rows as single ones, with and without a platform fee', async () => {
  const [one, two] = (await callers(2)) as [Caller, Caller]
  for (const fee of ['0', '500']) {
    const of: RequestBody = { ...(await bodyOf(one)), platform_fee: fee }
    const other: RequestBody = { ...(await bodyOf(two)), platform_fee: fee }
    const make = (from: RequestBody): RequestBody & { id: string } => {
      const id = randomUUID()
      return { ...from, id, sequence_id: id, response: JSON.stringify({ id, said: 'so' }) }
    }
    const alone = make(of)
    await api.database.query('select create_withdrawal($1)', [JSON.stringify(alone)])
    const before = await balances(one.workspace)
    const together = [make(of), make(other), make(of), { ...make(of), sequence_id: null }]
    assert.deepEqual(
      await many(one.workspace, together),
      together.map(({ id }) => id),
    )
    const expected = (await rowsOf(alone.id)) as { keys: unknown[] }
    assert.equal(expected.keys.length, 1)
    for (const { id, sequence_id: key, ...rest } of together) {
      if (rest['wallet_id'] !== one.wallet) continue
      assert.deepEqual(await rowsOf(id), key === null ? { ...expected, keys: [] } : expected)
    }
    const after = await balances(one.workspace)
    const names = [
      `${one.wallet} available`,
      `${one.wallet} reserved`,
      `${two.wallet} reserved`,
      ' prepaid',
      ' prepaid_reserved',
    ]
    const moved = names.map((name) => (after.get(name) as bigint) - (before.get(name) as bigint))
    const each = BigInt(String(of['amount'])) + BigInt(String(of['fee_reserve']))
    assert.deepEqual(moved, [-3n * each, 3n * each, each, -4n * BigInt(fee), 4n * BigInt(fee)])
    await assertBooks(one.workspace)
  }
})

test('a refused withdrawal is left out of the batch, and its idempotency key stays unused', async () => {
  const [one, two, three, four] = (await callers(4)) as [Caller, Caller, Caller, Caller]
  const base = {
    one: await bodyOf(one),
    two: await bodyOf(two),
    three: await bodyOf(three),
    four: await bodyOf(four),
  }
  const make = (from: RequestBody, more: RequestBody = {}) => {
    const id = randomUUID()
    return { ...from, id, sequence_id: id, response: '{}', ...more }
  }
  const existing = make(base.one)
  assert.deepEqual(await many(one.workspace, [existing]), [existing.id])
  await setWallet(api.services, { id: three.wallet, status: 'inactive' })
  const fits = make(base.one)
  // There are enough requests that sorting by key alone would change their order.
  const twice = Array.from({ length: 20 }, () => make(base.one, { sequence_id: fits.sequence_id }))
  const again = make(base.one, { sequence_id: existing.sequence_id })
  const much = make(base.two, { amount: (COINS * 2n).toString() })
  // Together with the previous withdrawal this one exceeds the balance, so the batch leaves both
  // out. Each is then decided by its own call.
  const beside = make(base.two)
  const inactive = make(base.three)
  const held = make(base.four)
  let ids: string[] = []
  await api.database.transaction(async (tx) => {
    await tx.query(
      `select 1 from ledger_accounts where wallet_id = $1 and kind = 'reserved' for update`,
      [four.wallet],
    )
    ids = await many(one.workspace, [again, fits, ...twice, much, beside, inactive, held])
  })
  assert.deepEqual(ids, [fits.id])
  const keys = async (all: readonly { id: string }[]) =>
    (
      await api.database.query('select 1 from idempotency where transaction_id = any($1)', [
        all.map(({ id }) => id),
      ])
    ).length
  const left = [again, ...twice, much, beside, inactive, held]
  assert.equal(await keys(left), 0)
  assert.deepEqual(
    await api.database.query('select 1 from transactions where id = any($1)', [
      left.map(({ id }) => id),
    ]),
    [],
  )
  assert.deepEqual(await many(one.workspace, [much, inactive]), [], 'and nothing else is written')
  assert.deepEqual(await many(one.workspace, [held, beside]), [held.id, beside.id])
  await assertBooks(one.workspace)
})

test('an account overdrawn by a reorganisation may be refilled in steps, and not overdrawn again', async () => {
  const [{ workspace, wallet }] = (await callers(1)) as [Caller]
  const accounts = async () =>
    Object.fromEntries(
      (
        await api.database.query<{ kind: string; id: string; balance: string; overdrawn: boolean }>(
          `select kind, id::text, balance::text, overdrawn from ledger_accounts
            where wallet_id = $1`,
          [wallet],
        )
      ).map((row) => [row.kind, row]),
    )
  const { available, reserved } = await accounts()
  const move = (amount: string) =>
    api.database.query('select ledger_moves($1, $2, $3, $4, $5, $6)', [
      workspace,
      'reserve',
      [randomUUID()],
      [available?.id],
      [reserved?.id],
      [amount],
    ])
  const gone = (BigInt(reserved?.balance ?? '0') + 5n).toString()
  await api.database.query('select ledger_post($1, $2, $3, $4, true)', [
    workspace,
    'reorg',
    randomUUID(),
    JSON.stringify([
      { wallet, asset: 'BTC', kind: 'reserved', amount: `-${gone}` },
      { wallet, asset: 'BTC', kind: 'available', amount: gone },
    ]),
  ])
  for (const [amount, balance, overdrawn] of [
    ['3', '-2', true],
    ['1', '-1', true],
    ['1', '0', false],
  ] as const) {
    await move(amount)
    const after = (await accounts())['reserved']
    assert.deepEqual([after?.balance, after?.overdrawn], [balance, overdrawn])
  }
  await assert.rejects(move('-1'), { code: '23514' }, 'it is not marked any more')
  await assertBooks(workspace)
})

test("a wallet's whole balance above the reserve can be sent, and one unit more is refused", async () => {
  for (const stays of [7n, null]) {
    const [one] = (await callers(1)) as [Caller]
    const from = await bodyOf(one)
    const has = (await balances(one.workspace)).get(`${one.wallet} available`) as bigint
    const fee = BigInt(String(from['fee_reserve']))
    const two = (both: bigint) =>
      [both / 2n, both - both / 2n].map((total) => {
        const id = randomUUID()
        return {
          ...from,
          id,
          sequence_id: id,
          response: '{}',
          amount: (total - fee).toString(),
          chain_reserve: stays?.toString() ?? null,
        }
      })
    const free = has - (stays ?? 0n)
    const before = await balances(one.workspace)
    assert.deepEqual(
      await many(one.workspace, two(free + 1n)),
      [],
      'each alone could be paid, and both cannot',
    )
    assert.deepEqual(await balances(one.workspace), before)
    const all = two(free)
    assert.deepEqual(
      await many(one.workspace, all),
      all.map(({ id }) => id),
    )
    assert.equal((await balances(one.workspace)).get(`${one.wallet} available`), stays ?? 0n)
    await assertBooks(one.workspace)
  }
})

test('a prepaid account can be charged to zero, and reports being empty only after a charge', async () => {
  const [one] = (await callers(1)) as [Caller]
  const from = await bodyOf(one)
  const eventTypes = async () =>
    (
      await api.database.query<{ type: string }>(
        `select type from events where workspace_id = $1 and type like 'prepaid_fee.%' order by id`,
        [one.workspace],
      )
    ).map(({ type }) => type)
  const write = async (fee: bigint) => {
    const id = randomUUID()
    assert.deepEqual(
      await many(one.workspace, [
        { ...from, id, sequence_id: id, response: '{}', platform_fee: fee.toString() },
      ]),
      [id],
    )
  }
  const prepaid = async () => (await balances(one.workspace)).get(' prepaid') as bigint
  const forget = () =>
    api.database.query('update prepaid_accounts set told = 0 where workspace_id = $1', [
      one.workspace,
    ])
  await write((await prepaid()) - 1n)
  await forget()
  const low = await eventTypes()
  await write(0n)
  assert.deepEqual(
    await eventTypes(),
    low,
    'a transfer without a fee emits no event of the prepaid account',
  )
  await write(1n)
  assert.equal(await prepaid(), 0n)
  assert.deepEqual(await eventTypes(), [...low, 'prepaid_fee.empty'])
})

test('stores nothing if the fee tier changed or the prepaid balance cannot pay for all', async () => {
  const [one] = (await callers(1)) as [Caller]
  const from = await bodyOf(one)
  const make = (more: RequestBody) => {
    const id = randomUUID()
    return { ...from, id, sequence_id: id, response: '{}', ...more }
  }
  const before = await balances(one.workspace)
  await assert.rejects(many(one.workspace, [make({}), make({ prepaid_tier: 'ANOTHER' })]), {
    code: 'CU007',
  })
  const half = ((before.get(' prepaid') as bigint) / 2n + 1n).toString()
  await assert.rejects(
    many(one.workspace, [make({ platform_fee: half }), make({ platform_fee: half })]),
    { code: 'CU001' },
  )
  assert.deepEqual(await balances(one.workspace), before)
  // The balance covers one of the two fees: the first is stored, and the second is refused with the
  // remaining balance.
  const withdrawals = new Withdrawals(api.database)
  const [first, second] = await Promise.allSettled(
    [half, half].map((fee) => withdrawals.write(one.wallet, make({ platform_fee: fee }))),
  )
  assert.deepEqual([first?.status, second?.status].sort(), ['fulfilled', 'rejected'])
  const refused = [first, second].find(
    (each) => each?.status === 'rejected',
  ) as PromiseRejectedResult
  assert.deepEqual((refused.reason as { code: string }).code, 'CU001')
  await assertBooks(one.workspace)
})

test('withdrawals of all wallets share one call, and a refused one delays only its own wallet', async () => {
  const [one, two] = (await callers(2)) as [Caller, Caller]
  const base = { one: await bodyOf(one), two: await bodyOf(two) }
  const make = (from: RequestBody, more: RequestBody = {}) => ({
    ...from,
    id: randomUUID(),
    sequence_id: null,
    response: '{}',
    ...more,
  })
  let calls: string[] = []
  let alone = Promise.resolve()
  let fails: Error | null = null
  const database = {
    one: async (sql: string, values: unknown[]) => {
      calls.push(/select (\w+)/.exec(sql)?.[1] as string)
      if (fails) throw fails
      if (sql.includes('create_withdrawal')) await alone
      return await api.database.one(sql, values)
    },
  } as unknown as typeof api.database
  const withdrawals = new Withdrawals(database)
  const write = (from: 'one' | 'two', more?: RequestBody) =>
    withdrawals.write({ one, two }[from].wallet, make(base[from], more))
  await Promise.all([write('one'), write('two'), write('one'), write('two')])
  assert.deepEqual(calls, ['write_withdrawals'])
  calls = []
  const held = Promise.withResolvers<void>()
  alone = held.promise
  const much = write('one', { amount: (COINS * 2n).toString() })
  while (!calls.includes('create_withdrawal')) await new Promise(setImmediate)
  const behind = write('one')
  await write('two')
  assert.deepEqual(
    calls,
    ['write_withdrawals', 'create_withdrawal', 'write_withdrawals'],
    'the other wallet waits for neither',
  )
  held.resolve()
  await assert.rejects(much, { code: 'CU003' })
  assert.deepEqual(await behind, { replayed: false })
  assert.deepEqual(calls.slice(3), ['create_withdrawal'])
  // A withdrawal with fields other than coins and a verifiable fee is stored by a separate call.
  for (const more of [
    { platform_fee: null, prepaid_tier: null },
    { prepaid_tier: null },
    { platform_fee: null },
    { invoice_id: randomUUID() },
  ]) {
    calls = []
    await write('one', more).catch((error: unknown) => assert.ok((error as { code?: string }).code))
    assert.deepEqual(calls, ['create_withdrawal'], JSON.stringify(more))
  }
  // A transient error is reported immediately. After any other error of the batch, each withdrawal
  // is stored by its own call, which reports its own error.
  for (const [code, expected] of [
    ['40001', ['write_withdrawals']],
    ['22000', ['write_withdrawals', 'create_withdrawal']],
  ] as const) {
    calls = []
    fails = Object.assign(new Error('it was refused'), { code })
    await assert.rejects(write('one'), { code })
    assert.deepEqual(calls, expected)
  }
  await assertBooks(one.workspace)
})

test('under any concurrency, keys are used once and no wallet is overdrawn', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({ from: fc.nat(2), coins: fc.constantFrom('0.1', '0.3', '4'), key: fc.nat(5) }),
        { minLength: 8, maxLength: 30 },
      ),
      async (requests) => {
        const all = await callers(3)
        const answers = await Promise.all(
          requests.map(({ from, coins, key }) =>
            (all[from] as Caller).send(coins, { sequence_id: `key-${key}` }),
          ),
        )
        const workspace = (all[0] as Caller).workspace
        const made = await api.database.query<{
          id: string
          wallet_id: string
          sequence_id: string
          total: string
        }>(
          `select id, wallet_id, sequence_id, (amount + (plan->>'fee_reserve')::numeric)::text total
            from transactions
         where workspace_id = $1 and kind = 'WITHDRAWAL' and sequence_id is not null`,
          [workspace],
        )
        const byKey = new Map(made.map((row) => [`${row.wallet_id} ${row.sequence_id}`, row]))
        assert.equal(byKey.size, made.length, 'a key pays once')
        for (const [n, answer] of answers.entries()) {
          const { from, key } = requests[n] as (typeof requests)[number]
          const row = byKey.get(`${(all[from] as Caller).wallet} key-${key}`)
          if (answer.status === 200) assert.equal(answer.body.id, row?.id)
          else
            assert.deepEqual(
              [answer.status, answer.body.code],
              [400, 'INSUFFICIENT_BALANCE'],
              answer.text,
            )
        }
        await assertBooks(workspace)
        for (const { wallet } of all) {
          const left = (await balances(workspace)).get(`${wallet} available`) as bigint
          assert.ok(left >= 0n)
        }
      },
    ),
    { numRuns: 8 },
  )
})
