import { addressAt, type DecodedTransaction, type Network } from '@custody/chains'
import assert from 'node:assert/strict'
import { createECDH, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { signBytes } from '../canonical.ts'
import type { Refusal } from '../errors.ts'
import type { Proven } from '../intent/request.ts'
import type { StakeIntent } from '../intent/stake.ts'
import { assertAge, DAY_S, receiptBytes } from './age.ts'
import { assertDrains, drainOrder } from './drain.ts'
import type { Lend, Order, Receipt, Subject } from './order.ts'
import { assertStakes } from './stake.ts'
import { assertLends, assertTankStakes, tankStakeOrder } from './tank.ts'
import { State } from '../store/state.ts'
import { ETH, registry, SINK_ETH } from '../../testing/signer-cluster.ts'

/**
 * Unit tests of the proofs of an old request, the lifetime of an operator's order, and the cap of
 * payments that no caller pays for.
 */
const codeOf = (act: () => unknown): string | null => {
  try {
    act()
    return null
  } catch (error) {
    return (error as Refusal).code
  }
}

const IAT = 1_800_000_000
const identity = () => generateKeyPairSync('ed25519')
const [second, third, stranger] = [identity(), identity(), identity()]
const identities = new Map([
  [2, second.publicKey],
  [3, third.publicKey],
])
const proven = {
  enrolment: { api_key: 'k' },
  nonce: 'n',
  iat: IAT,
  exp: IAT + 25,
} as unknown as Proven
const TOLD = { node: 2, api_key: 'k', nonce: 'n', intent: 'content', seen_at: IAT + 20 }
const receipt = (more: Partial<Receipt['receipt']> = {}, by = second): Receipt => {
  const receipt = { ...TOLD, ...more }
  return { receipt: receipt, signature: signBytes(by.privateKey, receiptBytes(receipt)) }
}
const stateOf = (more: object = {}): State =>
  ({ notBefore: 0, seen: new Map(), ...more }) as unknown as State
const aged = (at: number, receipts: Receipt[] = [], state = stateOf()) =>
  codeOf(() => assertAge({ state, identities, proven, content: 'content', receipts, now: at }))

test('rule 3: a request is valid for a day without a receipt, and for a week with a receipt', () => {
  assert.deepEqual([aged(IAT + DAY_S), aged(IAT + DAY_S + 1)], [null, 'TOO_OLD'])
  assert.deepEqual(
    [aged(IAT + 7 * DAY_S, [receipt()]), aged(IAT + 7 * DAY_S + 1, [receipt()])],
    [null, 'TOO_OLD'],
  )
})

test('a receipt is signed in the format of the README, with the fields in a fixed order', () => {
  assert.equal(
    receiptBytes({ seen_at: 5, intent: 'i', nonce: 'n', api_key: 'k', node: 2 }).toString(),
    'custody/receipt/v1\n{"node":2,"api_key":"k","nonce":"n","intent":"i","seen_at":5}',
  )
})

test('attack: refuses a receipt of another caller, request, intent or node, or a later time', () => {
  const at = IAT + 2 * DAY_S
  assert.equal(aged(at, [receipt()]), null)
  for (const more of [
    { api_key: 'other' },
    { nonce: 'other' },
    { intent: 'other' },
    { node: 1 },
    { node: 3 },
    { seen_at: IAT + 25 + 61 },
  ]) {
    assert.equal(aged(at, [receipt(more)]), 'TOO_OLD', JSON.stringify(more))
  }
  assert.equal(aged(at, [receipt({}, stranger)]), 'TOO_OLD')
  assert.equal(
    aged(at, [{ ...receipt({ seen_at: IAT }), receipt: { ...TOLD, seen_at: IAT + 1 } }]),
    'TOO_OLD',
  )
  assert.equal(
    aged(at, [
      receipt({ node: 3 }),
      receipt({ nonce: 'other' }),
      receipt({ seen_at: IAT + 25 + 60 }),
    ]),
    null,
    'one is enough',
  )
})

test('rule 3: counts requests that this node received in time, but not before its restoration', () => {
  const seen = (timely: boolean) =>
    stateOf({ seen: new Map([[State.requestKey('k', 'n'), { timely }]]) })
  const at = IAT + 2 * DAY_S
  assert.deepEqual([aged(at, [], seen(true)), aged(at, [], seen(false))], [null, 'TOO_OLD'])
  assert.deepEqual(
    [
      aged(IAT + 1, [], stateOf({ notBefore: IAT * 1000 })),
      aged(IAT + 1, [receipt()], stateOf({ notBefore: IAT * 1000 + 1 })),
    ],
    [null, 'TOO_OLD'],
  )
})

const TRX = registry.network('TRX') as Network
const order = (network: string) => ({ workspace: 'w', unsigned: { network } }) as unknown as Order

test("rule 15: an operator's order is valid until its end, for its own workspace and network", () => {
  const drain = {
    order: 'o',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    expires_at: IAT,
  }
  const stake = {
    order: 'o',
    workspace: 'w',
    network: 'TRX',
    action: 'stake',
    resource: 'ENERGY',
    amount: '5',
    expires_at: IAT,
  }
  const state = stateOf({ drains: new Map([['o', drain]]), tankStakes: new Map([['o', stake]]) })
  for (const [of, home, other] of [
    [drainOrder, 'ETH', 'BSC'],
    [tankStakeOrder, 'TRX', 'ETH'],
  ] as const) {
    const codeAt = (network: string, at: number, id = 'o', more: object = {}) =>
      codeOf(() => of(state, { ...order(network), ...more } as Order, id, at))
    assert.deepEqual([codeAt(home, IAT), codeAt(home, IAT + 1)], [null, 'ORDER_EXPIRED'])
    assert.deepEqual(
      [codeAt(other, IAT), codeAt(home, IAT, 'none'), codeAt(home, IAT, 'o', { workspace: 'v' })],
      ['NETWORK_MISMATCH', 'ORDER_UNKNOWN', 'WORKSPACE_MISMATCH'],
    )
  }
})

const subject = (network: Network, decoded: object): Subject =>
  ({
    order: { unsigned: { inputs: [{ path: [0, network.chain_index, 0] }] } },
    network,
    decoded: {
      asset: network.native_asset,
      payments: [],
      change: null,
      ...decoded,
    } as unknown as DecodedTransaction,
  }) as unknown as Subject
const [most, above] = [BigInt(TRX.fee_cap), BigInt(TRX.fee_cap) + 1n]

test('attack: a gas tank or a staking wallet cannot be spent as fees', () => {
  const drained = (fee: bigint, payment: object = {}, more: object[] = []) =>
    codeOf(() =>
      assertDrains(
        subject(ETH, {
          payments: [{ address: SINK_ETH, amount: 1n, tag: null, ...payment }, ...more],
          fee_max: fee,
        }),
        registry,
        { order: 'o', workspace: 'w', network: 'ETH', to_address: SINK_ETH, expires_at: IAT },
      ),
    )
  const cap = BigInt(ETH.fee_cap)
  assert.deepEqual(
    [
      drained(cap),
      drained(cap + 1n),
      drained(cap, { tag: '1' }),
      drained(cap, {}, [{ address: SINK_ETH, amount: 1n, tag: null }]),
    ],
    [null, 'FEE_CAP', 'TAG_MISMATCH', 'SHAPE'],
  )
  const action = { kind: 'freeze', resource: 'ENERGY', amount: 5n, receiver: null }
  const staked = (fee: bigint, more: object = {}) =>
    codeOf(() =>
      assertStakes(
        subject(TRX, { action, fee_max: fee, ...more }),
        {
          action: 'stake',
          address: 'own',
          resource: 'ENERGY',
          amount: 5n,
        } as unknown as StakeIntent,
        'freeze',
        'own',
        0,
      ),
    )
  assert.deepEqual(
    [
      staked(most),
      staked(above),
      staked(most, { payments: [{ address: 'x', amount: 1n, tag: null }] }),
    ],
    [null, 'FEE_CAP', 'SHAPE'],
  )
  const tank = (fee: bigint, more: object = {}) =>
    codeOf(() =>
      assertTankStakes(subject(TRX, { action, fee_max: fee, ...more }), {
        order: 'o',
        workspace: 'w',
        network: 'TRX',
        action: 'stake',
        resource: 'ENERGY',
        amount: '5',
        expires_at: IAT,
      }),
    )
  assert.deepEqual(
    [tank(most), tank(above), tank(most, { payments: [{ address: 'x', amount: 1n, tag: null }] })],
    [null, 'FEE_CAP', 'SHAPE'],
  )
})

test('attack: a tank cannot delegate energy to itself, or for a call that is too expensive', () => {
  const keys = createECDH('secp256k1')
  keys.setPrivateKey(Buffer.alloc(32, 7))
  const key = {
    publicKey: new Uint8Array(keys.getPublicKey(null, 'compressed')),
    chainCode: new Uint8Array(32),
  }
  const lent = (source: [number, number, number], fee: bigint) =>
    codeOf(() =>
      assertLends(
        {
          ...subject(TRX, {
            action: {
              kind: 'delegate',
              resource: 'ENERGY',
              amount: 5n,
              receiver: addressAt(TRX, key, source),
            },
            fee_max: fee,
          }),
          key,
        } as unknown as Subject,
        { kind: 'lend', step: 'delegate' } as unknown as Lend,
        source,
      ),
    )
  const chain = TRX.chain_index
  assert.deepEqual(
    [lent([1, chain, 0], most), lent([1, chain, 0], above), lent([0, chain, 0], most)],
    [null, 'FEE_CAP', 'DESTINATION_MISMATCH'],
  )
})
