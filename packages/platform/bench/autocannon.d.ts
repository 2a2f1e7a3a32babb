/** The parts of autocannon that `load.ts` uses; the package has no types of its own. */
declare module 'autocannon' {
  interface Client {
    setRequests(requests: autocannon.Request[]): void
    on(event: 'response', onResponse: (status: number, bytes: number, tookMs: number) => void): void
  }
  interface Options {
    url: string
    connections: number
    amount: number
    timeout: number
    setupClient(client: Client): void
  }
  namespace autocannon {
    interface Request {
      method: string
      path: string
      headers: Record<string, string>
      body: string
    }
  }
  function autocannon(options: Options, done: (error: unknown) => void): void
  export default autocannon
}
