// Transactions that a hostile platform may send to a signer node on Tron.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { ChainError, familyOf, type UnsignedTransaction } from '../index.ts'
import { addressBytes } from './address.ts'
import { transferData } from './build.ts'
import { publicKeyAt, refuses } from '../../testing/support.ts'
import { ASSETS, OWNER, PATH, SHAPES, TO, TRX, USDT_TRX } from '../../testing/tron-support.ts'

// A separate protobuf encoder, whose output need not be canonical.
const varint = (value: bigint | number): Buffer => {
  let rest = BigInt.asUintN(64, BigInt(value))
  const bytes: number[] = []
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0))
    rest >>= 7n
  } while (rest > 0n)
  return Buffer.from(bytes)
}
const num = (field: number, value: bigint | number) =>
  Buffer.concat([varint(field << 3), varint(value)])
const len = (field: number, ...parts: (Uint8Array | string)[]) => {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)),
  )
  return Buffer.concat([varint((field << 3) | 2), varint(body.length), body])
}

const owner = len(1, addressBytes(OWNER))
const transfer = Buffer.concat([owner, len(2, addressBytes(TO)), num(3, 5)])
const contractOf = (type: number, name: string, value: Uint8Array, ...more: Uint8Array[]) =>
  len(
    11,
    num(1, type),
    len(2, len(1, `type.googleapis.com/protocol.${name}`), len(2, value)),
    ...more,
  )
const triggerOf = (
  data: Uint8Array,
  contract = USDT_TRX.contract_address as string,
  ...more: Uint8Array[]
) =>
  contractOf(
    31,
    'TriggerSmartContract',
    Buffer.concat([owner, len(2, addressBytes(contract)), len(4, data), ...more]),
  )
const head = [
  len(1, Buffer.from('8700', 'hex')),
  len(4, Buffer.from('a1b2c3d4e5f60718', 'hex')),
  num(8, 1_700_000_600_000n),
]
const time = num(14, 1_700_000_000_000n)
const limit = num(18, 30_000_000)
const raw = (...contracts: Uint8Array[]) => Buffer.concat([...head, ...contracts, time])
const token = (...contracts: Uint8Array[]) => Buffer.concat([...head, ...contracts, time, limit])
const PLAIN = contractOf(1, 'TransferContract', transfer)
const DATA = transferData(TO, 5n)

const decodeAll = (unsigned: UnsignedTransaction) =>
  familyOf(TRX).decode(TRX, unsigned, ASSETS, publicKeyAt)
const of = (bytes: string): UnsignedTransaction => ({
  network: 'TRX',
  bytes,
  inputs: [{ path: PATH }],
})
const decode = (bytes: Uint8Array) => decodeAll(of(Buffer.from(bytes).toString('hex')))

test('decodes plain transfers', () => {
  assert.deepEqual(decode(raw(PLAIN)).payments, [{ address: TO, amount: 5n, tag: null }])
  assert.deepEqual(decode(token(triggerOf(DATA))).payments, [
    { address: TO, amount: 5n, tag: null },
  ])
  assert.equal(decode(token(triggerOf(DATA))).asset, 'USDT_TRX')
})

test('refuses a transaction with two contracts or without a contract', () => {
  refuses(() => decode(raw(PLAIN, PLAIN)), 'SHAPE', /exactly one/)
  refuses(() => decode(raw()), 'SHAPE', /exactly one/)
})

test('refuses a memo, a permission id, and other optional parts of a transaction', () => {
  refuses(() => decode(Buffer.concat([...head, len(10, 'memo'), PLAIN, time])), 'SHAPE', /memo/)
  for (const id of [1, 2, 9])
    refuses(
      () => decode(raw(contractOf(1, 'TransferContract', transfer, num(5, id)))),
      'SHAPE',
      /permission/,
    )
  refuses(
    () => decode(raw(contractOf(1, 'TransferContract', transfer, len(3, 'provider')))),
    'ENCODING',
  )
  refuses(
    () => decode(raw(contractOf(1, 'TransferContract', transfer, len(4, 'name')))),
    'ENCODING',
  )
  refuses(
    () => decode(Buffer.concat([head[0] as Buffer, num(3, 7), ...head.slice(1), PLAIN, time])),
    'ENCODING',
  )
  refuses(() => decode(Buffer.concat([...head, len(9, ''), PLAIN, time])), 'ENCODING')
  refuses(() => decode(Buffer.concat([...head, PLAIN, len(12, 'script'), time])), 'ENCODING')
})

