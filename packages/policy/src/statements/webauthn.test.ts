// Assertions of passkeys: each rule of WebAuthn Level 3, section 7.2, that an assertion can break.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { keyOf, NOW, policyWith } from '../../testing/documents.ts'
import {
  assertionOf,
  BE,
  BS,
  ED,
  newPasskey,
  signWithPasskey,
  UP,
  UV,
  type AssertionParts,
  type TestPasskey,
} from '../../testing/passkeys.ts'
import { signWith, statementsOf } from '../../testing/statements.ts'
import { PolicyError } from '../error.ts'
import { readSigned, verifyStatement, type Proof } from './verify.ts'
import { statementHash, type Statement } from './shapes.ts'

const es256 = newPasskey('p1')
const eddsa = newPasskey('p2', 'Ed25519')
const synced = newPasskey('p3', 'ES256', { device_bound: false })
const hosted = newPasskey('p4', 'ES256', {
  rp_id: 'acme.example',
  origins: ['https://approve.acme.example', 'https://approve.acme.example:8443'],
})
const PASSKEYS = [es256, eddsa, synced, hosted]
const base = policyWith([])
const policy = policyWith([], {
  people: base.document.people.map((person) =>
    person.id === 'alice'
      ? { ...person, keys: [...person.keys, ...PASSKEYS.map(({ key }) => key)] }
      : person,
  ),
})
const context = { now_s: NOW, suspended: new Set<string>() }
const statementBy = (passkey: TestPasskey, kind: Statement['kind'] = 'approval'): Statement => ({
  ...statementsOf(policy)[kind],
  key: passkey.key.id,
})

const verdict = (statement: Statement, proof: Proof): string => {
  try {
    return verifyStatement(policy, { statement, ...proof }, context) === statementHash(statement)
      ? 'verified'
      : 'another hash'
  } catch (error) {
    assert.ok(error instanceof PolicyError, String(error))
    return `${error.code} ${error.message}`
  }
}
const verdictOf = (passkey: TestPasskey, parts?: AssertionParts): string => {
  const statement = statementBy(passkey)
  return verdict(statement, { passkey: assertionOf(passkey, statement, parts) })
}

for (const passkey of PASSKEYS)
  test(`verifies statements of every kind by the passkey ${passkey.key.id}`, () => {
    for (const kind of Object.keys(statementsOf(policy)) as Statement['kind'][]) {
      const statement =
        kind === 'revoke'
          ? { ...statementBy(passkey, kind), target: { person: 'alice', key: 'k1' } }
          : statementBy(passkey, kind)
      const signed = signWithPasskey(passkey, statement as Statement)
      assert.equal(verdict(signed.statement, signed), 'verified', kind)
      assert.deepEqual(readSigned(JSON.stringify(signed)), signed)
    }
  })

test('accepts what browsers and authenticators may add', () => {
  assert.equal(verdictOf(es256, { counter: 7 }), 'verified')
  assert.equal(verdictOf(es256, { client: { crossOrigin: undefined } }), 'verified')
  const hint = 'do not compare clientDataJSON against a template'
  assert.equal(verdictOf(es256, { client: { other_keys_can_be_added_here: hint } }), 'verified')
  assert.equal(
    verdictOf(hosted, { client: { origin: 'https://approve.acme.example:8443' } }),
    'verified',
  )
  assert.equal(
    verdictOf(es256, { flags: UP | UV | ED, rest: Buffer.from('a0', 'hex') }),
    'verified',
  )
  assert.equal(verdictOf(synced, { flags: UP | UV | BE | BS }), 'verified')
  assert.equal(verdictOf(synced, { flags: UP | UV | BE }), 'verified')
})

const CLIENT = 'PASSKEY passkey.client_data: '
const DATA = 'PASSKEY passkey.authenticator_data: '
const OTHER_ORIGIN = `${CLIENT}must be from an origin of the key: http://localhost:24873`
const NOT_JSON = `${CLIENT}is not a JSON text`
const INSIDE = `${CLIENT}must not be from a page inside a page of another origin`
const OTHER_CHALLENGE = `${CLIENT}has another challenge: the passkey has signed another statement`
const padded = (text: string) => `${text}=`

