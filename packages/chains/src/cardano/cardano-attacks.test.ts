// Cardano transactions that a hostile platform may try: everything except a plain payment is
// refused by name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FixedTransactionBody } from '@emurgo/cardano-serialization-lib-nodejs'
import * as fc from '../../../../testing/property.ts'
import type { UnsignedTransaction } from '../index.ts'
import { addressBytes } from './address.ts'
import { encodeBody, parseBody, type Body, type Output } from './body.ts'
import { array, byteString, head, map, tagged, uint } from './cbor.ts'
import {
  ADA,
  addressAt,
  build,
  CHANGE,
  decoded,
  exclusive,
  fund,
  OTHER,
  PATH,
  publicKeyAt,
  sign,
  signing,
  assemble,
  TOKEN,
} from '../../testing/cardano-support.ts'
import { refuses } from '../../testing/support.ts'

const { unsigned } = build(
  [{ value: 10_000_000n }, { value: 4_000_000n, path: OTHER }],
  12_000_000n,
)
const bytes = Buffer.from(unsigned.bytes, 'hex')
const body = parseBody(bytes)
const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex')
const from = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'))
const withBody = (change: Partial<Body>): UnsignedTransaction => ({
  ...unsigned,
  bytes: hex(encodeBody({ ...body, ...change })),
})
const [payment, change] = body.outputs as [Output, Output]

test('accepts the unmodified transaction', () => assert.equal(decoded(unsigned).payments.length, 1))

test('refuses transaction fields that a payment does not use, and names the field', () => {
  const extra: [number, string, RegExp][] = [
    [4, '80', /certificates/],
    [5, 'a0', /withdrawals/],
    [6, '82a000', /an update/],
    [7, `5820${'00'.repeat(32)}`, /auxiliary data/],
    [8, '01', /beginning/],
    [9, `a1581c${'cc'.repeat(28)}a1416101`, /a mint/],
    [11, `5820${'00'.repeat(32)}`, /script data/],
    [13, '80', /collateral/],
    [14, '80', /required signers/],
    [15, '01', /network id/],
    [16, '824001', /collateral return/],
    [17, '01', /total collateral/],
    [18, '80', /reference inputs/],
    [19, 'a0', /votes/],
    [20, '80', /proposals/],
    [21, '01', /treasury/],
    [22, '01', /donation/],
    [23, '01', /unknown field/],
  ]
  for (const [key, value, reason] of extra) {
    const more = Buffer.concat([
      Uint8Array.of(0xa5),
      bytes.subarray(1),
      uint(BigInt(key)),
      from(value),
    ])
    refuses(() => decoded({ ...unsigned, bytes: hex(more) }), 'SHAPE', reason)
  }
})

test('refuses a transaction body without fee, expiry, inputs or outputs', () => {
  for (const key of [0, 1, 2, 3]) {
    const entries = parseFields().filter(([name]) => name !== key)
    refuses(
      () =>
        decoded({
          ...unsigned,
          bytes: hex(map(entries.map(([name, value]) => [uint(BigInt(name)), value]))),
        }),
      'SHAPE',
      /^lacks /,
    )
  }
  refuses(() => decoded(withBody({ inputs: [] })), 'SHAPE')
  refuses(() => decoded(withBody({ outputs: [] })), 'SHAPE')
})

function parseFields(): [number, Uint8Array][] {
  return [
    [
      0,
      tagged(
        258n,
        array(
          body.inputs.map(({ txid, index }) =>
            array([byteString(from(txid)), uint(BigInt(index))]),
          ),
        ),
      ),
    ],
    [1, array(body.outputs.map(({ address, coin }) => array([byteString(address), uint(coin)])))],
    [2, uint(body.fee)],
    [3, uint(body.ttl)],
  ]
}

