import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { formatAmount, parseAmount } from '@custody/chains'
import { useApi } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'
import { assertExportIsTied, sumsOf as sumsOfExport } from '../../../testing/exported-balances.ts'
import { OPERATIONS, runHistory, type HistoryOwner } from '../../../testing/ledger-histories.ts'
import * as fc from '../../../../../testing/property.ts'
import { PARTS, TANK_PARTS, WALLET_PARTS } from './accounts.ts'
import { readMovements } from './movements.ts'
import { isTyped, MOVEMENT_TYPES, RESERVING } from './types.ts'

/**
 * Statements of random histories: the balance at the beginning of a period plus every movement is
 * the balance at its end, compared with sums over the ledger's postings.
 */
const api = useApi()
before(() => api.started)

const WALLETS = ['ETH', 'SOL', 'USDC_SOL', 'TRX'] as const
const ACCOUNTS = [
  ...WALLETS.map((asset) => ({ asset, account: 'wallet' as const })),
  { asset: 'ETH', account: 'gas_tank' as const },
  { asset: 'TRX', account: 'gas_tank' as const },
]
/** Beginning of all histories, in seconds; each entry is dated up to 10 seconds later. */
const START = 1_700_000_000
const SPAN = 10

async function newOwner(): Promise<HistoryOwner & { user: User }> {
  const user = await api.user(randomUUID())
  const wallets: Record<string, string> = {}
  for (const asset of WALLETS) {
    const id = randomUUID()
    wallets[asset] = id
    await api.database.query(
      `insert into wallets (id, workspace_id, sub_account_id, asset, network)
        values ($1, $2, $3, $4, $5)`,
      [id, user.workspaceId, user.subAccountId, asset, asset === 'USDC_SOL' ? 'SOL' : asset],
    )
  }
  return { user, workspaceId: user.workspaceId, subAccountId: user.subAccountId, wallets }
}

/** Amounts are decimals as texts, as `call` parses them. */
type Parts = Record<(typeof PARTS)[number], string>
interface Movement {
  id: string
  at: string
  type: string
  amount: string
  network_fee: string
  balance: string
  changes: Parts
  tank_fee: string | null
  tank_fee_asset: string | null
  transaction_id: string | null
  hash: string | null
  counterparty: string | null
}
interface Statement {
  opening: Parts & { total: string }
  closing: Parts & { total: string }
  data: Movement[]
  next: string | null
  has_more: boolean
}

const decimalsOf = (asset: string) => api.services.registry.asset(asset)?.decimals ?? 0
const units = (value: string, asset: string): bigint =>
  (value.startsWith('-') ? -1n : 1n) * parseAmount(value.replace('-', ''), decimalsOf(asset))

/** Reads all pages of a statement. */
async function readAll(
  user: User,
  query: Record<string, string>,
  limit: number,
): Promise<Statement> {
  const data: Movement[] = []
  let first: Statement | undefined
  let after: string | null = null
  do {
    const parameters = new URLSearchParams({ ...query, limit: String(limit) })
    if (after !== null) parameters.set('after', after)
    const path = `/dac/v1/statement?${parameters}`
    const { status, body, text }: { status: number; body: Statement; text: string } =
      await call<Statement>(user, 'GET', path)
    assert.equal(status, 200, text)
    first ??= body
    assert.deepEqual([body.opening, body.closing], [first.opening, first.closing])
    assert.equal(body.has_more, body.next !== null)
    data.push(...body.data)
    after = body.next
  } while (after !== null)
  return { ...first, data }
}

