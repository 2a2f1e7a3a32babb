// RFC 7515 (JWS), RFC 7518 (algorithms), RFC 8725 (best practices): valid tokens and forgeries.
import assert from 'node:assert/strict'
import { constants, createHmac, createPublicKey, randomBytes, sign as nodeSign } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../testing/property.ts'
import { CompactSign, exportJWK, jwtVerify, SignJWT } from 'jose'
import { AuthError, bodyHash, claimedNonceAndSubject, verifyRequest } from './index.ts'
import { API_KEY, issuer, NOW, refuses, refusesSync, rsaPair, URI } from '../testing/support.ts'

const pair = rsaPair()
const other = rsaPair()
const { sign, verify } = issuer(pair)

const BODY = '{"asset":"BTC"}'
const claims = () => ({
  uri: URI,
  nonce: randomBytes(16).toString('hex'),
  iat: NOW,
  exp: NOW + 25,
  sub: API_KEY,
  bodyHash: bodyHash(BODY),
})
const request = (token: string) => ({ token, method: 'POST', uri: URI, body: BODY })
const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Returns a token with any header and payload and a valid signature. */
function handmade(header: unknown, payload: unknown, key = pair.privateKey): string {
  const input = `${encode(header)}.${encode(payload)}`
  return `${input}.${nodeSign('RSA-SHA256', Buffer.from(input), key).toString('base64url')}`
}

test('RFC 7515, A.2: the published token verifies, and fails at the first missing claim', async () => {
  const key = createPublicKey({
    format: 'jwk',
    key: {
      kty: 'RSA',
      e: 'AQAB',
      n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
    },
  })
  const token =
    'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw'
  const check = (text: string) =>
    verifyRequest({
      request: request(text),
      apiKey: API_KEY,
      publicKey: key,
      now: NOW,
      age: 'none',
    })
  await refuses(check(token), 'iat')
  await refuses(check(token.replace('.cC4h', '.dC4h')), 'signature')
})

test('jose verifies our signatures', async () => {
  const signed = await sign()
  const { payload, protectedHeader } = await jwtVerify(signed.token, pair.publicKey, {
    algorithms: ['RS256'],
    currentDate: new Date(NOW * 1000),
    subject: API_KEY,
  })
  assert.deepEqual(protectedHeader, { alg: 'RS256', typ: 'JWT' })
  assert.deepEqual(Object.keys(payload).sort(), [
    'bodyHash',
    'exp',
    'iat',
    'method',
    'nonce',
    'sub',
    'uri',
  ])
  assert.equal(payload['bodyHash'], bodyHash(BODY))
  assert.ok((payload.exp as number) - (payload.iat as number) < 30)
})

test("our code verifies jose's signatures", async () => {
  const { sub, iat, exp, ...rest } = claims()
  const token = await new SignJWT(rest)
    .setProtectedHeader({ alg: 'RS256' })
    .setSubject(sub)
    .setIssuedAt(iat)
    .setExpirationTime(exp)
    .sign(pair.privateKey)
  assert.deepEqual(await verify(request(token)), { ...rest, sub, iat, exp })
})

test('refuses any alg except RS256', async () => {
  const payload = claims()
  await refuses(verify(request(`${encode({ alg: 'none' })}.${encode(payload)}.`)), 'token')
  await refuses(verify(request(`${encode({ alg: 'none' })}.${encode(payload)}.AA`)), 'alg')
  for (const alg of [
    'nOnE',
    'rs256',
    'RS256 ',
    'RS384',
    'HS256',
    'EdDSA',
    '',
    null,
    256,
    ['RS256'],
    { RS256: true },
  ]) {
    await refuses(verify(request(handmade({ alg }, payload))), 'alg')
  }
  await refuses(verify(request(handmade({ typ: 'JWT' }, payload))), 'alg')
  for (const alg of ['RS512', 'PS256', 'RS384', 'PS512']) {
    const token = await new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg })
      .sign(pair.privateKey)
    await refuses(verify(request(token)), 'alg')
  }
})

