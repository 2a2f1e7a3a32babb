import { randomBytes } from 'node:crypto'
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  RequestListener,
  ServerResponse,
} from 'node:http'
import { reasonOf } from '@custody/chains/reason'
import { ApproverError } from '../errors.ts'
import type { Call, Services } from './call-parts.ts'
import { callsOf } from './calls.ts'
import { denialOf, isNavigation, SECURITY_HEADERS } from './guard.ts'
import { loadSite, type Site } from './site.ts'

/** A policy document has at most 256 KiB, and its proofs are smaller. */
const BODY_BYTES_MAX = 2_000_000
const TOKEN_BYTES = 32
const STATUS_REFUSED = 422

type Headers = Record<string, string>

function send(
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: string | Buffer,
): void {
  response.writeHead(status, { ...headers, ...SECURITY_HEADERS }).end(body)
}

const sendText = (response: ServerResponse, status: number, text: string): void =>
  send(response, status, { 'content-type': 'text/plain; charset=utf-8' }, `${text}\n`)

const sendJson = (response: ServerResponse, status: number, value: unknown): void =>
  send(response, status, { 'content-type': 'application/json' }, JSON.stringify(value))

/** Reads a body. @returns null if it is too large */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > BODY_BYTES_MAX) return null
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parseInput(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // The error below is for both cases.
  }
  throw new ApproverError('INPUT', 'the body must be a JSON object')
}

async function answerCall(
  calls: Map<string, Call>,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const call = calls.get(name)
  if (call === undefined) return sendText(response, 404, 'There is no such call.')
  const body = await readBody(request)
  if (body === null) {
    response.setHeader('connection', 'close')
    return sendText(response, 413, `The body has more than ${BODY_BYTES_MAX} bytes.`)
  }
  try {
    sendJson(response, 200, await call(parseInput(body)))
  } catch (error) {
    const code = error instanceof ApproverError ? error.code : 'INTERNAL'
    sendJson(response, STATUS_REFUSED, { code, message: reasonOf(error) })
  }
}

/**
 * Returns the handler of all requests of the page.
 * @param o.site the built page; by default that of this package
 * @param o.onNavigation called when a browser window loads the page
 */
export function handlerOf(
  services: Services,
  o: { site?: Site; onNavigation?: () => void } = {},
): RequestListener {
  const site = o.site ?? loadSite()
  const calls = callsOf(services)
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const { origin } = services.config
  let isCleared = false
  const page = (headers: IncomingHttpHeaders, response: ServerResponse): void => {
    // What another program stored under this origin must not reach the page, which stores nothing.
    // Only the browser itself can be relied on to clear it, so no other request uses the header up.
    const cleared: Headers = isCleared ? {} : { 'clear-site-data': '"cache", "storage"' }
    isCleared ||= isNavigation(headers)
    send(
      response,
      200,
      { 'content-type': 'text/html; charset=utf-8', ...cleared },
      site.page(token),
    )
    if (isNavigation(headers)) o.onNavigation?.()
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?')[0] as string
    const denial = denialOf({ origin, token }, request.method, path, request.headers)
    if (denial !== null) return sendText(response, denial.status, denial.message)
    if (path === '/') return page(request.headers, response)
    if (path.startsWith('/api/'))
      return answerCall(calls, path.slice('/api/'.length), request, response)
    const asset = path.startsWith('/assets/')
      ? site.asset(path.slice('/assets/'.length), request.headers['accept-encoding'])
      : null
    if (asset === null) return sendText(response, 404, 'There is no such page.')
    send(response, asset.status, asset.headers, asset.body)
  }
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) sendText(response, 500, reasonOf(error))
      else response.destroy()
    })
  }
}
