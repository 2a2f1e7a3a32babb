import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody } from '../../../testing/harness.ts'

/**
 * Tests with a database that does not respond, simulated by a lock of another connection. A frozen
 * server has the same effect.
 */
const api = useApi({}, [], undefined, { shortTimeoutMs: 1000 })
before(() => api.started)

/** Holds locks until `work` has ended. */
async function whileLocked(
  sql: string,
  values: unknown[],
  work: () => Promise<void>,
): Promise<void> {
  await api.database.transaction(async (tx) => {
    await tx.query(sql, values)
    await work()
  })
}

test('a read gets 503 if the database does not answer the key, nonce or data query in time', async () => {
  const user = await api.user()
  assert.equal((await call(user, 'GET', '/dac/v1/coins-aside')).status, 200)
  for (const table of ['api_users', 'request_nonces', 'coins_aside']) {
    // A cached API key would not be read from the database, so this case uses a new user.
    const caller = table === 'api_users' ? await api.user() : user
    await whileLocked(`lock table ${table} in access exclusive mode`, [], async () => {
      const answers = await Promise.all(
        [1, 2, 3].map(() => call<Problem>(caller, 'GET', '/dac/v1/coins-aside')),
      )
      for (const { status, body, headers, text } of answers) {
        assert.deepEqual(
          [status, body.code, headers.get('retry-after')],
          [503, 'UNAVAILABLE', '5'],
          `${table}: ${text}`,
        )
        assert.match(body.message, /the database/)
      }
    })
    assert.equal(
      (await call(caller, 'GET', '/dac/v1/coins-aside')).status,
      200,
      `${table}: it answers again`,
    )
  }
})

test('a transfer that is being stored waits for the database while reads time out', async () => {
  const user = await api.user()
  const wallet = (
    await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  ).body.id
  await api.fund(user, 'BTC', 1_000_000_000n)
  const to = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
  const send = () =>
    call<{ id: string }>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', '0.1', to, { sequence_id: 'slow' }),
    )
  let isAnswered = false
  let sending: ReturnType<typeof send> | undefined
  await whileLocked(
    'select 1 from ledger_accounts where wallet_id = $1 for update',
    [wallet],
    async () => {
      sending = send().finally(() => (isAnswered = true))
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database()
        and query ~ '(create|write)_withdrawal'`
      while ((await api.database.query(waiting)).length === 0)
        await new Promise((resolve) => setTimeout(resolve, 10))
      await whileLocked('lock table coins_aside in access exclusive mode', [], async () => {
        for (let time = 0; time < 2; time++)
          assert.equal((await call(user, 'GET', '/dac/v1/coins-aside')).status, 503)
      })
      assert.equal(isAnswered, false, 'its end would be unknown')
    },
  )
  const made = await sending
  assert.equal(made?.status, 200, made?.text)
  assert.equal((await send()).body.id, made?.body.id)
})
