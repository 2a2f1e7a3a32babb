import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { TANK_SUB_ACCOUNT, type Network } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { decodedOn, networkNamed, networkOf } from './context.ts'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  registry,
  SINK_BTC,
  SINK_ETH,
  usdt,
  type Caller,
} from '../../testing/signer-cluster.ts'
import {
  addressOf,
  asksAbout,
  asksEnd,
  asksPay,
  asksRule,
  asksStake,
  Bench,
  IAT,
  KEYS,
  pay,
  receiptOf,
  staked,
  verdictOf,
  TRX,
  WALLET,
  type JudgedRequest,
} from '../../testing/judging.ts'

/**
 * The refusals of each purpose before the transaction itself is checked, with the messages that the
 * platform receives.
 */
const ONE = 10n ** 18n
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const ID = '11111111-1111-4111-8111-111111111111'
const omnibus = [1, ETH.chain_index, 0]
const tank = [0, ETH.chain_index, 0]
const trxTank = [0, TRX.chain_index, 0]
const BASE = registry.network('BASE') as Network
let bench: Bench
let mine: Caller

beforeEach(() => {
  bench = new Bench()
  mine = bench.caller(1)
})
afterEach(() => {
  bench.close()
})

const back = () => eth(omnibus, { to: addressOf(ETH, omnibus) })
const refused = async (
  purpose: object,
  unsigned: Parameters<Bench['codeOf']>[1],
  said: string | null,
  workspace?: string,
) => {
  assert.equal(await bench.codeOf(purpose, unsigned, workspace), said)
}

test('refuses a request of another kind, of another workspace, or for another network', async () => {
  const [paid, rule, stake] = [
    await asksPay(mine),
    await asksRule(mine),
    await asksStake(mine, '/dav/v1/stake', { address: FRIEND }),
  ]
  const ask = (kind: 'pay' | 'forward' | 'stake', { request }: JudgedRequest) =>
    kind === 'pay'
      ? { kind, request }
      : kind === 'forward'
        ? { kind, id: ID, rule: request }
        : { kind, step: 'freeze', request }
  const freeze = staked([1, TRX.chain_index, 0], { kind: 'freeze' })
  const unsigned = {
    pay: eth(omnibus, { value: ONE }),
    forward: eth(omnibus, { value: ONE }),
    stake: freeze,
  }
  const nothing = {
    pay: 'The signed request is not for a payment',
    forward: 'The signed request does not create a forwarding rule',
    stake: 'The signed request is not for staking',
  }
  const right = { pay: paid, forward: rule, stake }
  for (const kind of ['pay', 'forward', 'stake'] as const) {
    for (const other of ['pay', 'forward', 'stake'] as const) {
      if (other !== kind)
        await refused(
          ask(kind, right[other]),
          unsigned[kind],
          `ACTION_NOT_ALLOWED: ${nothing[kind]}`,
        )
    }
    await refused(
      ask(kind, right[kind]),
      unsigned[kind],
      'WORKSPACE_MISMATCH: The caller belongs to another workspace',
      'v',
    )
  }
  for (const name of ['unstake', 'release-unstaked'] as const) {
    const { request } = await asksStake(mine, `/dav/v1/${name}`, {
      address: addressOf(TRX, [1, TRX.chain_index, 0]),
    })
    const kind = name === 'unstake' ? 'unfreeze' : 'withdraw'
    await refused(
      { kind: 'stake', step: kind, request },
      staked([1, TRX.chain_index, 0], { kind }),
      null,
    )
  }
  await refused(
    pay(paid),
    { ...unsigned.pay, network: 'BASE' },
    'NETWORK_MISMATCH: The asset belongs to ETH, and the transaction is on another network',
  )
})

