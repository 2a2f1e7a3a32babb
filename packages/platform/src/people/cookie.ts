import { LIFE_MS, type From } from './sessions.ts'

/**
 * Over https a cookie that no other host can set and no plain connection carries; over http, on
 * this machine alone, a plain one.
 */
const SECURE = { name: '__Host-custody', attributes: 'Path=/; Secure; HttpOnly; SameSite=Lax' }
const PLAIN = { name: 'custody', attributes: 'Path=/console; HttpOnly; SameSite=Strict' }

const kindOf = ({ isSecure }: Pick<From, 'isSecure'>) => (isSecure ? SECURE : PLAIN)

/**
 * The session's token in a `Cookie` header; null where it has none, or two: then somebody else set
 * one.
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

/** Headers that hand a session's token to the browser; null takes it away. */
export function cookieHeaders(
  token: string | null,
  from: Pick<From, 'isSecure'>,
): Record<string, string> {
  const { name, attributes } = kindOf(from)
  return {
    'set-cookie': `${name}=${token ?? ''}; Max-Age=${token === null ? 0 : LIFE_MS / 1000}; ${attributes}`,
  }
}
