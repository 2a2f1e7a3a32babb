import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

export interface SignedRequest {
  method: string
  path: string
  query?: string
  headers: Record<string, string>
  body: string
}

/**
 * Returns the signature that a request must have by AWS Signature Version 4, in hexadecimal digits,
 * computed from the specification alone. `headers` by lower-case names; only those in `signed` are
 * included.
 */
export function signatureOf(
  request: SignedRequest,
  signed: readonly string[],
  scope: string,
  secret: string,
): string {
  const [date, region, service] = scope.split('/') as [string, string, string]
  const headers = signed
    .map((name) => `${name}:${(request.headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`)
    .join('')
  const canonical = [
    request.method,
    request.path,
    request.query ?? '',
    headers,
    signed.join(';'),
    sha256(request.body),
  ].join('\n')
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(canonical)].join(
    '\n',
  )
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), service), 'aws4_request')
  return hmac(key, text).toString('hex')
}

export const ARN = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'
export const OTHER_ARN = ARN.replace('1234abcd', 'ffffabcd')
export const ACCESS = { id: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }

/**
 * An emulator of AWS KMS with the functions that are used here: it verifies each signature and the
 * encryption context, and stores keys by ARN.
 */
export async function startAws() {
  const keys = new Map([ARN, OTHER_ARN].map((arn) => [arn, randomBytes(32)]))
  const emulator = {
    address: '',
    disabled: false,
    denied: false,
    throttled: 0,
    answersAs: null as string | null,
    asked: 0,
    clockMs: null as number | null,
    stop: async () => {},
  }
  const contextOf = (context: Record<string, string>): Buffer =>
    Buffer.from(JSON.stringify(Object.entries(context).sort()))
  const answer = (headers: Record<string, string>, body: string): [number, object] => {
    const fail = (type: string, status = 400): [number, object] => [
      status,
      { __type: `com.amazonaws.kms#${type}`, message: 'words that must not be passed on' },
    ]
    emulator.asked++
    if (emulator.throttled > 0) {
      emulator.throttled--
      return fail('ThrottlingException', 500)
    }
    const match =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
        headers['authorization'] ?? '',
      )
    if (!match) return fail('MissingAuthenticationTokenException')
    const [, id, scope, names, signature] = match as unknown as [
      string,
      string,
      string,
      string,
      string,
    ]
    if (id !== ACCESS.id) return fail('UnrecognizedClientException')
    const signed = names.split(';')
    const at = headers['x-amz-date'] ?? ''
    const sentMs = Date.parse(
      at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
    )
    const fresh =
      Math.abs((emulator.clockMs ?? Date.now()) - sentMs) < 300_000 &&
      at.startsWith(scope.slice(0, 8))
    const covered = ['host', 'x-amz-date', 'x-amz-target', 'content-type'].every((name) =>
      signed.includes(name),
    )
    const expected = signatureOf(
      { method: 'POST', path: '/', headers, body },
      signed,
      scope,
      ACCESS.secret,
    )
    const isRight = timingSafeEqual(Buffer.from(expected), Buffer.from(signature))
    if (!fresh || !covered || !isRight || !scope.endsWith('/eu-central-1/kms/aws4_request'))
      return fail('InvalidSignatureException')
    const { KeyId, EncryptionContext, EncryptionAlgorithm, Plaintext, CiphertextBlob } =
      JSON.parse(body)
    const key = keys.get(KeyId)
    if (!key || EncryptionAlgorithm !== 'SYMMETRIC_DEFAULT') return fail('NotFoundException')
    if (emulator.denied) return fail('AccessDeniedException')
    if (emulator.disabled) return fail('DisabledException')
    const named = emulator.answersAs ?? KeyId
    if (headers['x-amz-target'] === 'TrentService.Encrypt') {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(contextOf(EncryptionContext))
      const text = Buffer.concat([cipher.update(Buffer.from(Plaintext, 'base64')), cipher.final()])
      return [
        200,
        {
          KeyId: named,
          EncryptionAlgorithm,
          CiphertextBlob: Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64'),
        },
      ]
    }
    const bytes = Buffer.from(CiphertextBlob, 'base64')
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), {
        authTagLength: 16,
      })
        .setAAD(contextOf(EncryptionContext))
        .setAuthTag(bytes.subarray(12, 28))
      return [
        200,
        {
          KeyId: named,
          EncryptionAlgorithm,
          Plaintext: Buffer.concat([
            decipher.update(bytes.subarray(28)),
            decipher.final(),
          ]).toString('base64'),
        },
      ]
    } catch {
      return fail('InvalidCiphertextException')
    }
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const [status, json] = answer(request.headers as Record<string, string>, body)
      response.writeHead(status).end(JSON.stringify(json))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  emulator.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  emulator.stop = () =>
    new Promise((resolve) => {
      server.close(() => {
        resolve()
      })
    })
  return emulator
}
