// Transactions that a hostile platform may send to a signer node: everything except the plain
// transfer is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Transaction } from 'bitcoinjs-lib'
import * as fc from '../../../../testing/property.ts'
import { ChainError, familyOf, utxo, type UnsignedTransaction } from '../index.ts'
import {
  addressOf,
  BTC,
  BTC_ASSETS,
  fund,
  previousOf,
  publicKeyAt,
  refuses,
} from '../../testing/support.ts'

const CHANGE_PATH = [1, 0, 0x7fffffff]
const funding = fund(BTC, [
  { value: 50_000n, path: [1, 0, 0] },
  { value: 60_000n, path: [1, 0, 1] },
  { value: 70_000n, path: [2, 0, 0] },
])
const [coinA, coinB] = funding.utxos as [utxo.Utxo, utxo.Utxo]
const unsigned = utxo.buildTransfer(BTC, {
  selection: { utxos: [coinA, coinB], fee: 1000n, change: 79_000n, vsize: 209 },
  to: addressOf(BTC, [9, 0, 9]),
  amount: 30_000n,
  changeAddress: addressOf(BTC, CHANGE_PATH),
  changePath: CHANGE_PATH,
  previous: previousOf(funding),
})

const decode = (changed: UnsignedTransaction) =>
  familyOf(BTC).decode(BTC, changed, BTC_ASSETS, publicKeyAt)
const sign = (changed: UnsignedTransaction) => familyOf(BTC).signing(BTC, changed, publicKeyAt)

/** Returns the transaction with one change. */
function edited(
  edit: (transaction: Transaction) => void,
  more: Partial<UnsignedTransaction> = {},
): UnsignedTransaction {
  const transaction = Transaction.fromHex(unsigned.bytes)
  edit(transaction)
  return { ...unsigned, bytes: transaction.toHex(), ...more }
}

const scriptTo = (path: number[]) => utxo.scriptOf(BTC, addressOf(BTC, path))

test('decodes a plain transfer', () => {
  assert.equal(decode(unsigned).fee_max, 1000n)
})

test('does not read an output of more than 2^63 satoshi as a negative amount', () => {
  for (const value of ['ffffffffffffffff', '0000000000000080']) {
    const bytes = unsigned.bytes.replace('3075000000000000', value)
    assert.notEqual(bytes, unsigned.bytes)
    refuses(() => decode({ ...unsigned, bytes }), 'SHAPE', /an output with an invalid amount/)
  }
})

test('refuses text that is far too long for an address without parsing it', () => {
  // Base58 decoding time grows with the square of the length: this one would take days.
  const text = 'x'.repeat(20_000_000)
  assert.equal(familyOf(BTC).format?.(BTC, text), null)
  refuses(() => utxo.scriptOf(BTC, text), 'ADDRESS')
})

test('refuses a second payment, a missing payment, and an output without an address', () => {
  refuses(
    () => decode(edited((each) => each.addOutput(scriptTo([8, 0, 8]), 500n))),
    'SHAPE',
    /exactly one payment/,
  )
  refuses(() => decode({ ...unsigned, change: undefined }), 'SHAPE', /exactly one payment/)
  refuses(
    () =>
      decode(
        edited(
          (each) => {
            each.outs.splice(0, 1)
          },
          { change: { output: 0, path: CHANGE_PATH } },
        ),
      ),
    'SHAPE',
    /exactly one payment/,
  )
  refuses(
    () =>
      decode(
        edited((each) => {
          each.outs.length = 0
        }),
      ),
    'SHAPE',
  )
  for (const script of [
    '6a0461626364',
    '51',
    '',
    `21${'02'.repeat(33)}ac`,
    `5121${'02'.repeat(33)}51ae`,
    `5210${'11'.repeat(16)}`,
    '51024e73',
  ]) {
    refuses(
      () =>
        decode(
          edited((each) => {
            ;(each.outs[0] as Transaction['outs'][number]).script = Buffer.from(script, 'hex')
          }),
        ),
      'SHAPE',
      /without an address/,
    )
  }
})

