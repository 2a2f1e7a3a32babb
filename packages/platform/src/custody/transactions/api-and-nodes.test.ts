import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { evm, OMNIBUS_INDEX, pathOf, type Asset } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import * as fc from '../../../../../testing/property.ts'
import { endRules } from '../auto-forwarding/end-rules.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { runStep } from '../../core/engine/run.ts'
import {
  closeApi,
  create,
  database,
  DESTINATIONS,
  FEE,
  judged,
  jsonOf,
  network,
  openApi,
  own,
  registry,
  send,
  services,
  subAccountId,
  transferOf,
} from '../../../testing/api-fixture.ts'
import { PUBLIC_KEY } from '../../../testing/harness.ts'

/**
 * Tests that the nodes accept every request that the API answers with 200. If the nodes refuse a
 * transfer anyway, it ends as `failed` and its amount is released.
 */
before(openApi)
after(closeApi)

/**
 * Generates texts with lengths around every limit, from characters of one, two and several UTF-16
 * units.
 */
const long = (most: number) =>
  fc
    .tuple(
      fc.constantFrom('a', 'é', '😀', '👩‍👩‍👧', '\u0000', '\ud800', ' '),
      fc.oneof(
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: most - 2, max: most + 2 }),
        fc.constantFrom(129, 256, 257, 600, 1025),
      ),
    )
    .map(([letter, count]) => JSON.stringify(letter.repeat(count)))
const odd = fc.constantFrom(
  'null',
  'true',
  '{}',
  '[]',
  '7',
  '0',
  '-1',
  '1e3',
  '1.5',
  '"7"',
  '"007"',
  '""',
  '"low"',
  '1e400',
  '"\\ud800"',
)
const FIELDS: Record<string, fc.Arbitrary<string>> = {
  amount: fc.constantFrom(
    '0.5',
    '"0.25"',
    '1e-3',
    '"1E-3"',
    '1.50',
    '0.000000000000000001',
    '1E0',
    '" 1"',
    '1e-30',
    '0x1',
    '"١"',
  ),
  sequence_id: long(200),
  memo: long(1000),
  address_tag: long(200),
  destination_address: fc.oneof(
    long(256),
    fc.constantFrom(
      `"${DESTINATIONS['ETH']!.toUpperCase().replace('X', 'x')}"`,
      `" ${DESTINATIONS['ETH']}"`,
    ),
  ),
  ts: fc.constantFrom('1700000000', '1700000000.5', '"2026-01-01T00:00:00Z"', '""'),
  fee_rate: fc.constantFrom('2', '"2"', '2e0', '2.000000001', '2.0000000000001', '20'),
  fee_level: fc.constantFrom('"low"', '"high"', '"turbo"'),
  type: fc.constantFrom('"Withdraw"', '"withdraw"'),
  destination_type: fc.constantFrom('"external"'),
  source_type: fc.constantFrom('"EXTERNAL"'),
  surprise: fc.constant('1'),
}
const change = fc
  .constantFrom(...Object.keys(FIELDS))
  .chain((name) =>
    fc.tuple(
      fc.constant(name),
      fc.oneof(
        { weight: 3, arbitrary: FIELDS[name] as fc.Arbitrary<string> },
        { weight: 1, arbitrary: odd },
      ),
    ),
  )
const spelling = (path: string) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constant(path) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        `${path}?`,
        `${path}?a=1`,
        `${path}/`,
        `/${path}`,
        `${path}#x`,
        `${path};x=1`,
        `http://127.0.0.1${path}`,
        path.replace('t', '%74'),
        path.replace('v1', 'V1'),
        path.replace('/v1/', '/v1/./'),
      ),
    },
  )
const space = fc.oneof(
  { weight: 8, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom(' ', '\n\t', ' '.repeat(7000)) },
)

