import { solana, type Asset, type Network } from '@custody/chains'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sha256hex } from '../canonical.ts'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import type { Verdict } from './order.ts'
import { ETH, eth, registry, SINK_ETH, usdt, type Caller } from '../../testing/signer-cluster.ts'
import {
  addressOf,
  asksAbout,
  asksEnd,
  asksPay,
  asksRule,
  asksStake,
  Bench,
  IAT,
  keyOf,
  KEYS,
  names,
  pay,
  receiptOf,
  staked,
  verdictOf,
  TRX,
  trx,
  type JudgedRequest,
} from '../../testing/judging.ts'

/**
 * The result of each purpose's check: what the record must allow, and what is stored with it. The
 * names are part of the record and never change.
 */
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
/** Fee of a payment in ether at the gas price of these tests. */
const FEE = 21_000n * 2n * GWEI
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const CAP = BigInt(ETH.fee_cap) * 4n
const TRX_CAP = BigInt(TRX.fee_cap) * 4n
const omnibus = [1, ETH.chain_index, 0]
const tank = [0, ETH.chain_index, 0]
const staker = [1, TRX.chain_index, 0]
const trxTank = [0, TRX.chain_index, 0]
let bench: Bench
let mine: Caller
let friend: Caller

before(() => {
  bench = new Bench()
  mine = bench.caller(1)
  friend = bench.caller(1)
})
after(() => {
  bench.close()
})

const requestOf = ({ caller, nonce }: JudgedRequest): string =>
  names('request', caller.api_key, nonce)
const contentOf = async ({ request }: JudgedRequest): Promise<string> =>
  (await bench.judge.understand(request)).want.content
const seenOf = async (request: JudgedRequest, action = 'pay') => ({
  api_key: request.caller.api_key,
  nonce: request.nonce,
  intent: keyOf(request, action),
  content: await contentOf(request),
  transaction_id: request.id,
  iat: IAT,
  exp: IAT + 25,
  timely: true,
})
const intentOf = async (request: JudgedRequest, action = 'pay') => ({
  key: keyOf(request, action),
  content: await contentOf(request),
  transaction_id: request.id,
})
const NOTHING = {
  repeatable: false,
  intent: null,
  beside: [],
  seen: [],
  callers: [],
  voidNames: [],
  voids: [],
  charges: [],
  leftover: null,
  fuelled: null,
  rule: null,
  ordered: null,
  policy: null,
}
function says(verdict: Verdict, said: Partial<Verdict>): void {
  // `acts.test.ts` tests what a policy judges.
  const { order, network, key, decoded, unsignedHash, assertAge, ...others } = verdict
  const { acts: _acts, isAct: _isAct, serves: _serves, ...rest } = others
  assert.deepEqual(
    { ...rest, assertAge: typeof assertAge },
    { ...NOTHING, ...said, assertAge: 'function' },
  )
  assert.equal(unsignedHash, hashOfUnsigned(order.unsigned))
  assert.deepEqual(
    [network.code, key, decoded.network],
    [order.unsigned.network, KEYS[network.curve], network.code],
  )
}
/**
 * Runs `act` with a clock two days ahead. The record's own clock never goes back, so only the code
 * that reads the clock in `act` sees the other time.
 */
async function twoDaysLater<T>(act: () => Promise<T>): Promise<T> {
  const { store } = bench.context
  const seconds = store.seconds.bind(store)
  store.seconds = () => IAT + 2 * 86_400
  try {
    return await act()
  } finally {
    store.seconds = seconds
  }
}
const seenBySecond = async (request: JudgedRequest) => ({
  receipts: [
    receiptOf({
      node: 2,
      api_key: request.caller.api_key,
      nonce: request.nonce,
      intent: await contentOf(request),
      seen_at: IAT,
    }),
  ],
})
/**
 * Returns whether rule 3 binds the request alone: two days later, with a peer's receipt and
 * without.
 */
