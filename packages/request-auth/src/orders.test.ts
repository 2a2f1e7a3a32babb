import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import {
  authorise,
  fromHeader,
  hashOfUnsigned,
  isAuthorised,
  orderOfCall,
  toHeader,
  type AuthorisedOrder,
} from './orders.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const TIMES = { id: 'ab'.repeat(16), issued_at: 1_000_000, expires_at: 1_010_000 }
const unsigned = { network: 'ETH', bytes: '02aa', inputs: [{ path: [1, 60, 0], previous: 'ff' }] }
const ORDER: AuthorisedOrder = {
  nodes: 'cd'.repeat(32),
  workspace: 'acme',
  orders: [{ purpose: { kind: 'drain', order: 'one' }, unsigned }],
  leader: 1,
  partner: 2,
}
const AUTHORISATION = authorise(privateKey, ORDER, TIMES)

test('an authorisation is of one order, one pair of nodes and one installation', () => {
  assert.ok(isAuthorised(publicKey, ORDER, AUTHORISATION))
  const [order] = ORDER.orders as [AuthorisedOrder['orders'][number]]
  const others: Partial<AuthorisedOrder>[] = [
    { nodes: 'ce'.repeat(32) },
    { workspace: 'other' },
    { leader: 2, partner: 1 },
    { partner: 3 },
    { orders: [] },
    { orders: [order, order] },
    { orders: [{ ...order, purpose: { kind: 'drain', order: 'two' } }] },
    { orders: [{ ...order, unsigned: { ...unsigned, bytes: '02ab' } }] },
    { orders: [{ ...order, unsigned: { ...unsigned, network: 'BNB' } }] },
    { orders: [{ ...order, unsigned: { ...unsigned, inputs: [{ path: [2, 60, 0] }] } }] },
    { orders: [{ ...order, unsigned: { ...unsigned, change: { output: 1, path: [1, 60, 1] } } }] },
  ]
  for (const other of others)
    assert.ok(
      !isAuthorised(publicKey, { ...ORDER, ...other }, AUTHORISATION),
      JSON.stringify(other),
    )
  for (const field of ['id', 'issued_at', 'expires_at'] as const) {
    const changed = { ...AUTHORISATION, [field]: field === 'id' ? 'ac'.repeat(16) : 1_000_001 }
    assert.ok(!isAuthorised(publicKey, ORDER, changed), field)
  }
})

test('neither the order of fields nor transactions of inputs are part of it', () => {
  const purpose = { order: 'one', kind: 'drain', left: undefined }
  const orders = [{ purpose, unsigned: { ...unsigned, inputs: [{ path: [1, 60, 0] }] } }]
  assert.ok(isAuthorised(publicKey, { ...ORDER, orders }, AUTHORISATION))
  // A database may return the fields of an object in another order.
  const change = { output: 1, path: [1, 0, 5] }
  const turned = { path: [1, 0, 5], output: 1 }
  assert.equal(
    hashOfUnsigned({ ...unsigned, change }),
    hashOfUnsigned({ ...unsigned, change: turned }),
  )
})

test('another key does not authorise', () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  assert.ok(!isAuthorised(other.publicKey, ORDER, AUTHORISATION))
  assert.ok(!isAuthorised(publicKey, ORDER, authorise(other.privateKey, ORDER, TIMES)))
})

test('a header holds an authorisation, and any other text holds none', () => {
  assert.deepEqual(fromHeader(toHeader(AUTHORISATION)), AUTHORISATION)
  const more = JSON.stringify({ ...AUTHORISATION, more: 1 })
  for (const text of [undefined, '', '{}', 'null', '[', more]) assert.equal(fromHeader(text), null)
})

test('a call orders one transaction, several, or none', () => {
  const [one] = ORDER.orders as [AuthorisedOrder['orders'][number]]
  const call = { nodes: ORDER.nodes, leader: 1 }
  const body = { workspace: 'acme', partner: 2 }
  const single = orderOfCall({ ...call, path: '/sign', body: { ...body, ...one } })
  assert.ok(isAuthorised(publicKey, single!, AUTHORISATION))
  const run = orderOfCall({ ...call, path: '/sign-run', body: { ...body, run: [one, one] } })
  assert.equal(run!.orders.length, 2)
  assert.equal(orderOfCall({ ...call, path: '/void', body }), null)
  assert.match(hashOfUnsigned(unsigned), /^[0-9a-f]{64}$/)
})
