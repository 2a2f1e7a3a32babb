declare module 'aws4' {
  interface Request {
    service: string
    region: string
    method: string
    host: string
    path: string
    body?: string
    headers: Record<string, string>
  }
  interface Credentials {
    accessKeyId: string
    secretAccessKey: string
    sessionToken?: string
  }
  /** Returns the same request with the headers of its signature. */
  export function sign(request: Request, credentials: Credentials): Request
  const aws4: { sign: typeof sign }
  export default aws4
}