test('alg confusion: refuses an HMAC keyed with the public key', async () => {
  const payload = claims()
  const secret = pair.publicKey.export({ type: 'spki', format: 'pem' })
  for (const alg of ['HS256', 'RS256']) {
    const input = `${encode({ alg })}.${encode(payload)}`
    const mac = createHmac('sha256', secret).update(input).digest('base64url')
    await refuses(verify(request(`${input}.${mac}`)), alg === 'RS256' ? 'signature' : 'alg')
  }
})

test('refuses RS256 with another padding or digest', async () => {
  const input = `${encode({ alg: 'RS256' })}.${encode(claims())}`
  const pss = nodeSign('RSA-SHA256', Buffer.from(input), {
    key: pair.privateKey,
    padding: constants.RSA_PKCS1_PSS_PADDING,
  })
  const sha512 = nodeSign('RSA-SHA512', Buffer.from(input), pair.privateKey)
  const sha1 = nodeSign('RSA-SHA1', Buffer.from(input), pair.privateKey)
  for (const signature of [pss, sha512, sha1])
    await refuses(verify(request(`${input}.${signature.toString('base64url')}`)), 'signature')
})

test('ignores keys in the token header', async () => {
  const jwk = await exportJWK(other.publicKey)
  for (const header of [
    { jwk },
    { jku: 'https://attacker.example/keys' },
    { x5u: 'https://attacker.example/key.pem' },
    { kid: '../../dev/null' },
    { x5c: ['AAAA'] },
  ]) {
    await refuses(
      verify(request(handmade({ alg: 'RS256', ...header }, claims(), other.privateKey))),
      'signature',
    )
    // With the original signature these headers have no effect.
    await verify(request(handmade({ alg: 'RS256', ...header }, claims())))
  }
})

test('refuses crit, because no extension is supported', async () => {
  await refuses(
    verify(request(handmade({ alg: 'RS256', crit: ['b64'], b64: false }, claims()))),
    'crit',
  )
  await refuses(verify(request(handmade({ alg: 'RS256', crit: [] }, claims()))), 'crit')
})

test('refuses another key, a changed payload, and a truncated or padded signature', async () => {
  const { token } = await sign()
  const [header, payload, signature] = token.split('.') as [string, string, string]
  await refuses(verify(request(token), { publicKey: other.publicKey }), 'signature')
  await refuses(
    verify(request(`${header}.${encode({ ...claims(), uri: '/other' })}.${signature}`)),
    'signature',
  )
  const bytes = Buffer.from(signature, 'base64url')
  for (const forged of [
    bytes.subarray(1),
    bytes.subarray(0, -1),
    Buffer.concat([bytes, Buffer.from([0])]),
    Buffer.concat([Buffer.from([0]), bytes]),
    Buffer.alloc(512),
    Buffer.alloc(512, 255),
  ]) {
    await refuses(
      verify(request(`${header}.${payload}.${forged.toString('base64url')}`)),
      'signature',
    )
  }
})

test('accepts only one encoding of a token', async () => {
  const { token } = await sign()
  const [header, payload, signature] = token.split('.') as [string, string, string]
  assert.equal(signature.length % 4, 3, 'four spare bits, or none')
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  // 512 bytes leave two unused bits in the last character: three more encodings decode to the same
  // bytes.
  const last = alphabet.indexOf(signature.at(-1) as string)
  for (let bits = 1; bits < 4; bits++) {
    const respelled = signature.slice(0, -1) + alphabet[last ^ bits]
    assert.deepEqual(Buffer.from(respelled, 'base64url'), Buffer.from(signature, 'base64url'))
    await refuses(verify(request(`${header}.${payload}.${respelled}`)), 'token')
  }
  const standard = Buffer.from(signature, 'base64url').toString('base64')
  for (const spelling of [
    `${token}=`,
    `${token}==`,
    `${token}.`,
    `.${token}`,
    `${header}..${payload}.${signature}`,
    `${token}.AAAA`,
    `${header}.${payload}`,
    header,
    '',
    '..',
    '...',
    ` ${token}`,
    `${token} `,
    `${token}\n`,
    `${header} .${payload}.${signature}`,
    `${header}.\t${payload}.${signature}`,
    `${header}.${payload}.${standard}`,
    `${header}.${payload}.${signature}\0`,
    token.replaceAll('.', ','),
    `${header}.${payload}.${signature.slice(0, 10)}\u200b${signature.slice(10)}`,
  ])
    await refuses(verify(request(spelling)), 'token')
})