test('refuses non-canonical encodings of the same content', () => {
  const fields = parseFields()
  assert.equal(hex(map(fields.map(([name, value]) => [uint(BigInt(name)), value]))), unsigned.bytes)
  const spelled = (make: (fields: [number, Uint8Array][]) => Uint8Array): void => {
    const other = hex(make(parseFields()))
    assert.notEqual(other, unsigned.bytes)
    refuses(() => decoded({ ...unsigned, bytes: other }), /ENCODING|TRANSACTION/)
  }
  const pairs = (list: [number, Uint8Array][]) =>
    list.flatMap(([name, value]) => [uint(BigInt(name)), value])
  spelled((list) => map(list.toReversed().map(([name, value]) => [uint(BigInt(name)), value])))
  spelled((list) => Buffer.concat([Uint8Array.of(0xbf), ...pairs(list), Uint8Array.of(0xff)]))
  spelled((list) => Buffer.concat([Uint8Array.of(0xb8, 4), ...pairs(list)]))
  spelled((list) =>
    Buffer.concat([
      head('map', 4n),
      ...pairs(
        list.map(([name, value]) => [
          name,
          name === 2 ? Buffer.concat([Uint8Array.of(0x1b, 0, 0, 0, 0), value.subarray(1)]) : value,
        ]),
      ),
    ]),
  )
  // Inputs as a plain list; an output in the newer format.
  spelled((list) =>
    map(list.map(([name, value]) => [uint(BigInt(name)), name === 0 ? value.subarray(3) : value])),
  )
  spelled((list) =>
    Buffer.concat([
      map(list.map(([name, value]) => [uint(BigInt(name)), value])),
      Uint8Array.of(0),
    ]),
  )
  const twice = Buffer.concat([Uint8Array.of(0xa5), bytes.subarray(1), uint(2n), uint(0n)])
  refuses(() => decoded({ ...unsigned, bytes: hex(twice) }), 'TRANSACTION', /twice/)
  // Other libraries may encode the same content in other bytes; the hash is computed from the
  // bytes.
  assert.equal(
    FixedTransactionBody.from_bytes(bytes).tx_hash().to_hex(),
    hex(signing(ADA, unsigned, publicKeyAt)[0]?.message as Uint8Array),
  )
})

test('refuses outputs with a datum or a script, in the old format and the new one', () => {
  const [fields] = [parseFields()]
  const outputs = (list: Uint8Array[]) => ({
    ...unsigned,
    bytes: hex(
      map(fields.map(([name, value]) => [uint(BigInt(name)), name === 1 ? array(list) : value])),
    ),
  })
  const plain = (output: Output) => array([byteString(output.address), uint(output.coin)])
  refuses(
    () =>
      decoded(
        outputs([
          array([byteString(payment.address), uint(payment.coin), byteString(new Uint8Array(32))]),
          plain(change),
        ]),
      ),
    'SHAPE',
    /datum/,
  )
  const fresh = (more: [Uint8Array, Uint8Array][]) =>
    map([[uint(0n), byteString(payment.address)], [uint(1n), uint(payment.coin)], ...more])
  refuses(() => decoded(outputs([fresh([]), plain(change)])), 'SHAPE')
  refuses(
    () =>
      decoded(
        outputs([
          fresh([[uint(2n), array([uint(0n), byteString(new Uint8Array(32))])]]),
          plain(change),
        ]),
      ),
    'SHAPE',
    /datum/,
  )
  refuses(
    () =>
      decoded(
        outputs([
          fresh([[uint(3n), tagged(24n, byteString(from('820143010203')))]]),
          plain(change),
        ]),
      ),
    'SHAPE',
    /script/,
  )
})

