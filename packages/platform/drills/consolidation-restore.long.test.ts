import assert from 'node:assert/strict'
import { chmodSync, cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { btc, COIN, payCoins } from '../testing/chains/pay-coins.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * A database that is restored from a backup adopts the consolidations that were signed since then: one
 * that it contains without a signature, and one that it does not contain.
 */
const platform = new TestPlatform({ server: 'own' })
const data = join(platform.home, 'postgres', 'data')
const backup = join(platform.home, 'backup')
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
let user: User

before(async () => {
  await platform.start()
  user = await platform.user('acme')
})
after(() => platform.remove())

async function restart(): Promise<void> {
  await platform.start()
  user = { ...user, base: platform.base }
}

const merge = async (wallet: string, sequence: string) => {
  const answer = await call<Transfer>(user, 'POST', `/dac/v1/wallets/${wallet}/consolidate`, {
    asset: 'BTC',
    max_fee_rate: '500',
    target_coins: 1,
    sequence_id: sequence,
  })
  assert.equal(answer.status, 200, answer.text)
  return answer
}
const listed = async () =>
  (
    await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions?type=Consolidation')
  ).body.data
    .map(({ id, hash, amount, fee, status, sequence_id: sequence }) =>
      [id, hash, amount, fee, status, sequence].join(' '),
    )
    .toSorted()

test('a restored database adopts consolidations, and spends their coins', async () => {
  const made = await waitFor('a wallet', async () => {
    const answer = await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', {
      asset: 'BTC',
    })
    return answer.status === 200 ? answer.body.id : null
  })
  const { body } = await call<{ address: string }>(user, 'POST', '/dac/v1/address', {
    asset: 'BTC',
  })
  await payCoins(platform, body.address, 60)
  const whole = Number(btc(60 * COIN))
  await waitFor('credits', async () => Number((await balance(user, 'BTC')).balance) === whole)
  const open = await platform.withoutNodes(async () => {
    const answer = await merge(made, 'open')
    await waitFor('an unsigned transaction', () =>
      platform.database.one(`select 1 from transactions where id = $1 and state = 'SIGNING'`, [
        answer.body.id,
      ]),
    )
    assert.equal(await platform.stop(), 0)
    return answer.body
  })
  cpSync(data, backup, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  chmodSync(backup, 0o700)
  await restart()
  await assertConfirmed(user, open.id)
  const late = (await merge(made, 'late')).body
  await assertConfirmed(user, late.id)
  const before = { listed: await listed(), balance: await balance(user, 'BTC') }
  assert.equal(before.listed.length, 2)
  assert.equal((await platform.cli('audit')).status, 0)
  assert.equal(await platform.stop(), 0)

  rmSync(data, { recursive: true })
  renameSync(backup, data)
  await restart()
  const done = await platform.cli('reconcile', '--json')
  assert.equal(done.status, 0, `${done.stdout}\n${done.stderr}\n${platform.output.slice(-3000)}`)
  assert.equal((await platform.cli('audit')).status, 0)
  assert.deepEqual(await listed(), before.listed)
  assert.deepEqual(await balance(user, 'BTC'), before.balance)
  for (const [sequence, { id }] of [['open', open] as const, ['late', late] as const]) {
    const again = await merge(made, sequence)
    assert.deepEqual([again.body.id, again.headers.get('idempotent-replayed')], [id, 'true'])
  }
  const most = (await call<{ max_spendable: string }[]>(user, 'GET', '/dac/v1/wallets?asset=BTC'))
    .body[0]?.max_spendable as string
  const rest = transferBody('BTC', most, TO, { sequence_id: 'rest' })
  const paid = await call<Transfer>(user, 'POST', '/dac/v1/transaction', rest)
  assert.equal(paid.status, 200, paid.text)
  await assertConfirmed(user, paid.body.id)
})