/** Sums the ledger's postings of an account until a time, part by part. */
async function sumsOf(
  { workspaceId, wallets }: HistoryOwner,
  { asset, account }: (typeof ACCOUNTS)[number],
  until: number,
): Promise<Record<string, bigint>> {
  const rows = await api.database.query<{ kind: string; sum: string }>(
    `select a.kind, sum(p.amount)::text sum from ledger_postings p
       join ledger_accounts a on a.id = p.account_id join ledger_entries e on e.id = p.entry_id
     where a.workspace_id = $1 and a.asset = $2 and a.wallet_id is not distinct from $3::uuid
       and e.created_at < to_timestamp($4) group by 1`,
    [workspaceId, asset, account === 'wallet' ? wallets[asset] : null, until],
  )
  const parts: Record<string, string> = account === 'wallet' ? WALLET_PARTS : TANK_PARTS
  const sums: Record<string, bigint> = Object.fromEntries(PARTS.map((part) => [part, 0n]))
  for (const { kind, sum } of rows) {
    const part = parts[kind]
    if (part !== undefined) sums[part] = (sums[part] ?? 0n) + BigInt(sum)
  }
  return sums
}

const inUnits = (parts: Parts, asset: string) =>
  Object.fromEntries(PARTS.map((part) => [part, units(parts[part], asset)]))
const total = (parts: Record<string, bigint>) =>
  Object.values(parts).reduce((sum, each) => sum + each, 0n)

/** Dates each entry of a workspace at random, so that their order is not that of their numbers. */
async function dateEntries(workspaceId: string, seconds: readonly number[]): Promise<void> {
  const entries = await api.admin.query<{ id: string }>(
    'select id::text from ledger_entries where workspace_id = $1 order by id',
    [workspaceId],
  )
  await api.admin.query(
    `update ledger_entries e set created_at = to_timestamp($3::int + n.at) from unnest($2::bigint[],
       $4::int[]) n(id, at) where e.workspace_id = $1 and e.id = n.id`,
    [
      workspaceId,
      entries.map(({ id }) => id),
      START,
      entries.map((_, at) => seconds[at % seconds.length] ?? 0),
    ],
  )
}

const NAMES = Object.keys(OPERATIONS)
const operation = fc.record({
  name: fc.constantFrom(...NAMES),
  amount: fc.bigInt(1n, 900_000n),
  fee: fc.bigInt(2n, 900n),
})

/** Compares one statement with the ledger. */
async function assertTied(
  owner: HistoryOwner & { user: User },
  of: (typeof ACCOUNTS)[number],
  period: { from: number; to: number },
  limit: number,
): Promise<Movement[]> {
  const { asset } = of
  const query = { ...of, from: String(period.from), to: String(period.to) }
  const statement = await readAll(owner.user, query, limit)
  const [opening, closing] = [
    await sumsOf(owner, of, period.from),
    await sumsOf(owner, of, period.to),
  ]
  assert.deepEqual(inUnits(statement.opening, asset), opening)
  assert.deepEqual(inUnits(statement.closing, asset), closing)
  assert.equal(units(statement.closing.total, asset), total(closing))
  let balance = total(opening)
  const parts = { ...opening }
  const positions = statement.data.map(({ at, id }) => [Date.parse(at), Number(id)])
  for (const movement of statement.data) {
    const change = units(movement.amount, asset) - units(movement.network_fee, asset)
    const changes = inUnits(movement.changes, asset)
    assert.equal(total(changes), change)
    assert.ok(
      Object.values(changes).some((each) => each !== 0n),
      'a movement changes a part',
    )
    balance += change
    for (const part of PARTS) parts[part] = (parts[part] ?? 0n) + (changes[part] ?? 0n)
    assert.equal(units(movement.balance, asset), balance)
    assert.ok(movement.type !== 'other', 'each movement has a type')
    // What the operator writes off, and not what a deposit repays, belongs to no transaction.
    if (movement.type !== 'written_off') assert.ok(movement.transaction_id !== null)
    assert.ok(MOVEMENT_TYPES.includes(movement.type as never))
  }
  assert.equal(balance, total(closing), 'opening + every movement = closing')
  assert.deepEqual(parts, closing)
  const sorted = [...positions].sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d)
  assert.deepEqual(positions, sorted)
  return statement.data
}

