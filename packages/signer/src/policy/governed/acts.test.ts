import {
  policyRegistry,
  solana,
  stellar,
  traitsOf,
  xrp,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import { assertAct, type Act, type PolicyRegistry } from '@custody/policy'
import { MuxedAccount, Account } from '@stellar/stellar-base'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Verdict } from '../order.ts'
import { State } from '../../store/state.ts'
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
} from '../../../testing/signer-cluster.ts'
import {
  addressOf,
  ask,
  asksAbout,
  asksPay,
  asksRule,
  asksStake,
  Bench,
  IAT,
  keyOf,
  KEYS,
  names,
  pay,
  said,
  staked,
  TRX,
  trx,
  WALLET,
  type JudgedRequest,
} from '../../../testing/judging.ts'

/** What a policy judges of each purpose, and which stops apply. */
// The registry of the chains has the type that the policy package requires.
const POLICY: PolicyRegistry = policyRegistry(registry)
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
const FEE = 21_000n * 2n * GWEI
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const ID = '11111111-1111-4111-8111-111111111111'
const REFUND = `/dac/v1/invoices/inv_${'0'.repeat(32)}/refund`
const COST = { gas: '21000', max_fee_per_gas: String(2n * GWEI) }
const pathOf = (network: Network, index = 0, sub = 1) => [sub, network.chain_index, index]
const networkOf = (code: string) => registry.network(code) as Network
const assetOf = (name: string) => registry.asset(name) as Asset
const omnibus = pathOf(ETH)
const tank = pathOf(ETH, 0, 0)
const trxTank = pathOf(TRX, 0, 0)
let bench: Bench
let mine: Caller

before(() => {
  bench = new Bench()
  mine = bench.caller(1)
})
after(() => {
  bench.close()
})

type ShownAct = Omit<Act, 'subject'>
type Judged = Pick<Verdict, 'isAct' | 'serves'> & { acts: readonly ShownAct[] }
/**
 * Returns what a policy judges, after checking that the policy package accepts each act, and that
 * its subject is the content of the caller's request.
 */
function judgedBy({ acts, isAct, serves, intent, seen }: Verdict): Judged {
  const contents = [intent?.content, ...seen.map(({ content }) => content)]
  return {
    acts: acts().map(({ subject, ...act }) => {
      assertAct(POLICY, { subject, ...act })
      assert.ok(contents.includes(subject), 'the subject is the content of a request')
      return act
    }),
    isAct,
    serves,
  }
}
const judged = async (
  purpose: object,
  unsigned: UnsignedTransaction,
  policy?: object,
): Promise<Judged> =>
  judgedBy(
    await bench.judge.judge({
      ...bench.order(purpose, unsigned),
      ...(policy === undefined ? {} : { policy }),
    }),
  )

/** Returns the act of a payment of 1 ETH to the destination that requests have by default. */
const actOf = (
  { caller, id, ...request }: JudgedRequest,
  more: Partial<Act> = {},
  network = ETH,
): ShownAct => ({
  id,
  step: names('pay', keyOf({ caller, id, ...request })),
  action: 'transfer',
  workspace: 'w',
  sub_account: 'sub-1',
  api_key: caller.api_key,
  asset: 'ETH',
  network: network.code,
  amount: ONE,
  to: to(SINK_ETH),
  fee: feeOf(FEE, network),
  issued_at: IAT,
  standing: null,
  resource: null,
  ...more,
})
/** Where a payment can be cancelled, it reserves a quarter more than its fee. */
const feeOf = (max: bigint, network = ETH): Act['fee'] => ({
  max,
  ...(traitsOf(network).cancellation ? { replacement: (max * 5n) / 4n } : {}),
  limit: BigInt(network.fee_cap),
})
const to = (address: string, tag: string | null = null): Act['to'] => ({
  address,
  tag,
  own: 'unknown',
})
/** The same act, as it is judged for a transaction that supports it. */
const supported = ({ fee: { limit }, ...act }: ShownAct): ShownAct => ({
  ...act,
  fee: { max: 0n, limit },
})
const ALONE = { isAct: true, serves: [1] }
const SUPPORT = { isAct: false, serves: [1] }

