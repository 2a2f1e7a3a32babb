import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { orderSchema, uuidSchema } from './order.ts'

/**
 * The platform's call as a node parses it: a call of another shape is refused before the node
 * judges anything.
 */
const request = { token: 't', method: 'POST', uri: '/u', body: '' }
const receipt = {
  receipt: { node: 1, api_key: 'k', nonce: 'n', intent: 'i', seen_at: 0 },
  signature: 's',
}
const ID = '01234567-89ab-4cde-8f01-23456789abcd'
const pay = { kind: 'pay', request }
const cost = { gas: '1', max_fee_per_gas: '0' }
const sweep = { kind: 'sweep', sub_account: 0, asset: 'A', address_index: 0x7fffffff }
const forward = { kind: 'forward', id: ID, rule: request }
const cancel = { kind: 'cancel', of: pay, request }
const stake = { kind: 'stake', step: 'freeze', request }
const fuel = { kind: 'fuel', for: pay, ...cost }
const lend = { kind: 'lend', step: 'delegate', for: pay }
const drain = { kind: 'drain', order: 'o' }
const recover = { kind: 'recover', order: 'o' }
const unsigned = { network: 'N', bytes: '00', inputs: [{ path: [] as number[] }] }
const order = { workspace: 'w', purpose: pay, unsigned }

const isRead = (call: object): boolean => {
  const { success, data } = orderSchema.safeParse(call)
  if (success) assert.deepEqual(data, call)
  return success
}
const ofPurpose = (purpose: object) => isRead({ ...order, purpose })
const ofUnsigned = (more: object) => isRead({ ...order, unsigned: { ...unsigned, ...more } })
const allOf = (count: number, each: unknown) => Array.from({ length: count }, () => each)

test('reads an order of every purpose unchanged, with all optional fields', () => {
  const proven = { request, receipts: [receipt, receipt, receipt] }
  for (const purpose of [
    pay,
    { ...pay, ...proven, speed_up: proven },
    cancel,
    { ...cancel, of: forward, ...proven },
    sweep,
    forward,
    { ...forward, receipts: [] },
    drain,
    recover,
    { ...recover, to_path: [0, 1, 0x7fffffff] },
    { kind: 'tank-stake', order: 'o' },
    fuel,
    { ...fuel, l1_fee: '1', beside: [{ for: pay, ...cost, l1_fee: '0' }] },
    ...['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw'].map((step) => ({
      ...stake,
      ...proven,
      step,
    })),
    ...[pay, cancel, sweep, forward, stake].map((each) => ({ ...fuel, for: each })),
    ...['delegate', 'undelegate'].flatMap((step) =>
      [pay, sweep, forward].map((each) => ({ ...lend, step, for: each })),
    ),
  ])
    assert.ok(ofPurpose(purpose), JSON.stringify(purpose))
})

test('refuses an additional or missing field, another kind, and forbidden nesting', () => {
  for (const purpose of [
    pay,
    { ...pay, speed_up: { request } },
    cancel,
    sweep,
    forward,
    stake,
    fuel,
    lend,
    drain,
    recover,
    { kind: 'tank-stake', order: 'o' },
    { ...pay, receipts: [receipt] },
  ]) {
    assert.ok(!ofPurpose({ ...purpose, more: 1 }))
    for (const name of Object.keys(purpose)) {
      if (name !== 'speed_up' && name !== 'receipts')
        assert.ok(!ofPurpose({ ...purpose, [name]: undefined }), name)
      assert.ok(!ofPurpose({ ...purpose, [name]: null }), name)
    }
  }
  assert.ok(!ofPurpose({ ...pay, kind: 'mint' }))
  assert.ok(!ofPurpose({ ...pay, speed_up: { request, more: 1 } }))
  assert.ok(!ofPurpose({ ...pay, speed_up: {} }))
  for (const each of [sweep, stake, cancel]) assert.ok(!ofPurpose({ ...cancel, of: each }))
  for (const each of [fuel, drain, lend]) assert.ok(!ofPurpose({ ...fuel, for: each }))
  for (const each of [cancel, stake]) assert.ok(!ofPurpose({ ...lend, for: each }))
  for (const step of ['freeze', 'withdraw', '']) assert.ok(!ofPurpose({ ...lend, step }))
  assert.ok(!ofPurpose({ ...stake, step: 'vote' }))
  for (const each of [sweep, cancel])
    assert.ok(!ofPurpose({ ...fuel, beside: [{ for: each, ...cost }] }))
  assert.ok(!ofPurpose({ ...fuel, beside: [{ for: pay, ...cost, more: 1 }] }))
  for (const name of ['for', 'gas', 'max_fee_per_gas']) {
    assert.ok(!ofPurpose({ ...fuel, beside: [{ for: pay, ...cost, [name]: undefined }] }))
  }
  for (const name of ['workspace', 'purpose', 'unsigned'])
    assert.ok(!isRead({ ...order, [name]: undefined }))
  assert.ok(!isRead({ ...order, more: 1 }))
  for (const name of ['network', 'bytes', 'inputs']) assert.ok(!ofUnsigned({ [name]: undefined }))
  assert.ok(!ofUnsigned({ more: 1 }))
})