test('opening + every movement = closing for random histories, periods and pages', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(SPAN), { minLength: 1, maxLength: 7 }),
      fc.record({ from: fc.nat(SPAN), length: fc.integer({ min: 1, max: SPAN + 2 }) }),
      fc.integer({ min: 1, max: 7 }),
      async (operations, seconds, { from, length }, limit) => {
        const owner = await newOwner()
        const fees = await runHistory(api.database, owner, operations)
        await dateEntries(owner.workspaceId, seconds)
        const period = { from: START + from, to: START + from + length }
        const whole = { from: 0, to: START + SPAN + 1 }
        const tankFees = new Map<string, bigint>()
        for (const of of ACCOUNTS) {
          await assertTied(owner, of, period, limit)
          const movements = await assertTied(owner, of, whole, 500)
          for (const { type } of movements) seen.add(type)
          const name = of.account === 'wallet' ? of.asset : `tank ${of.asset}`
          const paid = movements.reduce((sum, each) => sum + units(each.network_fee, of.asset), 0n)
          assert.equal(paid, fees.get(name) ?? 0n, `network fees of ${name}`)
          for (const { tank_fee: fee, tank_fee_asset: asset } of movements)
            if (fee !== null && asset !== null)
              tankFees.set(asset, (tankFees.get(asset) ?? 0n) + units(fee, asset))
        }
        // The gas tank also paid the fees of the fuel itself and of its own calls.
        for (const [asset, sum] of tankFees)
          assert.ok(sum > 0n && sum <= (fees.get(`tank ${asset}`) ?? 0n))
      },
    ),
    { numRuns: 25 },
  )
  const unseen = MOVEMENT_TYPES.filter((type) => !seen.has(type) && type !== 'other')
  assert.deepEqual(unseen, [], 'the histories contain every type of movement')
})