async function isBoundBy(
  request: JudgedRequest,
  verdict: (receipts: object) => Promise<Verdict>,
): Promise<void> {
  const { assertAge } = await verdict({})
  const late = await verdict(await seenBySecond(request))
  assert.deepEqual([await verdictOf(assertAge), await verdictOf(late.assertAge)], [null, null])
  assert.deepEqual(
    await twoDaysLater(async () => [await verdictOf(assertAge), await verdictOf(late.assertAge)]),
    [TOO_OLD, null],
  )
}
const TOO_OLD =
  'TOO_OLD: The request was issued more than 24 hours ago, and no node received it before it expired'

test('the verdict on a payment contains its intent, request and caller, and no budget', async () => {
  const request = await asksPay(mine)
  const judged = (more: object) => bench.verdict(pay(request, more), eth(omnibus, { value: ONE }))
  says(await judged({}), {
    step: names('pay', keyOf(request)),
    intent: await intentOf(request),
    seen: [await seenOf(request)],
    callers: [mine.api_key],
    voidNames: [keyOf(request), requestOf(request)],
  })
  await isBoundBy(request, judged)
  const other = await asksPay(mine, { sequence_id: 's' })
  const { step } = await bench.verdict(pay(other), eth(omnibus, { value: ONE }))
  assert.equal(step, names('pay', names('pay', 'sequence', 'w', 1, 'ETH', 's')))
})

test('the verdict on a sped-up payment contains both requests; the later one sets its age', async () => {
  const [request, name] = [await asksPay(mine, { fee_rate: 1 }), 'speed-up' as const]
  const later = await asksAbout(friend, request.id, name, { fee_rate: 2 })
  const judged = (more: object) =>
    bench.verdict(
      pay(request, { speed_up: { request: later.request, ...more } }),
      eth(omnibus, { value: ONE }),
    )
  says(await judged({}), {
    step: names('pay', keyOf(request)),
    intent: await intentOf(request),
    seen: [await seenOf(request), await seenOf(later, name)],
    callers: [mine.api_key, friend.api_key],
    voidNames: [keyOf(request), requestOf(request), requestOf(later)],
  })
  await isBoundBy(later, judged)
})

test('a cancellation voids the payment by all its names, and needs an enrolled caller', async () => {
  const request = await asksPay(mine)
  const later = await asksAbout(mine, request.id, 'speed-up')
  const by = await asksAbout(friend, request.id, 'cancel')
  const of = pay(request, { speed_up: { request: later.request } })
  await bench.codeOf(pay(request), eth(omnibus, { value: ONE }))
  const judged = (more: object) =>
    bench.verdict(
      { kind: 'cancel', of, request: by.request, ...more },
      eth(omnibus, { to: addressOf(ETH, omnibus) }),
    )
  says(await judged({}), {
    step: names('pay', keyOf(request)),
    intent: await intentOf(request),
    seen: [await seenOf(request), await seenOf(by, 'cancel')],
    callers: [friend.api_key],
    voidNames: [requestOf(by)],
    voids: [keyOf(request), requestOf(request)],
  })
  await isBoundBy(by, judged)
})

const RULE = { asset: 'ETH', min_amount: 1, destination_address: SINK_ETH, daily_cap: 5 }
const ID = '11111111-1111-4111-8111-111111111111'
async function ruled() {
  const rule = await asksRule(mine, RULE)
  const step = names('forward', rule.id, ID)
  const content = sha256hex(JSON.stringify([step, await contentOf(rule)]))
  return {
    rule,
    step,
    of: { kind: 'forward', id: ID, rule: rule.request },
    intent: { key: step, content, transaction_id: ID },
    voidNames: [keyOf(rule, 'forward'), requestOf(rule), names('rule', 'w', 1, rule.id), step],
    standing: {
      rule: rule.id,
      api_key: mine.api_key,
      nonce: rule.nonce,
      content: await contentOf(rule),
      workspace: 'w',
      sub_account: 1,
      asset: 'ETH',
      destination: SINK_ETH,
      tag: null,
      min_amount: ONE.toString(),
      daily_cap: (5n * ONE).toString(),
      expires_at: IAT + 86_400,
    },
  }
}