test('reads the policy fields of an order, all of which are optional', () => {
  const reads = (policy: unknown) => isRead({ ...order, policy })
  for (const policy of [{}, { via: 'r' }, { to_path: [0, 1, 0x7fffffff] }])
    assert.ok(reads(policy), JSON.stringify(policy))
  assert.ok(reads({ via: 'x'.repeat(64), to_path: [1, 60, 0] }))
  for (const policy of [
    null,
    [],
    { more: 1 },
    { via: '' },
    { via: 'x'.repeat(65) },
    { via: 1 },
    { to_path: [0, 1] },
    { to_path: [0, 1, 2, 3] },
    { to_path: [0, 1, -1] },
    { to_path: [0, 1, 0x80000000] },
    { to_path: null },
  ])
    assert.ok(!reads(policy), JSON.stringify(policy))
})

test('limits lengths, counts and sizes', () => {
  const named = (length: number) => 'x'.repeat(length)
  for (const [least, most, reads] of [
    [1, 128, (length: number) => isRead({ ...order, workspace: named(length) })],
    [1, 128, (length: number) => ofUnsigned({ network: named(length) })],
    [1, 128, (length: number) => ofPurpose({ ...sweep, asset: named(length) })],
    [1, 128, (length: number) => ofPurpose({ ...drain, order: named(length) })],
    [0, 3, (count: number) => ofPurpose({ ...pay, receipts: allOf(count, receipt) })],
    [0, 3, (count: number) => ofPurpose({ ...forward, receipts: allOf(count, receipt) })],
    [1, 63, (count: number) => ofPurpose({ ...fuel, beside: allOf(count, { for: pay, ...cost }) })],
    [3, 3, (count: number) => ofPurpose({ ...recover, to_path: allOf(count, 1) })],
    [1, 400, (count: number) => ofUnsigned({ inputs: allOf(count, { path: [1] }) })],
    [0, 8, (count: number) => ofUnsigned({ inputs: [{ path: allOf(count, 1) }] })],
    [0, 8, (count: number) => ofUnsigned({ change: { output: 0, path: allOf(count, 1) } })],
    [1, 4 * 1024 * 1024, (bytes: number) => ofUnsigned({ bytes: '0a'.repeat(bytes) })],
    [
      1,
      4 * 1024 * 1024,
      (bytes: number) => ofUnsigned({ inputs: [{ path: [1], previous: '0a'.repeat(bytes) }] }),
    ],
    [0, 0x7fffffff, (index: number) => ofPurpose({ ...sweep, sub_account: index })],
    [0, 0x7fffffff, (index: number) => ofPurpose({ ...sweep, address_index: index })],
    [0, 0x7fffffff, (index: number) => ofPurpose({ ...recover, to_path: [1, 1, index] })],
    [0, 0x7fffffff, (index: number) => ofUnsigned({ inputs: [{ path: [index] }] })],
    [0, 0x7fffffff, (index: number) => ofUnsigned({ change: { output: 1, path: [index] } })],
  ] as const) {
    assert.deepEqual([reads(least), reads(most)], [true, true], reads.toString())
    if (least > 0) assert.ok(!reads(least - 1), reads.toString())
    assert.ok(!reads(most + 1), reads.toString())
  }
  for (const index of [-1, 0.5, '1']) {
    assert.ok(
      !ofPurpose({ ...sweep, sub_account: index }) &&
        !ofUnsigned({ inputs: [{ path: [index] }] }) &&
        !ofUnsigned({ change: { output: index, path: [] } }),
    )
  }
  for (const more of [
    { more: 1 },
    { path: undefined },
    { previous: 1 },
    { previous: '0' },
    { previous: '0G' },
  ]) {
    assert.ok(!ofUnsigned({ inputs: [{ path: [], ...more }] }))
  }
  for (const more of [{ more: 1 }, { path: undefined }, { output: undefined }]) {
    assert.ok(!ofUnsigned({ change: { output: 0, path: [], ...more } }))
  }
  for (const bytes of ['0', '0A', 'xy', '']) assert.ok(!ofUnsigned({ bytes }), bytes)
})