test('every kind of entry that the platform posts for a wallet or tank has a type or only reserves', () => {
  const src = join(import.meta.dirname, '../../..', 'src')
  const kinds = new Set<string>()
  for (const file of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(?:ts|sql)$/.test(file) || file.endsWith('.test.ts')) continue
    const text = readFileSync(join(src, file), 'utf8')
    for (const [, kind] of text.matchAll(
      /(?:\bpost\(\s*tx,|\bpostSettled\(\s*tx,\s*row,|ledger_post\(\w+,|ledger_moves\(\w+,)\s*([^,]+),/g,
    ))
      for (const [, name] of kind?.matchAll(/['`]([a-z-]+(?:\$\{step\})?)['`]/g) ?? [])
        kinds.add(name as string)
  }
  const steps = ['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw']
  assert.ok(kinds.delete('staking-${step}'))
  for (const step of steps) kinds.add(`staking-${step}`)
  const own = [...kinds].filter((kind) => !/^(?:venue|prepaid)-/.test(kind))
  assert.ok(own.length >= 28, `only ${own.length} kinds were found`)
  assert.deepEqual(
    own.filter((kind) => isTyped(kind) === RESERVING.has(kind)),
    [],
  )
  const known = [...RESERVING].filter((kind) => !kinds.has(kind))
  assert.deepEqual(known, [], 'reserving kinds that nothing posts')
})

test('lists a payment, a sweep and a fee with their references', async () => {
  const owner = await newOwner()
  const amounts = { amount: 500n, fee: 7n }
  await runHistory(api.database, owner, [
    { name: 'deposit of a token', ...amounts },
    { name: 'sweep that another wallet pays', ...amounts },
    { name: 'withdrawal that another wallet pays', amount: 200n, fee: 5n },
    { name: 'withdrawal that fuel pays', ...amounts },
  ])
  const token = await readAll(owner.user, { asset: 'USDC_SOL' }, 100)
  assert.deepEqual(
    token.data.map(({ type, amount, network_fee, tank_fee }) => [
      type,
      amount,
      network_fee,
      tank_fee,
    ]),
    [
      ['deposit', '0.0005', '0', null],
      ['sweep', '0', '0', null],
      ['withdrawal', '-0.0002', '0', null],
    ],
  )
  assert.ok(
    token.data.every(({ hash, transaction_id }) => hash !== null && hash === transaction_id),
  )
  assert.deepEqual(
    token.data.map(({ counterparty }) => counterparty),
    ['omnibus', 'destination', 'destination'],
  )
  const payer = await readAll(owner.user, { asset: 'SOL' }, 100)
  assert.deepEqual(
    payer.data.map(({ type, transaction_id }) => [type, transaction_id]),
    token.data.slice(1).map(({ transaction_id }) => ['network_fee', transaction_id]),
  )
  const [payment] = (await readAll(owner.user, { asset: 'ETH' }, 100)).data
  assert.deepEqual(
    [payment?.type, payment?.amount, payment?.network_fee, payment?.tank_fee],
    ['withdrawal', '-0.0000000000000005', '0', '0.000000000000000007'],
  )
  assert.equal(payment?.tank_fee_asset, 'ETH')
})

test('reads the same movements of a large account by time', async () => {
  const owner = await newOwner()
  const all = NAMES.map((name, at) => ({ name, amount: BigInt(at) + 10n, fee: 3n }))
  await runHistory(api.database, owner, all)
  await dateEntries(owner.workspaceId, [5, 1, 4, 2, 3])
  const period = { from: new Date((START + 2) * 1000), to: new Date((START + 5) * 1000) }
  let count = 0
  for (const { asset: ticker, account: of } of ACCOUNTS) {
    const asset = api.services.registry.asset(ticker)
    assert.ok(asset)
    const walletId = of === 'wallet' ? (owner.wallets[ticker] ?? null) : null
    const account = { workspaceId: owner.workspaceId, walletId, asset }
    const query = { account, period, after: null, limit: 500 }
    const byAccount = await readMovements(api.database, query)
    assert.deepEqual(await readMovements(api.database, { ...query, small: 0 }), byAccount)
    const after = byAccount[0]?.position ?? null
    const rest = await readMovements(api.database, { ...query, after, small: 0 })
    assert.deepEqual(rest, byAccount.slice(1))
    count += byAccount.length
  }
  assert.ok(count > 20, `only ${count} movements`)
})

test('the CSV export begins with the opening balance and ends with the closing balance', async () => {
  const owner = await newOwner()
  const names = NAMES.map((name, at) => ({ name, amount: BigInt(at) + 10n, fee: 3n }))
  await runHistory(api.database, owner, names)
  await dateEntries(owner.workspaceId, [5, 1, 4, 2, 3])
  for (const of of ACCOUNTS) {
    const query = new URLSearchParams({ ...of, from: String(START + 2), to: String(START + 5) })
    const { status, text } = await call(owner.user, 'GET', `/dac/v1/statement/export?${query}`)
    assert.equal(status, 200, text)
    const lines = text
      .replace(/^\ufeff/, '')
      .trimEnd()
      .split('\r\n')
      .map((line) => line.split(','))
    const [columns = [], ...rows] = lines
    const value = (row: readonly string[] | undefined, name: string) =>
      row?.[columns.indexOf(name)] ?? ''
    const sum = (name: string) =>
      rows.slice(1, -1).reduce((before, row) => before + units(value(row, name), of.asset), 0n)
    assert.deepEqual([value(rows[0], 'type'), value(rows.at(-1), 'type')], ['opening', 'closing'])
    const [opening, closing] = [
      await sumsOf(owner, of, START + 2),
      await sumsOf(owner, of, START + 5),
    ]
    const shown = (amount: bigint) => formatAmount(amount, decimalsOf(of.asset))
    for (const part of PARTS) {
      assert.equal(value(rows[0], part), shown(opening[part] ?? 0n))
      assert.equal(value(rows.at(-1), part), shown(closing[part] ?? 0n))
    }
    assert.equal(total(opening) + sum('amount') - sum('network_fee'), total(closing))
    assert.equal(value(rows.at(-1), 'balance'), shown(total(closing)))
  }
})

test('without an asset, the lines of each asset sum to its balance, for all assets and tanks', async () => {
  const owner = await newOwner()
  const names = NAMES.map((name, at) => ({ name, amount: BigInt(at) + 10n, fee: 3n }))
  await runHistory(api.database, owner, names)
  for (const [at, { asset_name: asset, network }] of api.services.registry.assets.entries()) {
    await api.database.query(
      `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
        on conflict do nothing`,
      [owner.workspaceId, owner.subAccountId, asset, network],
    )
    await api.fund(owner, asset, 10n ** 25n + BigInt(at))
  }
  const lines = await assertExportIsTied(owner.user)
  assert.equal(lines.size, api.services.registry.assets.length)
  assert.ok([...lines.values()].every((count) => count >= 3))
  const { text } = await call(owner.user, 'GET', '/dac/v1/statement/export?account=gas_tank')
  const tanks = sumsOfExport(text)
  for (const of of ACCOUNTS.filter(({ account }) => account === 'gas_tank')) {
    const { moved, closing } = tanks.get(of.asset) ?? assert.fail(of.asset)
    const known = formatAmount(total(await sumsOf(owner, of, 4_000_000_000)), decimalsOf(of.asset))
    assert.equal(moved, closing)
    assert.equal(
      moved,
      parseAmount(known.replace('-', ''), 30) * (known.startsWith('-') ? -1n : 1n),
    )
  }
})

test('times of the export are dates that spreadsheets read', async () => {
  const owner = await newOwner()
  await runHistory(api.database, owner, [{ name: 'deposit', amount: 5n, fee: 2n }])
  const { text } = await call(owner.user, 'GET', '/dac/v1/statement/export?asset=ETH')
  const [movement] = (await readAll(owner.user, { asset: 'ETH' }, 10)).data
  const at = movement?.at ?? assert.fail('no movement')
  assert.equal(text.split('\r\n')[2]?.split(',')[0], at.slice(0, 19).replace('T', ' '))
  assert.match(at, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
})

test('a statement contains nothing of another workspace', async () => {
  const [first, second] = [await newOwner(), await newOwner()]
  await runHistory(api.database, first, [{ name: 'drain', amount: 5n, fee: 2n }])
  for (const of of ACCOUNTS) {
    const { opening, closing, data } = await readAll(second.user, of, 100)
    assert.deepEqual([data, opening.total, closing.total], [[], '0', '0'])
  }
})

const REFUSED: readonly [Record<string, string>, number, string][] = [
  [{ asset: 'NOPE' }, 400, 'asset'],
  [{ asset: 'BTC' }, 400, 'asset'],
  [{ asset: 'USDC_SOL', account: 'gas_tank' }, 400, 'asset'],
  [{ asset: 'SOL', account: 'gas_tank' }, 400, 'asset'],
  [{ asset: 'ETH', account: 'suspense' }, 400, 'account'],
  [{ asset: 'ETH', from: '-1' }, 400, 'from'],
  [{ asset: 'ETH', from: '1.5' }, 400, 'from'],
  [{ asset: 'ETH', to: 'now' }, 400, 'to'],
  [{ asset: 'ETH', from: '10', to: '10' }, 400, 'to'],
  [{ asset: 'ETH', from: '2147483647' }, 400, 'to'],
  [{ asset: 'ETH', page: '2' }, 400, 'page'],
]

test('refuses a bad query and names its field', async () => {
  const { user } = await newOwner()
  const paged: typeof REFUSED = [
    [{ asset: 'ETH', after: '5' }, 400, 'after'],
    [{ asset: 'ETH', limit: '501' }, 400, 'limit'],
  ]
  const { status, text } = await call(user, 'GET', '/dac/v1/statement')
  assert.equal(status, 400, text)
  assert.match(text, /asset/)
  for (const path of ['/dac/v1/statement', '/dac/v1/statement/export']) {
    for (const [query, expected, field] of [...REFUSED, ...paged]) {
      const { status, text } = await call(user, 'GET', `${path}?${new URLSearchParams(query)}`)
      assert.equal(status, expected, `${JSON.stringify(query)}: ${text}`)
      assert.match(text, new RegExp(`\\b${field}\\b`))
    }
  }
})
