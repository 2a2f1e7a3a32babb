import { CHANGE_INDEX, type DecodedTransaction, type Network } from '@custody/chains'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ForwardIntent } from '../intent/forward.ts'
import type { PayIntent } from '../intent/pay.ts'
import type { Proven } from '../intent/request.ts'
import type { StakeIntent } from '../intent/stake.ts'
import { assertForwards, assertStands, chargeOfForward } from './forward.ts'
import { assertCancels } from './cancel.ts'
import { assertFeeCap, assertFeeRate } from './gate/cap.ts'
import { assertDrains, drainOrder } from './drain.ts'
import { assertFuelAmount, assertFuels } from './fuel.ts'
import type { FuelPart, Lend, Order, Stake, Subject, Sweep } from './order.ts'
import { assertOnlyPath, assertSweepPaths, assertWalletPaths } from './paths.ts'
import { assertPays } from './gate/pay.ts'
import { assertStakes } from './stake.ts'
import { assertSweeps } from './sweep.ts'
import { assertLends, assertTankStakes, tankStakeOrder } from './tank.ts'
import { State, type TankStakeOrder } from '../store/state.ts'
import { BTC, ETH, registry, SINK_ETH } from '../../testing/signer-cluster.ts'
import { addressOf, KEYS, said, TRX } from '../../testing/judging.ts'

/** Unit tests of each rule at its limits, with the messages that the platform receives. */
const net = (code: string): Network => registry.network(code) as Network
const [XRP, SOL, BASE] = [net('XRP'), net('SOL'), net('BASE')]
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const CAP = BigInt(ETH.fee_cap)
type Payment = DecodedTransaction['payments'][number]
const to = (more: Partial<Payment> = {}): Payment => ({
  address: SINK_ETH,
  amount: 5n,
  tag: null,
  ...more,
})
/** @param payer sub-account whose address pays */
const subject = (network: Network, decoded: object = {}, payer = 1): Subject =>
  ({
    order: { unsigned: { inputs: [{ path: [payer, network.chain_index, 0] }] } },
    network,
    key: KEYS[network.curve],
    decoded: {
      network: network.code,
      asset: network.native_asset,
      payments: [to()],
      change: null,
      fee_max: 1n,
      fee_rate: '1',
      vsize: null,
      ...decoded,
    } as unknown as DecodedTransaction,
  }) as unknown as Subject
const FEE_CAP = `FEE_CAP: The fee ${CAP + 1n} is above the cap ${CAP}`
const ONE = 'SHAPE: The transaction must make exactly one payment'
const TAG = 'TAG_MISMATCH: The tag of the transaction differs from the approved tag'

