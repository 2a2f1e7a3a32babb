// Each claim of the signed request, refused by its own name, and the limits of every time window.
import assert from 'node:assert/strict'
import { createSign } from 'node:crypto'
import { test } from 'node:test'
import {
  bodyHash,
  claimedNonceAndSubject,
  CLOCK_SKEW_S,
  requestHeaders,
  signRequest,
  transactionId,
  WINDOW_S,
} from './index.ts'
import { TOKEN_LIFETIME_S } from './token.ts'
import { API_KEY, issuer, NOW, refuses, rsaPair, URI } from '../testing/support.ts'

const pair = rsaPair()
const { sign, verify, withClaims } = issuer(pair)
const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

test('returns the claims of a valid request', async () => {
  const signed = await sign({ nonce: 'n-1' })
  assert.deepEqual(await verify(signed), {
    uri: URI,
    nonce: 'n-1',
    iat: NOW,
    exp: NOW + TOKEN_LIFETIME_S,
    sub: API_KEY,
    bodyHash: bodyHash(signed.body),
    method: 'POST',
  })
})

test('a token with the claim method is valid for this method and this query only', async () => {
  const target = `${URI}?asset=ETH`
  const signed = await sign({ method: 'get', uri: target, body: '' })
  assert.equal((await verify(signed)).method, 'GET')
  // HEAD has the meaning of GET.
  await verify({ ...signed, method: 'HEAD' })
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'get'])
    await refuses(verify({ ...signed, method }), 'method', /must be .+, the method of the request/)
  for (const uri of [URI, `${URI}?asset=BTC`, `${target}&page=2`])
    await refuses(verify({ ...signed, uri }), 'uri')
  // A query that was added to a request without one.
  const plain = await sign({ method: 'GET', body: '' })
  await refuses(verify({ ...plain, uri: target }), 'uri', /because the token has the claim method/)
  for (const method of [null, '', 'post', 1, true, {}, ['POST']])
    await refuses(verify(await withClaims({ method })), 'method')
})

test('a token without the claim method is valid for every method, and may omit the query', async () => {
  const signed = await withClaims({ method: undefined })
  for (const method of ['POST', 'DELETE']) {
    const claims = await verify({ ...signed, method, uri: `${URI}?asset=ETH` })
    assert.equal(Object.hasOwn(claims, 'method'), false)
  }
})

test('refuses a missing claim, or one of another type, and names it', async () => {
  for (const claim of ['iat', 'exp', 'sub', 'uri', 'bodyHash', 'nonce']) {
    for (const value of [undefined, null, true, {}, [], ''])
      await refuses(verify(await withClaims({ [claim]: value })), claim)
  }
  for (const claim of ['sub', 'uri', 'bodyHash'])
    await refuses(verify(await withClaims({ [claim]: 1 })), claim)
})

test('iat and exp must be whole seconds', async () => {
  for (const claim of ['iat', 'exp']) {
    for (const value of [String(NOW), NOW + 0.5, -1, 1e21, NOW * 1000 * 1000])
      await refuses(verify(await withClaims({ [claim]: value })), claim)
  }
  // Milliseconds, which is the most common mistake.
  await refuses(verify(await withClaims({ iat: NOW * 1000, exp: NOW * 1000 + 25 })), 'iat')
})

test('requires 0 < exp − iat < 30', async () => {
  assert.equal(WINDOW_S, 30)
  await refuses(verify(await withClaims({ exp: NOW - 1 })), 'exp')
  await refuses(verify(await withClaims({ exp: NOW })), 'exp')
  await verify(await withClaims({ exp: NOW + 1 }))
  await verify(await withClaims({ exp: NOW + 29 }))
  await refuses(verify(await withClaims({ exp: NOW + 30 })), 'exp', /strictly less than iat \+ 30/)
  await refuses(verify(await withClaims({ exp: NOW + 3600 })), 'exp')
  // Also if the age is not verified.
  await refuses(verify(await withClaims({ exp: NOW + 30 }), { age: 'none' }), 'exp')
})

test('accepts clocks that differ by up to five seconds either way', async () => {
  assert.equal(CLOCK_SKEW_S, 5)
  const signed = await sign()
  const exp = NOW + TOKEN_LIFETIME_S
  await verify(signed, { now: NOW - 5 })
  await refuses(verify(signed, { now: NOW - 6 }), 'iat', /future/)
  await verify(signed, { now: exp - 1 })
  await verify(signed, { now: exp })
  await verify(signed, { now: exp + 4 })
  await refuses(verify(signed, { now: exp + 5 }), 'exp', /passed/)
})

