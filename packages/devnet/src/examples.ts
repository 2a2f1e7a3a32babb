/** Commands for a shell, as `urls` shows them. */
export const postExample = (url: string, body: unknown): string =>
  `curl -s ${url} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`

export const getExample = (url: string): string => `curl -s ${url}`

/** A call of JSON-RPC 2.0. */
export const jsonRpcExample = (url: string, method: string, params?: unknown[]): string =>
  postExample(url, { jsonrpc: '2.0', id: 1, method, ...(params ? { params } : {}) })

/** Where a chain's WebSocket is when it shares the path with the rest. */
export const socketUrl = (url: string): string => url.replace(/^http/, 'ws')