test('refuses change on another path, to another wallet, and at another position', () => {
  refuses(() => decode({ ...unsigned, change: { output: 1, path: [1, 0, 5] } }), 'CHANGE')
  refuses(() => decode({ ...unsigned, change: { output: 0, path: CHANGE_PATH } }), 'CHANGE')
  for (const output of [2, -1, 0.5, Number.NaN])
    refuses(
      () => decode({ ...unsigned, change: { output, path: CHANGE_PATH } }),
      'CHANGE',
      /does not exist/,
    )
  refuses(
    () =>
      decode(
        edited((each) => {
          ;(each.outs[1] as Transaction['outs'][number]).script = scriptTo([2, 0, 0x7fffffff])
        }),
      ),
    'CHANGE',
  )
  refuses(() => decode({ ...unsigned, change: { output: 1, path: [1, 0, 0x80000000] } }), 'PATH')
})

test('refuses previous transactions that are foreign, altered, missing, or lack the output', () => {
  const other = fund(BTC, [{ value: 50_000n, path: [1, 0, 0] }], 3)
  const [first, second] = unsigned.inputs as [
    UnsignedTransaction['inputs'][0],
    UnsignedTransaction['inputs'][0],
  ]
  const withPrevious = (previous: string | undefined) => ({
    ...unsigned,
    inputs: [{ ...first, previous }, second],
  })
  refuses(() => decode(withPrevious(other.hex)), 'PREVIOUS_TRANSACTION', /another id/)
  refuses(() => decode(withPrevious(undefined)), 'PREVIOUS_TRANSACTION')
  // An amount that a legacy signature would not cover.
  const inflated = Transaction.fromHex(funding.hex)
  ;(inflated.outs[0] as Transaction['outs'][number]).value = 5_000_000n
  refuses(() => decode(withPrevious(inflated.toHex())), 'PREVIOUS_TRANSACTION', /another id/)
  refuses(() => decode(withPrevious('00')), 'TRANSACTION')
  refuses(() => decode(withPrevious('zz'.repeat(100))), 'TRANSACTION')
  refuses(() => decode(withPrevious(funding.hex.toUpperCase())), 'TRANSACTION')
  refuses(() => decode(withPrevious(`${funding.hex}00`)), 'TRANSACTION')
  refuses(
    () =>
      decode(
        edited((each) => {
          ;(each.ins[0] as Transaction['ins'][number]).index = 9
        }),
      ),
    'PREVIOUS_TRANSACTION',
    /does not exist/,
  )
})

test('refuses inputs on another path or of another wallet', () => {
  const [first, second] = unsigned.inputs as [
    UnsignedTransaction['inputs'][0],
    UnsignedTransaction['inputs'][0],
  ]
  refuses(
    () => decode({ ...unsigned, inputs: [{ ...first, path: [1, 0, 1] }, second] }),
    'PREVIOUS_TRANSACTION',
    /does not belong/,
  )
  refuses(
    () => decode({ ...unsigned, inputs: [{ ...first, ...second }, first] }),
    'PREVIOUS_TRANSACTION',
    /does not belong/,
  )
  refuses(() => decode({ ...unsigned, inputs: [second, first] }), 'PREVIOUS_TRANSACTION', /lacks/)
  refuses(
    () =>
      decode(
        edited((each) => {
          ;(each.ins[0] as Transaction['ins'][number]).index = 2
        }),
      ),
    'PREVIOUS_TRANSACTION',
    /does not belong/,
  )
  refuses(() => decode({ ...unsigned, inputs: [first] }), 'SHAPE', /differ in number/)
  refuses(
    () => decode({ ...unsigned, inputs: [first, second, second] }),
    'SHAPE',
    /differ in number/,
  )
  refuses(() => decode({ ...unsigned, inputs: [] }), 'SHAPE')
})

test('refuses a transaction that spends one output twice', () => {
  const twice = edited((each) => {
    each.ins[1] = { ...(each.ins[0] as Transaction['ins'][number]) }
  })
  refuses(
    () =>
      decode({
        ...twice,
        inputs: [unsigned.inputs[0], unsigned.inputs[0]] as UnsignedTransaction['inputs'],
      }),
    'SHAPE',
    /twice/,
  )
})