test('a payment is the act that its caller requested, with the fee of the transaction', async () => {
  const request = await asksPay(mine)
  assert.deepEqual(await judged(pay(request), eth(omnibus, { value: ONE })), {
    acts: [actOf(request)],
    ...ALONE,
  })
  const sequence = await asksPay(mine, { sequence_id: 's' })
  const { acts } = await judged(pay(sequence), eth(omnibus, { value: ONE }))
  assert.equal(acts[0]?.step, names('pay', names('pay', 'sequence', 'w', 1, 'ETH', 's')))
})

test('a payment of a token has the fee in the native coin', async () => {
  const request = await asksPay(mine, {
    asset: 'USDT_ETH',
    amount: '2.5',
    destination_address: SINK_ETH.toLowerCase(),
  })
  const { acts } = await judged(pay(request), usdt(omnibus, SINK_ETH, 2_500_000n))
  const fee = feeOf(65_000n * 2n * GWEI)
  assert.deepEqual(acts, [actOf(request, { asset: 'USDT_ETH', amount: 2_500_000n, fee })])
})

test('payments of other families have their canonical destination, tag and fee', async () => {
  const [XRP, XLM, SOL] = [networkOf('XRP'), networkOf('XLM'), networkOf('SOL')]
  const sinkXrp = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59'
  const withTag = 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGo2K5VpXpmCqbV2gS'
  const account = addressOf(XLM, [9, 9, 9])
  const muxed = new MuxedAccount(new Account(account, '0'), '7').accountId()
  const sinkSol = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
  const common = (network: Network) => ({
    path: pathOf(network),
    publicKey: KEYS[network.curve].publicKeyAt(pathOf(network)),
  })
  const coins = funding(WALLET, [{ path: pathOf(BTC), value: 150_000n }])
  const payments: [
    Network,
    Record<string, unknown>,
    UnsignedTransaction,
    Act['to'],
    bigint,
    bigint,
  ][] = [
    [
      BTC,
      { asset: 'BTC', amount: '0.00149', destination_address: SINK_BTC.toUpperCase() },
      btc(WALLET, {
        inputs: [{ funding: coins, output: 0, path: pathOf(BTC) }],
        amount: 149_000n,
      }),
      to(SINK_BTC),
      149_000n,
      1000n,
    ],
    [
      XRP,
      { asset: 'XRP', amount: '2.5', destination_address: withTag },
      xrp.buildPayment(XRP, {
        ...common(XRP),
        to: sinkXrp,
        tag: '14',
        amount: 2_500_000n,
        fee: 10n,
        sequence: 91n,
        validUntil: 200,
      }),
      to(sinkXrp, '14'),
      2_500_000n,
      10n,
    ],
    [
      XLM,
      { asset: 'XLM', amount: '2.5', destination_address: muxed },
      stellar.buildPayment(XLM, {
        ...common(XLM),
        to: muxed,
        tag: null,
        amount: 25_000_000n,
        fee: 100n,
        sequence: 777n << 32n,
        validUntil: IAT + 300,
        create: false,
      }),
      to(muxed),
      25_000_000n,
      100n,
    ],
    [
      SOL,
      { asset: 'SOL', amount: '2.5', destination_address: sinkSol },
      solana.buildTransfer(SOL, {
        ...common(SOL),
        asset: assetOf('SOL'),
        to: sinkSol,
        amount: 2_500_000_000n,
        blockhash: 'CxKXFd1BtnMt1r8ugTnxoAcfs2vYNj3AyxuCU7p4mN5V',
        unitPrice: 0n,
      }),
      to(sinkSol),
      2_500_000_000n,
      5000n,
    ],
  ]
  for (const [network, body, unsigned, destination, amount, max] of payments) {
    const request = await asksPay(mine, body)
    const act = actOf(
      request,
      {
        asset: network.code,
        amount,
        to: destination,
        fee: feeOf(max, network),
      },
      network,
    )
    assert.deepEqual(await judged(pay(request), unsigned), { acts: [act], ...ALONE })
  }
})