const REFUSED: [string, AssertionParts, string][] = [
  [
    'a registration',
    { client: { type: 'webauthn.create' } },
    `${CLIENT}must have the type webauthn.get: it is not an assertion`,
  ],
  ['another challenge', { client: { challenge: 'A'.repeat(43) } }, OTHER_CHALLENGE],
  ['an empty challenge', { client: { challenge: '' } }, OTHER_CHALLENGE],
  ['no challenge', { client: { challenge: undefined } }, OTHER_CHALLENGE],
  ['another port', { client: { origin: 'http://localhost:24874' } }, OTHER_ORIGIN],
  ['another scheme', { client: { origin: 'https://localhost:24873' } }, OTHER_ORIGIN],
  ['a longer origin', { client: { origin: 'http://localhost:24873.example' } }, OTHER_ORIGIN],
  ['an origin that is no text', { client: { origin: ['http://localhost:24873'] } }, OTHER_ORIGIN],
  ['a page inside another', { client: { crossOrigin: true } }, INSIDE],
  ['crossOrigin that is no boolean', { client: { crossOrigin: 'false' } }, INSIDE],
  ['a top origin', { client: { topOrigin: 'http://localhost:24873' } }, INSIDE],
  ['a list', { clientText: '[]' }, `${CLIENT}is not a JSON object`],
  ['a number', { clientText: '1' }, `${CLIENT}is not a JSON object`],
  ['a text', { clientText: '"x"' }, `${CLIENT}is not a JSON object`],
  ['null', { clientText: 'null' }, `${CLIENT}is not a JSON object`],
  ['invalid UTF-8 in a text', { clientText: Buffer.from('{"type":"\xff"}', 'latin1') }, NOT_JSON],
  ['a byte order mark', { clientText: '\uFEFF{}' }, NOT_JSON],
  ['invalid UTF-8', { clientText: Uint8Array.from([0x7b, 0xff, 0x7d]) }, NOT_JSON],
  [
    'a name that appears twice',
    { clientText: '{"type":"webauthn.create","type":"webauthn.get"}' },
    NOT_JSON,
  ],
  ['another domain', { rpId: 'approve.localhost' }, `${DATA}must be for the domain localhost`],
  ['no user', { flags: UV }, `${DATA}must confirm that a user is present`],
  [
    'an unverified user',
    { flags: UP },
    `${DATA}must confirm that the user was verified (PIN or biometrics)`,
  ],
  [
    'a key that can be copied',
    { flags: UP | UV | BE },
    `${DATA}is of a passkey that can be copied, and the key is device-bound`,
  ],
  ['contradictory flags', { flags: UP | UV | BS }, `${DATA}has contradictory flags`],
  ['bytes that no flag explains', { rest: Buffer.from('a0', 'hex') }, `${DATA}must have 37 bytes`],
]
for (const [name, parts, expected] of REFUSED)
  test(`refuses ${name}`, () => {
    assert.equal(verdictOf(es256, parts), expected)
  })

test('refuses a challenge with padding or in base64', () => {
  const statement = statementBy(es256)
  const text = Buffer.from(assertionOf(es256, statement).client_data, 'base64url').toString()
  const { challenge: own } = JSON.parse(text) as { challenge: string }
  for (const other of [padded(own), own.toUpperCase(), ` ${own}`])
    assert.equal(verdictOf(es256, { client: { challenge: other } }), OTHER_CHALLENGE)
})

test('refuses a field whose length is not that of a base64url text', () => {
  const statement = statementBy(es256)
  const valid = assertionOf(es256, statement)
  for (const field of ['client_data', 'authenticator_data', 'signature'] as const)
    assert.equal(
      verdict(statement, { passkey: { ...valid, [field]: 'A' } }),
      `PASSKEY passkey.${field}: is not base64url without padding`,
    )
})