test('refuses a cancellation or a speed-up of another payment, or by another sub-account', async () => {
  const friend = bench.caller(1)
  const [stranger, tenant] = [bench.caller(2), bench.caller(1, { workspace: 'v' })]
  const paid = await asksPay(mine)
  const cancelled = (by: JudgedRequest, of: object = pay(paid)) =>
    bench.codeOf({ kind: 'cancel', of, request: by.request }, back())
  const no = 'ACTION_NOT_ALLOWED: The signed request is not for a cancel of this payment'
  const other = 'WORKSPACE_MISMATCH: The caller belongs to another sub-account'
  assert.equal(await cancelled(await asksAbout(mine, paid.id, 'speed-up')), no)
  assert.equal(await cancelled(await asksAbout(mine, ID, 'cancel')), no)
  assert.equal(await cancelled(paid), no)
  for (const by of [stranger, tenant]) {
    assert.equal(await cancelled(await asksAbout(by, paid.id, 'cancel')), other)
    const faster = pay(paid, {
      speed_up: { request: (await asksAbout(by, paid.id, 'speed-up')).request },
    })
    await refused(faster, eth(omnibus, { value: ONE }), other)
  }
  const slower = pay(paid, {
    speed_up: { request: (await asksAbout(mine, paid.id, 'cancel')).request },
  })
  await refused(
    slower,
    eth(omnibus, { value: ONE }),
    'ACTION_NOT_ALLOWED: The signed request is not for a speed-up of this payment',
  )

  const [rule, another] = [await asksRule(mine), await asksRule(mine)]
  const of = { kind: 'forward', id: ID, rule: rule.request }
  const deletes = 'ACTION_NOT_ALLOWED: The signed request deletes a different rule'
  assert.equal(await cancelled(await asksEnd(mine, another.id), of), deletes)
  for (const by of [stranger, tenant])
    assert.equal(await cancelled(await asksEnd(by, rule.id), of), deletes)
  for (const by of [stranger, tenant])
    assert.equal(await cancelled(await asksAbout(by, ID, 'cancel'), of), other)
  assert.equal(await cancelled(await asksAbout(mine, rule.id, 'cancel'), of), no)
  const nothing =
    'NOTHING_TO_CANCEL: No transaction of the payment is on the record of this node or in "replaces", so a void is sufficient'
  assert.equal(await cancelled(await asksEnd(friend, rule.id), of), nothing)
  assert.equal(await cancelled(await asksAbout(friend, paid.id, 'cancel')), nothing)
  await refused(of, eth(omnibus, { value: ONE }), null)
  await refused(pay(paid), eth(omnibus, { value: ONE }), null)
  assert.equal(await cancelled(await asksEnd(friend, rule.id), of), null)
  assert.equal(await cancelled(await asksAbout(friend, paid.id, 'cancel')), null)
})

test('the fee limit is that of the last speed-up or cancellation; ending a rule has no limit', async () => {
  const paid = await asksPay(mine, { fee_rate: 1 })
  const dear = (rate: bigint) => eth(omnibus, { value: ONE, maxFeePerGas: rate * 1_000_000_000n })
  const faster = pay(paid, {
    speed_up: { request: (await asksAbout(mine, paid.id, 'speed-up', { fee_rate: 3 })).request },
  })
  await refused(pay(paid), dear(2n), "FEE_RATE: The fee rate 2 is above the caller's fee_rate")
  await refused(faster, dear(4n), "FEE_RATE: The fee rate 4 is above the caller's fee_rate")
  await refused(faster, dear(3n), null)
  const cancel = (of: object, by: JudgedRequest) =>
    bench.codeOf(
      { kind: 'cancel', of, request: by.request },
      eth(omnibus, { to: addressOf(ETH, omnibus), maxFeePerGas: 9_000_000_000n }),
    )
  await refused(pay(paid), dear(1n), null)
  assert.equal(await cancel(pay(paid), await asksAbout(mine, paid.id, 'cancel')), null)
})