test("rule 7: asset, destination, amount and tag must match the caller's request", () => {
  const want = {
    asset: 'ETH',
    destination: SINK_ETH,
    amount: 5n,
    tag: null,
    fee_rate: null,
  } as unknown as PayIntent
  const pays = (decoded: object, more: object = {}) =>
    said(() => {
      assertPays(subject(ETH, decoded), { ...want, ...more }, 1)
    })
  assert.equal(pays({}), null)
  assert.equal(
    pays({ asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  assert.equal(pays({ payments: [] }), ONE)
  assert.equal(pays({ payments: [to(), to()] }), ONE)
  assert.equal(
    pays({ payments: [to({ address: OTHER })] }),
    'DESTINATION_MISMATCH: The transaction must pay the destination of the request',
  )
  for (const amount of [4n, 6n])
    assert.equal(
      pays({ payments: [to({ amount })] }),
      `AMOUNT_MISMATCH: The transaction must pay 5, and pays ${amount}`,
    )
  assert.equal(pays({ payments: [to({ tag: '0' })] }), TAG)
  assert.equal(pays({}, { tag: '0' }), TAG)
  assert.equal(pays({ fee_max: CAP + 1n }), FEE_CAP)
  assert.equal(
    pays({ fee_rate: '2.1' }, { fee_rate: '2000000000000' }),
    "FEE_RATE: The fee rate 2.1 is above the caller's fee_rate",
  )
})

test("rule 9: limits a fee by the node's cap and by the caller's rate", () => {
  const capped = (fee_max: bigint) =>
    said(() => {
      assertFeeCap(subject(ETH, { fee_max }))
    })
  assert.deepEqual([capped(CAP), capped(CAP + 1n)], [null, FEE_CAP])
  const rated = (fee_rate: string, limit: string | null) =>
    said(() => {
      assertFeeRate(subject(ETH, { fee_rate }), limit)
    })
  assert.deepEqual(
    [rated('2', '2000000000000'), rated('2.000000000001', '2000000000000')],
    [null, "FEE_RATE: The fee rate 2.000000000001 is above the caller's fee_rate"],
  )
  assert.equal(rated('99', null), null)
  const change = { address: 'c', amount: 1n }
  const sized = (fee_max: bigint, limit: string | null, more: object = { change }) =>
    said(() => {
      assertFeeRate(subject(BTC, { fee_max, vsize: 100, fee_rate: '99', ...more }), limit)
    })
  const above = "FEE_RATE: The fee is above the maximum that the caller's fee_rate allows"
  assert.deepEqual(
    [sized(200n, '2000000000000'), sized(201n, '2000000000000'), sized(201n, null)],
    [null, above, null],
  )
  // 43 vbytes, and the dust limit of 294 that a change output would have needed.
  assert.deepEqual(
    [sized(580n, '2000000000000', {}), sized(581n, '2000000000000', {})],
    [null, above],
  )
})

test('rule 14: a cancellation pays its own sender, and with nonces an amount of zero', () => {
  const own = addressOf(ETH, [1, ETH.chain_index, 0])
  const cancels = (decoded: object = {}, rate: string | null = null) =>
    said(() => {
      assertCancels(
        subject(ETH, { payments: [to({ address: own, amount: 0n })], ...decoded }),
        1,
        rate,
      )
    })
  assert.equal(cancels(), null)
  assert.equal(
    cancels({ asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  const back = to({ address: own, amount: 0n })
  for (const payments of [[], [back, back]]) assert.equal(cancels({ payments }), ONE)
  assert.equal(
    cancels({ change: { address: own, amount: 1n } }),
    'SHAPE: A cancellation must have one output',
  )
  assert.equal(cancels({ payments: [{ ...back, tag: '1' }] }), TAG)
  assert.equal(
    cancels({ payments: [{ ...back, address: OTHER }] }),
    "DESTINATION_MISMATCH: The transaction must pay the sender's own wallet",
  )
  assert.equal(
    cancels({ payments: [{ ...back, amount: 1n }] }),
    'AMOUNT_MISMATCH: The transaction must pay 0, and pays 1',
  )
  assert.equal(cancels({ fee_max: CAP + 1n }), FEE_CAP)
  assert.equal(
    cancels({ fee_rate: '2' }, '1000000000000'),
    "FEE_RATE: The fee rate 2 is above the caller's fee_rate",
  )
  const coins = (index: number) =>
    said(() => {
      assertCancels(
        subject(BTC, {
          vsize: 100,
          payments: [to({ address: addressOf(BTC, [1, BTC.chain_index, index]), amount: 9n })],
        }),
        1,
        null,
      )
    })
  assert.deepEqual(
    [coins(CHANGE_INDEX), coins(0)],
    [null, "DESTINATION_MISMATCH: The transaction must pay the sender's own wallet"],
  )
  for (const network of [TRX, XRP, SOL]) {
    assert.equal(
      said(() => {
        assertCancels(subject(network), 1, null)
      }),
      `ACTION_NOT_ALLOWED: A signed transaction cannot be replaced on ${network.code}`,
    )
  }
})

test('rule 12: a sweep must go to the omnibus address and move at least its cost', () => {
  const omnibus = addressOf(ETH, [3, ETH.chain_index, 0])
  const sweeps = (decoded: object = {}, asset = 'ETH') =>
    said(() => {
      assertSweeps(
        { registry },
        subject(ETH, { payments: [to({ address: omnibus })], fee_max: 5n, asset, ...decoded }, 3),
        { kind: 'sweep', sub_account: 3, asset, address_index: 7 } as Sweep,
      )
    })
  assert.equal(sweeps(), null)
  assert.equal(
    sweeps({ asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  assert.equal(sweeps({ payments: [] }), ONE)
  assert.equal(sweeps({ payments: [to({ address: omnibus }), to()] }), ONE)
  assert.equal(
    sweeps({ payments: [to({ address: addressOf(ETH, [3, ETH.chain_index, 7]) })] }),
    "DESTINATION_MISMATCH: The transaction must pay the sub-account's omnibus address",
  )
  assert.equal(sweeps({ payments: [to({ address: omnibus, tag: '1' })] }), TAG)
  assert.equal(
    sweeps({ fee_max: 6n }),
    'SWEEP_MISMATCH: The sweep moves 5 ETH, which is worth less than its maximum fee of 6 ETH, both in smallest units',
  )
  assert.equal(sweeps({ fee_max: 6n }, 'USDT_ETH'), null, 'a token does not pay for itself')
  // 2 USD at most for a token, and 200 USD at least for 1 ETH.
  const payments = [to({ address: omnibus, amount: 1_000_000n })]
  assert.equal(sweeps({ payments, fee_max: 10n ** 16n }, 'USDT_ETH'), null)
  assert.equal(
    sweeps({ payments, fee_max: 10n ** 16n + 1n }, 'USDT_ETH'),
    'SWEEP_MISMATCH: The sweep moves 1000000 USDT_ETH, which is worth less than its maximum fee of 10000000000000001 ETH, both in smallest units',
  )
  assert.equal(sweeps({ fee_max: CAP + 1n }, 'USDT_ETH'), FEE_CAP)
})

test('rule 11: limits gas funding to the maximum cost of its transactions plus a fifth', () => {
  const source = [1, ETH.chain_index, 0]
  const address = addressOf(ETH, source)
  const part = (more: Partial<FuelPart> = {}): FuelPart => ({
    gas: '100',
    max_fee_per_gas: '10',
    ...more,
  })
  const fuels = (
    amount: bigint,
    parts: { part: FuelPart; callerRate: string | null; present?: bigint }[],
    decoded: object = {},
    network = ETH,
  ) => {
    let most: bigint | undefined
    const refusal = said(() => {
      const fuel = subject(network, { payments: [to({ address, amount })], ...decoded }, 0)
      assertFuels(fuel, source)
      most = assertFuelAmount(
        fuel,
        parts.map((each) => ({ present: 0n, ...each })),
      )
    })
    return refusal ?? most
  }
  const plain = [{ part: part(), callerRate: null }]
  assert.equal(fuels(1200n, plain), 1200n)
  assert.equal(fuels(1n, [...plain, { part: part({ gas: '1' }), callerRate: null }]), 1212n)
  assert.equal(fuels(1201n, plain), 'FUEL_TOO_LARGE: The fuel amount 1201 exceeds the allowed 1200')
  const topUp = (present: bigint) => fuels(1n, [{ part: part(), callerRate: null, present }])
  assert.equal(topUp(1000n), 200n)
  assert.equal(topUp(1200n), 'FUEL_TOO_LARGE: The fuel amount 1 exceeds the allowed 0')
  assert.equal(
    fuels(1n, plain, { asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  assert.equal(fuels(1n, plain, { payments: [] }), ONE)
  assert.equal(fuels(1n, plain, { payments: [to({ address }), to()] }), ONE)
  assert.equal(
    fuels(1n, plain, { payments: [to()] }),
    'DESTINATION_MISMATCH: The transaction must pay the source address of the transfer that it is for',
  )
  assert.equal(fuels(1n, plain, { payments: [to({ address, tag: '1' })] }), TAG)
  assert.equal(fuels(1n, plain, { fee_max: CAP + 1n }), FEE_CAP)
  const one = (more: Partial<FuelPart>, network = BASE, callerRate: string | null = null) =>
    fuels(1n, [{ part: part(more), callerRate }], {}, network)
  const most = `FUEL_TOO_LARGE: The fee that the fuel pays for is above the cap ${CAP}`
  // The maximum gas of one transfer, at the price that reaches the cap.
  const [gas, price] = ['1000000', CAP / 1_000_000n]
  assert.equal(one({ gas, max_fee_per_gas: price.toString() }), (CAP * 12n) / 10n)
  assert.equal(one({ gas, max_fee_per_gas: price.toString(), l1_fee: '1' }), most)
  assert.equal(one({ gas, max_fee_per_gas: (price + 1n).toString() }), most)
  assert.equal(
    one({ gas: '1000001' }),
    'FUEL_TOO_LARGE: The gas 1000001 that the fuel pays for is above 1000000, the maximum for one transfer',
  )
  const tenth = CAP / 10n
  assert.equal(one({ l1_fee: tenth.toString() }), 1200n + tenth)
  assert.equal(
    one({ l1_fee: (tenth + 1n).toString() }),
    `FUEL_TOO_LARGE: BASE allows at most ${tenth} in addition to gas and price, and l1_fee is ${tenth + 1n}`,
  )
  assert.equal(
    one({ l1_fee: '1' }, ETH),
    'FUEL_TOO_LARGE: ETH allows at most 0 in addition to gas and price, and l1_fee is 1',
  )
  assert.equal(one({ l1_fee: '0' }, ETH), 1200n)
  // 3 gwei, as the caller writes it and in the unit of the chain.
  const [limit, dear] = [
    '3000000000000',
    "FEE_RATE: The fee rate that the fuel pays for is above the caller's fee_rate",
  ]
  assert.equal(one({ max_fee_per_gas: '3000000000' }, ETH, limit), 360_000_000_000n)
  assert.equal(one({ max_fee_per_gas: '3000000001' }, ETH, limit), dear)
})

const RULE = {
  rule_id: 'r',
  sub_account: 1,
  asset: 'ETH',
  destination: SINK_ETH,
  tag: null,
  min_amount: 5n,
  daily_cap: 50n,
} as unknown as ForwardIntent
test('rule 13: a forward must follow its rule, and counts against its cap', () => {
  const forwards = (decoded: object = {}, rule: object = {}, network = ETH) => {
    let charge: unknown
    return (
      said(() => {
        const moved = subject(network, decoded)
        const wanted = { ...RULE, ...rule }
        assertForwards(moved, wanted)
        charge = chargeOfForward(moved, wanted)
      }) ?? charge
    )
  }
  const charged = (amount: bigint) => ({
    budget: '["forward","r"]',
    amount,
    limit: 50n,
    largest: true,
    rule: true,
  })
  assert.deepEqual(forwards(), charged(6n))
  assert.deepEqual(forwards({ asset: 'USDT_ETH' }, { asset: 'USDT_ETH' }), charged(5n))
  assert.equal(
    forwards({ asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  assert.equal(forwards({ payments: [] }), ONE)
  assert.equal(forwards({ payments: [to(), to()] }), ONE)
  assert.equal(
    forwards({ payments: [to({ address: OTHER })] }),
    'DESTINATION_MISMATCH: The transaction must pay the destination of the rule',
  )
  assert.equal(forwards({ payments: [to({ tag: '1' })] }), TAG)
  assert.equal(forwards({ fee_max: CAP + 1n }), FEE_CAP)
  const small = (leaves: bigint) =>
    `FORWARD_TOO_SMALL: The forward moves ${leaves}, but the rule's minimum is 5`
  assert.equal(forwards({ payments: [to({ amount: 4n })] }), small(4n), 'on Ethereum the tank pays')
  assert.equal(
    forwards({ payments: [to({ amount: 0n })] }, { min_amount: 0n }),
    "FORWARD_TOO_SMALL: The forward moves 0, but the rule's minimum is 0",
  )
  const coins = (amount: bigint, fee_max: bigint) =>
    forwards({ payments: [to({ amount })], fee_max }, { asset: 'BTC' }, BTC)
  assert.deepEqual(
    [coins(4n, 1n), coins(3n, 1n), coins(0n, 9n)],
    [charged(5n), small(4n), small(9n)],
  )
  const token = forwards(
    { asset: 'USDC_SOL', payments: [to({ amount: 4n })] },
    { asset: 'USDC_SOL' },
    SOL,
  )
  assert.equal(token, small(4n), 'a fee in another coin is no part of it')
})

test('rule 13: a rule is valid until its end, if it was received live or is recorded', () => {
  const proven = {
    iat: 1000,
    exp: 1025,
    nonce: 'n',
    enrolment: { api_key: 'k' },
  } as unknown as Proven
  const rule = { ...RULE, content: 'c', expires_at: 9000 } as unknown as ForwardIntent
  const stands = (now: number, more: object = {}) =>
    said(() => {
      assertStands({
        state: { rules: new Map(), notBefore: 0, ...more } as unknown as State,
        identities: new Map(),
        proven,
        rule,
        receipts: [],
        now,
      })
    })
  const recordOf = (content: string) => ({ rules: new Map([['r', { content }]]) })
  const unknown =
    'RULE_UNKNOWN: This node did not receive the rule before its request expired, and no peer reports that it did'
  assert.deepEqual([stands(1085), stands(1086)], [null, unknown])
  assert.deepEqual(
    [stands(1000, { notBefore: 1_000_000 }), stands(1000, { notBefore: 1_000_001 })],
    [null, unknown],
  )
  assert.deepEqual(
    [stands(9000, recordOf('c')), stands(9001, recordOf('c'))],
    [null, 'RULE_EXPIRED: The rule has expired'],
  )
  assert.equal(
    stands(9000, recordOf('d')),
    'INTENT_CONFLICT: The record of this node contains another rule with this id',
  )
})

const STAKING = 'SHAPE: The transaction must stake, and must not make a payment'
const TRX_CAP = `FEE_CAP: The fee ${BigInt(TRX.fee_cap) + 1n} is above the cap ${TRX.fee_cap}`
const overCap = { fee_max: BigInt(TRX.fee_cap) + 1n }
const call = (action: object | undefined, more: object = {}, payer = 0) =>
  subject(TRX, { payments: [], action, ...more }, payer)
const KINDS = ['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw'] as const

test('staking: accepts exactly the calls that an intent needs', () => {
  const receives = (kind: string) =>
    kind === 'delegate' || kind === 'undelegate' ? 'friend' : null
  const action = (kind: string, more: object = {}) => ({
    kind,
    resource: 'ENERGY',
    amount: 5n,
    receiver: receives(kind),
    ...more,
  })
  const stakes = (
    name: string,
    step: Stake['step'],
    did: object | undefined,
    address = 'friend',
    more: object = {},
  ) =>
    said(() => {
      assertStakes(
        call(did, more, 1),
        { action: name, address, resource: 'ENERGY', amount: 5n } as unknown as StakeIntent,
        step,
        'own',
        1,
      )
    })
  const allowed = (name: string, address: string) =>
    KINDS.filter((kind) => {
      const answer = stakes(
        name,
        kind,
        action(kind, { receiver: receives(kind) && address }),
        address,
      )
      if (answer !== null) assert.equal(answer, `SHAPE: The signed request is not for a ${kind}`)
      return answer === null
    })
  assert.deepEqual(
    ['stake', 'unstake', 'release'].map((name) => allowed(name, 'own')),
    [['freeze'], ['unfreeze'], ['withdraw']],
  )
  assert.deepEqual(
    ['stake', 'unstake', 'release'].map((name) => allowed(name, 'friend')),
    [['freeze', 'delegate'], ['undelegate', 'unfreeze'], ['withdraw']],
  )
  assert.equal(stakes('stake', 'freeze', undefined), STAKING)
  assert.equal(stakes('stake', 'freeze', action('freeze'), 'friend', { payments: [to()] }), STAKING)
  assert.equal(
    stakes('stake', 'freeze', action('delegate')),
    'SHAPE: The transaction must be a freeze, and is a delegate',
  )
  assert.equal(
    stakes('stake', 'freeze', action('freeze', { resource: 'BANDWIDTH' })),
    'RESOURCE_MISMATCH: The resource of the transaction differs from the approved resource',
  )
  assert.equal(
    stakes('stake', 'freeze', action('freeze', { amount: 6n })),
    'AMOUNT_MISMATCH: The amount of the transaction differs from the approved amount',
  )
  const elsewhere =
    'DESTINATION_MISMATCH: The transaction must lend to, or reclaim from, the approved address'
  assert.equal(stakes('stake', 'freeze', action('freeze', { receiver: 'friend' })), elsewhere)
  for (const [name, step] of [
    ['stake', 'delegate'],
    ['unstake', 'undelegate'],
  ] as const) {
    for (const receiver of ['thief', null])
      assert.equal(stakes(name, step, action(step, { receiver })), elsewhere)
  }
  assert.equal(stakes('stake', 'freeze', action('freeze'), 'friend', overCap), TRX_CAP)
})

test('rules 11 and 15: a tank stakes as its operator ordered, and delegates energy per transfer', () => {
  const did = (kind: string, more: object = {}) => ({
    kind,
    resource: 'ENERGY',
    amount: 5n,
    receiver: null,
    ...more,
  })
  const tank = (name: string, action: object | undefined, more: object = {}) =>
    said(() => {
      assertTankStakes(call(action, more), {
        action: name,
        resource: 'ENERGY',
        amount: '5',
      } as TankStakeOrder)
    })
  for (const [name, kind] of [
    ['stake', 'freeze'],
    ['unstake', 'unfreeze'],
    ['release', 'withdraw'],
  ] as const) {
    for (const other of KINDS) {
      assert.equal(
        tank(name, did(other)),
        other === kind ? null : `SHAPE: The transaction must be a ${kind}, and is a ${other}`,
      )
    }
  }
  assert.equal(tank('stake', undefined), STAKING)
  assert.equal(tank('stake', did('freeze'), { payments: [to()] }), STAKING)
  assert.equal(
    tank('stake', did('freeze', { resource: 'BANDWIDTH' })),
    'RESOURCE_MISMATCH: The resource of the transaction differs from the approved resource',
  )
  assert.equal(
    tank('stake', did('freeze', { amount: 6n })),
    'AMOUNT_MISMATCH: The amount of the transaction differs from the approved amount',
  )
  assert.equal(tank('stake', did('freeze'), overCap), TRX_CAP)
  const lends = (source: number[], action: object, more: object = {}, step = 'delegate') =>
    said(() => {
      assertLends(call(action, more), { kind: 'lend', step } as Lend, source)
    })
  const at = (path: number[], kind = 'delegate', more: object = {}) =>
    did(kind, { receiver: addressOf(TRX, path), ...more })
  const [source, own, deposit] = [
    [1, TRX.chain_index, 0],
    [0, TRX.chain_index, 0],
    [0, TRX.chain_index, 4],
  ]
  assert.equal(lends(source, at(source)), null)
  assert.equal(lends(source, at(source, 'undelegate'), {}, 'undelegate'), null)
  assert.equal(
    lends(source, at(source, 'undelegate')),
    'SHAPE: The transaction must be a delegate, and is a undelegate',
  )
  assert.equal(
    lends(source, at(source, 'delegate', { resource: 'BANDWIDTH' })),
    'RESOURCE_MISMATCH: The resource of the transaction differs from the approved resource',
  )
  assert.equal(lends(own, at(own)), 'DESTINATION_MISMATCH: A tank cannot lend to itself')
  assert.equal(lends(deposit, at(deposit)), null)
  assert.equal(
    lends(source, at(deposit)),
    'DESTINATION_MISMATCH: The transaction must lend to, or reclaim from, the approved address',
  )
  assert.equal(lends(source, at(source), overCap), TRX_CAP)
})

test("rule 15: emptying a tank must pay the operator's destination and tag", () => {
  const order = { order: 'o', workspace: 'w', network: 'ETH', to_address: SINK_ETH, expires_at: 1 }
  const drains = (decoded: object, to_address = SINK_ETH) =>
    said(() => {
      assertDrains(subject(ETH, decoded, 0), registry, { ...order, to_address })
    })
  const elsewhere =
    "DESTINATION_MISMATCH: The transaction must pay the destination of the operator's order"
  assert.equal(drains({}), null)
  assert.equal(
    drains({ asset: 'USDT_ETH' }),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  for (const payments of [[], [to(), to()]]) assert.equal(drains({ payments }), ONE)
  assert.equal(drains({ payments: [to({ address: OTHER })] }), elsewhere)
  assert.equal(
    drains({ payments: [to({ address: undefined as never })] }, 'no address'),
    elsewhere,
    'an order that names no address drains to none',
  )
  assert.equal(drains({ payments: [to({ tag: '1' })] }), TAG)
  assert.equal(drains({ fee_max: CAP + 1n }), FEE_CAP)
})

test("rule 15: refuses unknown, expired and foreign operator's orders with a message", () => {
  const orders = new Map([['o', { workspace: 'w', network: 'ETH', expires_at: 5 }]])
  const state = { drains: orders, tankStakes: orders }
  for (const orderOf of [drainOrder, tankStakeOrder]) {
    const refusalOf = (id: string, workspace: string, network: string, now: number) =>
      said(() =>
        orderOf(
          state as unknown as State,
          { workspace, unsigned: { network } } as unknown as Order,
          id,
          now,
        ),
      )
    assert.equal(refusalOf('o', 'w', 'ETH', 5), null)
    assert.equal(
      refusalOf('x', 'w', 'ETH', 5),
      'ORDER_UNKNOWN: This node has no such order from its operator',
    )
    assert.equal(
      refusalOf('o', 'v', 'ETH', 5),
      'WORKSPACE_MISMATCH: The order belongs to another workspace',
    )
    assert.equal(
      refusalOf('o', 'w', 'BSC', 5),
      'NETWORK_MISMATCH: The order belongs to another network',
    )
    assert.equal(refusalOf('o', 'w', 'ETH', 6), 'ORDER_EXPIRED: The order has expired')
  }
})

const orderAt = (paths: readonly (readonly number[])[], change?: readonly number[]): Order =>
  ({
    unsigned: {
      network: 'X',
      bytes: '',
      inputs: paths.map((path) => ({ path })),
      change: change && { output: 1, path: change },
    },
  }) as unknown as Order

test("rule 8: accepts only paths of the payer's wallet, and change on the change path", () => {
  const wallet = (
    network: Network,
    paths: readonly (readonly number[])[],
    change?: readonly number[],
  ) =>
    said(() => {
      assertWalletPaths(orderAt(paths, change), network, 3)
    })
  const [btc, eth] = [BTC.chain_index, ETH.chain_index]
  assert.equal(
    wallet(
      BTC,
      [
        [3, btc, 0],
        [3, btc, 9],
      ],
      [3, btc, CHANGE_INDEX],
    ),
    null,
  )
  for (const path of [
    [4, btc, 0],
    [3, btc + 1, 0],
    [3, btc],
    [3, btc, 0, 0],
  ]) {
    assert.equal(
      wallet(BTC, [[3, btc, 0], path]),
      `FOREIGN_PATH: The path ${path.join('/')} is not in the payer's wallet`,
    )
  }
  for (const change of [
    [3, btc, 0],
    [4, btc, CHANGE_INDEX],
    [3, btc + 1, CHANGE_INDEX],
    [3, btc],
    [3, btc, CHANGE_INDEX, 0],
  ]) {
    assert.equal(
      wallet(BTC, [[3, btc, 0]], change),
      "CHANGE_MISMATCH: Change must go to the wallet's fixed change path",
    )
  }
  const only =
    'FOREIGN_PATH: A payment of an account-based chain must be sent from the omnibus address'
  assert.deepEqual(
    [
      wallet(ETH, [[3, eth, 0]]),
      wallet(ETH, [[3, eth, 7]]),
      wallet(XRP, [[3, XRP.chain_index, 1]]),
    ],
    [null, only, only],
  )
})

test('rule 8: accepts one path without change; a sweep by the omnibus address has its path first', () => {
  const eth = ETH.chain_index
  const refusal = `FOREIGN_PATH: Only the path 3/${eth}/7 may be used here`
  const one = (paths: readonly (readonly number[])[], change?: readonly number[]) =>
    said(() => {
      assertOnlyPath(orderAt(paths, change), [3, eth, 7])
    })
  assert.equal(one([[3, eth, 7]]), null)
  for (const paths of [
    [],
    [[3, eth, 8]],
    [[3, eth]],
    [[3, eth, 7, 0]],
    [
      [3, eth, 7],
      [3, eth, 7],
    ],
  ])
    assert.equal(one(paths), refusal)
  assert.equal(one([[3, eth, 7]], [3, eth, 7]), refusal)

  const sweep = (
    network: Network,
    paths: readonly (readonly number[])[],
    change?: readonly number[],
  ) =>
    said(() => {
      assertSweepPaths(orderAt(paths, change), network, 3, 7)
    })
  const sol = SOL.chain_index
  const [deposit, omnibus] = [
    [3, sol, 7],
    [3, sol, 0],
  ]
  assert.deepEqual(
    [sweep(SOL, [deposit]), sweep(SOL, [omnibus, deposit]), sweep(ETH, [[3, eth, 7]])],
    [null, null, null],
  )
  const both = `FOREIGN_PATH: Only the omnibus path and the path ${deposit.join('/')} may be used here`
  for (const paths of [
    [deposit, omnibus],
    [omnibus, omnibus],
    [deposit, deposit],
    [[4, sol, 0], deposit],
    [omnibus, [4, sol, 7]],
  ]) {
    assert.equal(sweep(SOL, paths), both)
  }
  assert.equal(sweep(SOL, [omnibus, deposit], omnibus), both)
  for (const paths of [[omnibus], [omnibus, deposit, deposit]]) {
    assert.equal(
      sweep(SOL, paths),
      `FOREIGN_PATH: Only the path ${deposit.join('/')} may be used here`,
    )
  }
  assert.equal(
    sweep(ETH, [
      [3, eth, 0],
      [3, eth, 7],
    ]),
    refusal,
    'where no second signer pays, there is none',
  )
})