test('refuses a token before its nbf, with five seconds of tolerance; nbf is optional', async () => {
  const at = (nbf: unknown) => withClaims({ nbf })
  assert.equal((await verify(await at(NOW - 100))).nbf, NOW - 100)
  await verify(await at(NOW + CLOCK_SKEW_S))
  await refuses(
    verify(await at(NOW + CLOCK_SKEW_S + 1)),
    'nbf',
    /future: the token is not valid yet/,
  )
  await verify(await at(NOW + CLOCK_SKEW_S + 1), { now: NOW + 1 })
  await refuses(verify(await at(NOW * 1000)), 'nbf')
  for (const value of [null, true, {}, [], '', String(NOW), NOW + 0.5, -1, 1e21])
    await refuses(verify(await at(value)), 'nbf', /integer/)
  assert.equal(
    (await verify(await at(NOW + 10_000), { age: 'none' })).nbf,
    NOW + 10_000,
    'a signer node applies its own tolerance',
  )
})

test('with age none, a stored request verifies years later, or before its time', async () => {
  const signed = await sign()
  await verify(signed, { age: 'none', now: NOW + 10 ** 8 })
  await verify(signed, { age: 'none', now: 0 })
})

test('sub must equal the x-api-key header exactly', async () => {
  const signed = await sign()
  await refuses(verify(signed, { apiKey: API_KEY.toUpperCase() }), 'sub')
  await refuses(verify(signed, { apiKey: '' }), 'sub')
  await refuses(verify(await withClaims({ sub: `${API_KEY} ` })), 'sub')
})

test('uri must be the path alone or the path with its query, unencoded', async () => {
  const uri = '/dac/v1/wallets?asset=BTC&x=%20'
  const at = async (claim: string) =>
    verify(await sign({ uri, method: 'GET', body: '', claims: { uri: claim, method: undefined } }))
  assert.equal((await at(uri)).uri, uri)
  assert.equal((await at('/dac/v1/wallets')).uri, '/dac/v1/wallets')
  for (const claim of [
    '/dac/v1/wallets?',
    '/dac/v1/wallets?asset=ETH',
    '/dac/v1/wallets?asset=BTC',
    '/dac/v1/wallets?x=%20&asset=BTC',
    '/dac/v1/wallets?asset=BTC&x= ',
    '/dac/v1/wallets/',
    '/DAC/v1/wallets',
    'dac/v1/wallets',
    'http://host/dac/v1/wallets',
    '/dac/v1/../v1/wallets',
    '/dac/v1/wallet',
    '*',
    '?asset=BTC&x=%20',
  ])
    await refuses(at(claim), 'uri')
  // The claim contains a query and the request does not.
  await refuses(verify(await withClaims({ uri: `${URI}?a=1` })), 'uri')
})

test('bodyHash must be the hash of the raw body', async () => {
  const signed = await sign({ body: '{"a":1,"b":2}' })
  for (const body of ['{"b":2,"a":1}', '{"a":1, "b":2}', '{"a":1,"b":2}\n', '', '{"a":1,"b":3}'])
    await refuses(verify({ ...signed, body }), 'bodyHash')
  assert.equal(bodyHash(''), EMPTY_HASH)
  await refuses(
    verify(await withClaims({ bodyHash: bodyHash('{"asset":"BTC"}').toUpperCase() })),
    'bodyHash',
  )
  await refuses(
    verify(
      await withClaims({
        bodyHash: Buffer.from(bodyHash('{"asset":"BTC"}'), 'hex').toString('base64'),
      }),
    ),
    'bodyHash',
  )
  await verify(await sign({ body: '{"memo":"Grüße 🚀 \\ud83d"}' }))
})

test('accepts bodyhash instead of bodyHash', async () => {
  const body = '{"asset":"BTC"}'
  await verify(await withClaims({ bodyHash: undefined, bodyhash: bodyHash(body) }))
  await refuses(
    verify(await withClaims({ bodyHash: undefined, bodyhash: bodyHash('other') })),
    'bodyHash',
  )
  // If both spellings are present, the documented one counts.
  await refuses(
    verify(await withClaims({ bodyHash: bodyHash('other'), bodyhash: bodyHash(body) })),
    'bodyHash',
  )
  await refuses(
    verify(await withClaims({ bodyHash: undefined, BODYHASH: bodyHash(body) })),
    'bodyHash',
  )
})

