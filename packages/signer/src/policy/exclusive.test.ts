import { decode, type DecodedTransaction, type Network } from '@custody/chains'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../errors.ts'
import { assertExclusive, decodeDecoded, encodeDecoded } from './exclusivity.ts'
import { accountOf, assertNonce, isNonceGap, isUnheardOf } from './nonce.ts'
import type { Subject, Verdict } from './order.ts'
import type { State, StepEntry } from '../store/state.ts'
import { BTC, btc, ETH, eth, funding, registry } from '../../testing/signer-cluster.ts'
import { KEYS, staked, trx, TRX, WALLET } from '../../testing/judging.ts'

/**
 * Rules 6 and 10 alone: which transactions of one step exclude each other, and which nonce of an
 * account is next.
 */
const SINK = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const omnibus = [1, ETH.chain_index, 0]
const read = (unsigned: Parameters<typeof decode>[1]): DecodedTransaction =>
  decode(registry, unsigned, KEYS.secp256k1.publicKeyAt)
const caught = (act: () => void): unknown => {
  try {
    act()
    return null
  } catch (error) {
    const { code, message, detail } = error as Refusal
    return { code, message, detail }
  }
}

test('rule 6: a transaction must exclude earlier ones of its step, unless it is repeatable', () => {
  const [first, other] = [read(eth(omnibus, { nonce: 0 })), read(eth(omnibus, { nonce: 1 }))]
  const entry = (unsigned_hash: string, signed: StepEntry['signed']): StepEntry => ({
    height: 5,
    unsigned_hash,
    consumes: first.consumes,
    signed,
  })
  const refused = (
    decoded: DecodedTransaction,
    earlier: StepEntry[],
    more: Partial<Verdict> = {},
    of = first,
  ) =>
    caught(() => {
      assertExclusive(
        registry,
        earlier,
        () => of,
        ({ height }) => ({ height }),
        { repeatable: false, unsignedHash: 'new', decoded, ...more } as unknown as Verdict,
      )
    })
  const refusal = (hash: string | null) => ({
    code: 'NOT_EXCLUSIVE',
    message: 'Another transaction of this step was signed, and both could be mined',
    detail: { hash, recorded: { height: 5 } },
  })
  assert.deepEqual(refused(other, [entry('old', { height: 6, hash: 'h' })]), refusal('h'))
  assert.deepEqual(refused(other, [entry('old', null)]), refusal(null))
  assert.deepEqual(
    [
      refused(first, [entry('old', null)]),
      refused(other, []),
      refused(other, [entry('old', null)], { repeatable: true }),
    ],
    [null, null, null],
  )
  // On Tron no transaction excludes another, not even itself.
  const tron = read(trx([1, TRX.chain_index, 0], SINK, 5n))
  assert.deepEqual(
    [refused(tron, [entry('new', null)], {}, tron), refused(tron, [entry('old', null)], {}, tron)],
    [null, refusal(null)],
  )
  assert.deepEqual(
    refused(other, [entry('new', null), entry('old', null)]),
    refusal(null),
    'one that excludes nothing behind one that is the same',
  )
})

test('the record returns the effects of each kind of transaction unchanged', () => {
  const path = [1, BTC.chain_index, 0]
  const change = { path: [1, BTC.chain_index, 0x7fffffff], value: 40_000n }
  const coins = btc(WALLET, {
    inputs: [{ funding: funding(WALLET, [{ path, value: 100_000n }]), output: 0, path }],
    amount: 50_000n,
    change,
  })
  const lent = staked([1, TRX.chain_index, 0], {
    kind: 'delegate',
    amount: 2n ** 60n,
    receiver: SINK,
  })
  for (const unsigned of [
    eth(omnibus, { value: 2n ** 70n, nonce: 7 }),
    coins,
    lent,
    trx([1, TRX.chain_index, 0], SINK, 5n),
  ]) {
    const decoded = read(unsigned)
    const written = JSON.parse(JSON.stringify(encodeDecoded(decoded)))
    assert.deepEqual(decodeDecoded(written), decoded)
  }
  const { nonce, gas_limit, max_fee_per_gas } = encodeDecoded(read(eth(omnibus, { nonce: 7 })))
  assert.deepEqual([nonce, gas_limit, max_fee_per_gas], ['7', '21000', '2000000000'])
})