test('a forward is charged to its rule and the fee budget, and has every name to void it', async () => {
  const { rule, step, of, intent, voidNames, standing } = await ruled()
  says(await bench.verdict(of, eth(omnibus, { value: ONE })), {
    step,
    intent,
    seen: [await seenOf(rule, 'forward')],
    callers: [mine.api_key],
    voidNames,
    rule: standing,
    charges: [
      {
        budget: names('forward', rule.id),
        amount: ONE + FEE,
        limit: 5n * ONE,
        largest: true,
        rule: true,
      },
      { budget: names('w', 'ETH', '1'), amount: FEE, limit: CAP, largest: true },
    ],
  })
})

test('a forward can be cancelled by its own cancellation or by the end of its rule', async () => {
  const { rule, step, of, intent } = await ruled()
  const back = eth(omnibus, { to: addressOf(ETH, omnibus) })
  await bench.codeOf(of, eth(omnibus, { value: ONE }))
  const by = await asksAbout(friend, ID, 'cancel')
  const seen = await seenOf(rule, 'forward')
  const common = { step, intent, callers: [friend.api_key], voids: [step] }
  const judged = (request: JudgedRequest) => (more: object) =>
    bench.verdict({ kind: 'cancel', of, request: request.request, ...more }, back)
  says(await judged(by)({}), {
    ...common,
    seen: [seen, await seenOf(by, 'cancel')],
    voidNames: [requestOf(by)],
  })
  const end = await asksEnd(friend, rule.id)
  says(await judged(end)({}), {
    ...common,
    seen: [seen, await seenOf(end, 'end-forward')],
    voidNames: [requestOf(end)],
  })
  await isBoundBy(by, judged(by))
  await isBoundBy(end, judged(end))
})

const COST = { gas: '21000', max_fee_per_gas: String(2n * GWEI) }
const fuelled = (of: object, more: object = {}, at = 1, value = FEE) =>
  bench.verdict(
    { kind: 'fuel', for: of, ...COST, ...more },
    eth(tank, { to: addressOf(ETH, [1, ETH.chain_index, at === 1 ? 0 : at]), value }),
  )
const draws = (amount: bigint) => ({
  charges: [{ budget: names('w', 'ETH', '1'), amount, limit: CAP }],
})

test('gas funding is a separate step of a payment, charged to the caller', async () => {
  const request = await asksPay(mine)
  const common = { intent: await intentOf(request), ...draws(2n * FEE) }
  says(await fuelled(pay(request)), {
    ...common,
    step: names('fuel', keyOf(request)),
    seen: [await seenOf(request)],
    callers: [mine.api_key],
    voidNames: [keyOf(request), requestOf(request)],
  })
  await isBoundBy(request, (more) => fuelled(pay(request, more)))
  const later = await asksAbout(friend, request.id, 'speed-up', { fee_rate: 2 })
  says(await fuelled(pay(request, { speed_up: { request: later.request } })), {
    ...common,
    step: names('fuel', keyOf(request), keyOf(later, 'speed-up')),
    seen: [await seenOf(request), await seenOf(later, 'speed-up')],
    callers: [mine.api_key, friend.api_key],
    voidNames: [keyOf(request), requestOf(request), requestOf(later)],
  })
  await bench.codeOf(pay(request), eth(omnibus, { value: ONE }))
  const by = await asksAbout(friend, request.id, 'cancel')
  const dearer = { max_fee_per_gas: String(3n * GWEI) }
  const cancels = { kind: 'cancel', of: pay(request), request: by.request }
  says(await fuelled(cancels, dearer, 1, FEE / 2n), {
    ...common,
    ...draws(FEE + FEE / 2n),
    step: names('fuel', keyOf(request), 'cancel'),
    seen: [await seenOf(request), await seenOf(by, 'cancel')],
    callers: [friend.api_key],
    voidNames: [requestOf(by)],
    voids: [keyOf(request), requestOf(request)],
  })
  const { rule, step, of, intent, voidNames, standing } = await ruled()
  const end = await asksEnd(friend, rule.id)
  await bench.codeOf(of, eth(omnibus, { value: ONE }))
  const instead = await fuelled({ kind: 'cancel', of, request: end.request }, dearer, 1, FEE / 2n)
  assert.equal(instead.step, names('fuel', step, 'cancel'))
  says(await fuelled(of), {
    step: names('fuel', step),
    intent,
    seen: [await seenOf(rule, 'forward')],
    callers: [mine.api_key],
    voidNames,
    rule: standing,
    ...draws(2n * FEE),
  })
})