test('the nodes accept every transfer that the API answers with 200', async () => {
  let taken = 0
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('ETH', 'ETH', 'USDT_ETH', 'XRP', 'TRX'),
      fc.array(change, { maxLength: 2 }),
      spelling('/dac/v1/transaction'),
      space,
      fc.infiniteStream(fc.nat()),
      fc.nat(9),
      async (asset, changes, uri, gap, order, twice) => {
        const fields = Object.entries({ ...transferOf(asset), ...Object.fromEntries(changes) })
          .map((field) => ({ field, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ field }) => field)
        if (twice === 0 && changes[0]) fields.push(changes[0])
        if (await judged(await send('POST', uri, jsonOf(fields, gap)))) taken++
      },
    ),
    { seed: 10, numRuns: 400 },
  )
  assert.ok(taken > 100, `only ${taken} were taken`)
})

test('the nodes accept every other signed request that the API answers with 200', async () => {
  const waiting = await waitingTransfer()
  let taken = 0
  const cases: fc.Arbitrary<[method: string, path: string, body: [string, string][]]>[] = [
    fc.tuple(
      fc.constant('POST'),
      fc.constant(`/dac/v1/transaction/${waiting}/speed-up`),
      fc.array(
        fc.tuple(
          fc.constantFrom('fee_rate', 'fee_level'),
          fc.oneof(odd, fc.constantFrom('3', '"4"', '"high"', '"low"')),
        ),
        {
          maxLength: 2,
        },
      ),
    ),
    fc
      .constant(null)
      .map(
        () =>
          ['POST', '/dac/v1/transaction/NEW/cancel', []] as [string, string, [string, string][]],
      ),
    fc
      .array(
        fc.tuple(
          fc.constantFrom('sequence_id', 'resource', 'amount', 'address'),
          fc.oneof(odd, long(200), fc.constantFrom('"ENERGY"', '2.5', '"3"')),
        ),
        { maxLength: 1 },
      )
      .map((more) => [
        'POST',
        '/dav/v1/stake',
        Object.entries({
          asset: '"TRX"',
          address: `"${own('TRX')}"`,
          resource: '"BANDWIDTH"',
          amount: '2',
          ...Object.fromEntries(more),
        }),
      ]),
    fc
      .array(
        fc.tuple(
          fc.constantFrom('address_tag', 'min_amount', 'daily_cap', 'expires_at'),
          fc.oneof(
            odd,
            fc.constantFrom(
              '"2099-02-30T00:00:00Z"',
              '"2099-01-01T00:00:00.123456Z"',
              '"2099-01-01T00:00:00.1Z"',
              '5',
              '"5"',
              '5e0',
            ),
          ),
        ),
        { maxLength: 1 },
      )
      .map((more) => [
        'POST',
        '/dac/v1/auto-forwarding',
        Object.entries({
          asset: '"ETH"',
          min_amount: '1',
          destination_address: `"${DESTINATIONS['ETH']}"`,
          daily_cap: '9',
          expires_at: '"2099-01-01T00:00:00Z"',
          ...Object.fromEntries(more),
        }),
      ]),
  ]
  const named = fc
    .oneof(...cases)
    .chain(([method, path, body]) =>
      fc.tuple(fc.constant(method), spelling(path), fc.constant(body), space, fc.boolean()),
    )
  await fc.assert(
    fc.asyncProperty(named, async ([method, value, body, gap, loud]) => {
      let path = value
      if (path.includes('NEW'))
        path = path.replace('NEW', (await create(transferOf('ETH'))).body['id'] as string)
      if (loud) path = path.replace(/[0-9a-f-]{36}/, (id) => id.toUpperCase())
      const answer = await send(method, path, jsonOf(body, gap))
      if (await judged(answer)) taken++
      await database.query(`update replacements set state = 'REFUSED' where state = 'PENDING'`)
      if (answer.status !== 200 || !path.includes('auto-forwarding')) return
      assert.equal(
        await judged(
          await send('DELETE', `/dac/v1/auto-forwarding/${answer.body['id'] as string}`, '{}'),
        ),
        true,
      )
    }),
    { seed: 11, numRuns: 250 },
  )
  assert.ok(taken > 60, `only ${taken} were taken`)
})

