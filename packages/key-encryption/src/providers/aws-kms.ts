import aws4 from 'aws4'
import { readFileSync } from 'node:fs'
import { dataKeyOf, fromBase64 } from '../binding.ts'
import { credential, pathOf } from '../credential.ts'
import { KekError, type KekErrorCode } from '../errors.ts'
import { addressOf, call, jsonOf } from '../http.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'

/** Error codes by AWS's names of exceptions. */
const REFUSALS: Record<string, [KekErrorCode, string]> = {
  AccessDeniedException: [
    'DENIED',
    'permission denied: credentials_file: check that it may kms:Encrypt and kms:Decrypt with this key and this encryption context',
  ],
  UnrecognizedClientException: [
    'DENIED',
    'credentials_file: AWS does not recognise these credentials',
  ],
  InvalidSignatureException: [
    'DENIED',
    'credentials_file: the signature was rejected: the secret is wrong, or this host’s clock is',
  ],
  ExpiredTokenException: ['DENIED', 'credentials_file: the credentials have expired'],
  NotFoundException: ['NO_KEY', 'key: no key has this ARN'],
  DisabledException: ['NO_KEY', 'key: is disabled'],
  KMSInvalidStateException: ['NO_KEY', 'key: is disabled, not ready, or about to be deleted'],
  InvalidKeyUsageException: ['SETTING', 'key: must be symmetric, with usage ENCRYPT_DECRYPT'],
  IncorrectKeyException: ['REFUSED', 'the data key was wrapped by another key'],
  InvalidCiphertextException: [
    'REFUSED',
    'the wrapped key cannot be decrypted: it belongs to another home, or its bytes were changed',
  ],
}

interface Credentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

/** Reads one profile of AWS's credentials file. */
function readCredentials(text: string, profile: string): Credentials {
  const match: Record<string, string> = {}
  let section = ''
  for (const each of text.split('\n')) {
    section = /^\s*\[(.+)\]\s*$/.exec(each)?.[1]?.trim() ?? section
    const pair = /^\s*([a-z_]+)\s*=\s*(\S+)\s*$/.exec(each)
    if (section === profile && pair) match[pair[1]!] = pair[2]!
  }
  const {
    aws_access_key_id: accessKeyId,
    aws_secret_access_key: secretAccessKey,
    aws_session_token: sessionToken,
  } = match
  if (!accessKeyId || !secretAccessKey) {
    throw new KekError(
      'SETTING',
      `aws-kms: credentials_file: must contain aws_access_key_id and aws_secret_access_key in [${profile}]`,
    )
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
}

/** Returns the headers of a call, with its signature (AWS Signature Version 4). */
function signedHeaders({
  region,
  host,
  action,
  body,
  now,
  credentials,
}: {
  region: string
  host: string
  action: 'Encrypt' | 'Decrypt'
  body: string
  /** Unix ms. */
  now: number
  credentials: Credentials
}) {
  const { headers } = aws4.sign(
    {
      service: 'kms',
      region,
      method: 'POST',
      host,
      path: '/',
      body,
      headers: {
        'Content-Type': 'application/x-amz-json-1.1',
        'X-Amz-Target': `TrentService.${action}`,
        'X-Amz-Date': new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
      },
    },
    credentials,
  )
  return headers
}

/** Returns the error of a response that is not a success. */
function refusal(status: number, json: Record<string, unknown> | null): KekError {
  const name = String(json?.['__type'] ?? '')
    .split('#')
    .at(-1)!
  const [code, text] = Object.hasOwn(REFUSALS, name)
    ? REFUSALS[name]!
    : status >= 500 ||
        status === 429 ||
        name === 'ThrottlingException' ||
        name === 'LimitExceededException'
      ? (['AWAY', `busy or failing (${status})`] as const)
      : (['SETTING', `refused (${status} ${name.slice(0, 60)})`] as const)
  return new KekError(code, `aws-kms: ${text}`)
}

/** Sends an operation with one key, and returns the fields of the response. */
type KeyOperation = (
  action: 'Encrypt' | 'Decrypt',
  fields: Record<string, unknown>,
) => Promise<Record<string, unknown>>

/** Returns the function that calls AWS KMS; it throws KekError. */
function keyOperation(settings: SettingsOf<'aws-kms'>, surroundings: Surroundings): KeyOperation {
  const [, partition, , region] = settings.key.split(':') as [string, string, string, string]
  const domain = partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com'
  const address = addressOf(
    'aws-kms: endpoint',
    settings.endpoint ?? `https://kms.${region}.${domain}`,
  )
  const ca =
    settings.ca_file === undefined
      ? undefined
      : readFileSync(pathOf('aws-kms: ca_file', settings.ca_file, surroundings), 'utf8')
  const read = credential('aws-kms: credentials_file', settings.credentials_file, surroundings)
  const now = surroundings.now ?? Date.now

  return async (action, fields) => {
    const body = JSON.stringify({
      KeyId: settings.key,
      EncryptionAlgorithm: 'SYMMETRIC_DEFAULT',
      ...fields,
    })
    const answer = await call(() => {
      const headers = signedHeaders({
        region,
        host: address.host,
        action,
        body,
        now: now(),
        credentials: readCredentials(read().toString('utf8'), settings.profile),
      })
      const { timeoutMs } = surroundings
      return {
        provider: 'aws-kms',
        method: 'POST',
        url: new URL('/', address),
        headers,
        body,
        ca,
        timeoutMs,
      }
    })
    const json = jsonOf(answer)
    if (answer.status === 200 && json) {
      if (json['KeyId'] !== settings.key)
        throw new KekError('REFUSED', 'aws-kms: the response is for another key than requested')
      return json
    }
    throw refusal(answer.status, json)
  }
}

/**
 * Opens AWS KMS: `Encrypt` and `Decrypt` with one symmetric key, named by its ARN in every call,
 * with an encryption context.
 */
export function openAws(
  settings: SettingsOf<'aws-kms'>,
  surroundings: Surroundings,
): KeyEncryption {
  const id = `aws-kms:${settings.key}`
  const request = keyOperation(settings, surroundings)
  return {
    id,
    async wrap(dataKey, binding) {
      const plain = Buffer.from(dataKey).toString('base64')
      const { CiphertextBlob: blob } = await request('Encrypt', {
        Plaintext: plain,
        EncryptionContext: binding,
      })
      // The ciphertext contains which of a key's materials encrypted it, and AWS does not return
      // it.
      return {
        kek_id: id,
        kek_version: 'aws',
        text: fromBase64(blob, 'aws-kms').toString('base64'),
      }
    },
    async unwrap({ text }, binding) {
      const { Plaintext: opened } = await request('Decrypt', {
        CiphertextBlob: text,
        EncryptionContext: binding,
      })
      return dataKeyOf(fromBase64(opened, 'aws-kms'), 'aws-kms')
    },
  }
}
