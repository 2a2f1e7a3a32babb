import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, before, test } from 'node:test'
import type { Queryable, EmittedEvent } from '../database/pool.ts'
import { emit, lockedBalance, post, type AccountKind, type Posting } from './post.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import * as fc from '../../../../../testing/property.ts'

/**
 * Compares the ledger with a second implementation of its rules, for random entries in random
 * order, accepted or refused.
 */
const events: EmittedEvent[] = []
const installation = useDatabase({ migrated: true, onEvent: (event) => events.push(event) })
const database = () => installation.get()

type Account = Required<Omit<Posting, 'amount'>>
const places: { workspace: string; wallet: string | null }[] = []
before(async () => {
  await installation.started
  for (const name of ['first', 'second']) {
    const [workspace, owner, wallet] = [randomUUID(), randomUUID(), randomUUID()]
    await database().query('insert into workspaces (id, name) values ($1, $2)', [workspace, name])
    await database().query(
      `insert into sub_accounts (id, workspace_id, name, path_index) values ($1, $2, 'main', 1)`,
      [owner, workspace],
    )
    await database().query(
      `insert into wallets (id, workspace_id, sub_account_id, asset, network)
        values ($1, $2, $3, 'ETH', 'ETH')`,
      [wallet, workspace, owner],
    )
    places.push({ workspace, wallet: null }, { workspace, wallet })
  }
})

const emptied = () =>
  installation
    .admin()
    .query(
      'truncate ledger_postings, ledger_entries, ledger_accounts, events restart identity cascade',
    )
afterEach(emptied)

/** These accounts may be negative, because they represent external parties. */
const UNBOUND: readonly AccountKind[] = ['chain', 'fees']
const account = fc.record({
  place: fc.nat(1),
  asset: fc.constantFrom('ETH', 'USDT_ETH'),
  kind: fc.constantFrom<AccountKind>('available', 'reserved', 'chain'),
  address: fc.constantFrom(null, '0xa', '0xb'),
})
const amount = fc.constantFrom(-3n, -1n, 0n, 1n, 2n, 3n)
/** Most entries balance; some have all their postings in one account. */
const entry = fc.record({
  home: fc.nat(1),
  kind: fc.constantFrom('reserve', 'settle'),
  reference: fc.nat(30),
  overdraw: fc.boolean(),
  isBalanced: fc.integer({ min: 0, max: 5 }),
  postings: fc.array(fc.record({ account, amount }), { minLength: 1, maxLength: 4 }),
  outside: account,
})

const nameOf = ({ workspace, wallet, asset, kind, address }: Account) =>
  `${workspace} ${wallet} ${asset} ${kind} ${address}`

/** The expected state of the ledger. */
class Model {
  readonly balances = new Map<string, { account: Account; balance: bigint; overdrawn: boolean }>()
  readonly posted = new Set<string>()

  /**
   * Applies an entry to the expected state.
   * @returns the expected result of `post`, or the error that it must throw
   */
  post(
    kind: string,
    reference: string,
    postings: readonly (Account & { amount: bigint })[],
    overdraw: boolean,
  ): boolean | RegExp {
    const name = `${postings[0]?.workspace} ${kind} ${reference}`
    if (this.posted.has(name)) return false
    const sums = new Map<string, bigint>()
    const moved = new Map<string, { account: Account; amount: bigint }>()
    for (const { amount: by, ...each } of postings) {
      sums.set(each.asset, (sums.get(each.asset) ?? 0n) + by)
      moved.set(nameOf(each), {
        account: each,
        amount: (moved.get(nameOf(each))?.amount ?? 0n) + by,
      })
    }
    const isUnbalanced = [...sums.values()].some((sum) => sum !== 0n)
    const after = [...moved]
      .filter(([, { amount: by }]) => by !== 0n)
      .map(([name, { account: each, amount: by }]) => {
        const account = this.balances.get(name)
        const balance = (account?.balance ?? 0n) + by
        return [
          name,
          {
            account: each,
            balance,
            overdrawn: ((account?.overdrawn ?? false) || overdraw) && balance < 0n,
          },
        ] as const
      })
    const isBelow = after.some(
      ([
        ,
        {
          account: { kind: what },
          balance,
          overdrawn,
        },
      ]) => balance < 0n && !overdrawn && !UNBOUND.includes(what),
    )
    // If both errors apply, the order of the accounts determines which one is reported.
    if (isUnbalanced && isBelow) return /does not balance|ledger_not_negative/
    if (isUnbalanced) return /does not balance/
    if (isBelow) return /ledger_not_negative/
    for (const [place, each] of after) this.balances.set(place, each)
    this.posted.add(name)
    return true
  }
}