test('refuses outputs that exceed the inputs', () => {
  refuses(
    () =>
      decode(
        edited((each) => {
          ;(each.outs[0] as Transaction['outs'][number]).value = 31_001n
        }),
      ),
    'SHAPE',
    /outputs exceed the inputs/,
  )
})

test('refuses another version, lock time or sequence', () => {
  for (const version of [0, 1, 3, 0xffffffff])
    refuses(
      () =>
        decode(
          edited((each) => {
            each.version = version
          }),
        ),
      'SHAPE',
      /version/,
    )
  for (const locktime of [1, 500_000_000, 0xffffffff])
    refuses(
      () =>
        decode(
          edited((each) => {
            each.locktime = locktime
          }),
        ),
      'SHAPE',
      /locktime/,
    )
  for (const sequence of [0, 1, 144, 0x400000, 0xfffffffc])
    refuses(
      () =>
        decode(
          edited((each) => {
            ;(each.ins[1] as Transaction['ins'][number]).sequence = sequence
          }),
        ),
      'SHAPE',
      /lock time|sequence/,
    )
  refuses(
    () =>
      sign(
        edited((each) => {
          each.locktime = 1
        }),
      ),
    'SHAPE',
  )
})

test('refuses unsigned transactions with signatures, a witness, trailing or non-canonical bytes', () => {
  refuses(
    () =>
      decode(
        edited((each) => {
          each.setWitness(0, [Buffer.alloc(71), Buffer.alloc(33)])
        }),
      ),
    'TRANSACTION',
    /already carries signatures/,
  )
  refuses(
    () =>
      decode(
        edited((each) => {
          each.setInputScript(0, Buffer.from('51', 'hex'))
        }),
      ),
    'TRANSACTION',
    /already carries signatures/,
  )
  const hex = unsigned.bytes
  for (const bytes of [
    `${hex}00`,
    hex.slice(0, -2),
    hex.toUpperCase(),
    `0x${hex}`,
    ` ${hex}`,
    `${hex}\n`,
    '',
    '00',
    hex.slice(1),
  ])
    refuses(() => decode({ ...unsigned, bytes }), 'TRANSACTION')
  // The number of inputs in three bytes instead of one; an empty witness with its marker.
  refuses(
    () => decode({ ...unsigned, bytes: `${hex.slice(0, 8)}fd0200${hex.slice(10)}` }),
    /ENCODING|TRANSACTION/,
  )
  refuses(
    () =>
      decode({
        ...unsigned,
        bytes: `${hex.slice(0, 8)}0001${hex.slice(8, -8)}0000${hex.slice(-8)}`,
      }),
    /ENCODING|TRANSACTION/,
  )
  for (const bytes of [`${hex}00`, hex.toUpperCase()])
    refuses(() => sign({ ...unsigned, bytes }), 'TRANSACTION')
})

test('refuses a very long text without parsing it', () => {
  for (const length of [8_000_002, 40_000_000])
    refuses(() => decode({ ...unsigned, bytes: '00'.repeat(length / 2) }), 'TRANSACTION')
  const [first, second] = unsigned.inputs as [
    UnsignedTransaction['inputs'][0],
    UnsignedTransaction['inputs'][0],
  ]
  refuses(
    () => decode({ ...unsigned, inputs: [{ ...first, previous: '0'.repeat(7_900_000) }, second] }),
    /TRANSACTION/,
  )
})

test('any changed byte results in a decoded transfer or a ChainError', () => {
  const bytes = Buffer.from(unsigned.bytes, 'hex')
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
      (changes) => {
        const changed = Buffer.from(bytes)
        for (const [at, value] of changes) changed[at] = value
        try {
          const decoded = decode({ ...unsigned, bytes: changed.toString('hex') })
          assert.equal(decoded.payments.length, 1)
          assert.equal(
            (decoded.payments[0]?.amount ?? 0n) + (decoded.change?.amount ?? 0n) + decoded.fee_max,
            110_000n,
          )
        } catch (error) {
          assert.ok(error instanceof ChainError, String(error))
        }
      },
    ),
    { numRuns: 600 },
  )
})
