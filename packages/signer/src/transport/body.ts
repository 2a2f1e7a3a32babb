import type { IncomingMessage, ServerResponse } from 'node:http'
import { parsedBy } from '@custody/request-auth/bodies'
import type { z } from 'zod'
import { Refusal } from '../errors.ts'

/** Multiple of the limit above which the rest of a body is not read. */
const HEARD_TIMES_MAX = 2

/**
 * Reads a body up to a limit. Bytes beyond it are discarded, but read, so that the caller receives
 * the error: a caller that is still sending would not read it.
 */
export async function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size <= bytesMax) chunks.push(chunk as Buffer)
    else chunks.length = 0
    if (size > HEARD_TIMES_MAX * bytesMax) break
  }
  if (size > bytesMax) throw new Refusal('TOO_LARGE', `The body is larger than ${bytesMax} bytes`)
  return Buffer.concat(chunks)
}

/** {@link readBytes}, decoded as UTF-8. */
export const readText = async (request: IncomingMessage, bytesMax: number): Promise<string> =>
  (await readBytes(request, bytesMax)).toString('utf8')

export function answer(response: ServerResponse, status: number, text: string | Buffer): void {
  if (response.headersSent || response.destroyed) return
  // The messages of a signature are large, and writing a string takes ten times as long as writing
  // bytes.
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
}

export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('BAD_ORDER', 'The body is not JSON')
  }
}

/**
 * Parses a command's body.
 * @throws Refusal BAD_ORDER that names the field
 */
export function shaped<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = parsedBy(schema, body)
  if (parsed?.success) return parsed.data
  const issue = parsed?.error.issues[0]
  throw new Refusal(
    'BAD_ORDER',
    `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'has an unknown format'}`.slice(0, 300),
  )
}