test('a speed-up is the act of the payment, with another fee', async () => {
  const request = await asksPay(mine, { fee_rate: 2 })
  const later = await asksAbout(bench.caller(1), request.id, 'speed-up', { fee_rate: 3 })
  const speedUp = pay(request, { speed_up: { request: later.request } })
  const fee = feeOf(21_000n * 3n * GWEI)
  assert.deepEqual(await judged(speedUp, eth(omnibus, { value: ONE, maxFeePerGas: 3n * GWEI })), {
    acts: [actOf(request, { fee })],
    ...ALONE,
  })
})

test('the refund of an invoice is an act of its own kind', async () => {
  const request = await asksPay(mine)
  const refund = await ask(
    mine,
    REFUND,
    JSON.parse(request.request.body) as Record<string, unknown>,
  )
  const { acts } = await judged(pay(refund), eth(omnibus, { value: ONE }))
  assert.deepEqual(acts, [actOf(refund, { action: 'refund' })])
  // A refund is sped up like every payment.
  const later = await asksAbout(mine, refund.id, 'speed-up')
  const faster = await judged(
    pay(refund, { speed_up: { request: later.request } }),
    eth(omnibus, { value: ONE }),
  )
  assert.deepEqual(faster.acts, acts)
})

async function forwarded() {
  const rule = await asksRule(mine)
  const act = actOf(rule, {
    id: rule.id,
    step: names('forward', rule.id, ID),
    action: 'forward',
    standing: { min_amount: ONE, daily_cap: 5n * ONE, ends_at: IAT + 86_400 },
  })
  return { act, of: { kind: 'forward', id: ID, rule: rule.request } }
}

test('a forward moves the amount of its transaction, under its rule', async () => {
  const { act, of } = await forwarded()
  assert.deepEqual(await judged(of, eth(omnibus, { value: 2n * ONE })), {
    acts: [{ ...act, amount: 2n * ONE }],
    ...ALONE,
  })
})

const fuel = (of: object, more: object = {}, value = FEE) =>
  judged(
    { kind: 'fuel', for: of, ...COST, ...more },
    eth(tank, { to: addressOf(ETH, omnibus), value }),
  )

test('gas funding is judged by the acts that it is for, without their fees', async () => {
  const [one, two] = [await asksPay(mine), await asksPay(mine, { asset: 'USDT_ETH', amount: 2 })]
  assert.deepEqual(await fuel(pay(one)), { acts: [supported(actOf(one))], ...SUPPORT })
  const later = await asksAbout(mine, one.id, 'speed-up')
  assert.deepEqual(await fuel(pay(one, { speed_up: { request: later.request } })), {
    acts: [supported(actOf(one))],
    ...SUPPORT,
  })
  const beside = [{ for: pay(two), ...COST }]
  assert.deepEqual(await fuel(pay(one), { beside }, 2n * FEE), {
    acts: [actOf(one), actOf(two, { asset: 'USDT_ETH', amount: 2_000_000n })].map(supported),
    ...SUPPORT,
  })
  const { act, of } = await forwarded()
  assert.deepEqual(await fuel(of), { acts: [supported(act)], ...SUPPORT })
})

