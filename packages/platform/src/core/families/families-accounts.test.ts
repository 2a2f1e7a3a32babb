import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { solana, type Fetch } from '@custody/chains'
import type { Chain } from '../engine/chain.ts'
import {
  addressAt,
  assetOf,
  AWAY,
  build,
  built,
  connect,
  fund,
  opened,
  own,
  place,
  prepared,
  setState,
  TAGGED,
  taskOf,
  unusedOn,
  walletOf,
  write,
  type Code,
} from '../../../testing/chains/account-chains-fixture.ts'

/** Tests of the account-based families' responses to the engine. */
for (const code of TAGGED) {
  const asset = assetOf(code)
  const unit = 10n ** BigInt(asset.decimals)

  /** Funds an account. Returns its address and the wallet that sends from it. */
  const sender = async (chain: Chain) => {
    const from = await own(chain.network, 0)
    await fund(code, from, '100')
    return { from, wallet: await walletOf(asset) }
  }

  test(`${code}: a payment reserves its fee and leaves the chain's minimum reserve on the account`, async () => {
    const chain = connect(code)
    const { from, wallet } = await sender(chain)
    const to = unusedOn(chain.network)
    const task = await taskOf(asset, { wallet, from, to, amount: 20n * unit })
    const { lock, cost } = await prepared(chain, task)
    assert.deepEqual([lock, cost], ['account', undefined])
    const payment = await built(chain, task)
    const { from: signers, payments, fee_max: fee } = opened(chain, payment)
    assert.deepEqual(
      [signers, payments.map(({ address, amount }) => [address, amount])],
      [[from], [[to, 20n * unit]]],
    )
    const reserve = await chain.reserveOf(from, asset)
    assert.ok(reserve >= unit / 10n)
    assert.deepEqual([payment.worst, payment.fee], [fee, fee])
    assert.deepEqual(payment.hold, {
      wallet,
      asset,
      amount: fee,
      noted: 'fee_reserve',
      reserve: reserve,
    })
    assert.equal(payment.account, from)
    assert.equal(payment.nonce, await chain.nextNonce?.(from))
    assert.ok((payment.validUntil as number) > 0)
  })

  test(`${code}: refuses a payment that the chain would reject, with the field and the reason`, async () => {
    const chain = connect(code)
    const { from } = await sender(chain)
    const to = unusedOn(chain.network)
    const said = await chain.refusal({ to, tag: null, amount: 1n, asset })
    assert.equal(said?.field, 'amount')
    assert.match(
      said?.reason ?? '',
      new RegExp(
        `^the destination account does not exist yet; at least [\\d.]+ ${code} are required to create it$`,
      ),
    )
    assert.equal(await chain.refusal({ to: from, tag: null, amount: 1n, asset }), null)
  })

  test(`${code}: a payment from a missing account is retried at growing intervals`, async () => {
    const chain = connect(code)
    const wallet = await walletOf(asset)
    const from = unusedOn(chain.network)
    const reason = 'the endpoint does not return the account, although it has received coins'
    const task = (attempts: number) =>
      taskOf(asset, { wallet, from, to: unusedOn(chain.network), amount: 20n * unit, attempts })
    assert.deepEqual(await chain.prepare(await task(1)), {
      kind: 'wait',
      code: 'ENDPOINT',
      reason,
      inMs: 1000,
    })
    assert.deepEqual(await chain.prepare(await task(20)), {
      kind: 'wait',
      code: 'ENDPOINT',
      reason,
      inMs: 30_000,
    })
  })

  test(`${code}: a dead transaction is rebuilt at its sequence, or fails if that sequence was used`, async () => {
    const chain = connect(code)
    const { from, wallet } = await sender(chain)
    const task = await taskOf(asset, {
      wallet,
      from,
      to: unusedOn(chain.network),
      amount: 20n * unit,
    })
    const first = await built(chain, task)
    const next = first.nonce as bigint
    await write(task, { ...first, nonce: next - 1n }, 'EXPIRED', 'dead')
    assert.deepEqual(await build(chain, task), {
      kind: 'fail',
      reason: 'it expired, and another transaction used its sequence number',
    })
    const behind = await taskOf(asset, {
      wallet,
      from,
      to: unusedOn(chain.network),
      amount: 20n * unit,
    })
    await write(behind, { ...first, nonce: next + 1n }, 'EXPIRED', 'late')
    assert.deepEqual(await build(chain, behind), {
      kind: 'fail',
      reason: 'it expired after a transfer that was abandoned',
    })
    const later = await taskOf(asset, {
      wallet,
      from,
      to: unusedOn(chain.network),
      amount: 20n * unit,
    })
    await setState(later, 'SIGNING')
    await write(later, { ...first, nonce: next + 2n }, 'BUILT')
    const closing = 'it waits until a later transfer replaces one that was abandoned'
    assert.deepEqual(await build(chain, behind), {
      kind: 'wait',
      code: 'EARLIER_TRANSFER',
      reason: closing,
      inMs: 1000,
    })
    const again = await taskOf(asset, {
      wallet,
      from,
      to: unusedOn(chain.network),
      amount: 20n * unit,
    })
    await write(again, first, 'EXPIRED', 'its own')
    assert.equal((await built(chain, again)).nonce, next)
    // The next free sequence follows all of these.
    assert.equal(
      (await built(chain, await taskOf(asset, { wallet, from, to: from, amount: 1n }))).nonce,
      next + 3n,
    )
  })

  test(`${code}: a second payment to a new account waits for the transfer that creates the account`, async () => {
    const chain = connect(code)
    const { from, wallet } = await sender(chain)
    const to = unusedOn(chain.network)
    const first = await taskOf(asset, { wallet, from, to, amount: 20n * unit })
    await setState(first, 'SIGNING')
    const second = await taskOf(asset, { wallet, from, to, amount: 20n * unit })
    const reason = 'it waits for the transfer that creates the destination account'
    assert.deepEqual(await build(chain, second), {
      kind: 'wait',
      code: 'EARLIER_TRANSFER',
      reason,
      inMs: 1000,
    })
  })
}