test('refuses other contract types and a type that does not match the content', () => {
  // Account permission update, votes for super representatives, a new contract, cancelling all
  // unstaking, the old freeze.
  for (const [type, name] of [
    [46, 'AccountPermissionUpdateContract'],
    [4, 'VoteWitnessContract'],
    [30, 'CreateSmartContract'],
    [59, 'CancelAllUnfreezeV2Contract'],
    [11, 'FreezeBalanceContract'],
    [2, 'TransferAssetContract'],
    [0, 'AccountCreateContract'],
    [1000, 'X'],
  ] as const) {
    refuses(() => decode(raw(contractOf(type, name, transfer))), 'SHAPE', /contract type/)
  }
  refuses(() => decode(raw(contractOf(1, 'TriggerSmartContract', transfer))), 'SHAPE', /differ/)
  refuses(
    () =>
      decode(
        raw(
          len(
            11,
            num(1, 1),
            len(2, len(1, 'example.com/protocol.TransferContract'), len(2, transfer)),
          ),
        ),
      ),
    'SHAPE',
    /differ/,
  )
  refuses(() => decode(raw(len(11, num(1, 1)))), 'SHAPE', /differ/)
})

test('refuses token value, native value, other contracts, and data other than transfer', () => {
  refuses(
    () =>
      decode(
        token(
          contractOf(
            31,
            'TriggerSmartContract',
            Buffer.concat([
              owner,
              len(2, addressBytes(USDT_TRX.contract_address as string)),
              num(3, 1),
              len(4, DATA),
            ]),
          ),
        ),
      ),
    'SHAPE',
    /no native value/,
  )
  refuses(() => decode(token(triggerOf(DATA, undefined, num(5, 1)))), 'SHAPE', /no other token/)
  refuses(
    () => decode(token(triggerOf(DATA, undefined, num(6, 1_000_001)))),
    'SHAPE',
    /no other token/,
  )
  refuses(() => decode(token(triggerOf(DATA, TO))), 'CONTRACT')
  const hex = Buffer.from(DATA).toString('hex')
  for (const changed of [
    hex.slice(0, -2),
    `${hex}00`,
    `${hex}${'00'.repeat(32)}`,
    'a9059cbb',
    hex.replace('a9059cbb', '095ea7b3'),
    hex.replace('a9059cbb', '23b872dd'),
    `${hex.slice(0, 30)}41${hex.slice(32)}`,
    `${hex.slice(0, 8)}01${hex.slice(10)}`,
  ]) {
    refuses(
      () => decode(token(triggerOf(Buffer.from(changed, 'hex')))),
      'SHAPE',
      /exactly transfer/,
    )
  }
})

test('accepts fee limits only for token transfers', () => {
  refuses(() => decode(raw(triggerOf(DATA))), 'SHAPE', /fee limit/)
  refuses(() => decode(token(PLAIN)), 'SHAPE', /fee limit/)
  refuses(
    () => decode(Buffer.concat([...head, triggerOf(DATA), time, num(18, -1)])),
    /AMOUNT|SHAPE/,
  )
})

test('refuses another owner, a transfer to oneself, a foreign address, and empty transactions', () => {
  const paying = (from: Uint8Array, to: Uint8Array, amount: bigint) =>
    raw(
      contractOf(1, 'TransferContract', Buffer.concat([len(1, from), len(2, to), num(3, amount)])),
    )
  refuses(() => decode(paying(addressBytes(TO), addressBytes(OWNER), 5n)), 'PATH')
  refuses(() => decode(paying(addressBytes(OWNER), addressBytes(OWNER), 5n)), 'SHAPE', /itself/)
  const other = Uint8Array.from(addressBytes(TO))
  other[0] = 0xa0
  refuses(() => decode(paying(addressBytes(OWNER), other, 5n)), 'ADDRESS')
  refuses(() => decode(paying(addressBytes(OWNER), addressBytes(TO).subarray(1), 5n)), 'ADDRESS')
  refuses(() => decode(paying(addressBytes(OWNER), addressBytes(TO), -5n)), /AMOUNT|SHAPE/)
  refuses(
    () =>
      decode(
        raw(contractOf(1, 'TransferContract', Buffer.concat([owner, len(2, addressBytes(TO))]))),
      ),
    'SHAPE',
    /greater than zero/,
  )
})

test('staking: refuses other resources, locks, and delegation to oneself', () => {
  const staking = (type: number, name: string, ...fields: Uint8Array[]) =>
    raw(contractOf(type, name, Buffer.concat([owner, ...fields])))
  assert.equal(
    decode(staking(54, 'FreezeBalanceV2Contract', num(2, 1_000_000))).action?.resource,
    'BANDWIDTH',
  )
  refuses(
    () => decode(staking(54, 'FreezeBalanceV2Contract', num(2, 1_000_000), num(3, 2))),
    'SHAPE',
    /BANDWIDTH and ENERGY/,
  )
  refuses(() => decode(staking(54, 'FreezeBalanceV2Contract')), 'SHAPE', /greater than zero/)
  const delegate = (...more: Uint8Array[]) =>
    staking(
      57,
      'DelegateResourceContract',
      num(2, 1),
      num(3, 1_000_000),
      len(4, addressBytes(TO)),
      ...more,
    )
  assert.equal(decode(delegate()).action?.receiver, TO)
  refuses(() => decode(delegate(num(5, 1))), 'SHAPE', /locked/)
  refuses(() => decode(delegate(num(6, 100))), 'SHAPE', /locked/)
  refuses(
    () =>
      decode(
        staking(
          57,
          'DelegateResourceContract',
          num(2, 1),
          num(3, 1_000_000),
          len(4, addressBytes(OWNER)),
        ),
      ),
    'SHAPE',
    /itself/,
  )
})

