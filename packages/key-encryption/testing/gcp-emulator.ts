import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  verify,
} from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { crc32c } from '../src/crc32c.ts'

export const KEY = 'projects/p-1/locations/europe-west3/keyRings/custody/cryptoKeys/node-1'
const OTHER = KEY.replace('node-1', 'node-2')

/**
 * An emulator of Google's token endpoint and Cloud KMS with the functions that are used here: both
 * verify their requests.
 */
export async function startGcp() {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = new Map([KEY, OTHER].map((name) => [name, randomBytes(32)]))
  const token = randomBytes(16).toString('hex')
  const emulator = {
    address: '',
    account: {} as Record<string, string>,
    denied: false,
    disabled: false,
    damaged: null as string | null,
    answersAs: null as string | null,
    stop: async () => {},
  }
  const assertionIsRight = (assertion: string): boolean => {
    const [head = '', claims = '', signature = ''] = assertion.split('.')
    const said = JSON.parse(Buffer.from(claims, 'base64url').toString())
    const now = Date.now() / 1000
    return (
      JSON.parse(Buffer.from(head, 'base64url').toString()).alg === 'RS256' &&
      said.iss === emulator.account['client_email'] &&
      said.aud === emulator.account['token_uri'] &&
      said.scope === 'https://www.googleapis.com/auth/cloudkms' &&
      said.iat <= now + 1 &&
      said.exp > now &&
      said.exp - said.iat <= 3600 &&
      verify(
        'sha256',
        Buffer.from(`${head}.${claims}`),
        createPublicKey(pair.privateKey),
        Buffer.from(signature, 'base64url'),
      )
    )
  }
  const fail = (code: number, status: string): [number, object] => [
    code,
    { error: { code, status, message: 'words that must not be passed on' } },
  ]
  const answer = (
    path: string,
    authorization: string | undefined,
    body: string,
  ): [number, object] => {
    if (path === '/token') {
      const form = new URLSearchParams(body)
      const isRight =
        form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
        assertionIsRight(form.get('assertion') ?? '')
      return isRight
        ? [200, { access_token: token, expires_in: 3599, token_type: 'Bearer' }]
        : [400, { error: 'invalid_grant' }]
    }
    if (authorization !== `Bearer ${token}`) return fail(401, 'UNAUTHENTICATED')
    if (emulator.denied) return fail(403, 'PERMISSION_DENIED')
    const [, name = '', action] = /^\/v1\/(.+):(encrypt|decrypt)$/.exec(path) ?? []
    const key = keys.get(name)
    if (!key) return fail(404, 'NOT_FOUND')
    if (emulator.disabled) return fail(400, 'FAILED_PRECONDITION')
    const said = JSON.parse(body)
    const aad = Buffer.from(said.additionalAuthenticatedData, 'base64')
    if (said.additionalAuthenticatedDataCrc32c !== String(crc32c(aad)))
      return fail(400, 'INVALID_ARGUMENT')
    const spoil = (field: string, value: unknown): unknown =>
      emulator.damaged === field ? '1' : value
    if (action === 'encrypt') {
      const plain = Buffer.from(said.plaintext, 'base64')
      if (said.plaintextCrc32c !== String(crc32c(plain))) return fail(400, 'INVALID_ARGUMENT')
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad)
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
      const text = Buffer.concat([nonce, cipher.getAuthTag(), sealed])
      return [
        200,
        {
          name: `${emulator.answersAs ?? name}/cryptoKeyVersions/3`,
          ciphertext: text.toString('base64'),
          ciphertextCrc32c: spoil('ciphertextCrc32c', String(crc32c(text))),
          verifiedPlaintextCrc32c: spoil('verifiedPlaintextCrc32c', true),
          verifiedAdditionalAuthenticatedDataCrc32c: true,
        },
      ]
    }
    const bytes = Buffer.from(said.ciphertext, 'base64')
    if (said.ciphertextCrc32c !== String(crc32c(bytes))) return fail(400, 'INVALID_ARGUMENT')
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), {
        authTagLength: 16,
      })
        .setAAD(aad)
        .setAuthTag(bytes.subarray(12, 28))
      const plain = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
      return [
        200,
        {
          plaintext: plain.toString('base64'),
          plaintextCrc32c: spoil('plaintextCrc32c', String(crc32c(plain))),
        },
      ]
    } catch {
      return fail(400, 'INVALID_ARGUMENT')
    }
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const [status, json] = answer(request.url!, request.headers.authorization, body)
      response.writeHead(status).end(JSON.stringify(json))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  emulator.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  emulator.account = {
    type: 'service_account',
    client_email: 'node-1@p-1.iam.gserviceaccount.com',
    private_key_id: 'k1',
    token_uri: `${emulator.address}/token`,
    private_key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
  emulator.stop = () =>
    new Promise((resolve) => {
      server.close(() => {
        resolve()
      })
    })
  return emulator
}