test('XRP and XLM: a fee rate is the fee per payment; without the chain, ten times the minimum', async () => {
  for (const [code, least] of [
    ['XRP', 10n],
    ['XLM', 100n],
  ] as const) {
    const asset = assetOf(code)
    const owner = {
      workspaceId: place.workspace,
      subAccountId: place.subAccount,
      subAccountIndex: 1,
    }
    const task = {
      owner,
      walletId: randomUUID(),
      to: 'unused',
      amount: 1n,
      asset,
      feeRate: null,
      level: null,
    }
    const [near, away] = [connect(code), connect(code, { fetch: AWAY })]
    assert.equal(near.ratesReadAt(), null)
    const { medium } = await near.rates(asset)
    assert.ok(near.ratesReadAt() !== null)
    assert.deepEqual(await near.estimate(task), { fee: medium, reserve: medium })
    assert.deepEqual(await away.estimate({ ...task, feeRate: '777' }), {
      fee: 777n,
      reserve: 777n,
    })
    assert.deepEqual(await away.estimate(task), { fee: 10n * least, reserve: 10n * least })
    assert.deepEqual(await away.quote({ owner, asset, rate: 33n, amount: null, to: null }), {
      fee: 33n,
      basis: 'typical',
    })
    assert.equal(away.feeOfOtherWallet(asset, 5n), 0n)
    await assert.rejects(away.refusal({ to: unusedOn(away.network), tag: null, amount: 1n, asset }))
  }
})

test("an account's reserve is the chain's latest value, or a constant if none is known", async () => {
  let [isAway, now] = [true, 0]
  const fetched: Fetch = async (url, init) => (isAway ? AWAY(url, init) : fetch(url, init))
  for (const [code, today] of [
    ['XRP', 1_000_000n],
    ['XLM', 10_000_000n],
    ['SOL', 890_880n],
  ] as const) {
    isAway = true
    const chain = connect(code, { fetch: fetched, now: () => now })
    const [asset, address] = [assetOf(code), unusedOn(chain.network)]
    assert.equal(await chain.reserveOf(address, asset), today)
    isAway = false
    const said = await chain.reserveOf(address, asset)
    assert.ok(said > 0n)
    isAway = true
    now += 11_000
    assert.equal(await chain.reserveOf(address, asset), said)
  }
  assert.equal(await connect('SOL').reserveOf('unused', assetOf('USDC_SOL')), 0n)
})