test('a cancellation at a quarter more than its payment is not judged and not stopped', async () => {
  const request = await asksPay(mine)
  await bench.codeOf(pay(request), eth(omnibus, { value: ONE }))
  const by = await asksAbout(mine, request.id, 'cancel')
  const cancel = { kind: 'cancel', of: pay(request), request: by.request }
  const nothing = { acts: [], isAct: false, serves: null }
  const back = (maxFeePerGas: bigint) => eth(omnibus, { to: addressOf(ETH, omnibus), maxFeePerGas })
  assert.deepEqual(await judged(cancel, back(2_500_000_000n)), nothing)
  const dearer = 2_500_000_001n
  assert.deepEqual(await judged(cancel, back(dearer)), {
    acts: [actOf(request, { fee: { max: 21_000n * dearer, limit: BigInt(ETH.fee_cap) } })],
    isAct: true,
    serves: [1],
  })
  // The address has the payment's own fee already.
  const gas = (price: bigint) => ({ max_fee_per_gas: price.toString() })
  assert.deepEqual(await fuel(cancel, gas(2_500_000_000n), FEE / 2n), nothing)
  assert.deepEqual(await fuel(cancel, gas(dearer), FEE / 2n), {
    acts: [supported(actOf(request))],
    ...SUPPORT,
  })
})

test('a sweep, its gas funding and its energy are stopped with the sub-account, and not judged', async () => {
  const nothing = { acts: [], ...SUPPORT }
  const sweep = (asset: string) => ({ kind: 'sweep', sub_account: 1, asset, address_index: 7 })
  const deposit = pathOf(ETH, 7)
  assert.deepEqual(
    await judged(sweep('USDT_ETH'), usdt(deposit, addressOf(ETH, omnibus), 5_000_000n)),
    nothing,
  )
  assert.deepEqual(
    await judged(
      { kind: 'fuel', for: sweep('USDT_ETH'), ...COST },
      eth(tank, { to: addressOf(ETH, deposit), value: FEE }),
    ),
    nothing,
  )
  for (const kind of ['delegate', 'undelegate'] as const)
    assert.deepEqual(
      await judged(
        { kind: 'lend', step: kind, for: sweep('USDT_TRX') },
        staked(trxTank, { kind, receiver: addressOf(TRX, pathOf(TRX, 7)) }),
      ),
      nothing,
    )
})

/** Maximum fee of a staking transaction. */
const stakeFee = async (unsigned: UnsignedTransaction, purpose: object): Promise<Act['fee']> => ({
  max: (await bench.verdict(purpose, unsigned)).decoded.fee_max,
  limit: BigInt(TRX.fee_cap),
})

test('the transactions of a stake are one act, of which the first is charged', async () => {
  const request = await asksStake(mine, '/dav/v1/stake', { address: FRIEND })
  const act = actOf(
    request,
    {
      step: names('freeze', keyOf(request, 'stake')),
      action: 'stake',
      asset: 'TRX',
      amount: 100_000_000n,
      to: to(FRIEND),
      resource: 'ENERGY',
    },
    TRX,
  )
  for (const step of ['freeze', 'delegate'] as const) {
    const purpose = { kind: 'stake', step, request: request.request }
    const unsigned = staked(pathOf(TRX), {
      kind: step,
      receiver: step === 'delegate' ? FRIEND : null,
    })
    assert.deepEqual(await judged(purpose, unsigned), {
      acts: [{ ...act, fee: await stakeFee(unsigned, purpose) }],
      isAct: step === 'freeze',
      serves: [1],
    })
    const funded = { kind: 'fuel', for: purpose, gas: '280', max_fee_per_gas: '1000' }
    assert.deepEqual(await judged(funded, trx(trxTank, addressOf(TRX, pathOf(TRX)), 100n)), {
      acts: [supported(act)],
      ...SUPPORT,
    })
  }
})

test('an unstake, a release and their gas funding are stopped with the sub-account, and not judged', async () => {
  for (const [uri, step] of [
    ['/dav/v1/unstake', 'unfreeze'],
    ['/dav/v1/release-unstaked', 'withdraw'],
  ] as const) {
    const address = addressOf(TRX, pathOf(TRX))
    const { request } = await asksStake(mine, uri, { address })
    const purpose = { kind: 'stake', step, request }
    const action = step === 'unfreeze' ? { kind: step } : { kind: step, resource: null, amount: 0n }
    assert.deepEqual(await judged(purpose, staked(pathOf(TRX), action)), { acts: [], ...SUPPORT })
    const funded = { kind: 'fuel', for: purpose, gas: '280', max_fee_per_gas: '1000' }
    assert.deepEqual(await judged(funded, trx(trxTank, address, 100n)), { acts: [], ...SUPPORT })
  }
})