test('a revoked caller cannot pay, but their payments can be cancelled and energy returned', async () => {
  const friend = bench.caller(1)
  const [paid, rule] = [await asksPay(mine), await asksRule(mine)]
  const tron = await asksPay(mine, { asset: 'USDT_TRX', destination_address: FRIEND })
  const tronRule = await asksRule(mine, { asset: 'USDT_TRX', destination_address: FRIEND })
  const [cancels, ends, own] = [
    await asksAbout(friend, paid.id, 'cancel'),
    await asksEnd(friend, rule.id),
    await asksAbout(mine, paid.id, 'cancel'),
  ]
  const between = await bench.verdict(pay(paid), eth(omnibus, { value: ONE, nonce: 1 }))
  const of = { kind: 'forward', id: ID, rule: rule.request }
  await refused(pay(paid), eth(omnibus, { value: ONE }), null)
  await refused(of, eth(omnibus, { value: ONE }), null)
  bench.store.append('revoke', { api_key: mine.api_key })
  const revoked = 'NOT_ENROLLED: The API key is revoked at this node'
  assert.equal(await verdictOf(() => bench.judge.assertAllowed(between)), revoked)
  assert.equal(
    await verdictOf(() => bench.judge.assertAllowed({ ...between, callers: ['nobody'] })),
    revoked,
  )
  await refused(pay(paid), eth(omnibus, { value: ONE }), revoked)
  await refused(of, eth(omnibus, { value: ONE }), revoked)
  assert.equal(
    await verdictOf(() => bench.verdict(of, eth(omnibus, { value: ONE }))),
    revoked,
    'before the record is asked',
  )
  await refused({ kind: 'cancel', of: pay(paid), request: own.request }, back(), revoked)
  for (const { request } of [paid, rule, own]) {
    assert.equal(
      await verdictOf(() => bench.judge.understand(request)),
      revoked,
      'nor is a receipt given',
    )
  }
  const lend = (step: 'delegate' | 'undelegate', purpose: object) =>
    bench.codeOf(
      { kind: 'lend', step, for: purpose },
      staked(trxTank, { kind: step, receiver: addressOf(TRX, [1, TRX.chain_index, 0]) }),
    )
  for (const purpose of [pay(tron), { kind: 'forward', id: ID, rule: tronRule.request }]) {
    assert.deepEqual(
      [await lend('delegate', purpose), await lend('undelegate', purpose)],
      [revoked, null],
    )
    const early = staked(trxTank, {
      kind: 'delegate',
      receiver: addressOf(TRX, [1, TRX.chain_index, 0]),
    })
    assert.equal(
      await verdictOf(() => bench.verdict({ kind: 'lend', step: 'delegate', for: purpose }, early)),
      revoked,
    )
  }
  await refused({ kind: 'cancel', of: pay(paid), request: cancels.request }, back(), null)
  await refused({ kind: 'cancel', of, request: ends.request }, back(), null)
})

test('each purpose has its own rules and its own allowed paths', async () => {
  bench.caller(2)
  const elsewhere = [2, ETH.chain_index, 0]
  const foreign = `FOREIGN_PATH: The path ${elsewhere.join('/')} is not in the payer's wallet`
  const [paid, rule] = [await asksPay(mine), await asksRule(mine)]
  const of = { kind: 'forward', id: ID, rule: rule.request }
  const cancel = {
    kind: 'cancel',
    of: pay(paid),
    request: (await asksAbout(mine, paid.id, 'cancel')).request,
  }
  await refused(pay(paid), eth(elsewhere, { value: ONE }), foreign)
  await refused(of, eth(elsewhere, { value: ONE }), foreign)
  await refused(cancel, eth(elsewhere, { to: addressOf(ETH, omnibus) }), foreign)
  await refused(
    pay(paid),
    eth(omnibus, { value: 1n }),
    `AMOUNT_MISMATCH: The transaction must pay ${ONE}, and pays 1`,
  )
  await refused(
    of,
    eth(omnibus, { value: 1n }),
    `FORWARD_TOO_SMALL: The forward moves 1, but the rule's minimum is ${ONE}`,
  )
  await refused(
    cancel,
    eth(omnibus),
    "DESTINATION_MISMATCH: The transaction must pay the sender's own wallet",
  )
  const sweep = { kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: 7 }
  await refused(
    sweep,
    eth([1, ETH.chain_index, 7], { value: ONE }),
    "DESTINATION_MISMATCH: The transaction must pay the sub-account's omnibus address",
  )
  await refused(
    { kind: 'fuel', for: pay(paid), gas: '1', max_fee_per_gas: '1' },
    eth(tank, { value: 1n }),
    'DESTINATION_MISMATCH: The transaction must pay the source address of the transfer that it is for',
  )

  const [own, other] = [
    [1, TRX.chain_index, 0],
    [2, TRX.chain_index, 0],
  ]
  const { request } = await asksStake(mine, '/dav/v1/stake', { address: FRIEND })
  const stake = { kind: 'stake', step: 'freeze', request }
  await refused(
    stake,
    staked(other, { kind: 'freeze' }),
    `FOREIGN_PATH: Only the path ${own.join('/')} may be used here`,
  )
  await refused(
    stake,
    staked(own, { kind: 'freeze', amount: 1n }),
    'AMOUNT_MISMATCH: The amount of the transaction differs from the approved amount',
  )
  const tron = await asksPay(mine, { asset: 'USDT_TRX', destination_address: FRIEND })
  const lend = { kind: 'lend', step: 'delegate', for: pay(tron) }
  await refused(
    lend,
    staked(trxTank, { kind: 'delegate', receiver: FRIEND }),
    'DESTINATION_MISMATCH: The transaction must lend to, or reclaim from, the approved address',
  )
  bench.store.append('drain', {
    order: 'd',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    expires_at: IAT,
  })
  bench.store.append('tank-stake', {
    order: 't',
    workspace: 'w',
    network: 'TRX',
    action: 'stake',
    resource: 'ENERGY',
    amount: '5',
    expires_at: IAT,
  })
  await refused(
    { kind: 'drain', order: 'd' },
    eth(tank, { to: addressOf(ETH, omnibus) }),
    "DESTINATION_MISMATCH: The transaction must pay the destination of the operator's order",
  )
  await refused(
    { kind: 'tank-stake', order: 't' },
    staked(trxTank, { kind: 'freeze', amount: 6n }),
    'AMOUNT_MISMATCH: The amount of the transaction differs from the approved amount',
  )
})

