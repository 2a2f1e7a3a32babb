// The page that explains which rule a request violates, compared with the code that refuses
// requests.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import {
  AuthError,
  parsePublicKey,
  signRequest,
  verifyRequest,
  type SignOptions,
} from '@custody/request-auth'
import { checkRequest, targetOf, type Pasted } from './check-request.ts'

const pair = () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
  return { privateKey, pem: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
}
const own = pair()
const other = pair()
const NOW_S = 1_800_000_000
const BODY = '{"asset":"ETH","amount":1.25}'
const URI = '/dac/v1/transaction'

interface Case {
  says: RegExp | null
  sign?: Partial<SignOptions>
  paste?: Partial<Pasted>
  edit?: (token: string) => string
  at?: number
}
const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const withHeader = (header: unknown) => (token: string) =>
  [b64(header), ...token.split('.').slice(1)].join('.')
const claims = (more: Record<string, unknown>): Case['sign'] => ({ claims: more })

const CASES: Record<string, Case> = {
  'as it should be': { says: null },
  'with its query in the claim': {
    says: null,
    sign: { method: 'GET', uri: '/dac/v1/wallets?asset=ETH', body: '' },
    paste: { method: 'GET', url: 'https://x.example/dac/v1/wallets?asset=ETH', body: '' },
  },
  'without the claim method': { says: null, sign: claims({ method: undefined }) },
  'a path without its query, and no claim method': {
    says: null,
    sign: {
      method: 'GET',
      uri: '/dac/v1/wallets',
      body: '',
      claims: { method: undefined },
    },
    paste: { method: 'GET', url: '/dac/v1/wallets?asset=ETH', body: '' },
  },
  'another method': { says: /the request’s is POST/, sign: { method: 'DELETE' } },
  'a method in lower case': {
    says: /It is "post", .* upper case/,
    sign: claims({ method: 'post' }),
  },
  'a GET that was sent as HEAD': {
    says: null,
    sign: { method: 'GET', body: '' },
    paste: { method: 'HEAD', body: '' },
  },
  'the claim method and a path without its query': {
    says: /lacks the query/,
    sign: { method: 'GET', uri: '/dac/v1/wallets', body: '' },
    paste: { method: 'GET', url: '/dac/v1/wallets?asset=ETH', body: '' },
  },
  'a number for a nonce': { says: null, sign: claims({ nonce: 17 }) },
  'two segments': { says: /2 parts/, edit: (token) => token.split('.').slice(0, 2).join('.') },
  'padded base64': { says: /not base64url/, edit: (token) => `${token}=` },
  'a header that is no JSON': { says: /not strict JSON/, edit: withHeader('{') },
  'another algorithm': { says: /"HS256"/, edit: withHeader({ alg: 'HS256', typ: 'JWT' }) },
  'a critical extension': { says: /crit/, edit: withHeader({ alg: 'RS256', crit: ['b64'] }) },
  'another key': { says: /Not made with this key/, paste: { publicKey: other.pem } },
  'a changed payload': {
    says: /Not made with this key/,
    edit: (token) =>
      token.replace(
        /\.([^.]+)\./,
        (_all, payload: string) =>
          `.${b64(Buffer.from(payload, 'base64url').toString().replace('"sub"', ' "sub"'))}.`,
      ),
  },
  'seconds as text': { says: /must be whole seconds/, sign: claims({ iat: String(NOW_S) }) },
  'no exp': { says: /exp is nothing/, sign: claims({ exp: undefined }) },
  'an exp before iat': { says: /later than iat/, sign: claims({ exp: NOW_S }) },
  'thirty seconds': { says: /strictly less than 30/, sign: claims({ exp: NOW_S + 30 }) },
  'nbf that has passed': { says: null, sign: claims({ nbf: NOW_S - 60 }) },
  'nbf within the tolerance': { says: null, sign: claims({ nbf: NOW_S + 5 }) },
  'nbf in the future': { says: /nbf lies 6 s in the future/, sign: claims({ nbf: NOW_S + 6 }) },
  'nbf as text': { says: /must be whole seconds/, sign: claims({ nbf: String(NOW_S) }) },
  'a clock that is ahead': { says: /6 s in the future/, at: NOW_S - 6 },
  'a clock that is ahead by as much as is tolerated': { says: null, at: NOW_S - 5 },
  'an old one': { says: /ended 5 s ago/, at: NOW_S + 30 },
  'one that is about to end': { says: null, at: NOW_S + 29 },
  'another API key': { says: /the header is "other"/, paste: { apiKey: 'other' } },
  'another path': {
    says: /the request’s is "\/dac\/v1\/wallet"/,
    paste: { url: '/dac/v1/wallet' },
  },
  'a path with its host': {
    says: /Leave scheme and host away/,
    sign: claims({ uri: `https://x.example${URI}` }),
  },
  'a slash more': { says: /slash at the end/, paste: { url: `${URI}/` } },
  'another body': {
    says: /other bytes were hashed/,
    paste: { body: '{"asset":"BTC","amount":1.25}' },
  },
  'a body with spaces': {
    says: /without its spaces/,
    paste: { body: '{ "asset": "ETH", "amount": 1.25 }' },
  },
  'a hash of other capitals': { says: /other bytes/, sign: claims({ bodyHash: 'AB'.repeat(32) }) },
  'a hash in base64': {
    says: /base64/,
    sign: claims({ bodyHash: Buffer.alloc(32, 1).toString('base64') }),
  },
  'no hash': { says: /is missing/, sign: claims({ bodyHash: undefined }) },
  'no nonce': { says: /It is missing/, sign: claims({ nonce: undefined, jti: 'x' }) },
  'an empty nonce': { says: /1 to 128/, sign: claims({ nonce: '' }) },
}

