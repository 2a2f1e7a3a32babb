import { LIFE_MS, type From } from './sessions.ts'

/**
 * Name and attributes of the session cookie. Over HTTPS no other host can set the cookie, and it is
 * never sent over an unencrypted connection; over HTTP, which is only allowed on this machine, it
 * is a plain cookie.
 */
const SECURE = { name: '__Host-custody', attributes: 'Path=/; Secure; HttpOnly; SameSite=Lax' }
const PLAIN = { name: 'custody', attributes: 'Path=/console; HttpOnly; SameSite=Strict' }

const kindOf = ({ isSecure }: Pick<From, 'isSecure'>) => (isSecure ? SECURE : PLAIN)

/**
 * Returns the session's token from a `Cookie` header; null if it has none, or two, because then
 * another host set one of them.
 */
export function tokenOfCookie(
  header: string | undefined,
  from: Pick<From, 'isSecure'>,
): string | null {
  const { name } = kindOf(from)
  const values = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1))
  const [value] = values
  return values.length === 1 && value !== undefined && /^[\w-]{43}$/.test(value) ? value : null
}

/** Returns the headers that set the cookie to a session's token; null deletes the cookie. */
export function cookieHeaders(
  token: string | null,
  from: Pick<From, 'isSecure'>,
): Record<string, string> {
  const { name, attributes } = kindOf(from)
  return {
    'set-cookie': `${name}=${token ?? ''}; Max-Age=${token === null ? 0 : LIFE_MS / 1000}; ${attributes}`,
  }
}
