// Determines which rule a signed request breaks, with the checks of request-auth's verification in
// the same order. Everything runs locally.
import {
  CLOCK_SKEW_S,
  JsonNumber,
  NONCE_LENGTH_MAX,
  parseJson,
  SIGNED_BODY_BYTES_MAX,
  TOKEN_BYTES_MAX,
  WINDOW_S,
} from '@custody/request-auth/web'
import { readPublicKey, sha256 } from './keys.ts'

/** Texts that the person pasted; empty if absent. */
export interface Pasted {
  token: string
  method: string
  url: string
  body: string
  apiKey: string
  publicKey: string
}

/** `skipped`: the required input is missing, or unreadable because of an earlier problem. */
export interface Verdict {
  rule: string
  is: 'kept' | 'broken' | 'skipped'
  says: string
}

const SEGMENT = /^[A-Za-z0-9_-]+$/
const BITS_MIN = 4096
/** Number above which a time is probably in milliseconds and not in Unix seconds. */
const SECONDS_MAX = 100_000_000_000

const bytesOf = (segment: string): Uint8Array<ArrayBuffer> => {
  const text = atob(segment.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (char) => char.charCodeAt(0))
}
const canonical = (segment: string): boolean => {
  try {
    const back = btoa(Array.from(bytesOf(segment), (byte) => String.fromCharCode(byte)).join(''))
    return back.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') === segment
  } catch {
    return false
  }
}

function objectOf(segment: string): Record<string, unknown> | null {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(segment)))
    return typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !(value instanceof JsonNumber)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/**
 * Returns path and query of a pasted URL or path.
 * @returns null if it is neither
 */
