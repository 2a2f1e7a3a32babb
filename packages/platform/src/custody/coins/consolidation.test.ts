import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  rpc,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../../../testing/harness.ts'
import { btc, COIN, payCoins } from '../../../testing/chains/pay-coins.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/**
 * A wallet with more coins than one transaction can spend merges them by request and then pays out in
 * full, on the local chain of Bitcoin with three nodes.
 */
const platform = new TestPlatform()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

before(async () => {
  await platform.start({ CUSTODY_FEE_BUMP_AFTER_S: '1' })
})
after(async () => {
  await platform.remove()
})

interface Wallet {
  id: string
  asset: string
  max_spendable: string
}
const walletOf = async (user: User): Promise<Wallet> =>
  (await call<Wallet[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body[0] as Wallet

/** Creates a BTC wallet with coins of equal value, and waits until all are credited. */
async function walletWith(name: string, count: number): Promise<{ user: User; wallet: Wallet }> {
  const user = await platform.user(name)
  await waitFor('a wallet', async () => {
    const { status } = await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
    return status === 200
  })
  const { body } = await call<{ address: string }>(user, 'POST', '/dac/v1/address', {
    asset: 'BTC',
  })
  await payCoins(platform, body.address, count)
  const total = Number(btc(count * COIN))
  await waitFor('credits', async () => Number((await balance(user, 'BTC')).balance) === total)
  return { user, wallet: await walletOf(user) }
}

type Answered = Transfer & { code: string; message: string; field: string }
const merge = (user: User, { id }: Wallet, more: object = {}) =>
  call<Answered>(user, 'POST', `/dac/v1/wallets/${id}/consolidate`, {
    asset: 'BTC',
    max_fee_rate: '500',
    target_coins: 1,
    sequence_id: 'merge-1',
    ...more,
  })
const pay = (user: User, amount: string, sequence: string) =>
  call<Answered>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', amount, TO, { sequence_id: sequence }),
  )
const coinsOf = async (user: User, state = 'available') =>
  Number(
    (
      await platform.database.one<{ count: string }>(
        `select count(*) count from utxos u join wallets w on w.id = u.wallet_id
         join workspaces s on s.id = w.workspace_id
         where s.name = $1 and u.spent_by is null and (u.spendable = ($2 = 'available'))`,
        [user.workspace, state],
      )
    )?.count,
  )
const audit = async () => {
  const report = await platform.operator('audit')
  assert.deepEqual([report['ok'], report['differences']], [true, []], JSON.stringify(report))
}

test('a wallet with 450 coins merges 200, and pays out in full', async () => {
  const { user, wallet } = await walletWith('many', 450)
  const whole = btc(450 * COIN - 200_000)
  const refused = await pay(user, whole, 'all')
  assert.deepEqual([refused.status, refused.body.code], [400, 'CONSOLIDATE_FIRST'])
  const { first, waiting } = await platform.halted('BTC', async () => {
    const { status, body, text } = await merge(user, wallet)
    assert.equal(status, 200, text)
    assert.deepEqual([body['type'], body.status], ['Consolidation', 'pending'])
    const again = await merge(user, wallet)
    assert.deepEqual([again.status, again.body.id], [200, body.id])
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.equal(again.headers.get('warning'), null)
    const other = await merge(user, wallet, { target_coins: 2 })
    assert.deepEqual([other.status, other.body.id], [200, body.id])
    assert.match(other.headers.get('warning') ?? '', /another payload/)
    await waitFor('a signed consolidation', async () => (await coinsOf(user, 'waiting')) === 1)
    // At most half of 450 coins: 200 are merged, so 25 remain, and then none.
    const second = await merge(user, wallet, { sequence_id: 'merge-2', asset: undefined })
    assert.equal(second.status, 200, second.text)
    await waitFor('two consolidations', async () => (await coinsOf(user, 'waiting')) === 2)
    assert.equal(await coinsOf(user), 225)
    const third = await merge(user, wallet, { sequence_id: 'merge-3' })
    assert.deepEqual([third.status, third.body.code], [409, 'CONSOLIDATION_PENDING'])
    assert.match(third.body.message, /contain 0\.225 BTC, and may contain at most half/)
    // A payment does not spend the merged coin before it is confirmed.
    const payment = await pay(user, btc(300 * COIN), 'larger')
    assert.equal(payment.status, 200, payment.text)
    const waits = await waitFor('a wait', async () => {
      const now = await call<Answered>(user, 'GET', `/dac/v1/transaction/${payment.body.id}`)
      return now.body.waiting
    })
    assert.equal(waits.code, 'COINS')
    return { first: body, waiting: payment.body }
  })
  const merged = await assertConfirmed(user, first.id)
  assert.equal(
    Math.round((Number(merged.amount) + Number(merged.fee)) * 1e8),
    200 * COIN,
    'only the fee left the wallet',
  )
  await assertConfirmed(user, waiting.id)
  await audit()
  const listed = async (query: string) =>
    (await call<{ data: Transfer[] }>(user, 'GET', `/dac/v1/transactions?limit=500${query}`)).body
      .data
  assert.ok((await listed('')).every(({ id }) => id !== first.id))
  assert.equal((await listed('&type=Consolidation')).length, 2)
  const left = await walletOf(user)
  assert.ok(Number(left.max_spendable) > 0)
  const rest = await pay(user, left.max_spendable, 'rest')
  assert.equal(rest.status, 200, rest.text)
  await assertConfirmed(user, rest.body.id)
  assert.deepEqual([await coinsOf(user), await coinsOf(user, 'waiting')], [0, 0])
})

// Before the platform is restarted, which ends the setting of fee bumps.
test('a consolidation is replaced at a higher fee, up to its maximum, when the market pays more', async () => {
  const { user, wallet } = await walletWith('bumped', 30)
  const congest = (rate: string) =>
    platform.operator('devnet', { command: 'congestion', network: 'BTC', fee_rate: rate })
  const attempts = (id: string) =>
    platform.database.query<{ fee: string; coins: number }>(
      `select c.fee_max::text fee, (select count(*)::integer from utxos u where u.spent_by = c.id) coins
       from chain_transactions c where c.transaction_id = $1 and c.hash is not null order by attempt`,
      [id],
    )
  // No block contains the transaction before the congestion.
  const body = await platform.halted('BTC', async () => {
    const made = await merge(user, wallet, { sequence_id: 'bumped', max_fee_rate: '70' })
    assert.equal(made.status, 200, made.text)
    await waitFor('a signature', async () => (await attempts(made.body.id)).length === 1)
    await congest('60')
    return made.body
  })
  try {
    const [first, second] = await waitFor('a replacement', async () => {
      const made = await attempts(body.id)
      return made.length > 1 ? made : null
    })
    assert.ok(Number(second?.fee) > Number(first?.fee))
    const merged = await assertConfirmed(user, body.id)
    const [fee, amount] = [merged.fee, merged.amount].map((each) => Math.round(Number(each) * 1e8))
    assert.equal(amount! + fee!, 15 * COIN)
    // 41 bytes, the marker and 68 vbytes for each of 15 inputs.
    assert.ok(fee! <= Math.ceil((41 * 4 + 2 + 15 * 272) / 4) * 70)
  } finally {
    await congest('0')
  }
  assert.deepEqual([await coinsOf(user), await coinsOf(user, 'waiting')], [16, 0])
  await audit()
})

test('a platform that is killed between any two steps makes one consolidation', async () => {
  const { user, wallet } = await walletWith('killed', 40)
  for (const [at, checkpoint] of [
    'transaction.created',
    'transaction.built',
    'transaction.shown',
    'transaction.signed',
    'transaction.settled',
  ].entries()) {
    const sequence = `merge-${at}`
    await platform.dieAt(checkpoint, () =>
      merge({ ...user, base: platform.base }, wallet, { sequence_id: sequence, target_coins: 1 }),
    )
    const now = { ...user, base: platform.base }
    const { status, body, text } = await merge(now, wallet, {
      sequence_id: sequence,
      target_coins: 1,
    })
    assert.equal(status, 200, text)
    await assertConfirmed(now, body.id)
    if ((await coinsOf(user)) < 20) await payMore(now)
  }
  await audit()
})

/** Pays twenty further coins to the wallet. */
async function payMore(user: User): Promise<void> {
  const { body } = await call<{ address: string }>(user, 'POST', '/dac/v1/address', {
    asset: 'BTC',
  })
  const before = await coinsOf(user)
  await payCoins(platform, body.address, 20)
  await waitFor('credits', async () => (await coinsOf(user)) === before + 20)
}

test('a reorganisation makes the merged coin unspendable until a block contains it again', async () => {
  const { user, wallet } = await walletWith('reorganised', 30)
  const { body, text, status } = await merge(user, wallet, { sequence_id: 'reorganised' })
  assert.equal(status, 200, text)
  await assertConfirmed(user, body.id)
  const before = await balance(user, 'BTC')
  assert.deepEqual([await coinsOf(user), await coinsOf(user, 'waiting')], [16, 0])
  await platform.halted('BTC', async () => {
    const [{ height }] = (await platform.database.query<{ height: number }>(
      `select block_height::integer height from chain_transactions where transaction_id = $1
       and state = 'CONFIRMED'`,
      [body.id],
    )) as [{ height: number }]
    const head = await rpc<number>(platform, 'BTC', 'getblockcount', [])
    await platform.operator('devnet', {
      command: 'reorg',
      network: 'BTC',
      depth: head - height + 1,
      drop: false,
    })
    await platform.acceptReorg('BTC')
    const undone = await waitFor('a reverted consolidation', async () => {
      const now = await call<Transfer>(user, 'GET', `/dac/v1/transaction/${body.id}`)
      return now.body.status === 'pending' ? now.body : null
    })
    assert.deepEqual([undone.sub_status, undone['generation']], ['REORGANISED', '1'])
    assert.deepEqual([await coinsOf(user), await coinsOf(user, 'waiting')], [15, 1])
  })
  await assertConfirmed(user, body.id)
  assert.deepEqual([await coinsOf(user), await coinsOf(user, 'waiting')], [16, 0])
  assert.deepEqual(await balance(user, 'BTC'), before)
  await audit()
})