test('gas funding for three payments has a step of each; the oldest request sets its age', async () => {
  const [one, two, three] = [
    await asksPay(mine),
    await asksPay(friend, { asset: 'USDT_ETH' }),
    await asksPay(mine),
  ]
  const judged = (of: JudgedRequest) => (more: object) =>
    fuelled(
      pay(one, of === one ? more : {}),
      {
        beside: [two, three].map((each) => ({ for: pay(each, of === each ? more : {}), ...COST })),
      },
      1,
      3n * FEE,
    )
  const beside = await Promise.all(
    [two, three].map(async (each) => ({
      step: names('fuel', keyOf(each)),
      intent: await intentOf(each),
    })),
  )
  const all = [one, two, three]
  says(await judged(one)({}), {
    step: names('fuel', keyOf(one)),
    intent: await intentOf(one),
    beside,
    seen: await Promise.all(all.map((each) => seenOf(each))),
    callers: [mine.api_key, friend.api_key, mine.api_key],
    voidNames: all.flatMap((each) => [keyOf(each), requestOf(each)]),
    ...draws(4n * FEE),
  })
  const proofs = await Promise.all(all.map((each) => seenBySecond(each)))
  const withProofs = (left: number) =>
    bench.verdict(
      {
        kind: 'fuel',
        for: pay(one, left === 0 ? {} : proofs[0]),
        ...COST,
        beside: [two, three].map((each, at) => ({
          for: pay(each, left === at + 1 ? {} : proofs[at + 1]),
          ...COST,
        })),
      },
      eth(tank, { to: addressOf(ETH, omnibus), value: FEE }),
    )
  for (const left of [0, 1, 2, 3]) {
    assert.equal(
      await twoDaysLater(async () => verdictOf((await withProofs(left)).assertAge)),
      left === 3 ? null : TOO_OLD,
    )
  }
})

test('gas funding of a sweep is repeatable, within the share of its sub-account', async () => {
  const address = addressOf(ETH, [1, ETH.chain_index, 7])
  says(
    await fuelled({ kind: 'sweep', sub_account: 1, asset: 'USDT_ETH', address_index: 7 }, {}, 7),
    {
      step: names('fuel', 'sweep', 'w', 1, 'USDT_ETH', 7),
      repeatable: true,
      charges: [
        { budget: names('w', 'ETH', 'sweep 1'), amount: 2n * FEE, limit: CAP / 4n },
        { budget: names('w', 'ETH', 'sweep'), amount: 2n * FEE, limit: CAP },
      ],
      leftover: { address, amount: FEE, most: (FEE * 12n) / 10n, place: '0' },
      fuelled: { kind: 'fuel', address, amount: FEE },
    },
  )
})

