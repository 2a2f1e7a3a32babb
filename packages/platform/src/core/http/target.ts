import type { IncomingMessage } from 'node:http'

const ABSOLUTE_FORM = /^https?:\/\/([^/?#@\s]+)(.*)$/i

/**
 * Returns the request target in origin-form: path and query. A server must also accept the
 * absolute-form, whose authority replaces the Host header (RFC 9112, 3.2.2). Signatures cover path
 * and query in both forms, and a host in neither. Other forms are returned unchanged.
 */
export function originForm({ url = '/', headers }: IncomingMessage): string {
  const match = ABSOLUTE_FORM.exec(url)
  if (!match) return url
  const [, authority, rest = ''] = match
  if (headers.host !== undefined) headers.host = authority
  return rest.startsWith('/') ? rest : `/${rest}`
}
