// The request signed by WebCrypto is the request that node:crypto verifies.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { bodyHash as bodyHashByNode, parsePrivateKey } from './index.ts'
import { pkcs8OfPem } from './pem.ts'
import * as web from './web.ts'
import { API_KEY, issuer, NOW, refuses, refusesSync, rsaPair, URI } from '../testing/support.ts'

const pair = rsaPair()
const { verify } = issuer(pair)
const pem = (type: 'pkcs1' | 'pkcs8') => pair.privateKey.export({ type, format: 'pem' }) as string
const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
const der = Uint8Array.from(pair.privateKey.export({ type: 'pkcs8', format: 'der' }))
const options = {
  apiKey: API_KEY,
  method: 'post',
  uri: URI,
  body: '{"label":"Grüße 😀"}',
  now: NOW,
  nonce: 'n-1',
}

test('both PEM formats, a KeyObject and a non-exportable key give the same signature', async () => {
  const sealed = await crypto.subtle.importKey('pkcs8', der, RS256, false, ['sign'])
  const tokens = new Set<string>()
  for (const key of [
    pem('pkcs8'),
    pem('pkcs1'),
    `Bag Attributes\n${pem('pkcs8').replaceAll('\n', '\r\n')}`,
    pair.privateKey,
    sealed,
  ]) {
    const sign = web.requestSigner(key)
    const request = await sign(options)
    assert.equal(request.method, 'POST')
    assert.equal((await verify(request)).nonce, 'n-1')
    tokens.add(request.token)
    const { nonce, bodyHash } = await verify(
      await sign({ apiKey: API_KEY, method: 'GET', uri: URI, now: NOW }),
    )
    assert.match(nonce, /^[0-9a-f-]{36}$/)
    assert.equal(bodyHash, bodyHashByNode(''))
  }
  assert.equal(tokens.size, 1, 'RS256 is deterministic, and so is the text that is signed')
  assert.equal(
    [...tokens][0],
    (await issuer(pair).sign({ body: options.body, nonce: 'n-1' })).token,
  )
})

test('refuses a key that cannot sign requests, without quoting the key', async () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ec = other.privateKey
  refusesSync(
    () => web.requestSigner(pair.publicKey.export({ type: 'spki', format: 'pem' }) as string),
    'private_key',
    /public key/,
  )
  refusesSync(
    () => web.requestSigner(ec.export({ type: 'pkcs8', format: 'pem' }) as string),
    'private_key',
    /another algorithm/,
  )
  refusesSync(
    () => web.requestSigner(ec.export({ type: 'sec1', format: 'pem' }) as string),
    'private_key',
    /ec/,
  )
  refusesSync(() => web.requestSigner(ec), 'private_key', /ec/)
  refusesSync(() => web.requestSigner(pair.publicKey as never), 'private_key', /public/)
  const sealed = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const
  refusesSync(
    () => web.requestSigner(pair.privateKey.export(sealed) as string),
    'private_key',
    /encrypted/,
  )
  for (const text of [
    '',
    'x',
    pem('pkcs8').replace('MII', '!!!'),
    `-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----`,
  ]) {
    refusesSync(() => web.requestSigner(text), 'private_key', /not a readable PEM/)
  }
  const broken = `-----BEGIN RSA PRIVATE KEY-----\nMAMCAQA=\n-----END RSA PRIVATE KEY-----`
  await refuses(web.requestSigner(broken)(options), 'private_key', /not a readable PEM/)
  const pss = await crypto.subtle.importKey(
    'pkcs8',
    der,
    { name: 'RSA-PSS', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  refusesSync(() => web.requestSigner(pss), 'private_key', /RSA-PSS/)
  const sha512 = await crypto.subtle.importKey('pkcs8', der, { ...RS256, hash: 'SHA-512' }, false, [
    'sign',
  ])
  refusesSync(() => web.requestSigner(sha512), 'private_key', /SHA-256/)
  const spki = Uint8Array.from(pair.publicKey.export({ type: 'spki', format: 'der' }))
  const half = await crypto.subtle.importKey('spki', spki, RS256, true, ['verify'])
  refusesSync(() => web.requestSigner(half), 'private_key', /not for signing/)
})

test('reads an Ed25519 identity from its PEM, and refuses other keys', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = Buffer.from((publicKey.export({ format: 'jwk' }) as { x: string }).x, 'base64url')
  const text = publicKey.export({ type: 'spki', format: 'pem' }) as string
  assert.deepEqual(web.ed25519OfPem(text), new Uint8Array(raw))
  const x25519 = generateKeyPairSync('x25519').publicKey.export({
    type: 'spki',
    format: 'pem',
  }) as string
  for (const not of [
    x25519,
    privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    '',
    text.slice(0, -30),
    `${text}${text}`,
  ]) {
    assert.equal(web.ed25519OfPem(not), null)
  }
})