test("a rule that this node did not receive in time needs a peer's signature", async () => {
  const rule = await asksRule(mine)
  const { want } = await bench.judge.understand(rule.request)
  const of = (receipts?: object[]) => ({
    kind: 'forward',
    id: ID,
    rule: rule.request,
    ...(receipts ? { receipts } : {}),
  })
  bench.now = IAT + 3600
  const unsigned = eth(omnibus, { value: ONE })
  const unknown =
    'RULE_UNKNOWN: This node did not receive the rule before its request expired, and no peer reports that it did'
  await refused(of(), unsigned, unknown)
  await refused(of([]), unsigned, unknown)
  await refused(
    of([
      receiptOf({
        node: 2,
        api_key: mine.api_key,
        nonce: rule.nonce,
        intent: want.content,
        seen_at: IAT,
      }),
    ]),
    unsigned,
    null,
  )
})

const COST = { gas: '21000', max_fee_per_gas: '1' }
const fuel = (of: object, more: object = {}) => ({ kind: 'fuel', for: of, ...COST, ...more })
const transactionOf = (value = 1n) => eth(tank, { to: addressOf(ETH, omnibus), value })

test('refuses gas funding for payments that pay their own fee, and invalid shared funding', async () => {
  const [one, two] = [await asksPay(mine), await asksPay(mine)]
  const coins = await asksPay(mine, { asset: 'BTC', amount: 0.001, destination_address: SINK_BTC })
  await refused(
    fuel(pay(coins)),
    transactionOf(),
    'FUEL_WITHOUT_INTENT: Transfers on BTC pay their own network fees, so fuel is not allowed',
  )
  await refused(
    fuel({ kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: 7 }),
    transactionOf(),
    'FUEL_WITHOUT_INTENT: A sweep of ETH pays its own network fee, so fuel is not allowed',
  )
  await refused(
    fuel(pay(one)),
    eth(omnibus, { to: addressOf(ETH, omnibus) }),
    `FOREIGN_PATH: Only the path ${tank.join('/')} may be used here`,
  )
  const only = 'SHAPE: Only payments can share a fuel transaction'
  const beside = [{ for: pay(two), ...COST }]
  const faster = { speed_up: { request: (await asksAbout(mine, one.id, 'speed-up')).request } }
  const cancel = {
    kind: 'cancel',
    of: pay(one),
    request: (await asksAbout(mine, one.id, 'cancel')).request,
  }
  const sweep = { kind: 'sweep', sub_account: 1, asset: 'USDT_ETH', address_index: 7 }
  for (const purpose of [pay(one, faster), cancel, sweep])
    await refused(fuel(purpose, { beside }), transactionOf(), only)
  await refused(
    fuel(pay(two), { beside: [{ for: pay(one, faster), ...COST }] }),
    transactionOf(),
    'SHAPE: A payment that was sped up requires its own fuel transaction',
  )
  await refused(
    fuel(pay(one), { beside: [{ for: pay(one), ...COST }] }),
    transactionOf(),
    'SHAPE: The fuel transaction is for the same payment twice',
  )
  const several =
    'DESTINATION_MISMATCH: Payments of several addresses cannot share a fuel transaction'
  const others = [await asksPay(bench.caller(2)), await asksPay(mine, { asset: 'USDT_BASE' })]
  for (const other of others)
    await refused(
      fuel(pay(one), { beside: [{ for: pay(other), ...COST }] }),
      transactionOf(),
      several,
    )
  const limited = await asksPay(mine, { fee_rate: 1 })
  const dear = { ...COST, max_fee_per_gas: '1000000001' }
  const rate = "FEE_RATE: The fee rate that the fuel pays for is above the caller's fee_rate"
  await refused(fuel(pay(limited), dear), transactionOf(), rate)
  await refused(fuel(pay(one), { beside: [{ for: pay(limited), ...dear }] }), transactionOf(), rate)
  await refused(
    fuel(pay(one), { ...dear, beside: [{ for: pay(limited), ...COST }] }),
    transactionOf(),
    null,
  )
  for (const free of [{ kind: 'forward', id: ID, rule: (await asksRule(mine)).request }]) {
    await refused(
      fuel(free, dear),
      eth(tank, { to: addressOf(ETH, omnibus), value: 1n, nonce: 1 }),
      null,
    )
  }
})

