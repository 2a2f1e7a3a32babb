// Rule 14: what a cancellation may cost, and what it must use.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DecodedTransaction, Network } from '@custody/chains'
import { ETH, eth, registry } from '../../testing/signer-cluster.ts'
import {
  addressOf,
  asksAbout,
  asksPay,
  Bench,
  IAT,
  pay,
  said,
  SESSION,
} from '../../testing/judging.ts'
import type { Body } from '../store/entries/index.ts'
import { assertReplaces, feeOfReplacement, largestFee } from './cancel.ts'
import type { Subject } from './order.ts'

const subject = (code: string, decoded: object = {}): Subject =>
  ({ network: registry.network(code) as Network, decoded }) as unknown as Subject
const costing = (...fees: bigint[]) => fees.map((fee_max) => ({ fee_max }) as DecodedTransaction)

test('a cancellation may cost a quarter more than the dearest transaction of the payment', () => {
  assert.equal(largestFee([]), 0n)
  for (const fees of [
    [1000n, 7n],
    [7n, 1000n],
    [1000n, 1000n],
  ]) {
    assert.equal(largestFee(costing(...fees)), 1000n)
    assert.equal(feeOfReplacement(subject('ETH', { gas_limit: 21_000n }), costing(...fees)), 1250n)
  }
})

test('a cancellation may cost what the network requires of a replacement, if that is more', () => {
  const small = { vsize: 110 }
  const increment = feeOfReplacement(subject('BTC', small), costing(0n))
  assert.ok(increment > 0n)
  // From four times the increment on, a quarter is as much.
  const at = (fee: bigint) => feeOfReplacement(subject('BTC', small), costing(fee))
  assert.equal(at(4n * increment - 1n), 5n * increment - 1n)
  assert.equal(at(4n * increment), 5n * increment)
  assert.equal(at(8n * increment), 10n * increment)
})

test('on a network without replacements, only the quarter counts', () => {
  assert.equal(feeOfReplacement(subject('XRP'), costing(12n)), 15n)
})

test("a payment on a peer's record is the peer's word, so nothing of it can be cancelled", async (t) => {
  const path = [1, ETH.chain_index, 0]
  const [signing, other] = [new Bench(), new Bench()]
  t.after(() => {
    for (const bench of [signing, other]) bench.close()
  })
  const mine = signing.caller(1)
  other.caller(1, { api_key: mine.api_key })
  const paid = await asksPay(mine)
  const { request } = await asksAbout(mine, paid.id, 'cancel')
  const payment = await signing.verdict(pay(paid), eth(path, { value: 10n ** 18n }))
  signing.judge.admit(payment, SESSION)
  const cancellation = [
    { kind: 'cancel', of: pay(paid), request },
    eth(path, { to: addressOf(ETH, path), maxFeePerGas: 2_500_000_000n }),
  ] as const
  assert.equal(await signing.codeOf(...cancellation), null)
  const entry = signing.store.record.read(signing.store.state.steps.get(payment.step)![0]!.height)
  const {
    purpose: _p,
    workspace: _w,
    key_id: _k,
    unsigned: _u,
    ...body
  } = entry.body as Body<'step'>
  const { partner: _n, peer_head: _h, ...shared } = body
  other.store.append('imported', { at: IAT * 1000, kind: 'step', body: shared, from: 2 })
  assert.match((await other.codeOf(...cancellation)) ?? '', /^NOTHING_TO_CANCEL: /)
})

const using = (...consumes: string[]) => ({ consumes }) as DecodedTransaction
const refused = (cancellation: string[], ...replaced: DecodedTransaction[]) =>
  said(() => {
    assertReplaces(subject('BTC', { consumes: cancellation }), replaced)
  }) !== null

test('a cancellation uses all inputs of a transaction of the payment, and no others', () => {
  assert.equal(refused(['a', 'b'], using('b', 'a')), false)
  assert.equal(refused(['a'], using('a', 'b')), true)
  assert.equal(refused(['a', 'b', 'c'], using('a', 'b')), true)
  assert.equal(refused(['c'], using('a')), true)
  assert.equal(refused(['a'], using('a'), using('b')), false)
  assert.equal(refused(['b'], using('a'), using('b')), false)
  assert.equal(refused(['a', 'b'], using('a'), using('b', 'c')), false)
  assert.equal(refused(['a', 'c'], using('a', 'b'), using('c', 'd')), true)
  assert.equal(refused(['a']), true)
  assert.match(
    said(() => {
      assertReplaces(subject('BTC', using('a')), [])
    }) ?? '',
    /^NOT_EXCLUSIVE: A cancellation must use all inputs, or the nonce, of a transaction of the payment/,
  )
})

test('a transaction that excludes no other one cannot be cancelled', () => {
  assert.equal(refused([], using()), true)
  assert.equal(refused(['a'], using(), using('b')), true)
})
