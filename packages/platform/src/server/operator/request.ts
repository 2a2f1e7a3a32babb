import { existsSync, readFileSync } from 'node:fs'
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { AuthError, parsePrivateKey, requestHeaders, signRequest } from '@custody/request-auth'
import { OperatorError } from './command.ts'
import { findField } from './field.ts'
import { replayNotice, replayOf } from './replay-notice.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

function readPrivateKey(file: string): KeyObject {
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new OperatorError(`--key: the file ${file} does not exist`)
    if (code === 'EISDIR') throw new OperatorError(`--key: ${file} is a folder`)
    throw new OperatorError(`--key: ${file} cannot be read (${String(code)})`)
  }
  try {
    return parsePrivateKey(pem)
  } catch (error) {
    throw new OperatorError(
      `--key: ${file} ${error instanceof AuthError ? error.message : 'cannot be used'}`,
    )
  }
}

interface Outcome {
  result: Record<string, unknown>
  text: string | string[]
  exitCode: number
  notices?: string[]
}
/** A response. `retryAfterS`: seconds of its header `Retry-After`, within limits. */
type Answered = Outcome & { retryAfterS: number }
type Values = Record<string, string | boolean | undefined>

const USAGE =
  'METHOD must be GET, POST, PUT, PATCH or DELETE, and PATH must begin with /. Usage: custody request METHOD PATH [BODY] --api-key KEY --key FILE'
const UNTIL_DEFAULT_S = 120
const UNTIL_PAUSE_MS = 1000
/** Maximum number of attempts while the key of a new workspace is being generated. */
const KEY_ATTEMPTS_MAX = 10
/** Limits of the delay before the next attempt, in seconds. */
const RETRY_AFTER_S = { default: 5, min: 1, max: 60 }
/** Temporary statuses after which the same GET may succeed a moment later. */
const PASSING = new Set([429, 502, 503, 504])

interface Call {
  base: string
  apiKey: string
  privateKey: KeyObject
  method: string
  path: string
  body: string | undefined
}

/**
 * Sends one signed request to the running platform and returns the response body; with `--until`,
 * repeats it until the body meets the condition. Exit code 2: the `sequence_id` was used before
 * with another payload, and this request had no effect.
 */
export async function sendRequest(home: string, words: string[], values: Values): Promise<Outcome> {
  const [method = '', path = '', body] = words
  if (!METHODS.includes(method.toUpperCase()) || !path.startsWith('/'))
    throw new OperatorError(USAGE)
  const { apiKey, keyFile } = readKeyOptions(values)
  const privateKey = readPrivateKey(keyFile)
  if (values['print-token'] === true) {
    const { token } = await signRequest({
      apiKey,
      privateKey,
      method,
      uri: path,
      ...(body === undefined ? {} : { body }),
    })
    return { result: { token }, text: token, exitCode: 0 }
  }
  const until = typeof values['until'] === 'string' ? readUntil(values['until'], method) : null
  const base = readBase(home, values)
  const call = { base: base.replace(/\/$/, ''), apiKey, privateKey, method, path, body }
  if (until === null) return sendForKey(call)
  return repeatUntil(call, until, values)
}

/**
 * Sends a request, and repeats it as long as the workspace's key is being generated, which means
 * that nothing was created.
 */
async function sendForKey(call: Call): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await send(call)
    const { body } = outcome.result as { body?: { code?: unknown } | string | null }
    const isPending = typeof body === 'object' && body?.code === 'KEY_PENDING'
    if (!isPending || attempt === KEY_ATTEMPTS_MAX) return outcome
    process.stderr.write(
      `the key of the workspace is being generated; the request is sent again in ${outcome.retryAfterS} s\n`,
    )
    await new Promise((resolve) => setTimeout(resolve, outcome.retryAfterS * 1000))
  }
}

/**
 * Reads the API key and the file of the private key.
 * @throws OperatorError if one of them is missing
 */
function readKeyOptions(values: Values): { apiKey: string; keyFile: string } {
  const apiKey = values['api-key'] ?? process.env['CUSTODY_API_KEY']
  const keyFile = values['key'] ?? process.env['CUSTODY_KEY']
  if (typeof apiKey !== 'string')
    throw new OperatorError('--api-key is required, or the environment variable CUSTODY_API_KEY')
  if (typeof keyFile !== 'string')
    throw new OperatorError(
      '--key is required, or the environment variable CUSTODY_KEY: the file of your private key',
    )
  return { apiKey, keyFile }
}