test('lent energy is judged by the act that it is for, and its return is not judged', async () => {
  const lend = (kind: 'delegate' | 'undelegate', of: object) =>
    judged(
      { kind: 'lend', step: kind, for: of },
      staked(trxTank, { kind, receiver: addressOf(TRX, pathOf(TRX)) }),
    )
  const token = { asset: 'USDT_TRX', destination_address: FRIEND }
  const request = await asksPay(mine, { ...token, amount: 5 })
  const tokens = { asset: 'USDT_TRX', to: to(FRIEND) }
  const act = actOf(request, { ...tokens, amount: 5_000_000n }, TRX)
  assert.deepEqual(await lend('delegate', pay(request)), { acts: [supported(act)], ...SUPPORT })
  const rule = await asksRule(mine, token)
  const forward = { kind: 'forward', id: ID, rule: rule.request }
  const standing = { min_amount: 1_000_000n, daily_cap: 5_000_000n, ends_at: IAT + 86_400 }
  const step = names('forward', rule.id, ID)
  const lent = {
    ...tokens,
    id: rule.id,
    step,
    action: 'forward',
    amount: 1_000_000n,
    standing,
  } as const
  assert.deepEqual(await lend('delegate', forward), {
    acts: [supported(actOf(rule, lent, TRX))],
    ...SUPPORT,
  })
  for (const each of [pay(request), forward])
    assert.deepEqual(await lend('undelegate', each), { acts: [], ...SUPPORT })
})

test("an operator's orders are not judged; those about a tank serve no sub-account", async (t) => {
  const common = { workspace: 'w', expires_at: IAT }
  const [drain, stake] = [{ order: 'd' }, { order: 't' }]
  bench.store.append('drain', { ...drain, ...common, network: 'ETH', to_address: SINK_ETH })
  bench.store.append('tank-stake', {
    ...stake,
    ...common,
    network: 'TRX',
    action: 'stake',
    resource: 'ENERGY',
    amount: '5',
  })
  const nothing = { acts: [], isAct: false, serves: [] }
  assert.deepEqual(await judged({ kind: 'drain', ...drain }, eth(tank, { value: 1n })), nothing)
  const freeze = staked(trxTank, { kind: 'freeze', amount: 5n })
  assert.deepEqual(await judged({ kind: 'tank-stake', ...stake }, freeze), nothing)
  const recovering = new Bench()
  t.after(() => {
    recovering.close()
  })
  recovering.store.append('recovering', { made_at: 1 })
  const lost = { ...common, network: 'ETH', to_address: SINK_ETH, tag: null }
  recovering.store.append('recover', { order: 'r', ...lost, fee_max: FEE.toString() })
  const recover = { kind: 'recover', order: 'r' }
  assert.deepEqual(judgedBy(await recovering.verdict(recover, eth(omnibus, { value: 1n }))), {
    acts: [],
    isAct: false,
    serves: null,
  })
})

test('a destination is an own address if the order names its path', async () => {
  const ownOf = async (path: number[], policy?: object) => {
    const request = await asksPay(mine, { destination_address: addressOf(ETH, path) })
    const unsigned = eth(omnibus, { to: addressOf(ETH, path), value: ONE })
    const { acts } = await judged(pay(request), unsigned, policy)
    return acts[0]?.to.own
  }
  const [own, other] = [pathOf(ETH, 7), pathOf(ETH, 7, 2)]
  assert.equal(await ownOf(own, { to_path: own }), 'sub_account')
  assert.equal(await ownOf(other, { to_path: other, via: 'rule' }), 'workspace')
  // Without a path it is decided when a rule depends on it.
  assert.equal(await ownOf(own), 'unknown')
  assert.equal(await ownOf(own, { via: 'rule' }), 'unknown')
})

