// Forwards of a wallet whose coins are frozen in part.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import { useApi } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY } from '../../../testing/harness.ts'
import { forwardRule } from './forward.ts'
import type { RuleRow } from './rule.ts'

const api = useApi()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
let user: Awaited<ReturnType<typeof api.user>>
before(async () => {
  await api.started
  user = await api.user('forwards')
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const judge = async () => ({ kind: 'none' })
  Object.assign(api.services, { policies: { ...api.services.policies, judge } })
})

async function addCoin(value: number): Promise<string> {
  const txid = randomUUID().replaceAll('-', '').repeat(2)
  await api.database.query(
    `insert into utxos (workspace_id, network, txid, vout, address, wallet_id, value, path_index, origin,
       spendable, block_height)
     select workspace_id, 'BTC', $2, 0, 'address', id, $3, 0, 'deposit', true, 1 from wallets
     where workspace_id = $1 and asset = 'BTC'`,
    [user.workspaceId, txid, value],
  )
  await api.fund(user, 'BTC', BigInt(value))
  return `BTC-${txid}-0`
}

/** Writes a rule for which funds wait. */
async function addRule(waiting: number): Promise<string> {
  const id = randomUUID()
  const request = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body: '{}',
    nonce: id,
  })
  await api.database.query(
    `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
       min_amount, daily_cap, destination, expires_at, state, request, waiting, next_run_at, created_at)
     select $1, workspace_id, sub_account_id, id, 'BTC', 'BTC', 1000000, 100000000, $3, '2099-01-01',
       'ACTIVE', $4, $5, now(), now() from wallets where workspace_id = $2 and asset = 'BTC'`,
    [id, user.workspaceId, TO, JSON.stringify(request), waiting],
  )
  return id
}

test('a rule forwards what is not frozen, and the rest when it is unfrozen', async () => {
  const [frozen] = [await addCoin(2_000_000), await addCoin(3_000_000)]
  const id = await addRule(5_000_000)
  const freeze = async (isFrozen: boolean) => {
    const path = `/dac/v1/coins/${frozen}`
    const { status, text } = await call(user, 'POST', path, { frozen: isFrozen })
    assert.equal(status, 200, text)
  }
  const row = async () =>
    (await api.database.one<RuleRow>('select * from forward_rules where id = $1', [id])) as RuleRow
  const forwarded = () =>
    api.database.query<{ sum: string }>(
      `select (amount + (plan->>'fee_reserve')::numeric)::text sum from transactions
       where workspace_id = $1 and kind = 'WITHDRAWAL' order by created_at, id`,
      [user.workspaceId],
    )
  await freeze(true)
  await forwardRule(api.services, await row())
  assert.deepEqual(await forwarded(), [{ sum: '3000000' }])
  await forwardRule(api.services, await row())
  assert.equal((await forwarded()).length, 1)
  assert.match((await row()).last_error ?? '', /the wallet has 0 BTC/)
  await freeze(false)
  await forwardRule(api.services, await row())
  assert.deepEqual(await forwarded(), [{ sum: '3000000' }, { sum: '2000000' }])
})