test('charges sweeps of tokens, of the native coin, and sweeps that the wallet pays', async () => {
  const path = [1, ETH.chain_index, 7]
  const [address, to] = [addressOf(ETH, path), addressOf(ETH, omnibus)]
  const sweep = (asset: string) => ({ kind: 'sweep', sub_account: 1, asset, address_index: 7 })
  const within = (code: string, amount: bigint, cap = CAP) => [
    { budget: names('w', code, 'sweep 1'), amount, limit: cap / 4n },
    { budget: names('w', code, 'sweep'), amount, limit: cap },
  ]
  const dear = 65_000n * 2n * GWEI
  says(await bench.verdict(sweep('USDT_ETH'), usdt(path, to, 5_000_000n)), {
    step: names('sweep', 'w', 1, 'USDT_ETH', 7),
    repeatable: true,
    charges: within('ETH', dear),
    fuelled: { kind: 'fees', address, amount: dear },
  })
  const moved = 10n * FEE
  says(await bench.verdict(sweep('ETH'), eth(path, { to, value: moved })), {
    step: names('sweep', 'w', 1, 'ETH', 7),
    repeatable: true,
    charges: within('ETH', FEE / 2n),
    leftover: { address, amount: moved, least: true },
  })
  const SOL = registry.network('SOL') as Network
  const at = (index: number) => ({
    path: [1, SOL.chain_index, index],
    publicKey: KEYS.ed25519.publicKeyAt([1, SOL.chain_index, index]),
  })
  const common = { blockhash: 'GfVcyD4kkTrj4bKc7WA9sZCin9JDbdT4Zkd3EittNR1W', unitPrice: 0n }
  const coin = solana.buildTransfer(SOL, {
    ...common,
    asset: registry.asset('SOL') as Asset,
    to: addressOf(SOL, at(0).path),
    amount: 1_000_000n,
    ...at(7),
  })
  says(await bench.verdict(sweep('SOL'), coin), {
    step: names('sweep', 'w', 1, 'SOL', 7),
    repeatable: true,
    charges: within('SOL', 0n, BigInt(SOL.fee_cap) * 4n),
  })
  const token = solana.buildTokenSweep(SOL, {
    ...common,
    asset: registry.asset('USDC_SOL') as Asset,
    amount: 5_000_000n,
    units: 90_000,
    from: at(7),
    omnibus: at(0),
  })
  says(await bench.verdict(sweep('USDC_SOL'), token), {
    step: names('sweep', 'w', 1, 'USDC_SOL', 7),
    repeatable: true,
    charges: within('SOL', 10_000n + solana.TOKEN_ACCOUNT_RENT, BigInt(SOL.fee_cap) * 4n),
  })
})

test('each staking call is its own step, with its own gas funding', async () => {
  const request = await asksStake(mine, '/dav/v1/stake', { address: FRIEND })
  const common = {
    intent: await intentOf(request, 'stake'),
    seen: [await seenOf(request, 'stake')],
    callers: [mine.api_key],
    voidNames: [keyOf(request, 'stake'), requestOf(request)],
  }
  const call = (step: 'freeze' | 'delegate') => (more: object) =>
    bench.verdict(
      { kind: 'stake', step, request: request.request, ...more },
      staked(staker, { kind: step, receiver: step === 'delegate' ? FRIEND : null }),
    )
  says(await call('freeze')({}), { ...common, step: names('freeze', keyOf(request, 'stake')) })
  says(await call('delegate')({}), { ...common, step: names('delegate', keyOf(request, 'stake')) })
  await isBoundBy(request, call('freeze'))
  const fuel = {
    kind: 'fuel',
    for: { kind: 'stake', step: 'freeze', request: request.request },
    gas: '280',
    max_fee_per_gas: '1000',
  }
  const verdict = await bench.verdict(fuel, trx(trxTank, addressOf(TRX, staker), 100n))
  says(verdict, {
    ...common,
    step: names('fuel', keyOf(request, 'stake')),
    charges: [
      { budget: names('w', 'TRX', '1'), amount: 100n + verdict.decoded.fee_max, limit: TRX_CAP },
    ],
  })
})