/**
 * Returns null if the service's own verification accepts the request, otherwise the rule that it
 * names.
 */
async function verdictOf(pasted: Pasted, now: number): Promise<string | null> {
  const { whole } = targetOf(pasted.url) ?? assert.fail(pasted.url)
  try {
    await verifyRequest({
      request: { token: pasted.token, method: pasted.method, uri: whole, body: pasted.body },
      apiKey: pasted.apiKey,
      publicKey: parsePublicKey(pasted.publicKey),
      now,
      age: 'live',
    })
    return null
  } catch (error) {
    if (error instanceof AuthError) return `${error.claim} ${error.message}`
    throw error
  }
}

for (const [name, { says, sign, paste, edit, at = NOW_S }] of Object.entries(CASES)) {
  test(`diagnoses a request: ${name}`, async () => {
    const signed = await signRequest({
      apiKey: 'key-1',
      privateKey: own.privateKey,
      method: 'POST',
      uri: URI,
      body: BODY,
      now: NOW_S,
      nonce: 'n',
      ...sign,
    })
    const pasted: Pasted = {
      token: edit ? edit(signed.token) : signed.token,
      method: 'POST',
      url: URI,
      body: BODY,
      apiKey: 'key-1',
      publicKey: own.pem,
      ...paste,
    }
    const broken = (await checkRequest(pasted, at)).filter(({ is }) => is === 'broken')
    const refused = await verdictOf(pasted, at)
    assert.equal(
      broken.length > 0,
      refused !== null,
      `the panel says ${JSON.stringify(broken)}, the house ${String(refused)}`,
    )
    if (says !== null) assert.match(broken.map((each) => each.says).join('\n'), says)
  })
}

test('recognises a hash in upper case as such', async () => {
  const { token } = await signRequest({
    apiKey: 'k',
    privateKey: own.privateKey,
    method: 'POST',
    uri: URI,
    body: '',
    now: NOW_S,
    claims: { bodyHash: 'E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855' },
  })
  const verdicts = await checkRequest(
    { token, method: 'POST', url: '', body: '', apiKey: '', publicKey: '' },
    null,
  )
  assert.match(verdicts.find(({ is }) => is === 'broken')?.says ?? '', /in capitals/)
  assert.deepEqual(
    verdicts.filter(({ is }) => is === 'skipped').map(({ rule }) => rule),
    ['Signature', 'Valid now', 'sub is the API key', 'uri is the path'],
  )
})

test('ignores text pasted around a token, and refuses a private key', async () => {
  const { token } = await signRequest({
    apiKey: 'k',
    privateKey: own.privateKey,
    method: 'GET',
    uri: URI,
    now: NOW_S,
  })
  const ask = (more: Partial<Pasted>) =>
    checkRequest(
      {
        token: `Authorization: Bearer ${token}`,
        method: 'GET',
        url: URI,
        body: '',
        apiKey: 'k',
        publicKey: own.pem,
        ...more,
      },
      NOW_S,
    )
  assert.deepEqual(
    (await ask({})).filter(({ is }) => is !== 'kept'),
    [],
  )
  assert.match(
    JSON.stringify(await ask({ publicKey: `-----BEGIN ${'PRIVATE'} KEY-----` })),
    /That is a private key/,
  )
  assert.match(JSON.stringify(await ask({ publicKey: 'hello' })), /cannot be read/)
})