test('refuses delegated energy without a stake, or from an address other than the tank', async () => {
  const request = await asksPay(mine)
  const lend = (of: object, path: number[]) =>
    bench.codeOf(
      { kind: 'lend', step: 'delegate', for: of },
      staked(path, { kind: 'delegate', receiver: addressOf(TRX, [1, TRX.chain_index, 0]) }),
    )
  assert.equal(
    await lend(pay(request), trxTank),
    'FUEL_WITHOUT_INTENT: The network ETH has no energy that can be lent',
  )
  const tron = await asksPay(mine, { asset: 'TRX', destination_address: FRIEND })
  assert.equal(
    await lend(pay(tron), [1, TRX.chain_index, 0]),
    `FOREIGN_PATH: Only the path ${trxTank.join('/')} may be used here`,
  )
  assert.equal(
    await lend({ kind: 'sweep', sub_account: 1, asset: 'USDT_ETH', address_index: 7 }, trxTank),
    'FUEL_WITHOUT_INTENT: The network ETH has no energy that can be lent',
  )
  bench.caller(TANK_SUB_ACCOUNT)
  assert.equal(
    await lend({ kind: 'sweep', sub_account: 0, asset: 'USDT_TRX', address_index: 1 }, trxTank),
    'FOREIGN_PATH: The gas tank must not be swept',
  )
})

test('refuses sweeps of the tank, the omnibus address, and unknown sub-accounts or assets', async () => {
  const sweep = (more: object) => ({
    kind: 'sweep',
    sub_account: 1,
    asset: 'ETH',
    address_index: 7,
    ...more,
  })
  const unsigned = eth([1, ETH.chain_index, 7], { to: addressOf(ETH, omnibus), value: ONE })
  bench.caller(TANK_SUB_ACCOUNT)
  await refused(sweep({ asset: 'BTC' }), unsigned, 'SWEEP_MISMATCH: BTC requires no sweeps')
  await refused(sweep({ asset: 'XRP' }), unsigned, 'SWEEP_MISMATCH: XRP requires no sweeps')
  await refused(sweep({ sub_account: 0 }), unsigned, 'FOREIGN_PATH: The gas tank must not be swept')
  await refused(sweep({ sub_account: 9 }), unsigned, 'NOT_ENROLLED: No sub-account has the index 9')
  await refused(
    sweep({ address_index: 0 }),
    unsigned,
    'SWEEP_MISMATCH: The omnibus address must not be swept',
  )
  await refused(
    sweep({ asset: 'NOPE' }),
    unsigned,
    "UNKNOWN_ASSET: The asset NOPE is not in this node's registry",
  )
  await refused(
    sweep({ address_index: 8 }),
    unsigned,
    `FOREIGN_PATH: Only the path 1/${ETH.chain_index}/8 may be used here`,
  )
  await refused(
    sweep({}),
    { ...unsigned, network: 'BASE' },
    'NETWORK_MISMATCH: The transaction must be on ETH',
  )
  await refused(sweep({}), unsigned, null)
})