test("returns an account's minimum reserve even if the chain does not answer", async () => {
  const never: Fetch = async () => new Promise(() => undefined)
  const chain = connect('XLM', { fetch: never, sleep: async () => undefined })
  assert.equal(await chain.reserveOf(unusedOn(chain.network), assetOf('XLM')), 10_000_000n)
})

test('XRP, XLM and SOL implement signature search, sequences and rebuilding as their ids require', () => {
  const has = (code: Code) => {
    const { findSigned, nextNonce, isStale, latestEnd } = connect(code)
    return [findSigned, nextNonce, isStale, latestEnd].map((each) => each !== undefined)
  }
  assert.deepEqual(has('XRP'), [true, true, false, false])
  assert.deepEqual(has('XLM'), [false, true, false, false])
  assert.deepEqual(has('SOL'), [true, false, true, true])
})

const RENT = solana.TOKEN_ACCOUNT_RENT

test('SOL: a transfer reserves its fee in its own wallet, and equal transfers differ in bytes', async () => {
  const [chain, asset] = [connect('SOL'), assetOf('SOL')]
  const [from, wallet, to] = [
    await own(chain.network, 0),
    await walletOf(asset),
    unusedOn(chain.network),
  ]
  const wanted = { wallet, from, to, amount: 10n ** 9n }
  const task = await taskOf(asset, wanted)
  const first = await built(chain, task)
  const { from: signers, payments, fee_max: fee } = opened(chain, first)
  assert.deepEqual(
    [signers, payments.map(({ address, amount }) => [address, amount])],
    [[from], [[to, 10n ** 9n]]],
  )
  assert.deepEqual(
    [first.worst, first.fee, first.plan, first.amount],
    [fee, fee, undefined, undefined],
  )
  const reserve = await chain.reserveOf(from, asset)
  assert.deepEqual(first.hold, {
    wallet,
    asset,
    amount: fee,
    noted: 'fee_reserve',
    reserve: reserve,
  })
  await write(task, first, 'BUILT')
  const twin = await built(chain, await taskOf(asset, wanted))
  assert.notEqual(twin.unsigned.bytes, first.unsigned.bytes)
  assert.ok(opened(chain, twin).fee_max <= fee)
})

test('SOL: the SOL wallet pays the fee of a token transfer, and the rent of a new account', async () => {
  const [chain, asset, native] = [connect('SOL'), assetOf('USDC_SOL'), assetOf('SOL')]
  const [from, wallet, to] = [
    await own(chain.network, 0),
    await walletOf(asset),
    unusedOn(chain.network),
  ]
  const task = await taskOf(asset, { wallet, from, to, amount: 5n, feeRate: '7000' })
  const reason = 'network fees are paid from the SOL wallet, which does not exist'
  assert.deepEqual(await build(chain, task), { kind: 'fail', reason })
  const payer = await walletOf(native)
  const payment = await built(chain, task)
  const { fee_max: fee } = opened(chain, payment)
  assert.deepEqual([payment.worst, fee], [(payment.fee as bigint) + RENT, payment.worst])
  assert.ok((payment.fee as bigint) <= 7000n)
  assert.deepEqual(payment.plan, { fee_wallet: payer })
  const reserve = await chain.reserveOf(from, native)
  assert.deepEqual(payment.hold, {
    wallet: payer,
    asset: native,
    amount: payment.worst,
    noted: 'fee_held',
    reserve: reserve,
  })
  assert.deepEqual(
    [chain.feeOfOtherWallet(asset, 7000n), chain.feeOfOtherWallet(asset, 7000n + RENT)],
    [7000n + RENT, 7000n + RENT],
  )
  assert.equal(chain.feeOfOtherWallet(native, 7000n), 0n)
})