test('refuses change that is missing, or goes to a foreign or second payment address', () => {
  const thief = addressBytes(ADA, 'addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx')
  refuses(() => decoded(withBody({ outputs: [payment, { ...change, address: thief }] })), 'CHANGE')
  refuses(
    () =>
      decoded({
        ...withBody({ outputs: [payment, { ...change, address: thief }] }),
        change: undefined as never,
      }),
    'SHAPE',
    /exactly one payment/,
  )
  refuses(() => decoded({ ...unsigned, change: { output: 0, path: CHANGE } }), 'CHANGE')
  refuses(
    () => decoded({ ...unsigned, change: { output: 2, path: CHANGE } }),
    'CHANGE',
    /does not exist/,
  )
  refuses(() => decoded({ ...unsigned, change: { output: 1, path: PATH } }), 'CHANGE')
  refuses(
    () =>
      decoded(
        withBody({
          outputs: [
            payment,
            { ...change, coin: change.coin / 2n },
            { ...change, coin: change.coin - change.coin / 2n },
          ],
        }),
      ),
    'SHAPE',
  )
  refuses(() => decoded(withBody({ outputs: [change] })), 'CHANGE')
})

test('refuses a fee that differs from inputs minus outputs, and outputs above the inputs', () => {
  refuses(() => decoded(withBody({ fee: body.fee + 1n })), 'SHAPE', /do not equal the inputs/)
  refuses(
    () => decoded(withBody({ outputs: [{ ...payment, coin: payment.coin + 1n }, change] })),
    'SHAPE',
  )
  const greedy = decoded(
    withBody({
      fee: body.fee + 700_000n,
      outputs: [payment, { ...change, coin: change.coin - 700_000n }],
    }),
  )
  assert.equal(greedy.fee_max, body.fee + 700_000n)
})

test('refuses a transaction that sends, burns, creates or changes tokens', () => {
  const built = build([{ value: 10_000_000n, assets: { [TOKEN]: '5' } }], 3_000_000n)
  const tokens = parseBody(Buffer.from(built.unsigned.bytes, 'hex'))
  const [pay, back] = tokens.outputs as [Output, Output]
  const of = (outputs: Output[]): UnsignedTransaction => ({
    ...built.unsigned,
    bytes: hex(encodeBody({ ...tokens, outputs })),
  })
  assert.deepEqual(decoded(built.unsigned).change?.assets, { [TOKEN]: '5' })
  refuses(
    () =>
      decoded(
        of([
          { ...pay, assets: new Map([[TOKEN, 5n]]) },
          { ...back, assets: new Map() },
        ]),
      ),
    'SHAPE',
    /transfers native tokens to another owner/,
  )
  for (const assets of [
    new Map(),
    new Map([[TOKEN, 4n]]),
    new Map([[TOKEN, 6n]]),
    new Map([[`${TOKEN}00`, 5n]]),
    new Map([
      [TOKEN, 5n],
      [`${TOKEN}00`, 1n],
    ]),
  ]) {
    refuses(() => decoded(of([pay, { ...back, assets }])), 'CHANGE', /exactly the native tokens/)
  }
  refuses(
    () =>
      decoded(
        of([
          pay,
          {
            ...back,
            assets: new Map([
              [TOKEN, 5n],
              [`${TOKEN}00`, 0n],
            ]),
          },
        ]),
      ),
    /ENCODING|CHANGE/,
  )
  refuses(() => decoded({ ...of([pay]), change: undefined as never }), /SHAPE|CHANGE/)
})

