import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { requestHeaders, signRequest, type SignedRequest } from '@custody/request-auth'
import { NodeUnavailable } from '../../core/signing/nodes.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, transferBody, type Transfer } from '../../../testing/harness.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/**
 * Tests of concurrent requests, which are batched for the database and the nodes. Each request must
 * get the response that it would get alone.
 */
const api = useApi()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const ONE = 100_000_000n
before(() => api.started)

async function funded(
  workspace: string,
  coins: bigint,
  options: Parameters<typeof api.user>[1] = {},
) {
  const user = await api.user(`${workspace} ${randomUUID()}`, options)
  assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })).status, 200)
  if (coins > 0n) await api.fund(user, 'BTC', coins)
  return user
}
const balances = async (subAccountId: string) =>
  Object.fromEntries(
    (
      await api.database.query<{ kind: string; balance: string }>(
        `select a.kind, a.balance::text from ledger_accounts a join wallets w on w.id = a.wallet_id
          where w.sub_account_id = $1`,
        [subAccountId],
      )
    ).map(({ kind, balance }) => [kind, BigInt(balance)]),
  )

test('of concurrent transfers, those covered by the balance are paid and the others are refused', async () => {
  const user = await funded('hot', 10n * ONE)
  // The batch mixes bodies that the database function accepts with bodies that it refuses.
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      call<Transfer & Problem>(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody('BTC', n % 10 === 3 ? '100' : '0.9', TO, { sequence_id: `at-once-${n}` }),
      ),
    ),
  )
  const taken = answers.filter(({ status }) => status === 200)
  assert.equal(taken.length, 11, 'with its fee each takes a little more than 0.9 of 10')
  assert.deepEqual(
    [...new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.code))],
    ['INSUFFICIENT_BALANCE'],
  )
  assert.equal(new Set(taken.map(({ body }) => body.id)).size, 11)
  const { available = 0n, reserved = 0n } = await balances(user.subAccountId)
  assert.equal(available + reserved, 10n * ONE)
  const rows = await api.database.query('select id from transactions where sub_account_id = $1', [
    user.subAccountId,
  ])
  const keys = await api.database.query(
    'select 1 from idempotency i join wallets w on w.id = i.wallet_id where w.sub_account_id = $1',
    [user.subAccountId],
  )
  assert.deepEqual([rows.length, keys.length], [11, 11], 'of what is refused nothing is written')
})

test('one sequence_id sent many times concurrently creates one transfer', async () => {
  const user = await funded('same', 10n * ONE)
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      call<Transfer>(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody('BTC', '0.5', TO, { sequence_id: `twins-${n % 2}` }),
      ),
    ),
  )
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], answers[0]?.text)
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 2)
  assert.equal(
    answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length,
    10,
  )
})

test("a transfer's platform fee follows a change of the workspace's tier immediately", async () => {
  const user = await funded('tiers', 10n * ONE)
  const fee = async () =>
    (
      await call<{ platform_fee: string }>(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody('BTC', '0.1', TO),
      )
    ).body.platform_fee
  const before = await fee()
  assert.equal(await fee(), before)
  await api.database.query(
    `update prepaid_accounts set tier = 'ENTERPRISE' where workspace_id = $1`,
    [user.workspaceId],
  )
  assert.notEqual(await fee(), before)
})

test('one signed request sent many times concurrently is accepted once, among other requests', async () => {
  const user = await api.user('replays')
  const path = '/dac/v1/wallets?asset=BTC'
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'GET',
    uri: path,
  })
  const again = () =>
    fetch(`${api.base}${path}`, { headers: requestHeaders(signed, user.apiKey) }).then(
      async (response) => ({
        status: response.status,
        field: ((await response.json()) as Problem).field,
      }),
    )
  const [replays, others] = await Promise.all([
    Promise.all(Array.from({ length: 8 }, again)),
    Promise.all(Array.from({ length: 8 }, () => call(user, 'GET', path))),
  ])
  assert.deepEqual(replays.map(({ status }) => status).sort(), [
    200,
    ...Array.from({ length: 7 }, () => 401),
  ])
  assert.deepEqual(
    [...new Set(replays.filter(({ status }) => status === 401).map(({ field }) => field))],
    ['nonce'],
  )
  assert.deepEqual([...new Set(others.map(({ status }) => status))], [200])
})

test('concurrent requests beyond the rate limit are refused, and their nonces stay unused', async () => {
  const minute = 1_800_000_000_000
  api.now = () => minute
  try {
    const [user, other] = [await api.user('limited', { rateLimit: 5 }), await api.user('unlimited')]
    const path = '/dac/v1/wallets?asset=BTC'
    const iat = { now: minute / 1000 }
    const mine = await Promise.all(
      Array.from({ length: 9 }, () =>
        signRequest({
          apiKey: user.apiKey,
          privateKey: PRIVATE_KEY,
          method: 'GET',
          uri: path,
          ...iat,
        }),
      ),
    )
    const send = (signed: SignedRequest) =>
      fetch(`${api.base}${path}`, { headers: requestHeaders(signed, user.apiKey) })
    const [answers, free] = await Promise.all([
      Promise.all(mine.map(send)),
      Promise.all(
        Array.from({ length: 9 }, () => call(other, 'GET', path, undefined, { sign: iat })),
      ),
    ])
    assert.deepEqual(
      answers.map(({ status }) => status).sort(),
      [200, 200, 200, 200, 200, 429, 429, 429, 429],
    )
    assert.deepEqual(
      answers
        .filter(({ status }) => status === 200)
        .map(({ headers }) => headers.get('x-rate-limit-remaining'))
        .sort(),
      ['0', '1', '2', '3', '4'],
    )
    assert.deepEqual([...new Set(free.map(({ status }) => status))], [200])
    const late = mine.filter((_, at) => answers[at]?.status === 429)
    await api.database.query(`delete from rate_windows where subject = $1`, [user.apiKey])
    assert.deepEqual(
      (await Promise.all(late.map(send))).map(({ status }) => status),
      [200, 200, 200, 200],
    )
  } finally {
    api.now = Date.now
  }
})