/**
 * Returns the URL of the platform: the given one, or that of the running platform.
 * @throws OperatorError if neither exists
 */
function readBase(home: string, values: Values): string {
  const urlFile = join(home, 'url')
  const base =
    typeof values['url'] === 'string'
      ? values['url']
      : existsSync(urlFile)
        ? readFileSync(urlFile, 'utf8')
        : null
  if (base === null)
    throw new OperatorError(
      `the platform does not run on ${home}: start it with "npm start", or use --url`,
    )
  return base
}

/**
 * Repeats a request until a field of the response has a value.
 * @throws OperatorError if the request is rejected, or the time is over
 */
async function repeatUntil(
  call: Call,
  until: { field: string; value: string },
  values: Values,
): Promise<Outcome> {
  const seconds = values['timeout'] === undefined ? UNTIL_DEFAULT_S : Number(values['timeout'])
  if (!Number.isInteger(seconds) || seconds < 1)
    throw new OperatorError('--timeout: must be a whole number of seconds')
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const outcome = await send(call)
    const status = Number(outcome.result['status'])
    const field = outcome.exitCode === 0 ? findField(outcome.result, until.field) : null
    if (field?.isFound && field.text === until.value) return outcome
    const isRefused = outcome.exitCode !== 0 && !PASSING.has(status)
    if (isRefused || Date.now() > deadline) {
      const reason =
        field === null
          ? `the response has status ${status}`
          : field.isFound
            ? `${until.field} is ${field.text === '' ? 'empty' : field.text}, not ${until.value}`
            : field.reason
      throw new OperatorError(
        `--until: ${reason}, ${isRefused ? `so ${until.field}=${until.value} is not waited for` : `after ${seconds} s`}`,
        ...[outcome.text].flat(),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, UNTIL_PAUSE_MS))
  }
}

function readUntil(text: string, method: string): { field: string; value: string } {
  const at = text.indexOf('=')
  if (at < 1)
    throw new OperatorError('--until: must be FIELD=VALUE, such as data.0.status=confirmed')
  if (method.toUpperCase() !== 'GET')
    throw new OperatorError('--until: only a GET request is repeated; METHOD must be GET')
  return { field: text.slice(0, at), value: text.slice(at + 1) }
}

async function send({ base, apiKey, privateKey, method, path, body }: Call): Promise<Answered> {
  const signed = await signRequest({
    apiKey,
    privateKey,
    method,
    uri: path,
    ...(body === undefined ? {} : { body }),
  })
  const response = await fetch(`${base}${path}`, {
    method: signed.method,
    headers: requestHeaders(signed, apiKey),
    ...(body === undefined ? {} : { body }),
  }).catch(() => {
    throw new OperatorError(`no server responds at ${base}: check that the platform runs there`)
  })
  const text = await response.text()
  const head = `${response.status} ${response.statusText}`
  const replay = replayOf(response.headers)
  const notice = replayNotice(replay)
  const exitCode = replay.mismatch ? 2 : response.ok ? 0 : 1
  const seconds = Number(response.headers.get('retry-after') ?? RETRY_AFTER_S.default)
  const retryAfterS = Math.min(
    Math.max(Number.isFinite(seconds) ? seconds : RETRY_AFTER_S.default, RETRY_AFTER_S.min),
    RETRY_AFTER_S.max,
  )
  const more = { exitCode, retryAfterS, ...(notice === null ? {} : { notices: [notice] }) }
  const said = replay.replayed
    ? { replayed: true, ...(replay.mismatch ? { mismatch: true } : {}) }
    : {}
  try {
    // The text is indented again only if no digits can be lost.
    const parsed: unknown = JSON.parse(text)
    const shown =
      JSON.stringify(parsed) === text ? JSON.stringify(parsed, null, 2).split('\n') : [text]
    return {
      result: { status: response.status, ...said, body: parsed },
      text: [head, ...shown],
      ...more,
    }
  } catch {
    return {
      result: { status: response.status, ...said, body: text },
      text: [head, ...text.split('\n')],
      ...more,
    }
  }
}
