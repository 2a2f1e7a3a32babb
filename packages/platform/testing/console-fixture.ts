import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Secret, TOTP } from 'otpauth'
import { invite } from '../src/console-api/people/invitations.ts'
import type { Role } from '../src/console-api/people/roles.ts'
import type { Api } from './api-support.ts'

/** A browser that uses the panel, with its cookie, its passkeys and the headers of a page. */
export class Browser {
  readonly #api: { base: string }
  cookie = ''
  /** Headers that replace those of a page's request. */
  headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' }
  host: string

  constructor(api: { base: string }) {
    this.#api = api
    this.host = `localhost:${new URL(api.base).port}`
  }

  get origin(): string {
    return `http://${this.host}`
  }

  /** Sends one request and returns the response before its body is complete. */
  open(
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(
        {
          host: '127.0.0.1',
          port: new URL(this.#api.base).port,
          method,
          path,
          headers: {
            host: this.host,
            ...(this.cookie === '' ? {} : { cookie: this.cookie }),
            ...(method === 'GET'
              ? {}
              : { 'content-type': 'application/json', origin: this.origin }),
            ...this.headers,
            ...(text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) }),
            ...more,
          },
        },
        resolve,
      )
      outgoing.on('error', reject)
      outgoing.end(text)
    })
  }

  async ask<T = Record<string, never>>(
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<{ status: number; body: T; text: string; headers: IncomingMessage['headers'] }> {
    const response = await this.open(
      method,
      `/console/api${path}`,
      body ?? (method === 'GET' ? undefined : {}),
      more,
    )
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const set = response.headers['set-cookie']?.[0]
    if (set !== undefined) this.cookie = set.split(';', 1)[0] ?? ''
    const isJson =
      /json/.test(response.headers['content-type'] ?? '') &&
      !/ndjson/.test(response.headers['content-type'] ?? '')
    return {
      status: response.statusCode ?? 0,
      body: (isJson ? JSON.parse(text) : {}) as T,
      text,
      headers: response.headers,
    }
  }
}

/** A person with a password and an authenticator app. */
export interface Somebody {
  email: string
  password: string
  secret: string
  recovery: string[]
  browser: Browser
  id: string
}

const PASSWORD = 'correct horse battery staple'

/** Returns the code that an authenticator app displays at a time. */
export const codeOf = (secret: string, at: number): string =>
  new TOTP({
    secret: Secret.fromBase32(secret),
    algorithm: 'SHA1',
    digits: 6,
    period: 30,
  }).generate({ timestamp: at })

let people = 0

/**
 * Registers a person by password, with an invitation that the operator creates.
 * @param workspace id of the workspace; null: the person becomes the first owner of `named`
 */
export async function join(
  api: Api,
  workspace: string | null,
  role: Role,
  o: { email?: string; named?: string } = {},
): Promise<Somebody> {
  const { token } = await invite(api.services, api.database, {
    workspaceId: workspace,
    role,
    email: null,
    person: null,
    by: null,
  })
  return takeLink(api, token, o)
}

/** Accepts an invitation link with a password and an authenticator app. */
export async function takeLink(
  api: { base: string; now?: () => number },
  token: string,
  o: { email?: string; named?: string } = {},
): Promise<Somebody> {
  const email = o.email ?? `person${++people}@example.test`
  const browser = new Browser(api)
  const begun = await browser.ask<{ totp_token: string; secret: string }>(
    'POST',
    '/join/password',
    {
      invitation: token,
      email,
      name: email,
      password: PASSWORD,
      ...(o.named === undefined ? {} : { workspace: o.named }),
    },
  )
  if (begun.status !== 200) throw new Error(begun.text)
  const { totp_token, secret } = begun.body
  const done = await browser.ask<{ recovery_codes: string[]; session: { person: { id: string } } }>(
    'POST',
    '/join/totp',
    {
      totp_token,
      code: codeOf(secret, (api.now ?? Date.now)()),
    },
  )
  if (done.status !== 200) throw new Error(done.text)
  return {
    email,
    password: PASSWORD,
    secret,
    recovery: done.body.recovery_codes,
    browser,
    id: done.body.session.person.id,
  }
}

/**
 * Emulates the authenticator of a phone: one ES256 key for one host, according to WebAuthn Level 3,
 * sections 6.1 and 7.
 */
export class Authenticator {
  readonly id = randomBytes(16)
  readonly #private: KeyObject
  readonly #public: KeyObject
  readonly #host: string
  counter = 0
  userHandle = ''

  constructor(host = 'localhost') {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#private = privateKey
    this.#public = publicKey
    this.#host = host
  }

  /** Returns the response to `navigator.credentials.create`. */
  create(
    { challenge, user }: { challenge: string; user: { id: string } },
    origin: string,
    flags = 0x45,
  ): Record<string, unknown> {
    this.userHandle = user.id
    const attestation = cborMap([
      ['fmt', cborText('none')],
      ['attStmt', Buffer.of(0xa0)],
      ['authData', cborBytes(this.#authData(flags))],
    ])
    return this.#credential({
      clientDataJSON: clientData('webauthn.create', challenge, origin),
      attestationObject: b64(attestation),
      transports: ['internal'],
    })
  }

  /**
   * Returns the response to `navigator.credentials.get`.
   * @param flags user present 1, user verified 4
   */
  get({ challenge }: { challenge: string }, origin: string, flags = 0x05): Record<string, unknown> {
    this.counter++
    const data = clientData('webauthn.get', challenge, origin)
    const authData = this.#authData(flags)
    const signed = Buffer.concat([
      authData,
      createHash('sha256').update(Buffer.from(data, 'base64url')).digest(),
    ])
    return this.#credential({
      clientDataJSON: data,
      authenticatorData: b64(authData),
      signature: b64(sign('sha256', signed, this.#private)),
      userHandle: this.userHandle,
    })
  }

  #credential(response: Record<string, unknown>): Record<string, unknown> {
    return {
      id: b64(this.id),
      rawId: b64(this.id),
      type: 'public-key',
      clientExtensionResults: {},
      response,
    }
  }

  #authData(flags: number): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(this.counter)
    const head = Buffer.concat([
      createHash('sha256').update(this.#host).digest(),
      Buffer.of(flags),
      counter,
    ])
    if ((flags & 0x40) === 0) return head
    const { x, y } = this.#public.export({ format: 'jwk' })
    const key = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x as string, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y as string, 'base64url'),
    ])
    return Buffer.concat([head, Buffer.alloc(16), Buffer.of(0, this.id.length), this.id, key])
  }
}

const b64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const clientData = (type: string, challenge: string, origin: string) =>
  b64(Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })))
const cborText = (text: string): Buffer =>
  Buffer.concat([Buffer.of(0x60 + text.length), Buffer.from(text)])
const cborBytes = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.of(0x59, bytes.length >> 8, bytes.length & 0xff), bytes])
const cborMap = (entries: [string, Buffer][]): Buffer =>
  Buffer.concat([
    Buffer.of(0xa0 + entries.length),
    ...entries.flatMap(([name, value]) => [cborText(name), value]),
  ])
