// Schemas of signed bodies, and the errors that the sender receives for an invalid one. The API and
// the nodes use these schemas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import {
  emptyBody,
  parsedBy,
  releaseBody,
  ruleBody,
  speedUpBody,
  stakeBody,
  transferBody,
} from './index.ts'
import { parseJson } from '../index.ts'

/**
 * Reads values from JSON text, because only the text has every digit of a number. The text of a
 * value replaces that of its field; null removes the field.
 */
function reader<T extends z.ZodType>(schema: T, good: Readonly<Record<string, string>>) {
  const read = (changed: Readonly<Record<string, string | null>> = {}) => {
    const fields = Object.entries({ ...good, ...changed }).filter(([, text]) => text !== null)
    return schema.safeParse(
      parseJson(`{${fields.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`),
    )
  }
  return {
    takes(changed: Readonly<Record<string, string | null>> = {}): z.output<T> {
      const { data, error } = read(changed)
      assert.equal(error, undefined)
      return data as z.output<T>
    },
    refuses(field: string, text: string | null, message: string | RegExp): void {
      const { error } = read({ [field]: text })
      const [issue, ...more] = error?.issues ?? []
      assert.ok(issue, `${field}: ${text} was taken`)
      assert.deepEqual(more, [], `${field}: ${text}`)
      if (issue.code !== 'unrecognized_keys') assert.deepEqual(issue.path, [field])
      if (typeof message === 'string') assert.equal(issue.message, message, `${field}: ${text}`)
      else assert.match(issue.message, message, `${field}: ${text}`)
    },
  }
}

const long = (length: number) => JSON.stringify('x'.repeat(length))
const EMOJI = '😀'
const TEXTS: readonly (readonly [string, number])[] = [
  ['asset', 64],
  ['destination_address', 256],
  ['sequence_id', 200],
  ['memo', 1000],
  ['address_tag', 200],
  ['destination_id', 100],
  ['confirm_address', 256],
]
const TRANSFER = {
  asset: '"BTC"',
  amount: '0.10',
  destination_address: '"bc1q"',
  destination_type: '"EXTERNAL"',
  source_type: '"INTERNAL"',
}
const transfer = reader(transferBody, TRANSFER)

test('reads a transfer with every digit and letter; optional fields may be null', () => {
  const whole = {
    sequence_id: '"s-1"',
    memo: '"Grüße"',
    address_tag: '7',
    destination_id: '"e"',
    confirm_address: '"bc1p"',
    fee_rate: '"1.5"',
    fee_level: '"low"',
    type: '"Withdraw"',
    ts: '1',
  }
  const { ts: _ts, ...read } = transfer.takes(whole)
  assert.deepEqual(read, {
    asset: 'BTC',
    amount: '0.10',
    destination_address: 'bc1q',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    sequence_id: 's-1',
    memo: 'Grüße',
    address_tag: '7',
    destination_id: 'e',
    confirm_address: 'bc1p',
    fee_rate: '1.5',
    fee_level: 'low',
    type: 'Withdraw',
  })
  for (const name of Object.keys(whole))
    assert.equal(transfer.takes({ [name]: 'null' })[name as 'memo'], undefined)
  assert.equal(transfer.takes({ ts: '"2026"' }).ts, '2026')
  assert.equal(transfer.takes({ destination_type: '"EXCHANGE"' }).destination_type, 'EXCHANGE')
  for (const name of Object.keys(TRANSFER)) transfer.refuses(name, null, /must|expected/)
  transfer.refuses('adress_tag', '"7"', /adress_tag/)
  transfer.refuses('destination_type', '"INTERNAL"', 'must be EXTERNAL or EXCHANGE')
  transfer.refuses('source_type', '"EXTERNAL"', 'must be INTERNAL')
  transfer.refuses('type', '"Deposit"', 'must be Withdraw')
  transfer.refuses('ts', 'true', 'must be a number or a string')
  transfer.refuses('ts', '-1', /^must be from 0 to /)
  transfer.takes({ ts: '1795694400123456789' }) // nanoseconds
  transfer.refuses('fee_level', '"none"', 'must be low, medium or high')
})

test('reads an amount exactly as the decimal in the text', () => {
  for (const [text, read] of [
    ['1', '1'],
    ['"1"', '1'],
    ['0', '0'],
    ['1e3', '1e3'],
    ['1.5E-7', '1.5E-7'],
    ['1e+999', '1e+999'],
    ['10.250', '10.250'],
  ]) {
    assert.equal(transfer.takes({ amount: text as string }).amount, read)
  }
  for (const text of [
    '"x1"',
    '"1x"',
    '"1."',
    '".1"',
    '"1.2.3"',
    '""',
    '" 1"',
    '"1e1000"',
    '"1e"',
    '"0x1"',
    '"1,5"',
    'true',
    '[1]',
    '{}',
    '"Infinity"',
  ]) {
    transfer.refuses('amount', text, 'must be a decimal number')
  }
  for (const text of ['-1', '"-1"', '-0.5'])
    transfer.refuses('amount', text, 'must not be negative')
  const digits = '1'.repeat(100)
  assert.equal(transfer.takes({ amount: digits }).amount, digits)
  transfer.refuses('amount', `${digits}1`, 'must be a decimal number')
})

