/** A failure that the page displays. */
export class Problem extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'Problem'
    this.code = code
  }
}

const token = document.querySelector<HTMLMetaElement>('meta[name="approver-token"]')?.content ?? ''

/**
 * Calls the local server.
 * @throws Problem
 */
export async function call<T>(name: string, input: object = {}): Promise<T> {
  let response: Response
  try {
    response = await fetch(`/api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-approver-token': token },
      body: JSON.stringify(input),
      redirect: 'error',
    })
  } catch {
    throw new Problem(
      'STOPPED',
      'The approver does not respond. Start it again with "npx custody approver run".',
    )
  }
  if (response.ok) return (await response.json()) as T
  if (response.headers.get('content-type') !== 'application/json')
    throw new Problem('REFUSED', await response.text())
  const { code, message } = (await response.json()) as { code: string; message: string }
  throw new Problem(code, message)
}

/** Converts any thrown value to a problem. */
export const problemOf = (error: unknown): Problem =>
  error instanceof Problem
    ? error
    : new Problem('FAILED', error instanceof Error ? error.message : String(error))