test('energy is delegated once for a request and repeatedly for a sweep, and can be reclaimed', async () => {
  const lend = (step: 'delegate' | 'undelegate', of: object, index = 0) =>
    bench.verdict(
      { kind: 'lend', step, for: of },
      staked(trxTank, { kind: step, receiver: addressOf(TRX, [1, TRX.chain_index, index]) }),
    )
  const request = await asksPay(mine, { asset: 'USDT_TRX', destination_address: FRIEND })
  const lent = await lend('delegate', pay(request))
  const own = ({ decoded: { fee_max: amount } }: Verdict) => ({
    charges: [{ budget: names('w', 'TRX', '1'), amount, limit: TRX_CAP }],
  })
  const shares = ({ decoded: { fee_max: amount } }: Verdict) => ({
    charges: [
      { budget: names('w', 'TRX', 'sweep 1'), amount, limit: TRX_CAP / 4n },
      { budget: names('w', 'TRX', 'sweep'), amount, limit: TRX_CAP },
    ],
  })
  const common = {
    intent: await intentOf(request),
    seen: [await seenOf(request)],
    callers: [mine.api_key],
    voidNames: [keyOf(request), requestOf(request)],
  }
  says(lent, { ...common, step: names('lend', keyOf(request)), ...own(lent) })
  await isBoundBy(request, (more) => lend('delegate', pay(request, more)))
  const back = await lend('undelegate', pay(request))
  says(back, { step: names('undelegate', keyOf(request)), repeatable: true, ...own(back) })
  const rule = await asksRule(mine, { asset: 'USDT_TRX', destination_address: FRIEND })
  const step = names('forward', rule.id, ID)
  const forward = await lend('delegate', { kind: 'forward', id: ID, rule: rule.request })
  assert.deepEqual(
    [forward.step, forward.intent?.key, forward.rule, forward.callers],
    [names('lend', step), step, null, [mine.api_key]],
  )
  const sweep = { kind: 'sweep', sub_account: 1, asset: 'USDT_TRX', address_index: 7 }
  const name = names('sweep', 'w', 1, 'USDT_TRX', 7)
  for (const [kind, of] of [
    ['delegate', 'lend'],
    ['undelegate', 'undelegate'],
  ] as const) {
    const verdict = await lend(kind, sweep, 7)
    says(verdict, { step: names(of, name), repeatable: true, ...shares(verdict) })
  }
})

test("judges an operator's orders to empty a tank and to change its stake", async () => {
  bench.store.append('drain', {
    order: 'd',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    expires_at: IAT,
  })
  says(await bench.verdict({ kind: 'drain', order: 'd' }, eth(tank, { value: 1n })), {
    step: names('drain', 'd'),
    ordered: {
      order: 'd',
      action: 'drain',
      facts: {
        network: 'ETH',
        asset: 'ETH',
        decimals: 18,
        amount: null,
        to: SINK_ETH,
        tag: null,
        resource: null,
      },
    },
  })
  const common = { workspace: 'w', network: 'TRX', resource: 'ENERGY', amount: '5' } as const
  for (const [order, action] of [
    ['t', 'stake'],
    ['u', 'unstake'],
  ] as const)
    bench.store.append('tank-stake', { ...common, order, action, expires_at: IAT })
  const verdictOf = (order: string, kind: 'freeze' | 'unfreeze') =>
    bench.verdict({ kind: 'tank-stake', order }, staked(trxTank, { kind, amount: 5n }))
  const { network, resource, amount } = common
  says(await verdictOf('t', 'freeze'), {
    step: names('tank-stake', 't'),
    ordered: {
      order: 't',
      action: 'tank-stake',
      facts: { network, asset: 'TRX', decimals: 6, amount, to: null, tag: null, resource },
    },
  })
  says(await verdictOf('u', 'unfreeze'), { step: names('tank-stake', 'u') })
})

test('the rounds of a recovery order are identified by the addresses that they empty', async (t) => {
  const own = new Bench()
  t.after(() => {
    own.close()
  })
  own.store.append('recovering', { made_at: 1 })
  own.store.append('recover', {
    order: 'r',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    tag: null,
    fee_max: FEE.toString(),
    expires_at: IAT,
  })
  const verdict = await own.verdict({ kind: 'recover', order: 'r' }, eth(omnibus, { value: 1n }))
  says(verdict, { step: names('recover', 'r', addressOf(ETH, omnibus)), repeatable: true })
})
