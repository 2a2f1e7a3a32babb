import type { FastifyInstance } from 'fastify'
import type { Services } from '../engine/services.ts'
import type { AddressLimits } from './rate-limit.ts'
import { countAddress } from './authenticator.ts'

/** What is answered for people: bytes of any type, with the headers that they need. */
interface PageReply {
  status: number
  headers: Record<string, string>
  body: Buffer | string
}

/**
 * A page or a file of one, open to everybody. It is no endpoint of the API, and not in its
 * document.
 */
export interface Page {
  path: string
  /** Costs the client's address one of its open requests; what lies in memory costs nothing. */
  isCounted: boolean
  handler(context: {
    services: Services
    params: Record<string, string>
    /** Request headers by their name in lower case. */
    header(name: string): string | undefined
  }): Promise<PageReply> | PageReply
}

/** Makes a page a route. */
export function registerPage(
  server: FastifyInstance,
  services: Services,
  page: Page,
  limits: AddressLimits,
): void {
  server.get(page.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
    if (page.isCounted) countAddress(limits.open, services, request)
    else request.rate = limits.open.look(request.ip, services.environment.now())
    const { status, headers, body } = await page.handler({
      services,
      params: request.params as Record<string, string>,
      header: (name) => request.headers[name]?.toString(),
    })
    return reply
      .code(status)
      .headers(headers)
      .serializer((data) => data as string)
      .send(body)
  })
}