const stateOf = (more: object = {}): State =>
  ({ nonces: new Map(), generation: 0, recovering: false, ...more }) as unknown as State
const subjectOf = (nonce: bigint | null, network: Network = ETH): Subject =>
  ({ network, decoded: { network: network.code, from: ['me'], nonce } }) as unknown as Subject
const stateAt = (highest: bigint, more: object = {}) =>
  stateOf({ nonces: new Map([[accountOf(subjectOf(0n)), highest]]), ...more })
const XRP = registry.network('XRP') as Network

test('rule 10: accepts used nonces and the next one; a new account begins at its first nonce', () => {
  assert.equal(accountOf(subjectOf(0n)), '["ETH","me"]')
  assert.equal(accountOf(subjectOf(null)), null)
  const gaps = (
    state: State,
    nonces: (bigint | null)[],
    ahead: bigint | null = null,
    network = ETH,
  ) => nonces.map((nonce) => isNonceGap(state, subjectOf(nonce, network), ahead))
  assert.deepEqual(gaps(stateOf(), [0n, 1n, null]), [false, true, false])
  assert.deepEqual(gaps(stateAt(5n), [0n, 5n, 6n, 7n]), [false, false, false, true])
  assert.deepEqual(
    gaps(stateOf(), [91n], null, XRP),
    [false],
    'an account that the chain makes begins where the chain says',
  )
  assert.deepEqual(
    gaps(stateAt(5n), [7n, 8n, 9n], 7n),
    [false, false, true],
    'what is written down at once before counts',
  )
  assert.deepEqual(
    gaps(stateAt(5n), [6n, 7n], 2n),
    [false, true],
    'and never takes back what is on record',
  )
  assert.deepEqual(gaps(stateOf(), [1n, 2n], 0n), [false, true])
  // For this check, a restored node accepts any first nonce if no peer sent it one, and is bound to
  // a nonce that it received.
  assert.deepEqual(gaps(stateOf({ generation: 1 }), [9n]), [false])
  assert.deepEqual(gaps(stateAt(5n, { generation: 1 }), [6n, 7n]), [false, true])
  assert.deepEqual(
    gaps(stateAt(5n, { recovering: true }), [99n]),
    [false],
    'a node for recovery knows no numbers',
  )
})

test('rule 10: refuses a nonce gap, and states the highest nonce on record', () => {
  const refused = (state: State, nonce: bigint, ahead: bigint | null = null) =>
    caught(() => {
      assertNonce(state, subjectOf(nonce), ahead)
    })
  const refusal = (nonce: bigint, highest: string | null) => ({
    code: 'NONCE_GAP',
    message: `The nonce ${nonce} is more than one above the highest recorded nonce`,
    detail: { highest },
  })
  assert.deepEqual(
    [refused(stateAt(5n), 7n), refused(stateOf(), 1n)],
    [refusal(7n, '5'), refusal(1n, null)],
  )
  assert.deepEqual([refused(stateAt(5n), 6n), refused(stateAt(5n), 7n, 6n)], [null, null])
})

test('a restored node does not know accounts that no peer sent, unless the nonce is the first', () => {
  const restored = stateOf({ generation: 1 })
  assert.equal(isUnheardOf(restored, subjectOf(3n)), true)
  assert.equal(isUnheardOf(restored, subjectOf(0n)), false)
  assert.equal(isUnheardOf(restored, subjectOf(null)), false)
  assert.equal(isUnheardOf(stateOf(), subjectOf(3n)), false)
  assert.equal(isUnheardOf(stateAt(1n, { generation: 1 }), subjectOf(3n)), false)
})
