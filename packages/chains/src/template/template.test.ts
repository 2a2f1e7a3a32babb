import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Asset, Network, UnsignedTransaction } from '../index.ts'
import { buildTransfer, template } from './index.ts'
import { BTC, highS, publicKeyAt, sign } from '../../testing/support.ts'

// A family's own rules and attacks. A real family is also verified with its standard's published
// vectors and with a library other than the builder's.
const NETWORK = {
  ...BTC,
  code: 'TEMPLATE',
  name: 'Template Chain',
  native_asset: 'TEMPLATE',
  network_id: 7,
} as Network
const ASSET = { asset_name: 'TEMPLATE', network: 'TEMPLATE', decimals: 6, type: 'native' } as Asset
const PATH = [1, 60, 0]
const addressAt = (index: number) => template.address(NETWORK, publicKeyAt([1, 60, index]))
const PAYMENT = {
  to: addressAt(9),
  amount: 5_000_000n,
  fee: 1000n,
  sequence: 3n,
  validUntil: 1_900_000_000,
  publicKey: publicKeyAt(PATH),
  path: PATH,
}
const built = (change: Partial<typeof PAYMENT> = {}) =>
  buildTransfer(NETWORK, { ...PAYMENT, ...change })
const opened = (unsigned: UnsignedTransaction, network = NETWORK) =>
  template.decode(network, unsigned, [ASSET], publicKeyAt)

test('normalizes an address to one spelling and detects a mistyped character', () => {
  const own = addressAt(0)
  assert.deepEqual(template.validate(NETWORK, own.toUpperCase()), {
    valid: true,
    address: own,
    address_tag: null,
  })
  for (const text of [
    '',
    own.slice(0, -1),
    own.replace(/.$/, own.endsWith('q') ? 'p' : 'q'),
    'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  ]) {
    assert.equal(template.validate(NETWORK, text).valid, false, text)
  }
  const tagged = template.validate(NETWORK, own, '7')
  assert.equal(tagged.valid ? null : tagged.field, 'address_tag')
})

test('decoding a transaction returns the values that it was built from', () => {
  const { payments, from, fee_max, fee_rate, consumes, nonce, valid_until } = opened(built())
  assert.deepEqual(
    { payments, from, fee_max, fee_rate, consumes, nonce, valid_until },
    {
      payments: [{ address: addressAt(9), amount: 5_000_000n, tag: null }],
      from: [addressAt(0)],
      fee_max: 1000n,
      fee_rate: '1000',
      consumes: [`${addressAt(0)}:3`],
      nonce: 3n,
      valid_until: 1_900_000_000,
    },
  )
})

test('refuses bytes that are not exactly one allowed payment', () => {
  const good = built()
  const change = (at: Partial<UnsignedTransaction>) => ({ ...good, ...at })
  for (const [unsigned, code] of [
    [change({ bytes: `${good.bytes}00` }), 'TRANSACTION'],
    [change({ bytes: good.bytes.slice(2) }), 'TRANSACTION'],
    [change({ bytes: good.bytes.toUpperCase() }), 'TRANSACTION'],
    [change({ inputs: [] }), 'SHAPE'],
    [change({ inputs: [{ path: PATH }, { path: PATH }] }), 'SHAPE'],
    [change({ change: { output: 0, path: PATH } }), 'SHAPE'],
    [change({ inputs: [{ path: [1, 60, 1] }] }), 'PATH'],
    [built({ amount: 0n }), 'SHAPE'],
    [built({ fee: 0n }), 'SHAPE'],
    [built({ to: addressAt(0) }), 'SHAPE'],
  ] as const)
    assert.throws(() => opened(unsigned), { code }, JSON.stringify(unsigned))
  assert.throws(() => opened(good, { ...NETWORK, network_id: 8 }), { code: 'NETWORK' })
  assert.throws(() => built({ to: 'nobody' }), { code: 'ADDRESS' })
})

test('accepts only signatures of the payer’s key', () => {
  const unsigned = built()
  const signatures = sign(template.signing(NETWORK, unsigned, publicKeyAt))
  const { raw, hash } = template.assemble(NETWORK, unsigned, signatures, publicKeyAt)
  assert.ok(raw.startsWith(unsigned.bytes))
  assert.match(hash, /^[0-9a-f]{64}$/)
  const ofAnother = sign(template.signing(NETWORK, built({ amount: 1n }), publicKeyAt))
  for (const wrong of [[], ofAnother, signatures.map(highS), [...signatures, ...signatures]]) {
    assert.throws(() => template.assemble(NETWORK, unsigned, wrong, publicKeyAt), {
      code: 'SIGNATURE',
    })
  }
})

test('two transactions with one nonce exclude each other, and a nonce can be replaced', () => {
  const [first, other, next] = [built(), built({ amount: 1n }), built({ sequence: 4n })]
  assert.equal(template.exclusive(opened(first), opened(other)), true)
  assert.equal(template.exclusive(opened(first), opened(next)), false)
  assert.deepEqual(template.renumber?.(first, 4n), next)
})
