import type { FastifyInstance } from 'fastify'
import type { Environment } from '../environment.ts'
import type { AddressLimits } from './rate-limit.ts'
import { countAddress } from './authentication/authenticator.ts'

interface Services {
  environment: Environment
}

/** A response for a browser: bytes of any type, with the required headers. */
interface PageReply {
  status: number
  headers: Record<string, string>
  body: Buffer | string
}

/**
 * A public page or a file that belongs to it. It is not an endpoint of the API and is not in the
 * OpenAPI document.
 */
export interface Page<in Services = never> {
  path: string
  /**
   * Whether a request counts against the client address's limit for open endpoints; responses from
   * memory do not count.
   */
  isCounted: boolean
  handler(context: PageRequest, services: Services): Promise<PageReply> | PageReply
}

/** A request for a page. */
interface PageRequest {
  params: Record<string, string>
  /** Returns a request header by its lower-case name. */
  header(name: string): string | undefined
}

/** Registers a page as a route. */
export function registerPage<S extends Services>(
  server: FastifyInstance,
  services: S,
  page: Page<S>,
  limits: AddressLimits,
): void {
  server.get(page.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
    if (page.isCounted) countAddress(limits.open, services, request)
    else request.rate = limits.open.look(request.ip, services.environment.now())
    const { status, headers, body } = await page.handler(
      {
        params: request.params as Record<string, string>,
        header: (name) => request.headers[name]?.toString(),
      },
      services,
    )
    return reply
      .code(status)
      .headers(headers)
      .serializer((data) => data as string)
      .send(body)
  })
}