test('refuses a transaction without a reference block or an expiration', () => {
  refuses(() => decode(Buffer.concat([...head.slice(1), PLAIN, time])), 'SHAPE', /reference/)
  refuses(
    () => decode(Buffer.concat([head[0] as Buffer, head[2] as Buffer, PLAIN, time])),
    'SHAPE',
    /reference/,
  )
  refuses(() => decode(Buffer.concat([...head.slice(0, 2), PLAIN, time])), 'SHAPE', /expiration/)
})

test('refuses fields in another order, repeated, zero, unknown or overlong, and trailing bytes', () => {
  refuses(() => decode(Buffer.concat([...head, time, PLAIN])), 'ENCODING')
  refuses(() => decode(Buffer.concat([...head, PLAIN, time, time])), 'ENCODING')
  refuses(() => decode(Buffer.concat([...head, PLAIN, num(14, 1), time])), 'ENCODING')
  refuses(() => decode(Buffer.concat([...head, PLAIN, time, num(18, 0)])), 'ENCODING')
  refuses(
    () =>
      decode(
        raw(
          contractOf(
            1,
            'TransferContract',
            Buffer.concat([owner, len(2, addressBytes(TO)), Buffer.from([0x18, 0x85, 0x00])]),
          ),
        ),
      ),
    'ENCODING',
  )
  refuses(() => decode(Buffer.concat([raw(PLAIN), num(99, 1)])), 'ENCODING')
  refuses(() => decode(Buffer.concat([raw(PLAIN), Buffer.from([0])])), /ENCODING|TRANSACTION/)
  refuses(() => decode(Buffer.concat([raw(PLAIN), Buffer.from([0x72])])), /ENCODING|TRANSACTION/)
  refuses(
    () => decode(raw(contractOf(1, 'TransferContract', Buffer.concat([transfer, num(4, 1)])))),
    'ENCODING',
  )
  // In protobuf the last of two values applies: a reader that displays the first would show another
  // receiver.
  refuses(
    () =>
      decode(
        raw(
          contractOf(
            1,
            'TransferContract',
            Buffer.concat([
              owner,
              len(2, addressBytes(OWNER)),
              len(2, addressBytes(TO)),
              num(3, 5),
            ]),
          ),
        ),
      ),
    'ENCODING',
  )
})

test('refuses non-canonical encodings of the bytes', () => {
  const hex = raw(PLAIN).toString('hex')
  for (const bytes of [
    hex.toUpperCase(),
    `0x${hex}`,
    ` ${hex}`,
    `${hex}\n`,
    hex.slice(1),
    '',
    'zz',
    hex.slice(0, -2),
    '00'.repeat(1025),
    '00'.repeat(5_000_000),
  ])
    refuses(() => decodeAll(of(bytes)), /TRANSACTION|ENCODING|SHAPE/)
})

test('requires exactly one input and no change', () => {
  const unsigned = of(raw(PLAIN).toString('hex'))
  refuses(() => decodeAll({ ...unsigned, inputs: [] }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, inputs: [{ path: PATH }, { path: PATH }] }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, change: { output: 0, path: PATH } }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, inputs: [{ path: [0x80000000] }] }), 'PATH')
  refuses(() => decodeAll({ ...unsigned, inputs: [{ path: [1, 195, 1] }] }), 'PATH')
})

test('any changed byte results in a decoded transaction or a ChainError', () => {
  for (const make of Object.values(SHAPES)) {
    const bytes = Buffer.from(make().bytes, 'hex')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.nat(3),
        (changes, cut) => {
          const changed = Buffer.from(bytes)
          for (const [at, value] of changes) changed[at] = value
          try {
            const { payments, action } = decode(
              changed.subarray(0, changed.length - (cut === 3 ? 1 : 0)),
            )
            assert.equal(payments.length, action === undefined ? 1 : 0)
          } catch (error) {
            assert.ok(
              error instanceof ChainError,
              error instanceof Error ? error.stack : String(error),
            )
          }
        },
      ),
      { numRuns: 150 },
    )
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.throws(() => decode(bytes), ChainError)
    }),
  )
})