test('every entry balances, is stored once, and overdraws accounts only if permitted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { minLength: 4, maxLength: 25 }), async (entries) => {
      const model = new Model()
      const run = randomUUID()
      for (const each of entries) {
        const at = ({ place, ...rest }: typeof each.outside): Account => ({
          ...(places[each.home * 2 + place] as (typeof places)[0]),
          ...rest,
        })
        const postings: (Account & { amount: bigint })[] = each.postings.map((one) => ({
          ...at(one.account),
          amount: one.amount,
        }))
        if (each.isBalanced > 0) {
          for (const asset of ['ETH', 'USDT_ETH'] as const) {
            const sum = postings
              .filter((one) => one.asset === asset)
              .reduce((total, one) => total + one.amount, 0n)
            postings.push({ ...at({ ...each.outside, asset, kind: 'chain' }), amount: -sum })
          }
        }
        const [reference, expected] = [
          `${run} ${each.reference}`,
          model.post(each.kind, `${run} ${each.reference}`, postings, each.overdraw),
        ]
        const done = post(
          database(),
          each.kind,
          reference,
          postings,
          each.overdraw ? { overdraw: true } : {},
        )
        if (expected instanceof RegExp) await assert.rejects(done, expected)
        else assert.equal(await done, expected)
      }
      const rows = await database().query<{
        name: string
        balance: string
        overdrawn: boolean
        posted: string
      }>(
        `select concat_ws(' ', workspace_id, coalesce(wallet_id::text, 'null'), asset, kind,
          coalesce(address, 'null')) name, balance::text, overdrawn,
         (select coalesce(sum(p.amount), 0)::text from ledger_postings p
           where p.account_id = a.id) posted
       from ledger_accounts a where balance <> 0 or overdrawn`,
      )
      const shown = [...model.balances]
        .filter(([, { balance }]) => balance !== 0n)
        .map(([name, { balance, overdrawn }]) => ({
          name,
          balance: `${balance}`,
          overdrawn,
          posted: `${balance}`,
        }))
      const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
      assert.deepEqual(rows.sort(byName), shown.sort(byName))
      assert.deepEqual(
        await database().query('select 1 from ledger_postings where amount = 0'),
        [],
        'what moves nothing is not written',
      )
      for (const { account: each, balance } of model.balances.values())
        assert.equal(await lockedBalance(database(), each), balance)
      await emptied()
    }),
    { numRuns: 40, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true },
  )
})

test('concurrent requests create each account once, and every distinct key is its own account', async () => {
  const forms = places.flatMap(({ workspace, wallet }) =>
    ['ETH', 'USDT_ETH'].flatMap((asset) =>
      (['available', 'chain'] as const).flatMap((kind) =>
        [null, '0xa', '0xb'].map((address) => ({ workspace, wallet, asset, kind, address })),
      ),
    ),
  )
  const ask = ({ workspace, wallet, asset, kind, address }: Account) =>
    database().one<{ id: string }>('select ledger_account($1, $2, $3, $4, $5)::text id', [
      workspace,
      wallet,
      asset,
      kind,
      address,
    ])
  const numbers = () =>
    database().one(
      `select last_value from pg_sequences where sequencename = 'ledger_accounts_id_seq'`,
    )
  const ids = await Promise.all([...forms, ...forms].map(ask))
  const taken = await numbers()
  for (const form of forms) await ask(form)
  assert.deepEqual(await numbers(), taken, 'who asks for one that is there writes nothing')
  assert.equal(new Set(ids.slice(0, forms.length).map((each) => each?.id)).size, forms.length)
  assert.deepEqual(ids.slice(forms.length), ids.slice(0, forms.length))
  assert.equal((await database().query('select 1 from ledger_accounts')).length, forms.length)
  assert.equal(await lockedBalance(database(), forms[0] as Account), 0n)
})