test("refuses an operator's order that is missing, not from the tank, or on an unknown network", async () => {
  bench.store.append('drain', {
    order: 'd',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    expires_at: IAT,
  })
  bench.store.append('drain', {
    order: 'n',
    workspace: 'w',
    network: 'NOPE',
    to_address: SINK_ETH,
    expires_at: IAT,
  })
  bench.store.append('tank-stake', {
    order: 't',
    workspace: 'w',
    network: 'TRX',
    action: 'stake',
    resource: 'ENERGY',
    amount: '5',
    expires_at: IAT,
  })
  const freeze = (path: number[]) => staked(path, { kind: 'freeze', amount: 5n })
  const none = 'ORDER_UNKNOWN: This node has no such order from its operator'
  await refused({ kind: 'drain', order: 'x' }, eth(tank), none)
  await refused({ kind: 'tank-stake', order: 'x' }, freeze(trxTank), none)
  await refused(
    { kind: 'drain', order: 'd' },
    eth(omnibus),
    `FOREIGN_PATH: Only the path ${tank.join('/')} may be used here`,
  )
  await refused(
    { kind: 'tank-stake', order: 't' },
    freeze([1, TRX.chain_index, 0]),
    `FOREIGN_PATH: Only the path ${trxTank.join('/')} may be used here`,
  )
  await refused(
    { kind: 'drain', order: 'n' },
    { ...eth(tank), network: 'NOPE' },
    "NETWORK_MISMATCH: The network NOPE is not in this node's registry",
  )
  await refused({ kind: 'drain', order: 'd' }, eth(tank, { value: 1n }), null)
  await refused(
    { kind: 'drain', order: 'd' },
    eth(tank, { value: 2n, nonce: 1 }),
    'NOT_EXCLUSIVE: Another transaction of this step was signed, and both could be mined',
  )
  await refused({ kind: 'tank-stake', order: 't' }, freeze(trxTank), null)
  const later = staked(trxTank, { kind: 'freeze', amount: 5n }, { timestamp: IAT * 1000 + 1 })
  await refused(
    { kind: 'tank-stake', order: 't' },
    later,
    'NOT_EXCLUSIVE: Another transaction of this step was signed, and both could be mined',
  )
})

test('refuses unreadable input with its rule number, and passes other errors on', async () => {
  const order = (unsigned: ReturnType<typeof eth>) =>
    bench.order({ kind: 'drain', order: 'd' }, unsigned)
  const said = async (unsigned: ReturnType<typeof eth>, network: Network) => {
    try {
      await decodedOn(bench.context, order(unsigned), network)
      return null
    } catch (error) {
      const { code, detail } = error as Refusal
      return [code, detail['chain_code']]
    }
  }
  const path = (index: number) => [1, BTC.chain_index, index]
  const inputs = [
    { funding: funding(WALLET, [{ path: path(0), value: 200_000n }]), output: 0, path: path(0) },
  ]
  const coins = btc(WALLET, { inputs, amount: 100_000n, change: { path: path(5), value: 99_000n } })
  assert.deepEqual(await said(eth(omnibus, { chainId: 1 }), ETH), ['CHAIN_ID_MISMATCH', 'CHAIN_ID'])
  assert.deepEqual(await said(usdt(omnibus, SINK_ETH, 1n, { to: SINK_ETH }), ETH), [
    'CONTRACT_MISMATCH',
    'CONTRACT',
  ])
  assert.deepEqual(await said({ ...coins, change: { output: 1, path: path(6) } }, BTC), [
    'CHANGE_MISMATCH',
    'CHANGE',
  ])
  assert.deepEqual(
    await said(
      {
        ...coins,
        inputs: [
          { path: path(0), previous: funding(WALLET, [{ path: path(0), value: 1n }]).toHex() },
        ],
      },
      BTC,
    ),
    ['PREVIOUS_TRANSACTION', 'PREVIOUS_TRANSACTION'],
  )
  assert.deepEqual(await said({ ...eth(omnibus), bytes: '02ff' }, ETH), ['SHAPE', 'TRANSACTION'])
  assert.equal(await said(eth(omnibus), ETH), null)
  const unread = { ...bench.context, registry: { ...registry, network: () => undefined } }
  assert.equal(
    await verdictOf(() => decodedOn(unread, order(eth(omnibus)), ETH)),
    'NETWORK_MISMATCH: network ETH is not available',
  )
  const broken = {
    ...bench.context,
    keyOf: () =>
      Promise.resolve({
        ...KEYS.secp256k1,
        publicKeyAt: () => {
          throw new TypeError('broken')
        },
      }),
  }
  await assert.rejects(decodedOn(broken, order(eth(omnibus)), ETH), TypeError)
  assert.equal(networkOf(bench.context, 'USDT_BASE'), BASE)
  assert.equal(networkNamed(bench.context, 'BASE'), BASE)
})