test('SOL: a coin sweep pays its own fee, and the omnibus address pays the fee of a token sweep', async () => {
  const [chain, asset, native] = [connect('SOL'), assetOf('USDC_SOL'), assetOf('SOL')]
  const [omnibus, deposit] = [await own(chain.network, 0), await own(chain.network, 7)]
  const [wallet, payer] = [await walletOf(asset), await walletOf(native)]
  const coins = await taskOf(native, {
    kind: 'SWEEP',
    wallet: payer,
    from: deposit,
    to: omnibus,
    amount: 10n ** 9n,
  })
  const sweep = await built(chain, coins, 10n ** 9n)
  assert.deepEqual(
    [sweep.hold, sweep.plan, sweep.amount],
    [undefined, undefined, 10n ** 9n - sweep.worst],
  )
  assert.deepEqual((await prepared(chain, coins)).cost, { worst: sweep.worst, own: true })
  assert.deepEqual(await build(chain, coins, sweep.worst), {
    kind: 'fail',
    reason: 'the remaining balance is worth less than the fee of a sweep',
  })
  const tokens = await taskOf(asset, {
    kind: 'SWEEP',
    wallet,
    from: deposit,
    to: omnibus,
    amount: 5n,
  })
  const paid = await built(chain, tokens, 6n)
  const { from: signers, payments } = opened(chain, paid)
  assert.deepEqual(
    [signers, payments[0]?.address, payments[0]?.amount, paid.amount],
    [[omnibus, deposit], omnibus, 6n, 6n],
  )
  // The cost includes the rent of the omnibus address's token account until that account exists.
  assert.deepEqual((await prepared(chain, tokens)).cost, {
    worst: (paid.fee as bigint) + RENT,
    own: false,
  })
  await fund('USDC_SOL', omnibus, '3')
  assert.deepEqual((await prepared(chain, tokens)).cost, { worst: paid.fee, own: false })
  assert.deepEqual([paid.worst, paid.account], [(paid.fee as bigint) + RENT, deposit])
  assert.deepEqual([paid.hold?.wallet, paid.hold?.noted], [payer, 'fee_held'])
  const another = await own(chain.network, 8)
  const elsewhere = await taskOf(asset, {
    kind: 'SWEEP',
    wallet,
    from: another,
    to: unusedOn(chain.network),
    amount: 5n,
  })
  await assert.rejects(async () => chain.prepare(elsewhere), /is not the destination of the sweep/)
})

test('SOL: returns fees and rent with and without the chain, and refuses a mint as destination', async () => {
  const [chain, away, token, native] = [
    connect('SOL'),
    connect('SOL', { fetch: AWAY }),
    assetOf('USDC_SOL'),
    assetOf('SOL'),
  ]
  const owner = { workspaceId: place.workspace, subAccountId: place.subAccount, subAccountIndex: 1 }
  const task = {
    owner,
    walletId: randomUUID(),
    to: unusedOn(chain.network),
    amount: 1n,
    feeRate: null,
    level: null,
  }
  assert.deepEqual(await away.estimate({ ...task, asset: native }), {
    fee: 10_000n,
    reserve: 10_000n,
  })
  assert.deepEqual(await away.estimate({ ...task, asset: token }), {
    fee: 10_000n + RENT,
    reserve: 0n,
  })
  const { medium } = await chain.rates(native)
  assert.deepEqual(await chain.estimate({ ...task, asset: native }), {
    fee: medium,
    reserve: medium,
  })
  const quoted = { owner, rate: 6000n, amount: null, to: null }
  assert.deepEqual(await chain.quote({ ...quoted, asset: native }), {
    fee: 6000n,
    basis: 'typical',
  })
  const extra = { name: 'rent', amount: RENT }
  assert.deepEqual(await chain.quote({ ...quoted, asset: token }), {
    fee: 6000n + RENT,
    basis: 'typical',
    extra,
  })
  const receiver = addressAt(chain.network, 50)
  await fund('USDC_SOL', receiver, '3')
  const there = { fee: 6000n, basis: 'typical', extra: { name: 'rent', amount: 0n } }
  assert.deepEqual(await chain.quote({ ...quoted, asset: token, to: receiver }), there)
  const refused = await chain.refusal({
    to: token.contract_address as string,
    tag: null,
    amount: 10n ** 9n,
    asset: native,
  })
  assert.match(refused?.reason ?? '', /is not a wallet/)
  const low = await chain.refusal({ to: task.to, tag: null, amount: 1n, asset: native })
  assert.equal(
    low?.reason,
    'the destination account does not exist yet; at least 0.00089088 SOL are required to create it',
  )
  assert.equal(await chain.refusal({ to: task.to, tag: null, amount: 1n, asset: token }), null)
})

test('SOL: a built transaction is stale after a hundred blocks', async () => {
  const chain = connect('SOL')
  const end = (await chain.latestEnd?.()) as number
  assert.equal(await chain.isStale?.(end), false)
  assert.equal(await chain.isStale?.(end - 100), false)
  assert.equal(await chain.isStale?.(end - 101), true)
})