/** Creates a transfer that is signed and waits for a block. Returns its id. */
async function waitingTransfer(): Promise<string> {
  const id = (await create(transferOf('ETH'))).body['id'] as string
  const unsigned = evm.buildTransfer(network('ETH'), {
    asset: registry.asset('ETH') as Asset,
    to: DESTINATIONS['ETH'] as string,
    amount: 10n ** 18n,
    nonce: 0n,
    gas: 21_000n,
    fee: FEE,
    path: pathOf(network('ETH'), 1, OMNIBUS_INDEX),
  })
  await database.query(`update transactions set state = 'BROADCASTING' where id = $1`, [id])
  await database.query(
    `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
       fee_max, hash, signed, workspace_id)
       values ($1, $2, 'ETH', 'SIGNED', 'x', 0, $3, 1, '0x1', '0x',
         (select workspace_id from transactions where id = $2))`,
    [randomUUID(), id, JSON.stringify(unsigned)],
  )
  return id
}

test('null for an optional field means absent, at the API and at the nodes', async () => {
  const answer = await create(
    transferOf('ETH', {
      sequence_id: 'null',
      memo: 'null',
      address_tag: 'null',
      fee_rate: 'null',
      fee_level: 'null',
      type: 'null',
      ts: 'null',
    }),
  )
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  assert.equal(await judged(answer), true)
})

test('lengths are counted in characters: a sequence_id may have 200 emoji, but not 201', async () => {
  assert.equal(
    await judged(
      await create(
        transferOf('ETH', { sequence_id: `"${'😀'.repeat(200)}"`, memo: `"${'😀'.repeat(1000)}"` }),
      ),
    ),
    true,
  )
  for (const [field, count] of [
    ['sequence_id', 201],
    ['memo', 1001],
  ] as const) {
    const refused = await create(transferOf('ETH', { [field]: `"${'😀'.repeat(count)}"` }))
    assert.deepEqual([refused.status, refused.body['field']], [400, field])
  }
})

test('the claim ts may be a number or a string', async () => {
  for (const ts of ['true', '{}', '[]']) {
    const refused = await create(transferOf('ETH', { ts }))
    assert.deepEqual([refused.status, refused.body['field']], [400, 'ts'], ts)
  }
})

test('refuses a write whose path has a query or percent-encoding', async () => {
  for (const uri of [
    '/dac/v1/transaction?a=1',
    '/dac/v1/transaction?',
    '/dac/v1/%74ransaction',
    '/dac/v1/transaction#x',
  ]) {
    const refused = await create(transferOf('ETH'), uri)
    assert.deepEqual([refused.status, refused.body['field']], [400, 'path'], uri)
    assert.match(refused.body['message'] as string, /^path: /)
  }
})

test('a signed write of more than 64 KiB gets 413 before authentication; 64 KiB is accepted', async () => {
  const full = (bytes: number) => {
    const body = jsonOf(Object.entries(transferOf('ETH')))
    return body + ' '.repeat(bytes - body.length)
  }
  assert.equal(await judged(await send('POST', '/dac/v1/transaction', full(65_536))), true)
  const refused = await send('POST', '/dac/v1/transaction', full(65_537), {
    authorization: 'Bearer nothing',
  })
  assert.deepEqual(
    [refused.status, refused.body['code']],
    [413, 'PAYLOAD_TOO_LARGE'],
    JSON.stringify(refused.body),
  )
})

/** Runs the steps of one transfer until it ends, or at most `most` steps. */
async function work(id: string, most = 8): Promise<TransactionRow> {
  for (let step = 0; step < most; step++) {
    const row = await database.one<TransactionRow>(
      `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1
        where id = $1 and status = 'pending' returning *`,
      [id],
    )
    if (!row) break
    await runStep(services, row)
  }
  return (await database.one<TransactionRow>('select * from transactions where id = $1', [
    id,
  ])) as TransactionRow
}