test('a receipt names one of three nodes, has names of limited length, and no other field', () => {
  const reads = (order: object, more: object = {}) =>
    ofPurpose({
      ...pay,
      receipts: [{ receipt: { ...receipt.receipt, ...order }, signature: 's', ...more }],
    })
  for (const [name, most] of [
    ['api_key', 256],
    ['nonce', 256],
    ['intent', 64],
  ] as const) {
    assert.deepEqual(
      [
        reads({ [name]: '' }),
        reads({ [name]: 'x'.repeat(most) }),
        reads({ [name]: 'x'.repeat(most + 1) }),
      ],
      [true, true, false],
      name,
    )
  }
  assert.deepEqual(
    [reads({}, { signature: 'x'.repeat(128) }), reads({}, { signature: 'x'.repeat(129) })],
    [true, false],
  )
  assert.deepEqual(
    [0, 1, 2, 3, 4, 1.5].map((node) => reads({ node })),
    [false, true, true, true, false, false],
  )
  assert.deepEqual(
    [-1, 0, 1, 0.5].map((seen_at) => reads({ seen_at })),
    [false, true, true, false],
  )
  assert.deepEqual([reads({ more: 1 }), reads({}, { more: 1 })], [false, false])
  for (const name of Object.keys(receipt.receipt)) assert.ok(!reads({ [name]: undefined }), name)
})

test('amounts must be whole decimal numbers, and ids must have one encoding', () => {
  const gas = (text: unknown) => ofPurpose({ ...fuel, gas: text })
  for (const name of ['gas', 'max_fee_per_gas', 'l1_fee']) {
    const reads = (text: unknown) => ofPurpose({ ...fuel, [name]: text })
    assert.deepEqual(
      [reads('0'), reads('10'), reads(`1${'0'.repeat(77)}`), reads(`1${'0'.repeat(78)}`)],
      [true, true, true, false],
    )
  }
  for (const text of ['', '00', '01', '-1', '1.5', '1e3', ' 1', '1 ', '0x1', 1])
    assert.ok(!gas(text), String(text))
  assert.deepEqual([gas('9'), gas('1'), gas('19')], [true, true, true])
  const isId = (text: string) => uuidSchema.safeParse(text).success
  assert.ok(isId(ID) && isId('ffffffff-ffff-ffff-ffff-ffffffffffff'))
  for (const text of [
    ID.toUpperCase(),
    `${ID}0`,
    `0${ID}`,
    ID.slice(1),
    ID.slice(0, -1),
    ID.replace('-', ''),
    `${ID}-0000`,
    ID.replace('89ab-', ''),
    ID.replaceAll('-', '_'),
    ID.replace('a', 'g'),
  ]) {
    assert.ok(!isId(text), text)
  }
  assert.ok(!ofPurpose({ ...forward, id: ID.toUpperCase() }))
})

test('the hash of a transaction covers all of its fields and no additional data', () => {
  const of = (more: object = {}) =>
    hashOfUnsigned({ ...unsigned, inputs: [{ path: [1, 2] }], ...more })
  assert.equal(of(), 'd3e73b01c10c0742526e1fd0491c88e8a848d50e3926e5ccd4ebc56a823fecf6')
  assert.equal(of({ inputs: [{ path: [1, 2], previous: '00' }] }), of())
  assert.equal(of({ change: undefined }), of())
  const others = [
    { network: 'M' },
    { bytes: '01' },
    { inputs: [{ path: [1, 3] }] },
    { inputs: [{ path: [1, 2] }, { path: [1, 2] }] },
    { change: { output: 1, path: [1] } },
    { change: { output: 2, path: [1] } },
  ]
  assert.equal(new Set([of(), ...others.map((more) => of(more))]).size, others.length + 1)
})