export function targetOf(url: string): { path: string; whole: string } | null {
  const text = url.trim().replace(/^https?:\/\/[^/?#]+/, '')
  const whole = text === '' ? '/' : (text.split('#', 1)[0] as string)
  return whole.startsWith('/') ? { path: whole.split('?', 1)[0] as string, whole } : null
}

const shown = (value: unknown): string =>
  value instanceof JsonNumber ? value.text : (JSON.stringify(value) ?? 'nothing')

/**
 * Checks a request.
 * @param nowS Unix seconds by the server's clock; null: its age is not checked
 */
export async function checkRequest(pasted: Pasted, nowS: number | null): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  const add = (rule: string, is: Verdict['is'], says: string) =>
    void verdicts.push({ rule, is, says })
  const judge: Judge = (rule, isKept, signature, broken) => {
    add(rule, isKept ? 'kept' : 'broken', isKept ? signature : broken)
    return isKept
  }
  const token = tokenOf(pasted.token)
  judge(
    'Length of the token',
    token.length <= TOKEN_BYTES_MAX,
    `${token.length} characters`,
    `${token.length} characters: at most ${TOKEN_BYTES_MAX}`,
  )
  const segments = token.split('.')
  const isShaped =
    segments.length === 3 &&
    segments.every((segment) => SEGMENT.test(segment) && canonical(segment))
  judge(
    'Three base64url segments',
    isShaped,
    'header.payload.signature',
    segments.length === 3
      ? 'A segment is not base64url: no padding “=”, “-” and “_” in place of “+” and “/”'
      : `${segments.length} ${segments.length === 1 ? 'part' : 'parts'}, and a JWT has three`,
  )
  if (!isShaped) return verdicts
  const [header, payload, signature] = segments as [string, string, string]
  const head = objectOf(header)
  const claims = objectOf(payload)
  if (
    !judge(
      'Header is a JSON object',
      head !== null,
      'It is',
      'It is not strict JSON, or no object',
    ) ||
    head === null
  )
    return verdicts
  judge(
    'alg is RS256',
    head['alg'] === 'RS256',
    'RS256',
    `It is ${shown(head['alg'])}: only RS256 is accepted`,
  )
  judge('No critical extensions', head['crit'] === undefined, 'None', '“crit” is not supported')
  await checkSignature(pasted.publicKey, `${header}.${payload}`, signature, add)
  if (
    !judge(
      'Payload is a JSON object',
      claims !== null,
      'It is',
      'It is not strict JSON, or no object',
    ) ||
    claims === null
  )
    return verdicts
  checkTimes(claims, nowS, add)
  checkSubject(claims['sub'], pasted.apiKey.trim(), add, judge)
  checkMethod(claims['method'], pasted.method, judge)
  checkUri(claims['uri'], pasted.url, claims['method'] !== undefined, add)
  await checkBody(claims, pasted, add)
  checkNonce(claims['nonce'], judge)
  return verdicts
}

type Add = (rule: string, is: Verdict['is'], says: string) => void
/** Adds the verdict of a rule, and returns whether the request keeps it. */
type Judge = (rule: string, isKept: boolean, field: string, broken: string) => boolean

/** Returns a pasted token without the header's name and scheme. */
const tokenOf = (text: string): string =>
  text
    .trim()
    .replace(/^authorization:\s*/i, '')
    .replace(/^(?:Bearer|Token)\s+/i, '')

/** Compares the subject with the API key, if one was given. */
function checkSubject(sub: unknown, apiKey: string, add: Add, judge: Judge): void {
  if (apiKey === '')
    add(
      'sub is the API key',
      'skipped',
      `It is ${shown(sub)}: give the x-api-key header to compare`,
    )
  else
    judge(
      'sub is the API key',
      sub === apiKey,
      'As the x-api-key header',
      `It is ${shown(sub)}, and the header is ${JSON.stringify(apiKey)}`,
    )
}

/** Checks the form of the nonce. */
function checkNonce(nonce: unknown, judge: Judge): void {
  const isNonce =
    (typeof nonce === 'string' &&
      nonce.length > 0 &&
      nonce.length <= NONCE_LENGTH_MAX &&
      !nonce.includes('\0')) ||
    (nonce instanceof JsonNumber &&
      /^-?\d+$/.test(nonce.text) &&
      nonce.text.length <= NONCE_LENGTH_MAX)
  judge(
    'nonce',
    isNonce,
    `${shown(nonce)}: must never have been used before, which is not known here`,
    nonce === undefined
      ? 'It is missing'
      : `Must be a text of 1 to ${NONCE_LENGTH_MAX} characters, or a whole number`,
  )
}

async function checkSignature(
  pem: string,
  input: string,
  signature: string,
  add: Add,
): Promise<void> {
  const rule = 'Signature'
  if (pem.trim() === '')
    return add(rule, 'skipped', 'Give the public key that was enrolled to have it verified')
  if (/PRIVATE KEY/.test(pem))
    return add(
      rule,
      'broken',
      'That is a private key. Give the public half; and as it was pasted into a page, better make a new pair',
    )
  let key: Awaited<ReturnType<typeof readPublicKey>>
  try {
    key = await readPublicKey(pem)
  } catch {
    return add(
      rule,
      'broken',
      'The public key cannot be read: one PEM block “BEGIN PUBLIC KEY” of an RSA key',
    )
  }
  if (key.bits < BITS_MIN)
    return add(rule, 'broken', `The key has ${key.bits} bits: at least ${BITS_MIN} are accepted`)
  const isGenuine = await crypto.subtle.verify(
    'RSASSA-PKCS1-v1_5',
    key.key,
    bytesOf(signature),
    new TextEncoder().encode(input),
  )
  add(
    rule,
    isGenuine ? 'kept' : 'broken',
    isGenuine
      ? 'Made with this key'
      : 'Not made with this key, or the token was changed afterwards. RS256 is RSASSA-PKCS1-v1_5 (not PSS) with SHA-256 ' +
          'over “header.payload”',
  )
}

function checkTimes(claims: Record<string, unknown>, nowS: number | null, add: Add): void {
  const read = (name: 'iat' | 'exp' | 'nbf') => {
    const value = claims[name]
    return value instanceof JsonNumber && /^\d{1,12}$/.test(value.text) ? Number(value.text) : null
  }
  const [iat, exp] = [read('iat'), read('exp')]
  const wrong = (name: string, value: unknown) =>
    `${name} is ${shown(value)}: must be whole seconds since 1970, as a number`
  if (iat === null || exp === null) {
    add(
      'iat and exp are seconds',
      'broken',
      iat === null ? wrong('iat', claims['iat']) : wrong('exp', claims['exp']),
    )
    return
  }
  const nbf = claims['nbf'] === undefined ? iat : read('nbf')
  if (nbf === null) return add('nbf is seconds', 'broken', wrong('nbf', claims['nbf']))
  if (iat > SECONDS_MAX || exp > SECONDS_MAX)
    add('iat and exp are seconds', 'broken', 'They look like milliseconds: divide by 1000')
  else add('iat and exp are seconds', 'kept', `iat ${iat}, exp ${exp}`)
  if (exp <= iat) add('exp is after iat', 'broken', 'exp must be later than iat')
  else if (exp - iat >= WINDOW_S)
    add(
      `Lives less than ${WINDOW_S} s`,
      'broken',
      `exp − iat is ${exp - iat}: must be strictly less than ${WINDOW_S}`,
    )
  else add(`Lives less than ${WINDOW_S} s`, 'kept', `${exp - iat} s`)
  if (nowS === null) return add('Valid now', 'skipped', 'Its age is not judged')
  if (iat > nowS + CLOCK_SKEW_S)
    add(
      'Valid now',
      'broken',
      `iat lies ${iat - nowS} s in the future of the server’s clock: set the clock of the machine that signs`,
    )
  else if (nbf > nowS + CLOCK_SKEW_S)
    add('Valid now', 'broken', `nbf lies ${nbf - nowS} s in the future of the server’s clock`)
  else if (exp <= nowS - CLOCK_SKEW_S)
    add(
      'Valid now',
      'broken',
      `It ended ${nowS - exp} s ago. A token is made for each request; of an old one, leave its age out`,
    )
  else add('Valid now', 'kept', `For another ${exp - nowS + CLOCK_SKEW_S} s`)
}

/** Compares the optional claim `method` with the method. */
function checkMethod(claim: unknown, method: string, judge: Judge): void {
  if (claim === undefined || method === '') return
  judge(
    'method is the method',
    claim === method || (claim === 'GET' && method === 'HEAD'),
    'As the request was sent',
    `It is ${shown(claim)}, and the request’s is ${method}: upper case, or leave the claim out`,
  )
}

/** @param isWhole whether the claim must include the query */
function checkUri(uri: unknown, url: string, isWhole: boolean, add: Add): void {
  const rule = 'uri is the path'
  const target = targetOf(url)
  if (url.trim() === '')
    return add(rule, 'skipped', `It is ${shown(uri)}: give the address that was asked to compare`)
  if (target === null) return add(rule, 'skipped', 'The address must be a URL, or begin with “/”')
  if (typeof uri === 'string' && isWhole && uri === target.path && uri !== target.whole)
    return add(
      rule,
      'broken',
      'It lacks the query: a token with the claim method must sign the query as it is sent',
    )
  if (typeof uri === 'string' && (uri === target.path || uri === target.whole))
    return add(
      rule,
      'kept',
      uri === target.whole && target.whole !== target.path ? 'With its query' : 'As it was asked',
    )
  const why =
    typeof uri === 'string' && /^https?:/.test(uri)
      ? '. Leave scheme and host away'
      : typeof uri === 'string' && uri.replace(/\/$/, '') === target.path.replace(/\/$/, '')
        ? '. The slash at the end differs'
        : ''
  add(
    rule,
    'broken',
    `It is ${shown(uri)}, and the request’s is ${JSON.stringify(target.path)}${why}`,
  )
}

async function checkBody(
  claims: Record<string, unknown>,
  { body, method }: Pasted,
  add: Add,
): Promise<void> {
  const rule = 'bodyHash is of the body'
  const hash = claims['bodyHash'] ?? claims['bodyhash']
  const right = await sha256(body)
  if (typeof hash !== 'string')
    add(
      rule,
      'broken',
      'It is missing: lower-case hex SHA-256 of the raw body, of the empty text where there is none',
    )
  else if (hash === right)
    add(rule, 'kept', body === '' ? 'Of the empty text' : 'Of exactly these bytes')
  else add(rule, 'broken', await whyHash(hash, body, right))
  if (body === '') return
  const bytes = new TextEncoder().encode(body).length
  if (bytes > SIGNED_BODY_BYTES_MAX)
    add(
      'Size of the body',
      'broken',
      `${bytes} bytes: signer nodes read at most ${SIGNED_BODY_BYTES_MAX}`,
    )
  if (method === 'GET')
    add(
      'GET has no body',
      'broken',
      'What is sent with GET is ignored on the way by many: leave it away',
    )
  try {
    parseJson(body)
    add('Body is strict JSON', 'kept', 'It is')
  } catch (error) {
    add(
      'Body is strict JSON',
      'broken',
      error instanceof Error ? `It ${error.message.replace(/^body:?\s*/, '')}` : 'It is not',
    )
  }
}

/**
 * Explains a wrong body hash by a common mistake, such as a body that was serialized differently.
 */
async function whyHash(hash: string, body: string, right: string): Promise<string> {
  if (hash.toLowerCase() === right) return 'It is in capitals: lower-case hex is wanted'
  if (/^[A-Za-z0-9+/]{43}=$/.test(hash)) return 'It looks like base64: lower-case hex is wanted'
  const others: [string, string][] = [
    [`${body}\n`, 'It is of the body with a line break at its end'],
    [body.trim(), 'It is of the body without the space around it'],
    ['', 'It is of the empty text, and there is a body'],
    [body.replaceAll('\n', '\r\n'), 'It is of the body with Windows’ line breaks'],
  ]
  try {
    const value: unknown = JSON.parse(body)
    others.push([
      JSON.stringify(value),
      'It is of the body without its spaces: hash exactly the bytes that are sent',
    ])
    others.push([
      JSON.stringify(value, null, 2),
      'It is of the body with line breaks: hash exactly the bytes that are sent',
    ])
  } catch {
    // Not JSON; reported below.
  }
  for (const [text, says] of others) if (hash === (await sha256(text))) return says
  return `It is ${hash.slice(0, 16)}…, and this body’s is ${right.slice(0, 16)}…: other bytes were hashed than these`
}