test('a transfer whose signed request no node can read is voided, and its money is released', async () => {
  const books = () =>
    database.query(
      `select kind, asset, balance::text from ledger_accounts
        where kind in ('available', 'reserved') order by 1, 2`,
    )
  const before = await books()
  const broken: [
    what: string,
    change: (request: SignedRequest & { api_key: string }) => unknown,
  ][] = [
    [
      'a body beyond every limit',
      (request) => ({ ...request, body: request.body + ' '.repeat(100_000) }),
    ],
    ['a query', (request) => ({ ...request, uri: `${request.uri}?x=1` })],
    ['a path that was encoded', (request) => ({ ...request, uri: '/dac/v1/%74ransaction' })],
    [
      'a token that does not fit',
      (request) => ({ ...request, body: request.body.replace('1', '2') }),
    ],
  ]
  for (const [what, change] of broken) {
    const { id } = (await create(transferOf('ETH'))).body as { id: string }
    const row = (await database.one<TransactionRow>(
      `update transactions set state = 'VOIDING', plan = '{"reason":"refused"}' where id = $1
        returning *`,
      [id],
    )) as TransactionRow
    await database.query('update transactions set request = $2 where id = $1', [
      id,
      JSON.stringify(change(row.request as SignedRequest & { api_key: string })),
    ])
    const ended = await work(id)
    assert.deepEqual(
      [ended.state, ended.status, ended.failure_reason],
      ['FAILED', 'failed', 'refused'],
      `${what}: ${ended.last_error}`,
    )
  }
  assert.deepEqual(await books(), before)
})

test('a transfer of a caller that no node knows fails, and its money is released', async () => {
  const stranger = randomUUID()
  await database.query(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem)
      values ($1, $2, 'full', $3)`,
    [stranger, subAccountId, PUBLIC_KEY],
  )
  const response = await send(
    'POST',
    '/dac/v1/transaction',
    jsonOf(Object.entries(transferOf('ETH'))),
    {},
    stranger,
  )
  assert.equal(response.status, 200)
  await database.query(
    `update transactions set state = 'VOIDING', plan = '{"reason":"refused"}' where id = $1`,
    [response.body['id']],
  )
  assert.equal((await work(response.body['id'] as string)).state, 'FAILED')
  const rule = jsonOf(
    Object.entries({
      asset: '"ETH"',
      min_amount: '1',
      destination_address: `"${DESTINATIONS['ETH']}"`,
      daily_cap: '9',
      expires_at: '"2099-01-01T00:00:00Z"',
    }),
  )
  assert.equal((await send('POST', '/dac/v1/auto-forwarding', rule, {}, stranger)).status, 503)
  await endRules(services)
  assert.deepEqual(
    await database.query(`select 1 from forward_rules where state not in ('ENDED')`),
    [],
  )
})

test('two concurrent identical stake requests both return the same stake', async () => {
  const { networks } = services
  const one = database.one.bind(database)
  const ask = () =>
    send(
      'POST',
      '/dav/v1/stake',
      JSON.stringify({
        asset: 'TRX',
        address: own('TRX'),
        resource: 'ENERGY',
        amount: 5,
        sequence_id: 'overtaken',
      }),
    )
  let first: Awaited<ReturnType<typeof ask>> | undefined
  Object.assign(database, {
    one: async (sql: string, values?: unknown[]) => {
      const stored = await one(sql, values)
      if (!sql.includes('from idempotency')) return stored
      Object.assign(database, { one })
      first = await ask()
      // From here on the network is unreachable.
      const away = () => {
        throw new Error('away')
      }
      Object.assign(services, {
        networks: Object.assign(Object.create(networks) as object, { stakes: away }),
      })
      return stored
    },
  })
  const again = await ask().finally(() => {
    Object.assign(database, { one })
    Object.assign(services, { networks })
  })
  assert.deepEqual(
    [first?.status, again.status],
    [200, 200],
    JSON.stringify([first?.body, again.body]),
  )
  assert.equal(again.body['id'], first?.body['id'])
})