test('a request without a body must have the hash of the empty string', async () => {
  const signed = await sign({ method: 'get', uri: '/dac/v1/gas-tanks', body: undefined })
  assert.equal(signed.method, 'GET')
  assert.equal((await verify(signed)).bodyHash, EMPTY_HASH)
  const without = await sign({
    uri: '/dac/v1/gas-tanks',
    body: '',
    claims: { bodyHash: undefined },
  })
  await refuses(verify(without), 'bodyHash', /is missing/)
  // The operator's option for old clients; it applies only to requests without a body.
  assert.equal((await verify(without, { legacy: true })).bodyHash, EMPTY_HASH)
  await refuses(verify({ ...without, body: '{}' }, { legacy: true }), 'bodyHash')
  await refuses(
    verify(await sign({ uri: '/dac/v1/gas-tanks', body: '', claims: { bodyHash: 'x' } }), {
      legacy: true,
    }),
    'bodyHash',
  )
})

test('a nonce must be text of 1 to 128 characters, or an integer', async () => {
  const nonceOf = async (nonce: unknown) => (await verify(await withClaims({ nonce }))).nonce
  assert.equal(await nonceOf('x'), 'x')
  assert.equal(await nonceOf('x'.repeat(128)), 'x'.repeat(128))
  assert.equal(await nonceOf(0), '0')
  assert.equal(await nonceOf(1_700_000_000_123), '1700000000123')
  assert.equal(await nonceOf(-5), '-5')
  for (const nonce of ['', 'x'.repeat(129), 'a\0b', 1.5, 1e21])
    await refuses(verify(await withClaims({ nonce })), 'nonce')
})

test('a numeric nonce above 2^53 keeps every digit', async () => {
  const digits = '9007199254740993'
  const signed = await sign({ claims: { nonce: JSON.rawJSON(digits) } })
  assert.equal((await verify(signed)).nonce, digits)
  await refuses(verify(await sign({ claims: { nonce: JSON.rawJSON('1e3') } })), 'nonce')
  await refuses(verify(await sign({ claims: { nonce: JSON.rawJSON('1'.repeat(129)) } })), 'nonce')
})

test('each signed request has its own nonce', async () => {
  const nonces = await Promise.all(
    [sign(), sign(), sign()].map(async (signed) => (await verify(await signed)).nonce),
  )
  assert.equal(new Set(nonces).size, 3)
})

test('checks the signature before any claim, and the nonce last', async () => {
  const bad = await withClaims({ iat: 'x', exp: 'x', sub: 'x', uri: 'x', bodyHash: 'x', nonce: '' })
  await refuses(verify({ ...bad, token: `${bad.token.slice(0, -12)}AAAAAAAAAAAA` }), 'signature')
  const fixed: Record<string, unknown> = {
    iat: 'x',
    exp: 'x',
    sub: 'x',
    uri: 'x',
    bodyHash: 'x',
    nonce: '',
  }
  for (const [claim, value] of [
    ['iat', NOW],
    ['exp', NOW + 20],
    ['sub', API_KEY],
    ['uri', URI],
    ['bodyHash', bodyHash('{"asset":"BTC"}')],
  ] as const) {
    await refuses(verify(await withClaims(fixed)), claim)
    fixed[claim] = value
  }
  await refuses(verify(await withClaims(fixed)), 'nonce')
})

test('accepts a private key as PEM, in PKCS#8 or PKCS#1', async () => {
  for (const type of ['pkcs8', 'pkcs1'] as const) {
    await verify(
      await sign({ privateKey: pair.privateKey.export({ type, format: 'pem' }) as string }),
    )
  }
})

test('signs a token for the current time by default', async () => {
  const now = Math.floor(Date.now() / 1000)
  const signed = await signRequest({
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    method: 'GET',
    uri: '/assets',
  })
  const { iat } = await verify(signed, { now })
  assert.ok(iat - now <= 2)
})

test('returns headers with the token, the key and the content type of a body', async () => {
  const signed = await sign()
  assert.deepEqual(requestHeaders(signed, API_KEY), {
    authorization: `Bearer ${signed.token}`,
    'x-api-key': API_KEY,
    'content-type': 'application/json',
  })
  assert.deepEqual(requestHeaders({ ...signed, body: '' }, API_KEY), {
    authorization: `Bearer ${signed.token}`,
    'x-api-key': API_KEY,
  })
})