test('a request waits for the transaction that creates the same account, then uses that account', async () => {
  const { workspace } = places[0] as { workspace: string }
  const ask = (on: Pick<Queryable, 'one'>) =>
    on.one<{ id: string }>(`select ledger_account($1, null, 'ETH', 'available', '0xa')::text id`, [
      workspace,
    ])
  const [waits, first] = await database().transaction(async (tx) => {
    const made = await ask(tx)
    const pending = {
      ended: false,
      answer: ask(database()).finally(() => {
        pending.ended = true
      }),
    }
    const isWaiting = async () =>
      (
        await database().query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock'
            and datname = current_database()
            and query like '%ledger_account(%'`,
        )
      ).length > 0
    while (!pending.ended && !(await isWaiting()))
      await new Promise((resolve) => {
        setTimeout(resolve, 10)
      })
    return [pending, made] as const
  })
  assert.ok(first)
  assert.deepEqual(await waits.answer, first)
})

test('a wallet can send its balance above the chain’s reserve, and reading it changes nothing', async () => {
  const { workspace, wallet } = places[1] as { workspace: string; wallet: string }
  const own = { workspace, wallet, asset: 'ETH', kind: 'available', address: null } as const
  await post(database(), 'deposit', 'one', [
    { ...own, amount: 10n },
    { ...own, kind: 'chain', address: '0xa', amount: -10n },
  ])
  const can = async (total: bigint, reserve: bigint | null) =>
    (
      await database().one<{ can: boolean }>('select spendable($1, $2, $3, $4, $5) can', [
        workspace,
        wallet,
        'ETH',
        total.toString(),
        reserve?.toString() ?? null,
      ])
    )?.can
  assert.deepEqual(
    await Promise.all([can(10n, null), can(10n, 0n), can(11n, null), can(10n, 1n), can(9n, 1n)]),
    [true, true, false, false, true],
  )
  const other = await database().one<{ can: boolean }>('select spendable($1, $2, $3, 1, 0) can', [
    workspace,
    wallet,
    'USDT_ETH',
  ])
  assert.equal(other?.can, false)
  await database().transaction(async (tx) => {
    await tx.query('select spendable($1, $2, $3, 1, 0)', [workspace, wallet, 'ETH'])
    const free = await database().query(
      `select 1 from ledger_accounts where wallet_id = $1 and asset = $2 and kind = $3
        for update skip locked`,
      [wallet, 'ETH', 'available'],
    )
    assert.deepEqual(free, [], 'nobody else takes of it meanwhile')
  })
})

test('an entry without postings succeeds, a zero posting creates no account', async () => {
  const { workspace, wallet } = places[1] as { workspace: string; wallet: string }
  const own = { workspace, wallet, asset: 'ETH', kind: 'available', address: null } as const
  assert.equal(await post(database(), 'settle', 'without postings', []), true)
  assert.deepEqual(await database().query('select 1 from ledger_entries'), [])
  assert.equal(await post(database(), 'settle', 'of nothing', [{ ...own, amount: 0n }]), true)
  assert.deepEqual(await database().query('select 1 from ledger_accounts'), [])
  assert.equal(await lockedBalance(database(), own), 0n)
})

test('an event is stored with its change, and emitted once after the commit', async () => {
  const { workspace } = places[0] as { workspace: string }
  const main = await database().one<{ id: string }>(
    'select id from sub_accounts where workspace_id = $1',
    [workspace],
  )
  const owner = main?.id as string
  const send = (type: 'transaction.created' | 'transaction.updated', subAccount: string | null) =>
    database().transaction(async (tx) => {
      await emit(tx, workspace, subAccount, type, `{"of":"${subAccount}"}`)
      if (subAccount === null) throw new Error('nothing of it is done')
    })
  events.splice(0)
  await assert.rejects(send('transaction.updated', null), /nothing of it is done/)
  await send('transaction.created', owner)
  const written = await database().query(
    'select workspace_id, sub_account_id, type, payload from events where workspace_id = $1',
    [workspace],
  )
  assert.deepEqual(written, [
    {
      workspace_id: workspace,
      sub_account_id: owner,
      type: 'transaction.created',
      payload: { of: owner },
    },
  ])
  assert.deepEqual(events, [
    { type: 'transaction.created', workspace, payload: `{"of":"${owner}"}` },
  ])
})

test('an entry belongs to one workspace, and foreign postings, wallets and parents are refused', async () => {
  const [first, , second] = places as [(typeof places)[0], (typeof places)[0], (typeof places)[0]]
  const wallet = places[1]?.wallet as string
  const of = (place: typeof first, amount: bigint): Posting => ({
    workspace: place.workspace,
    asset: 'ETH',
    kind: 'chain',
    amount,
  })
  await assert.rejects(
    post(database(), 'settle', 'of two', [of(first, 1n), of(second, -1n)]),
    /has postings of two workspaces/,
  )
  const postings = JSON.stringify([
    { wallet, asset: 'ETH', kind: 'available', amount: '1' },
    { asset: 'ETH', kind: 'chain', amount: '-1' },
  ])
  await assert.rejects(
    database().query('select ledger_post($1, $2, $3, $4)', [
      second.workspace,
      'settle',
      'of another',
      postings,
    ]),
    /ledger_accounts_wallet/,
  )
  await assert.rejects(
    database().query(
      `insert into transactions (id, kind, workspace_id, wallet_id, asset, network, amount,
        fee_asset, source_type, destination_type, state, status)
     values (gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'ETH', 'ETH', 1, 'ETH', 'X', 'X', 'CREATED',
       'pending')`,
      [second.workspace, wallet],
    ),
    /transactions_wallet/,
  )
})
