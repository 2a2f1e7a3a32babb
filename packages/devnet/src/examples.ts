/** Returns a shell command for a POST request, as `urls` prints it. */
export const postExample = (url: string, body: unknown): string =>
  `curl -s ${url} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`

export const getExample = (url: string): string => `curl -s ${url}`

/** Returns a shell command for a call of JSON-RPC 2.0. */
export const jsonRpcExample = (url: string, method: string, params?: unknown[]): string =>
  postExample(url, { jsonrpc: '2.0', id: 1, method, ...(params ? { params } : {}) })

/** Returns the WebSocket URL of a chain that serves it on the same path. */
export const socketUrl = (url: string): string => url.replace(/^http/, 'ws')
