import type { Devnet } from '../../../devnet/src/devnet.ts'

/**
 * Returns a `fetch` for a platform that runs in one process with the local chains. Requests to the
 * chains are answered without a socket, because the socket costs more processor time than the
 * response. All other requests use the network. The HTTP interface itself is tested elsewhere.
 */
export function chainsFetch(chains: Pick<Devnet, 'url' | 'answer'>): typeof fetch {
  return async (input, init = {}) => {
    const url = String(input)
    if (typeof input !== 'string' || !url.startsWith(`${chains.url}/`)) return fetch(input, init)
    const { body, signal } = init
    if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array))
      throw new TypeError('a body is text or bytes')
    const gone = Promise.withResolvers<never>()
    const abort = () => gone.reject(signal?.reason as Error)
    signal?.throwIfAborted()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const answer = await Promise.race([
        gone.promise,
        chains.answer({
          method: init.method ?? 'GET',
          url: url.slice(chains.url.length),
          headers: Object.fromEntries(new Headers(init.headers)),
          read: async (encoding) => Buffer.from(body ?? '').toString(encoding),
        }),
      ])
      if (typeof answer === 'string') throw new TypeError('fetch failed')
      // The rest of the response never arrives.
      if (answer.isStalled) return await gone.promise
      return new Response(answer.body, {
        status: answer.status,
        ...(answer.headers ? { headers: answer.headers } : {}),
      })
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }
}