test('refuses false previous transactions, foreign keys, and duplicate or unsorted inputs', () => {
  const [first, second] = unsigned.inputs as [
    UnsignedTransaction['inputs'][0],
    UnsignedTransaction['inputs'][0],
  ]
  const lying = fund([{ value: 99_000_000n }, { value: 4_000_000n, path: OTHER }])
  refuses(
    () =>
      decoded({
        ...unsigned,
        inputs: [{ path: first.path, previous: [...lying.previous.values()][0] as string }, second],
      }),
    'PREVIOUS_TRANSACTION',
    /another id/,
  )
  refuses(
    () => decoded({ ...unsigned, inputs: [{ path: first.path }, second] }),
    'PREVIOUS_TRANSACTION',
    /lacks/,
  )
  refuses(
    () => decoded({ ...unsigned, inputs: [second, first] }),
    'PREVIOUS_TRANSACTION',
    /key at its path/,
  )
  refuses(() => decoded({ ...unsigned, inputs: [first] }), 'SHAPE')
  refuses(() => decoded(withBody({ inputs: body.inputs.toReversed() })), 'SHAPE', /must be sorted/)
  refuses(
    () => decoded({ ...withBody({ inputs: [body.inputs[0], body.inputs[0]] as Body['inputs'] }) }),
    'SHAPE',
    /without duplicates/,
  )
  refuses(
    () =>
      decoded(
        withBody({
          inputs: [
            body.inputs[0],
            { txid: body.inputs[0]?.txid as string, index: 7 },
          ] as Body['inputs'],
        }),
      ),
    'PREVIOUS_TRANSACTION',
    /does not exist/,
  )
})

test('refuses addresses that cannot receive a payment', () => {
  for (const raw of [
    `e1${'11'.repeat(28)}`,
    `41${'11'.repeat(28)}010203`,
    `60${'11'.repeat(28)}`,
    `61${'11'.repeat(27)}`,
    '',
    '82d818',
    `91${'11'.repeat(28)}`,
  ]) {
    refuses(
      () => decoded(withBody({ outputs: [{ ...payment, address: from(raw) }, change] })),
      'SHAPE',
      /cannot be paid/,
    )
  }
})

test('refuses an expiry that is far beyond the limit', () => {
  refuses(() => decoded(withBody({ ttl: (1n << 64n) - 1n })), 'SHAPE', /end/)
})

test('two transactions exclude each other only if they share an input', () => {
  const [one, other] = [
    decoded(unsigned),
    decoded(
      build([{ value: 10_000_000n }, { value: 4_000_000n, path: OTHER }], 12_500_000n).unsigned,
    ),
  ]
  assert.ok(exclusive(one, other))
  assert.ok(
    !exclusive(one, decoded(build([{ value: 10_000_000n }], 3_000_000n, { salt: 2 }).unsigned)),
  )
})

test('refuses a signature of another key, of another message, or of a changed body', () => {
  const items = signing(ADA, unsigned, publicKeyAt)
  const good = sign(items)
  assemble(ADA, unsigned, good, publicKeyAt)
  refuses(() => assemble(ADA, withBody({ ttl: body.ttl + 1n }), good, publicKeyAt), 'SIGNATURE')
  refuses(
    () =>
      assemble(
        ADA,
        unsigned,
        good.map((each) => ({
          ...each,
          signature: each.signature.with(3, (each.signature[3] as number) ^ 1),
        })),
        publicKeyAt,
      ),
    'SIGNATURE',
  )
  assert.equal(addressAt(PATH).length, 58)
})

test('refuses invalid bytes with a ChainError; flipping one bit never keeps the meaning', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 400 }), (data) =>
      refuses(() => decoded({ ...unsigned, bytes: hex(data) }), /^[A-Z_]+$/),
    ),
    { numRuns: 1000 },
  )
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [1, 0x40, 0x80]) {
      const flipped = Uint8Array.from(bytes)
      flipped[at] = (flipped[at] as number) ^ bit
      let result: ReturnType<typeof decoded> | null = null
      try {
        result = decoded({ ...unsigned, bytes: hex(flipped) })
      } catch (error) {
        assert.match((error as { code?: string }).code ?? String(error), /^[A-Z_]+$/)
      }
      if (result) assert.notDeepEqual(result, decoded(unsigned), `byte ${at}`)
    }
  }
  for (const bad of ['', '0', 'ZZ', 'AB', 'a'.repeat(40_001)])
    refuses(() => decoded({ ...unsigned, bytes: bad }), 'TRANSACTION')
  refuses(() => decoded({ ...unsigned, bytes: '81'.repeat(15_000) }), 'TRANSACTION', /deep|early/)
})