test('nodes and platforms of every version compute the same id of a created object', () => {
  assert.equal(
    transactionId('4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90', 'nonce-1'),
    '97144d01-df16-8806-b00c-c77219d89c49',
  )
  assert.match(
    transactionId('a', 'b'),
    /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  // No pair of values has the same encoding as another pair.
  const ids = [
    ['a', 'bc'],
    ['ab', 'c'],
    ['a","b', 'c'],
    ['a', 'b","c'],
    ['', 'abc'],
    ['a', '\ud800'],
    ['a', '\ufffd'],
    ['a', '1'],
    ['a', '01'],
  ].map(([sub, nonce]) => transactionId(sub as string, nonce as string))
  assert.equal(new Set(ids).size, ids.length)
})

test('each refusal states what to correct', async () => {
  const said = async (promise: Promise<unknown>) =>
    promise.then(
      () => 'taken',
      (error: Error) => `${error.name}: ${error.message}`,
    )
  const signed = await sign()
  const [header, payload] = signed.token.split('.') as [string, string, string]
  const encode = (text: string) => Buffer.from(text).toString('base64url')
  const signedText = async (text: string) => {
    const input = `${header}.${encode(text)}`
    return {
      ...signed,
      token: `${input}.${createSign('RSA-SHA256').update(input).sign(pair.privateKey).toString('base64url')}`,
    }
  }
  const headed = (text: string) => ({ ...signed, token: `${encode(text)}.${payload}.AAAA` })
  const cases: readonly (readonly [() => Promise<unknown>, string])[] = [
    [
      () => verify({ ...signed, token: `${header}.${payload}` }),
      'is not a JWT of three base64url segments',
    ],
    [
      () => verify({ ...signed, token: `${header}..AAAA` }),
      'is not a JWT of three base64url segments',
    ],
    [() => verify(headed('{"alg":"HS256"}')), 'must be RS256'],
    [
      () => verify(headed('{"alg":"RS256","crit":[]}')),
      'critical header extensions are not supported',
    ],
    [() => verify(headed('[]')), 'has a header that is not an object'],
    [() => verify(headed('{"alg":"RS256","alg":"RS256"}')), 'has a header that is not strict JSON'],
    [
      () => verify({ ...signed, token: `${header}.${payload}.AAAA` }),
      'does not match the public key registered for this API key',
    ],
    [
      async () => verify(await signedText('{"iat":1,"iat":1}')),
      'has a payload that is not strict JSON',
    ],
    [async () => verify(await signedText('7')), 'has a payload that is not an object'],
    [async () => verify(await signedText('null')), 'has a payload that is not an object'],
    [
      async () => verify(await withClaims({ iat: 'x' })),
      'must be an integer: seconds since the Unix Epoch',
    ],
    [async () => verify(await withClaims({ exp: NOW })), 'must be later than iat'],
    [
      () => verify(signed, { now: NOW - 60 }),
      `is in the future: check the clock (server time ${NOW - 60})`,
    ],
    [() => verify(signed, { now: NOW + 60 }), `has passed (server time ${NOW + 60})`],
    [async () => verify(await withClaims({ sub: 'x' })), 'must equal the x-api-key header'],
    [
      async () => verify(await withClaims({ uri: '/x' })),
      'must be the path of the request, with or without its query',
    ],
    [
      () => verify({ ...signed, uri: `${URI}?asset=ETH` }),
      'must contain the query exactly as sent, because the token has the claim method',
    ],
    [
      () => verify({ ...signed, method: 'DELETE' }),
      'must be DELETE, the method of the request, in upper case; omit the claim if the method is not signed',
    ],
    [
      async () => verify(await withClaims({ bodyHash: undefined })),
      'is missing: lowercase hex SHA-256 of the raw body, or of the empty string if there is no body',
    ],
    [
      async () => verify(await withClaims({ bodyHash: EMPTY_HASH })),
      'is not the lowercase hex SHA-256 of the body received',
    ],
    [
      async () => verify(await withClaims({ nonce: '' })),
      'must be a non-empty string of at most 128 characters, or an integer',
    ],
  ]
  for (const [refused, sentence] of cases)
    assert.equal(await said(refused()), `AuthError: ${sentence}`)
  assert.throws(() => claimedNonceAndSubject('x'), {
    name: 'AuthError',
    message: 'has a payload that is not strict JSON',
  })
  assert.throws(() => claimedNonceAndSubject('{}'), {
    name: 'AuthError',
    message: 'has a payload that is not strict JSON',
  })
  assert.throws(() => claimedNonceAndSubject(`x.${encode('{"nonce":"n"}')}`), {
    name: 'AuthError',
    message: 'is missing',
  })
})

test('accepts values equal to a limit', async () => {
  const longest = 'n'.repeat(128)
  assert.equal((await verify(await sign({ nonce: longest }))).nonce, longest)
  const pad = async (length: number) => sign({ claims: { pad: 'x'.repeat(length) } })
  const grown = (await pad(1000)).token.length
  const most = await pad(1000 + Math.floor(((8192 - grown) * 3) / 4))
  assert.ok(most.token.length > 8188 && most.token.length <= 8192, String(most.token.length))
  assert.equal((await verify(most)).sub, API_KEY)
})
