// Which orders a node takes as the platform's, by its record and the authorisation.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { authorise, hashOfUnsigned, type OrderAuthorisation } from '@custody/request-auth/orders'
import type { Order } from '../policy/order.ts'
import type { Store } from '../store/index.ts'
import { OrderedTransactions } from '../store/ordered.ts'
import { PlatformOrders } from './platform-orders.ts'

const platform = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const NODES = 'ab'.repeat(32)
const NOW = Date.UTC(2030, 0, 1)
const PAIR = { leader: 1, partner: 2 }
const unsigned = { network: 'ETH', bytes: '02aa', inputs: [{ path: [1, 60, 0] }] }
const orderOf = (purpose: object = { kind: 'drain', order: 'one' }): Order =>
  ({ workspace: 'acme', purpose, unsigned }) as unknown as Order
const ORDER = orderOf()
const VERDICT = { unsignedHash: hashOfUnsigned(unsigned) }

/** A node's checks. @param isRequired whether its record requires authorisations */
function fixture({ isRequired = true, notBefore = 0 } = {}) {
  const ordered = new OrderedTransactions()
  ordered.isAuthorisationRequired = isRequired
  const appended: string[] = []
  const append = (kind: string) => {
    appended.push(kind)
    ordered.isAuthorisationRequired = true
  }
  const store = { state: { ordered, notBefore }, append } as unknown as Store
  const clock = { nowMs: NOW }
  const orders = new PlatformOrders({
    platformKey: platform.publicKey,
    nodes: NODES,
    store,
    environment: { now: () => clock.nowMs },
  })
  return { orders, ordered, appended, clock }
}

let count = 0
const issued = (times: Partial<OrderAuthorisation> = {}): OrderAuthorisation =>
  authorise(
    platform.privateKey,
    { nodes: NODES, workspace: 'acme', orders: [ORDER], ...PAIR },
    {
      id: (++count).toString(16).padStart(32, '0'),
      issued_at: NOW,
      expires_at: NOW + 10_000,
      ...times,
    },
  )

test('a record of an earlier version accepts other orders until the first authorised one', () => {
  const { orders, appended } = fixture({ isRequired: false })
  orders.assertAuthorised([ORDER], { authorisation: null, ...PAIR })
  assert.deepEqual(appended, [])
  orders.assertAuthorised([ORDER], { authorisation: issued(), ...PAIR })
  orders.assertAuthorised([ORDER], { authorisation: issued(), ...PAIR })
  assert.deepEqual(appended, ['orders-authorised'])
  assert.throws(() => orders.assertAuthorised([ORDER], { authorisation: null, ...PAIR }), {
    code: 'NOT_AUTHORISED',
  })
})

test('an order of a recovery needs no platform', () => {
  const recovery = orderOf({ kind: 'recover', order: 'one' })
  fixture().orders.assertAuthorised([recovery], { authorisation: null, ...PAIR })
  assert.throws(
    () => fixture().orders.assertAuthorised([recovery, ORDER], { authorisation: null, ...PAIR }),
    { code: 'NOT_AUTHORISED' },
  )
})

test('an authorisation is valid for its time, with five seconds of difference', () => {
  const { orders, clock } = fixture()
  const authorisation = issued()
  for (const [at, isValid] of [
    [-5001, false],
    [-5000, true],
    [15_000, true],
    [15_001, false],
  ] as const) {
    clock.nowMs = NOW + at
    const check = () => orders.assertInForce([VERDICT], authorisation)
    if (isValid) check()
    else assert.throws(check, { code: 'ORDER_STALE', detail: { clock: NOW + at } })
  }
  clock.nowMs = NOW
  orders.assertInForce([VERDICT], issued({ expires_at: NOW + 60_000 }))
  assert.throws(() => orders.assertInForce([VERDICT], issued({ expires_at: NOW + 60_001 })), {
    code: 'ORDER_STALE',
  })
})

test('a restored node takes no order from before its restoration', () => {
  const { orders } = fixture({ notBefore: NOW })
  orders.assertInForce([VERDICT], issued())
  assert.throws(() => orders.assertInForce([VERDICT], issued({ issued_at: NOW - 1 })), {
    code: 'ORDER_STALE',
  })
})

test('an authorisation is used once, until it has expired', () => {
  const { orders, clock } = fixture()
  const first = issued()
  orders.use(first)
  orders.use(issued())
  assert.throws(() => orders.use(first), { code: 'ORDER_STALE' })
  clock.nowMs = NOW + 15_001
  orders.use(issued())
  assert.throws(() => orders.assertInForce([VERDICT], first), { code: 'ORDER_STALE' })
})

test('a withdrawal ends earlier orders of a transaction, and no later ones', () => {
  const { orders, ordered } = fixture()
  ordered.withdraw([VERDICT.unsignedHash], NOW)
  assert.throws(() => orders.assertInForce([VERDICT], issued()), { code: 'ORDER_WITHDRAWN' })
  orders.assertInForce([VERDICT], issued({ issued_at: NOW + 1 }))
  orders.assertInForce([{ unsignedHash: 'cd'.repeat(32) }], issued())
  // Without an authorisation, an order cannot be told from an earlier one.
  assert.throws(() => orders.assertInForce([VERDICT], null), { code: 'ORDER_WITHDRAWN' })
})