test('a batch of requests counts each for its subject, and uses no nonce beyond the limit', async () => {
  const [mine, other, subject, free] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
  const [window, now] = [new Date(1_800_000_000_000), new Date(1_800_000_001_000)]
  const admit = (...calls: [key: string, nonce: string, subject: string, most: number][]) =>
    api.database.query<object>(
      'select nonce_ok ok, requests n from admit_requests($1, $2, $3, $4, $5, $6)',
      [
        calls.map(([key]) => key),
        calls.map(([, nonce]) => nonce),
        calls.map(([, , of]) => of),
        calls.map(([, , , most]) => most),
        window,
        now,
      ],
    )
  assert.deepEqual(
    await admit(
      [mine, 'a', subject, 3],
      [other, 'a', free, 3],
      [mine, 'a', subject, 3],
      [mine, 'b', subject, 3],
    ),
    [
      { ok: true, n: 1 },
      { ok: true, n: 1 },
      { ok: false, n: 2 },
      { ok: true, n: 3 },
    ],
    'of two with one nonce the first has it',
  )
  // A request beyond the limit is refused for that reason, whatever its nonce is, and does not use
  // up the nonce.
  assert.deepEqual(
    await admit(
      [mine, 'a', subject, 3],
      [mine, 'c', subject, 3],
      [mine, 'c', free, 3],
      [mine, 'c', free, 3],
    ),
    [
      { ok: true, n: 4 },
      { ok: true, n: 5 },
      { ok: true, n: 2 },
      { ok: false, n: 3 },
    ],
  )
  assert.deepEqual(await admit([other, 'a', free, 100]), [{ ok: false, n: 4 }])
  const spent = await api.database.query(
    `select api_key, nonce, expires_at from request_nonces where api_key = any($1) order by nonce,
      api_key = $2`,
    [[mine, other], mine],
  )
  const expires = new Date(now.getTime() + 600_000)
  assert.deepEqual(
    spent,
    [
      [other, 'a'],
      [mine, 'a'],
      [mine, 'b'],
      [mine, 'c'],
    ].map(([key, nonce]) => ({
      api_key: key,
      nonce,
      expires_at: expires,
    })),
  )
})

test('in a batch of receipts, one that a node refuses does not prevent storing the others', async () => {
  const user = await funded('receipts', 10n * ONE)
  const calls: string[] = []
  const ask = api.services.signers.call
  Object.assign(api.services.signers, {
    call: async (
      node: number,
      _method: string,
      path: string,
      body: { requests: SignedRequest[] },
    ) => {
      if (path !== '/receipts' || node === 3) throw new NodeUnavailable(node, 'is away')
      calls.push(...body.requests.map(({ token }) => token))
      return {
        answers: body.requests.map((request) =>
          request.body.includes('"memo":"bad"') && node === 2
            ? { status: 403, body: { error: 'NOT_ENROLLED' } }
            : { status: 200, body: { receipt: { node, of: request.token }, signature: 'ab' } },
        ),
      }
    },
  })
  try {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        call<Transfer>(
          user,
          'POST',
          '/dac/v1/transaction',
          transferBody('BTC', '0.1', TO, { memo: n === 5 ? 'bad' : 'good' }),
        ),
      ),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const stored = () =>
      api.database.query<{
        memo: string
        token: string
        receipts: { receipt: { node: number; of: string } }[]
      }>(
        `select memo, request->>'token' token, receipts from transactions where sub_account_id = $1
          and receipts <> '[]'`,
        [user.subAccountId],
      )
    const rows = await waitFor(
      'receipts',
      async () => {
        const before = await stored()
        return before.length === 12 && before
      },
      { pauseMsMax: 20 },
    )
    for (const { memo, token, receipts } of rows) {
      assert.deepEqual(
        receipts.map(({ receipt }) => receipt.node),
        memo === 'bad' ? [1] : [1, 2],
      )
      assert.deepEqual(
        [...new Set(receipts.map(({ receipt }) => receipt.of))],
        [token],
        'each has its own',
      )
    }
    // Only the tokens of these twelve requests count, because receipts of an earlier test may still
    // be pending.
    const tokens = new Set(rows.map(({ token }) => token))
    assert.equal(calls.filter((token) => tokens.has(token)).length, 24)
  } finally {
    Object.assign(api.services.signers, { call: ask })
  }
})
