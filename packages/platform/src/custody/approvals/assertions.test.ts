// Assertions of passkeys: our verification agrees with @simplewebauthn/server, which verifies the
// sign-in to the control panel.
import { cose, isoCBOR } from '@simplewebauthn/server/helpers'
import { verifyAuthenticationResponse } from '@simplewebauthn/server'
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import { challengeOf, isSignedByKey, PolicyError, type Assertion } from '@custody/policy'
import { assertAssertion } from '../../../../policy/src/statements/webauthn.ts'
import { policyWith } from '../../../../policy/testing/documents.ts'
import { statementsOf } from '../../../../policy/testing/statements.ts'
import {
  assertionOf,
  BE,
  BS,
  ED,
  newPasskey,
  UP,
  UV,
  type AssertionParts,
  type TestPasskey,
} from '../../../../policy/testing/passkeys.ts'

const statement = statementsOf(policyWith([])).approval
const PASSKEYS = (['ES256', 'Ed25519'] as const).map((alg) =>
  newPasskey(alg === 'ES256' ? 'p1' : 'p2', alg, { device_bound: false }),
)

/** Returns a public key in the form of COSE (RFC 9053), as the library expects it. */
function coseKeyOf({ key: { alg, spki } }: TestPasskey): Uint8Array<ArrayBuffer> {
  const { x = '', y = '' } = createPublicKey({
    key: Buffer.from(spki, 'base64'),
    format: 'der',
    type: 'spki',
  }).export({ format: 'jwk' })
  const point = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))
  const fields: [number, number | Uint8Array][] =
    alg === 'ES256'
      ? [
          [cose.COSEKEYS.kty, cose.COSEKTY.EC2],
          [cose.COSEKEYS.alg, cose.COSEALG.ES256],
          [cose.COSEKEYS.crv, cose.COSECRV.P256],
          [cose.COSEKEYS.x, point(x)],
          [cose.COSEKEYS.y, point(y)],
        ]
      : [
          [cose.COSEKEYS.kty, cose.COSEKTY.OKP],
          [cose.COSEKEYS.alg, cose.COSEALG.EdDSA],
          [cose.COSEKEYS.crv, cose.COSECRV.ED25519],
          [cose.COSEKEYS.x, point(x)],
        ]
  return isoCBOR.encode(new Map(fields))
}

async function libraryAccepts(passkey: TestPasskey, given: Assertion): Promise<boolean> {
  const { key } = passkey
  try {
    const { verified } = await verifyAuthenticationResponse({
      response: {
        id: key.credential,
        rawId: key.credential,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: given.client_data,
          authenticatorData: given.authenticator_data,
          signature: given.signature,
        },
      },
      expectedChallenge: challengeOf(statement),
      expectedOrigin: [...key.origins],
      expectedRPID: key.rp_id,
      requireUserVerification: true,
      credential: { id: key.credential, publicKey: coseKeyOf(passkey), counter: 0 },
    })
    return verified
  } catch {
    return false
  }
}

function accepts({ key }: TestPasskey, given: Assertion): boolean {
  try {
    assertAssertion(key, statement, given)
    return isSignedByKey(key, statement, { passkey: given })
  } catch (error) {
    assert.ok(error instanceof PolicyError, String(error))
    return false
  }
}

const CASES: [string, AssertionParts, boolean][] = [
  ['a plain assertion', {}, true],
  ['a signature counter', { counter: 9 }, true],
  ['a passkey that can be copied', { flags: UP | UV | BE }, true],
  ['a copied passkey', { flags: UP | UV | BE | BS }, true],
  ['extension data', { flags: UP | UV | ED, rest: isoCBOR.encode(new Map([['a', 1]])) }, true],
  ['contradictory backup flags', { flags: UP | UV | BS }, false],
  ['no user', { flags: UV }, false],
  ['an unverified user', { flags: UP }, false],
  ['another challenge', { client: { challenge: 'AAAA' } }, false],
  ['another origin', { client: { origin: 'http://localhost:1' } }, false],
  ['another type', { client: { type: 'webauthn.create' } }, false],
  ['another domain', { rpId: 'example.com' }, false],
]
for (const passkey of PASSKEYS)
  test(`agrees with an independent library about ${passkey.key.alg}`, async () => {
    for (const [name, parts, expected] of CASES) {
      const given = assertionOf(passkey, statement, parts)
      assert.deepEqual(
        [accepts(passkey, given), await libraryAccepts(passkey, given)],
        [expected, expected],
        name,
      )
    }
    const valid = assertionOf(passkey, statement)
    for (let bit = 0; bit < 64; bit++) {
      const bytes = Buffer.from(valid.signature, 'base64url')
      bytes[(bit * 7) % bytes.length]! ^= 1 << (bit & 7)
      const given = { ...valid, signature: bytes.toString('base64url') }
      assert.deepEqual(
        [accepts(passkey, given), await libraryAccepts(passkey, given)],
        [false, false],
      )
    }
  })
