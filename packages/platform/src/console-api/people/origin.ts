import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../core/errors.ts'
import { isLoopbackAddress, isLoopbackHost } from '../../core/http/loopback.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { From } from './sessions.ts'

interface Services {
  settings: Pick<Settings, 'publicUrl'>
}

const isHttps = ({ publicUrl }: Pick<Settings, 'publicUrl'>): boolean =>
  publicUrl?.startsWith('https://') ?? false

/** Headers that proxies add to forwarded requests. */
const FORWARDED = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * Returns whether a request was sent on this machine to a loopback name. The caller controls the
 * `Host` header, so the connection decides: it must come from a loopback address, and not through a
 * proxy on this machine. The name is checked too, because a page of another site can let its own
 * name resolve to a loopback address.
 */
function isOfThisMachine({ headers, socket }: FastifyRequest): boolean {
  const { remoteAddress = '' } = socket
  return (
    isLoopbackHost(headers.host) &&
    isLoopbackAddress(remoteAddress) &&
    FORWARDED.every((name) => headers[name] === undefined)
  )
}

/**
 * Returns the source of a request and the origin of its page. Without HTTPS the panel is only
 * served on this machine: otherwise passwords would be sent unencrypted, and any page could let its
 * name resolve to this server.
 * @throws ApiError `HTTPS_REQUIRED`
 */
export function fromOf({ settings }: Services, request: FastifyRequest): From {
  const host = request.headers.host ?? ''
  const isLocal = isOfThisMachine(request)
  const isSecure = isHttps(settings)
  if (!isSecure && !isLocal) {
    throw new ApiError(
      'HTTPS_REQUIRED',
      'the control panel is available over https, or on the platform’s own machine as http://localhost: set up a proxy with a certificate, and set CUSTODY_PUBLIC_URL to its https address',
    )
  }
  const origin =
    isSecure && !isLocal
      ? new URL(settings.publicUrl as string).origin
      : `http://${host.toLowerCase()}`
  const input = request.headers.origin?.toLowerCase()
  return {
    ip: request.ip,
    userAgent: request.headers['user-agent'] ?? '',
    isSecure,
    // Behind a proxy that uses another host name for this server, the page still has the public
    // origin.
    origin: isSecure && input === new URL(settings.publicUrl as string).origin ? input : origin,
  }
}

/**
 * Checks that a page of the control panel sent the change. A browser states this itself
 * (`Sec-Fetch-Site`, which no page can set); an older browser sends the page's origin. A form of
 * another site can send neither, and cannot send JSON.
 * @throws ApiError `FOREIGN_ORIGIN` or `UNSUPPORTED_MEDIA_TYPE`
 */
export function assertOwnPage(request: FastifyRequest, from: From): void {
  const site = request.headers['sec-fetch-site']
  const isOwn =
    site === undefined
      ? request.headers.origin?.toLowerCase() === from.origin
      : site === 'same-origin'
  if (!isOwn)
    throw new ApiError(
      'FOREIGN_ORIGIN',
      'changes are accepted only from the control panel’s own pages',
    )
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type: must be application/json', {
      field: 'Content-Type',
    })
  }
}
