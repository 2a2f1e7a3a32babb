import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import type { From } from './sessions.ts'

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i

const isHttps = ({ publicUrl }: Services['settings']): boolean =>
  publicUrl?.startsWith('https://') ?? false

/** Headers by which proxies pass on a request. */
const FORWARDED = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * Whether a request was sent on this machine, to a loopback name. The caller writes the `Host`
 * header, so the connection decides: it comes from a loopback address, and no proxy on this machine
 * passed the request on. The name counts too, because a page elsewhere can have a name of its own
 * lead to a loopback address.
 */
function isOfThisMachine({ headers, socket }: FastifyRequest): boolean {
  const { remoteAddress = '' } = socket
  return (
    LOOPBACK.test(headers.host ?? '') &&
    ipaddr.isValid(remoteAddress) &&
    ipaddr.process(remoteAddress).range() === 'loopback' &&
    FORWARDED.every((name) => headers[name] === undefined)
  )
}

/**
 * From where a request comes, and the origin of the page that makes it. Without https the panel is
 * there on this machine alone: a password would travel in the open, and a page of anybody's could
 * have its name lead here.
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
  const given = request.headers.origin?.toLowerCase()
  return {
    ip: request.ip,
    userAgent: request.headers['user-agent'] ?? '',
    isSecure,
    // Behind a proxy that names this server by another host the page is still the public one's.
    origin: isSecure && given === new URL(settings.publicUrl as string).origin ? given : origin,
  }
}

/**
 * Whether a page of ours asks for a change. A browser says so itself (`Sec-Fetch-Site`, which no
 * page can set); one that is too old for it names the page's origin. A form of another page can say
 * neither, nor send JSON.
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
