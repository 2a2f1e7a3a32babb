import { readFileSync } from 'node:fs'
import { associatedData, dataKeyOf, fromBase64 } from '../binding.ts'
import { credential, line, pathOf } from '../credential.ts'
import { KekError } from '../errors.ts'
import { addressOf, call, jsonOf, type Answer } from '../http.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'

const TEXT = /^vault:v(\d{1,9}):[A-Za-z0-9+/=]+$/

/** Converts an error of Vault. Its text is evaluated, but never passed on completely. */
function refusal(answer: Answer, key: string, doing: 'encrypt' | 'decrypt' | 'login'): KekError {
  const said = String(
    (jsonOf(answer)?.['errors'] as unknown[] | undefined)?.[0] ?? '',
  ).toLowerCase()
  if (answer.status === 503)
    return new KekError(
      'AWAY',
      said.includes('sealed') ? 'vault: sealed' : 'vault: not available (503)',
    )
  if (answer.status === 429 || answer.status >= 500)
    return new KekError('AWAY', `vault: busy or failing (${answer.status})`)
  if (doing === 'login')
    return new KekError('DENIED', 'vault: role_id, secret_id_file: the login was rejected')
  if (answer.status === 403)
    return new KekError(
      'DENIED',
      `vault: permission denied: token_file: check that it may ${doing} with ${key}`,
    )
  if (answer.status === 404)
    return new KekError('NO_KEY', `vault: mount, key: ${key} does not exist`)
  if (said.includes('encryption key not found'))
    return new KekError('NO_KEY', `vault: key: ${key} does not exist`)
  if (said.includes('disallowed by policy') || said.includes('too old')) {
    return new KekError(
      'NO_KEY',
      `vault: key: the version that wrapped is below min_decryption_version of ${key}`,
    )
  }
  if (said.includes('version'))
    return new KekError('NO_KEY', `vault: key: ${key} has no such version`)
  if (doing === 'decrypt') {
    return new KekError(
      'REFUSED',
      'vault: the wrapped key cannot be decrypted: another key wrapped it, it belongs to another home, or its bytes were changed',
    )
  }
  return new KekError(
    'SETTING',
    `vault: key: ${key} cannot encrypt (${answer.status}): it must be of type aes256-gcm96, not derived`,
  )
}

/** Calls Vault's transit engine with one key. */
interface TransitClient {
  id: string
  /** @throws KekError */
  call(
    operation: 'encrypt' | 'decrypt',
    body: Record<string, string>,
  ): Promise<Record<string, unknown>>
}

/** Returns the client of a key, which logs in for each call if a role is configured. */
function transitClient(settings: SettingsOf<'vault'>, surroundings: Surroundings): TransitClient {
  const { mount, key, namespace, role_id: role } = settings
  const address = addressOf('vault: address', settings.address)
  const ca =
    settings.ca_file === undefined
      ? undefined
      : readFileSync(pathOf('vault: ca_file', settings.ca_file, surroundings), 'utf8')
  const id = `vault:${address.host}/${namespace ? `${namespace}/` : ''}${mount}/${key}`
  const secret =
    role === undefined
      ? credential('vault: token_file', settings.token_file!, surroundings)
      : credential('vault: secret_id_file', settings.secret_id_file!, surroundings)
  const post = (path: string, body: unknown, token: string | null): Promise<Answer> =>
    call(() => ({
      provider: 'vault',
      method: 'POST',
      url: new URL(`/v1/${path}`, address),
      ca,
      timeoutMs: surroundings.timeoutMs,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-vault-request': 'true',
        ...(token === null ? {} : { 'x-vault-token': token }),
        ...(namespace ? { 'x-vault-namespace': namespace } : {}),
      },
    }))
  async function login(): Promise<string> {
    if (role === undefined) return line(secret())
    const answer = await post(
      `auth/${settings.auth_mount}/login`,
      { role_id: role, secret_id: line(secret()) },
      null,
    )
    const input = (jsonOf(answer)?.['auth'] as { client_token?: unknown } | undefined)?.client_token
    if (answer.status !== 200 || typeof input !== 'string') throw refusal(answer, id, 'login')
    return input
  }
  return {
    id,
    async call(operation, body) {
      const token = await login()
      if (!/^[\x21-\x7e]+$/.test(token))
        throw new KekError('SETTING', 'vault: token_file: does not contain a token')
      const answer = await post(`${mount}/${operation}/${key}`, body, token)
      const data = jsonOf(answer)?.['data']
      if (answer.status !== 200 || typeof data !== 'object' || data === null)
        throw refusal(answer, id, operation)
      return data as Record<string, unknown>
    },
  }
}

/**
 * Opens the transit engine of HashiCorp Vault or OpenBao: `encrypt` and `decrypt` with one key and
 * associated data.
 */
export function openVault(
  settings: SettingsOf<'vault'>,
  surroundings: Surroundings,
): KeyEncryption {
  const client = transitClient(settings, surroundings)
  const { id } = client
  return {
    id,
    async wrap(dataKey, binding) {
      const data = await client.call('encrypt', {
        plaintext: Buffer.from(dataKey).toString('base64'),
        associated_data: associatedData(binding).toString('base64'),
      })
      const text = data['ciphertext']
      const version =
        typeof text === 'string' && text.length < 4096 ? TEXT.exec(text)?.[1] : undefined
      if (version === undefined)
        throw new KekError('AWAY', 'vault: the response has an unknown format')
      return { kek_id: id, kek_version: version, text: text as string }
    },
    async unwrap({ kek_version: version, text }, binding) {
      if (TEXT.exec(text)?.[1] !== version) {
        throw new KekError(
          'REFUSED',
          'vault: the wrapped key has another version than stated, or a version unknown to Vault',
        )
      }
      const data = await client.call('decrypt', {
        ciphertext: text,
        associated_data: associatedData(binding).toString('base64'),
      })
      return dataKeyOf(fromBase64(data['plaintext'], 'vault'), 'vault')
    },
  }
}
