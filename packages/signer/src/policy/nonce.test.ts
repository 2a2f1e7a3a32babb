// What a node states about its record if a nonce is missing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import { accountOf, reportedGap } from './nonce.ts'
import type { Subject } from './order.ts'

const SUBJECT = {
  decoded: { network: 'ETH', from: ['0xabc'], nonce: 9n },
} as unknown as Subject
const ACCOUNT = accountOf(SUBJECT)!
const GAP = new Refusal('NONCE_GAP', 'a nonce is missing', { highest: '5', unrecorded: 3, node: 3 })

/** Returns what node 2 states. @param highest highest nonce on its record */
function unrecorded(highest: bigint | null, more: Partial<State> = {}, error: unknown = GAP) {
  const nonces = new Map(highest === null ? [] : [[ACCOUNT, highest]])
  const state = { nonces, recovering: false, generation: 0, ...more } as unknown as State
  return (reportedGap(state, 2, SUBJECT, error) as Refusal).detail['unrecorded']
}

test('a node that has recorded no such nonce states it, whichever node refuses', () => {
  for (const highest of [null, 0n, 7n, 8n]) assert.equal(unrecorded(highest), 2)
  const own = new Refusal('NONCE_GAP', 'a nonce is missing')
  assert.equal(unrecorded(5n, {}, own), 2)
})

test('a node that has recorded the nonce or a later one does not state it', () => {
  for (const highest of [9n, 10n]) assert.notEqual(unrecorded(highest), 2)
})

test('a node that has lost a record does not state it', () => {
  assert.notEqual(unrecorded(null, { recovering: true }), 2)
  assert.notEqual(unrecorded(7n, { generation: 1 }), 2)
})

test('other errors stay as they are', () => {
  for (const error of [new Refusal('TOO_BUSY', 'busy'), new Error('unknown')])
    assert.equal(reportedGap({ nonces: new Map() } as unknown as State, 2, SUBJECT, error), error)
})