test('refuses a path that does not give the destination', async () => {
  const request = await asksPay(mine, { destination_address: addressOf(ETH, pathOf(ETH, 7)) })
  const unsigned = eth(omnibus, { to: addressOf(ETH, pathOf(ETH, 7)), value: ONE })
  for (const path of [pathOf(ETH, 8), pathOf(ETH, 7, 2), [1, ETH.chain_index + 1, 7]]) {
    const order = { ...bench.order(pay(request), unsigned), policy: { to_path: path } }
    const { acts } = await bench.judge.judge(order)
    assert.equal(
      said(acts),
      `BAD_ORDER: policy.to_path: the path ${path.join('/')} does not give the destination address`,
    )
  }
})

test('a destination is an own address whatever its tag is', async () => {
  const XRP = networkOf('XRP')
  const path = pathOf(XRP, 0, 2)
  const address = addressOf(XRP, path)
  const request = await asksPay(mine, {
    asset: 'XRP',
    amount: '2.5',
    destination_address: address,
    address_tag: '7',
  })
  const unsigned = xrp.buildPayment(XRP, {
    to: address,
    tag: '7',
    amount: 2_500_000n,
    fee: 10n,
    sequence: 91n,
    validUntil: 200,
    path: pathOf(XRP),
    publicKey: KEYS.secp256k1.publicKeyAt(pathOf(XRP)),
  })
  const { acts } = await judged(pay(request), unsigned, { to_path: path })
  assert.deepEqual(acts[0]?.to, { address, tag: '7', own: 'workspace' })
})

test('gas funding for several payments accepts the path of one destination', async () => {
  const path = pathOf(ETH, 7, 2)
  const one = await asksPay(mine, { destination_address: addressOf(ETH, path) })
  const two = await asksPay(mine)
  const purpose = { kind: 'fuel', for: pay(two), ...COST, beside: [{ for: pay(one), ...COST }] }
  const unsigned = eth(tank, { to: addressOf(ETH, omnibus), value: FEE })
  const { acts } = await judged(purpose, unsigned, { to_path: path })
  assert.deepEqual(
    acts.map((act) => act.to.own),
    ['unknown', 'workspace'],
  )
})

test('the receiver of a staked resource may be an own address', async () => {
  const path = pathOf(TRX)
  const request = await asksStake(mine, '/dav/v1/stake', { address: addressOf(TRX, path) })
  const { acts } = await judged(
    { kind: 'stake', step: 'freeze', request: request.request },
    staked(path, { kind: 'freeze' }),
    { to_path: path },
  )
  assert.deepEqual(acts[0]?.to, { address: addressOf(TRX, path), tag: null, own: 'sub_account' })
})

test('the name of the sub-account is that of the enrolment, or else the one on record', async (t) => {
  const own = new Bench()
  t.after(() => {
    own.close()
  })
  const caller = own.caller(1)
  const request = await asksPay(caller)
  const verdict = await own.verdict(pay(request), eth(omnibus, { value: ONE }))
  const enrolment = own.store.state.enrolments.get(caller.api_key)!
  enrolment.sub_account_name = null
  const recorded = State.subAccountIndexKey('w', 1)
  own.store.state.subAccountNames.set(recorded, 'of the record')
  assert.equal(verdict.acts()[0]?.sub_account, 'of the record')
  own.store.state.subAccountNames.set(recorded, null)
  const reason =
    "POLICY_DENIED: The sub-account 1 has no name on this node's record; enrol its API key again by name"
  assert.equal(said(verdict.acts), reason)
  own.store.state.subAccountNames.delete(recorded)
  assert.equal(said(verdict.acts), reason)
})
