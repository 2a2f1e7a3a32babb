import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { associatedData, dataKeyOf, fromBase64 } from '../binding.ts'
import { crc32c } from '../crc32c.ts'
import { credential, pathOf } from '../credential.ts'
import { KekError } from '../errors.ts'
import { addressOf, call, jsonOf, type Answer } from '../http.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloudkms'
const TOKEN_S = 600
const accountSchema = z.object({
  type: z.literal('service_account'),
  client_email: z.string(),
  private_key: z.string(),
  private_key_id: z.string(),
  token_uri: z.string(),
})
const base64url = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url')

function refusal(answer: Answer, doing: 'token' | 'encrypt' | 'decrypt'): KekError {
  const { status } = answer
  const error = jsonOf(answer)?.['error'] as { status?: unknown; message?: unknown } | undefined
  const said = String(error?.message ?? '').toLowerCase()
  if (status === 429 || status >= 500)
    return new KekError('AWAY', `gcp-kms: busy or failing (${status})`)
  if (doing === 'token')
    return new KekError(
      'DENIED',
      `gcp-kms: credentials_file: Google rejected this service account (${status})`,
    )
  if (status === 401 || status === 403) {
    return new KekError(
      'DENIED',
      'gcp-kms: permission denied: credentials_file: check that it has cryptoKeyEncrypterDecrypter on this key',
    )
  }
  if (status === 404) return new KekError('NO_KEY', 'gcp-kms: key: no key has this name')
  if (error?.status === 'FAILED_PRECONDITION' || said.includes('not enabled')) {
    return new KekError('NO_KEY', 'gcp-kms: key: the version is disabled or destroyed')
  }
  if (doing === 'decrypt') {
    return new KekError(
      'REFUSED',
      'gcp-kms: the wrapped key cannot be decrypted: another key wrapped it, it belongs to another home, or its bytes were changed',
    )
  }
  return new KekError(
    'SETTING',
    `gcp-kms: key: cannot encrypt (${status}): its purpose must be encryption`,
  )
}

type Account = z.infer<typeof accountSchema>

/**
 * Reads the key file of a service account.
 * @throws KekError if it cannot be read, or is not such a file
 */
function readAccount(read: () => Buffer): { account: Account; privateKey: KeyObject } {
  try {
    const account = accountSchema.parse(JSON.parse(read().toString('utf8')))
    return { account, privateKey: createPrivateKey(account.private_key) }
  } catch (error) {
    if (error instanceof KekError) throw error
    throw new KekError(
      'SETTING',
      'gcp-kms: credentials_file: is not a key file of a service account',
    )
  }
}

/** Returns the signed assertion for an access token. `at`: Unix seconds. */
function assertionOf(account: Account, privateKey: KeyObject, at: number): string {
  const claims = {
    iss: account.client_email,
    scope: SCOPE,
    aud: account.token_uri,
    iat: at,
    exp: at + TOKEN_S,
  }
  const signed = `${base64url({ alg: 'RS256', typ: 'JWT', kid: account.private_key_id })}.${base64url(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
}

/** Returns a checksum as Google's JSON represents 64-bit numbers: as text. */
const sum = (bytes: Uint8Array): string => String(crc32c(bytes))

function damaged(): never {
  throw new KekError('AWAY', 'gcp-kms: a checksum does not match: the data changed in transit')
}

/** Sends an operation with one key, and returns the fields of the response. */
type KeyOperation = (
  operation: 'encrypt' | 'decrypt',
  fields: Record<string, string>,
) => Promise<Record<string, unknown>>

/** Returns the function that calls Google Cloud KMS; it throws KekError. */
function keyOperation(settings: SettingsOf<'gcp-kms'>, surroundings: Surroundings): KeyOperation {
  const { key } = settings
  const address = addressOf(
    'gcp-kms: endpoint',
    settings.endpoint ?? 'https://cloudkms.googleapis.com',
  )
  const ca =
    settings.ca_file === undefined
      ? undefined
      : readFileSync(pathOf('gcp-kms: ca_file', settings.ca_file, surroundings), 'utf8')
  const read = credential('gcp-kms: credentials_file', settings.credentials_file, surroundings)
  const now = surroundings.now ?? Date.now
  const { timeoutMs } = surroundings

  /**
   * Returns an access token for a signed assertion of the service account (RFC 7523). It is
   * requested for each call, because a node makes only a few calls.
   */
  async function token(): Promise<string> {
    const { account, privateKey } = readAccount(read)
    const url = addressOf('gcp-kms: credentials_file: token_uri', account.token_uri)
    const answer = await call(() => {
      const assertion = assertionOf(account, privateKey, Math.floor(now() / 1000))
      return {
        provider: 'gcp-kms',
        method: 'POST',
        url,
        ca,
        timeoutMs,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion,
        }).toString(),
      }
    })
    const input = jsonOf(answer)?.['access_token']
    if (answer.status !== 200 || typeof input !== 'string' || !/^[\x21-\x7e]+$/.test(input))
      throw refusal(answer, 'token')
    return input
  }
  async function request(
    operation: 'encrypt' | 'decrypt',
    fields: Record<string, string>,
  ): Promise<Record<string, unknown>> {
    const bearer = await token()
    const answer = await call(() => ({
      provider: 'gcp-kms',
      method: 'POST',
      url: new URL(`/v1/${key}:${operation}`, address),
      ca,
      timeoutMs,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
      body: JSON.stringify(fields),
    }))
    const json = jsonOf(answer)
    if (answer.status !== 200 || !json) throw refusal(answer, operation)
    return json
  }
  return request
}

/**
 * Opens Google Cloud KMS: `:encrypt` and `:decrypt` with one key and additional data. The checksums
 * of requests and responses are verified.
 */
export function openGcp(
  settings: SettingsOf<'gcp-kms'>,
  surroundings: Surroundings,
): KeyEncryption {
  const { key } = settings
  const id = `gcp-kms:${key}`
  const request = keyOperation(settings, surroundings)
  return {
    id,
    async wrap(dataKey, binding) {
      const aad = associatedData(binding)
      const json = await request('encrypt', {
        plaintext: Buffer.from(dataKey).toString('base64'),
        plaintextCrc32c: sum(dataKey),
        additionalAuthenticatedData: aad.toString('base64'),
        additionalAuthenticatedDataCrc32c: sum(aad),
      })
      const text = fromBase64(json['ciphertext'], 'gcp-kms')
      if (
        json['verifiedPlaintextCrc32c'] !== true ||
        json['verifiedAdditionalAuthenticatedDataCrc32c'] !== true
      )
        damaged()
      if (String(json['ciphertextCrc32c']) !== sum(text)) damaged()
      const name = String(json['name'])
      const version = name.startsWith(`${key}/cryptoKeyVersions/`)
        ? name.slice(name.lastIndexOf('/') + 1)
        : ''
      if (!/^\d{1,9}$/.test(version))
        throw new KekError('REFUSED', 'gcp-kms: the response is for another key than requested')
      return { kek_id: id, kek_version: version, text: text.toString('base64') }
    },
    async unwrap({ text }, binding) {
      const aad = associatedData(binding)
      const json = await request('decrypt', {
        ciphertext: text,
        ciphertextCrc32c: sum(fromBase64(text, 'gcp-kms')),
        additionalAuthenticatedData: aad.toString('base64'),
        additionalAuthenticatedDataCrc32c: sum(aad),
      })
      const opened = fromBase64(json['plaintext'], 'gcp-kms')
      if (String(json['plaintextCrc32c']) !== sum(opened)) damaged()
      return dataKeyOf(opened, 'gcp-kms')
    },
  }
}