test('refuses truncated and altered keys in both PEM formats', () => {
  const wrap = (label: string, bytes: Uint8Array) =>
    `-----BEGIN ${label}-----\n${Buffer.from(bytes).toString('base64')}\n-----END ${label}-----`
  const changed = (bytes: Uint8Array, at: number) => bytes.with(at, (bytes[at] as number) ^ 1)
  const pkcs1 = Uint8Array.from(pair.privateKey.export({ type: 'pkcs1', format: 'der' }))
  for (const [label, bytes] of [
    ['PRIVATE KEY', der],
    ['RSA PRIVATE KEY', pkcs1],
  ] as const) {
    assert.deepEqual(pkcs8OfPem(wrap(label, bytes)), der)
    for (const text of [
      wrap(label, bytes.subarray(0, -1)),
      wrap(label, changed(bytes, 0)),
      wrap(label, bytes.subarray(0, 3)),
      wrap(label, new Uint8Array()),
    ]) {
      refusesSync(() => pkcs8OfPem(text), 'private_key', /^is not a readable PEM private key/)
    }
  }
  // The tags of version and algorithm, and an algorithm other than RSA.
  for (const at of [4, 7])
    refusesSync(
      () => pkcs8OfPem(wrap('PRIVATE KEY', changed(der, at))),
      'private_key',
      /^is not a readable PEM private key/,
    )
  for (const at of [9, 12, 19])
    refusesSync(
      () => pkcs8OfPem(wrap('PRIVATE KEY', changed(der, at))),
      'private_key',
      /^is a key of another algorithm/,
    )
  refusesSync(
    () => pkcs8OfPem('-----BEGIN OPENSSH PRIVATE KEY-----'),
    'private_key',
    /^is an OpenSSH key/,
  )
  refusesSync(() => pkcs8OfPem('-----BEGIN CERTIFICATE-----'), 'private_key', /^is a public key/)
  refusesSync(
    () => pkcs8OfPem(`-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n`),
    'private_key',
    /^is encrypted/,
  )
  refusesSync(
    () => parsePrivateKey('-----BEGIN OPENSSH PRIVATE KEY-----'),
    'private_key',
    /^is an OpenSSH key/,
  )
  refusesSync(
    () => parsePrivateKey('x'),
    'private_key',
    /^is not a readable PEM private key \("BEGIN PRIVATE KEY"\)$/,
  )
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string
  refusesSync(() => parsePrivateKey(ec), 'private_key', /^is a key of ec: an RSA key is required$/)
})

test('an imported key cannot be exported; without WebCrypto an error states it', async (t) => {
  const imports = t.mock.method(crypto.subtle, 'importKey')
  await web.requestSigner(pem('pkcs8'))(options)
  assert.deepEqual(
    imports.mock.calls.map(({ arguments: [form, , algorithm, extractable, usages] }) => [
      form,
      algorithm,
      extractable,
      usages,
    ]),
    [['pkcs8', RS256, false, ['sign']]],
  )
  const result = Object.getOwnPropertyDescriptor(globalThis, 'crypto') as PropertyDescriptor
  for (const none of [undefined, {}]) {
    Object.defineProperty(globalThis, 'crypto', { configurable: true, value: none })
    try {
      await refuses(
        web.requestSigner(pem('pkcs8'))({ ...options }),
        'private_key',
        /^cannot be used here: WebCrypto is not available/,
      )
    } finally {
      Object.defineProperty(globalThis, 'crypto', result)
    }
  }
  const bare = {
    type: 'private',
    extractable: false,
    algorithm: { name: RS256.name },
    usages: ['sign'],
  }
  refusesSync(() => web.requestSigner(bare), 'private_key', /SHA-256 is required/)
  const algorithm = { name: RS256.name, hash: { name: 'SHA-256' } }
  for (const half of [
    { type: 'public', usages: ['sign'] },
    { type: 'private', usages: ['decrypt'] },
  ]) {
    refusesSync(
      () => web.requestSigner({ ...half, extractable: false, algorithm }),
      'private_key',
      /not for signing/,
    )
  }
})