test('texts have a maximum length, and no invisible or unencodable characters', () => {
  for (const [name, most] of TEXTS) {
    transfer.takes({ [name]: long(most) })
    transfer.takes({ [name]: JSON.stringify(EMOJI.repeat(most)) })
    transfer.refuses(name, long(most + 1), `must have at most ${most} characters`)
    transfer.refuses(
      name,
      JSON.stringify(EMOJI.repeat(most + 1)),
      `must have at most ${most} characters`,
    )
    transfer.refuses(name, '""', 'must not be empty')
    for (const text of ['"a\\u0000"', '"\\u001fa"', '"a\\nb"', '"\\u007f"'])
      transfer.refuses(name, text, 'must not contain control characters')
    transfer.takes({ [name]: '" a "' })
    transfer.refuses(name, '"\\ud800"', 'must be well-formed Unicode')
    transfer.refuses(
      name,
      name === 'address_tag' ? 'true' : '1',
      name === 'address_tag' ? 'must be a string' : /string/,
    )
  }
})

test('accepts a tag that is a whole number of twenty digits', () => {
  assert.equal(
    transfer.takes({ address_tag: '18446744073709551615' }).address_tag,
    '18446744073709551615',
  )
  for (const text of ['1.5', '-1', '1e3', '184467440737095516150'])
    transfer.refuses('address_tag', text, 'must be a string')
})

test('the end of a rule must be a UTC time that exists in the calendar', () => {
  const rule = reader(ruleBody, {
    asset: '"ETH"',
    min_amount: '1',
    destination_address: '"0xa"',
    daily_cap: '"10"',
    expires_at: '"2030-01-31T12:00:00Z"',
  })
  assert.deepEqual(rule.takes(), {
    asset: 'ETH',
    min_amount: '1',
    destination_address: '0xa',
    daily_cap: '10',
    expires_at: new Date('2030-01-31T12:00:00Z'),
  })
  assert.equal(
    rule.takes({ expires_at: '"2030-01-31T12:00:00.999Z"' }).expires_at.getTime(),
    Date.UTC(2030, 0, 31, 12),
  )
  assert.equal(rule.takes({ address_tag: '"7"' }).address_tag, '7')
  for (const text of [
    '"2030-02-30T12:00:00Z"',
    '"2030-01-31T12:00:00+01:00"',
    '"2030-01-31T12:00:00"',
    '"2030-01-31"',
    '"x2030-01-31T12:00:00Z"',
    '"2030-01-31T12:00:00Zx"',
    '"2030-01-31T12:00:00.1234Z"',
    '"2030-01-31T24:00:00Z"',
    '"+012030-01-31T12:00:00Z"',
  ])
    rule.refuses('expires_at', text, 'must be a time in UTC such as 2030-01-31T12:00:00Z')
  rule.refuses('expires_at', '1900000000', /string/)
  rule.refuses('expires_at', long(41), 'must have at most 40 characters')
  rule.refuses('expiry', '"x"', /expiry/)
})

test('a stake requires asset, address, resource and amount; an empty body has no fields', () => {
  const stake = reader(stakeBody, {
    asset: '"TRX"',
    address: '"T"',
    resource: '"ENERGY"',
    amount: '1',
  })
  assert.deepEqual(stake.takes({ sequence_id: '"s"' }), {
    asset: 'TRX',
    address: 'T',
    resource: 'ENERGY',
    amount: '1',
    sequence_id: 's',
  })
  assert.equal(stake.takes({ resource: '"BANDWIDTH"' }).resource, 'BANDWIDTH')
  stake.refuses('asset', '"ETH"', 'must be TRX')
  stake.refuses('resource', '"POWER"', 'must be ENERGY or BANDWIDTH')
  stake.refuses('lock', '3', /lock/)
  const release = reader(releaseBody, { asset: '"TRX"', address: '"T"' })
  assert.deepEqual(release.takes({ sequence_id: 'null' }), {
    asset: 'TRX',
    address: 'T',
    sequence_id: undefined,
  })
  release.refuses('amount', '1', /amount/)
  const speedUp = reader(speedUpBody, {})
  assert.deepEqual(speedUp.takes({ fee_rate: '2', fee_level: '"high"' }), {
    fee_rate: '2',
    fee_level: 'high',
  })
  assert.deepEqual(speedUp.takes(), {})
  speedUp.refuses('rate', '1', /rate/)
  reader(emptyBody, {}).refuses('x', '1', /x/)
})

test('schema errors have our messages; a value is refused if the library itself fails', () => {
  const words = { error: () => 'in our words' }
  assert.deepEqual(parsedBy(z.string(), 'a'), { success: true, data: 'a' })
  assert.equal(parsedBy(z.string(), 1, words)?.error?.issues[0]?.message, 'in our words')
  // An object that cannot be converted to a number.
  assert.equal(
    parsedBy(z.string().max(2), parseJson('{"length":{"valueOf":1,"toString":1}}')),
    null,
  )
  const fault = new RangeError('a fault of ours')
  assert.throws(
    () =>
      parsedBy(
        z.string().refine(() => {
          throw fault
        }),
        'a',
      ),
    fault,
  )
})