test('header and payload must be strict JSON objects', async () => {
  const good = JSON.stringify(claims())
  for (const payload of [
    '',
    'null',
    '[]',
    '1',
    '"text"',
    `${good} x`,
    `\ufeff${good}`,
    `{"sub":"x",${good.slice(1)}`,
    `${good.slice(0, -1)},"nonce":"twice"}`,
    `${good.slice(0, -1)},"\\u006eonce":"twice"}`,
    `${good.slice(0, -1)},"__proto__":{}}`,
    `${good.slice(0, -1)},}`,
    good.replaceAll('"', "'"),
    `{"a":${'['.repeat(40)}${']'.repeat(40)},${good.slice(1)}`,
  ])
    await refuses(verify(request(handmade({ alg: 'RS256' }, payload))), 'token')
  for (const header of [
    'null',
    '[{"alg":"RS256"}]',
    '"RS256"',
    '{"alg":"none","alg":"RS256"}',
    '{"alg":"RS256","alg":"RS256"}',
    '{alg:"RS256"}',
  ]) {
    await refuses(verify(request(handmade(header, good))), 'token')
  }
})

test('allows unknown claims, as RFC 7519 (4) requires', async () => {
  assert.equal(
    (
      await verify(
        request(
          handmade({ alg: 'RS256' }, { ...claims(), iss: 'me', aud: ['you'], constructor: 1 }),
        ),
      )
    ).sub,
    API_KEY,
  )
})

test('refuses a token longer than 8192 characters without parsing it', async () => {
  await refuses(verify(request('A'.repeat(8193))), 'token', /longer than 8192/)
  await refuses(
    verify(request(handmade({ alg: 'RS256' }, { ...claims(), pad: 'x'.repeat(9000) }))),
    'token',
  )
})

test('any text as a token throws only AuthError', async () => {
  const segment = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.base64String(),
    fc.json().map((text) => encode(text)),
    fc.constantFrom(encode({ alg: 'RS256' }), encode(claims()), '', 'AA', '.', '\0'),
  )
  const tokens = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.array(segment, { maxLength: 5 }).map((parts) => parts.join('.')),
  )
  await fc.assert(
    fc.asyncProperty(tokens, async (token) => {
      await assert.rejects(verify(request(token)), AuthError)
      try {
        claimedNonceAndSubject(token)
      } catch (error) {
        assert.ok(error instanceof AuthError)
      }
    }),
    { numRuns: 1000 },
  )
})

test('changing any bit of a valid token makes it invalid', async () => {
  const { token } = await sign()
  await fc.assert(
    fc.asyncProperty(
      fc.nat(token.length - 1),
      fc.integer({ min: 1, max: 127 }),
      async (at, flip) => {
        const changed =
          token.slice(0, at) +
          String.fromCharCode(token.charCodeAt(at) ^ flip) +
          token.slice(at + 1)
        await assert.rejects(verify(request(changed)), AuthError)
      },
    ),
    { numRuns: 300 },
  )
})

test('reads the claimed subject without verification, to look up the key', () => {
  assert.deepEqual(claimedNonceAndSubject(`x.${encode({ sub: 'me', nonce: 7 })}.y`), {
    sub: 'me',
    nonce: '7',
  })
  refusesSync(() => claimedNonceAndSubject(`x.${encode({ nonce: 7 })}.y`), 'sub')
  refusesSync(() => claimedNonceAndSubject(`x.${encode({ sub: 'me' })}.y`), 'nonce')
  refusesSync(() => claimedNonceAndSubject('x'), 'token')
})
