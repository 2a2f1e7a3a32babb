/**
 * One server-sent event in its raw form (HTML standard, 9.2); null for a comment, which only shows
 * that the connection is alive.
 */
export type Frame = { id: string; event: string; data: string } | null

/** Maximum length of an event in characters; the service's events are shorter. */
const FRAME_MAX = 4_000_000

/**
 * Parses the server-sent events of a response body.
 * @throws Error if an event exceeds the maximum length
 */
export async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const parts = text.split(/\r?\n\r?\n/)
      text = parts.pop() as string
      if (text.length > FRAME_MAX) throw new Error('an event of the stream is too long')
      for (const part of parts) yield frameOf(part)
      if (parts.length === 0) yield null
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function frameOf(text: string): Frame {
  const fields: Record<string, string[]> = {}
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? []
    if (name !== undefined) (fields[name] ??= []).push(value ?? '')
  }
  const { id, event, data } = fields
  return data
    ? { id: id?.at(-1) ?? '', event: event?.at(-1) ?? 'message', data: data.join('\n') }
    : null
}