test('lists all origins of a key from which its assertion may come', () => {
  assert.equal(
    verdictOf(hosted, { client: { origin: 'https://acme.example' } }),
    `${CLIENT}must be from an origin of the key: https://approve.acme.example, https://approve.acme.example:8443`,
  )
})

test('refuses authenticator data that is too short', () => {
  const statement = statementBy(es256)
  const passkey = assertionOf(es256, statement)
  const short = Buffer.from(passkey.authenticator_data, 'base64url').subarray(0, 36)
  assert.equal(
    verdict(statement, {
      passkey: { ...passkey, authenticator_data: short.toString('base64url') },
    }),
    `${DATA}must have 37 bytes`,
  )
})

test('an assertion holds for one statement, key and form only', () => {
  const statement = statementBy(es256)
  const passkey = assertionOf(es256, statement)
  const other = { ...statement, decision: 'reject' } as Statement
  assert.equal(verdict(other, { passkey }), OTHER_CHALLENGE)
  const byOther = statementBy(synced)
  assert.equal(
    verdict(byOther, { passkey: assertionOf({ ...es256, key: synced.key }, byOther) }),
    'SIGNATURE passkey.signature: does not verify with the key',
  )
  const { signature } = signWith(keyOf('alice'), { ...statement, key: 'k1' })
  assert.equal(
    verdict(statement, { signature }),
    'SIGNATURE passkey: is missing: p1 is a key of the kind passkey',
  )
  assert.equal(
    verdict(statement, { signature, passkey }),
    'SIGNATURE signature: must be absent: p1 is a key of the kind passkey',
  )
  const byKey = { ...statement, key: 'k1' }
  assert.equal(
    verdict(byKey, { passkey }),
    'SIGNATURE signature: is missing: k1 is a key of the kind key',
  )
  assert.equal(
    verdict(byKey, { signature, passkey }),
    'SIGNATURE passkey: must be absent: k1 is a key of the kind key',
  )
  assert.equal(verdict(byKey, { signature }), 'verified')
})

test('refuses signatures in another form', () => {
  for (const passkey of [es256, eddsa]) {
    const statement = statementBy(passkey)
    const valid = assertionOf(passkey, statement)
    const raw = Buffer.from(valid.signature, 'base64url')
    for (const bytes of [
      Buffer.concat([raw, Buffer.alloc(1)]),
      raw.subarray(1),
      Buffer.alloc(64),
      Buffer.alloc(1),
    ])
      assert.equal(
        verdict(statement, { passkey: { ...valid, signature: bytes.toString('base64url') } }),
        'SIGNATURE passkey.signature: does not verify with the key',
      )
  }
})

test('every bit of an assertion is covered', () => {
  const statement = statementBy(es256)
  const valid = assertionOf(es256, statement)
  fc.assert(
    fc.property(
      fc.constantFrom('client_data', 'authenticator_data', 'signature'),
      fc.nat(4_000),
      (field: 'client_data' | 'authenticator_data' | 'signature', bit) => {
        const bytes = Buffer.from(valid[field], 'base64url')
        bytes[(bit >> 3) % bytes.length]! ^= 1 << (bit & 7)
        const passkey = { ...valid, [field]: bytes.toString('base64url') }
        assert.notEqual(verdict(statement, { passkey }), 'verified')
      },
    ),
    { numRuns: 500 },
  )
})

test('hostile assertions cause no other error than PolicyError', () => {
  const statement = statementBy(es256)
  const valid = assertionOf(es256, statement)
  const text = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
    fc.json().map((json) => Buffer.from(json).toString('base64url')),
  )
  const field = fc.constantFrom('client_data', 'authenticator_data', 'signature')
  fc.assert(
    fc.property(field, text, (name, value) => {
      assert.notEqual(verdict(statement, { passkey: { ...valid, [name]: value } }), 'verified')
    }),
    { numRuns: 1_000 },
  )
})
