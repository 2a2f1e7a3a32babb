import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'

const PATH_SHOWN_MAX = 200
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]{1,30}) (\S+) HTTP\/1\.[01]\r?\n/

/**
 * Why a request has no endpoint. `allow`: the methods of its path; null where there is no such
 * path.
 */
export interface Unrouted {
  error: ApiError
  allow: string | null
}

/** The paths of a server, and the methods of each. */
export class Routes {
  readonly #routes: { method: string; pattern: RegExp }[] = []
  /** Methods of each path without parameters. */
  readonly #fixed = new Map<string, Set<string>>()

  /** Before the first route is added. */
  constructor(server: FastifyInstance) {
    server.addHook('onRoute', ({ method, url }) => {
      const pattern = new RegExp(
        `^${url.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll(/:\w+/g, '[^/]+')}$`,
      )
      for (const each of [method].flat()) {
        this.#routes.push({ method: each, pattern })
        if (!url.includes(':') && !url.includes('*'))
          this.#fixed.set(url, (this.#fixed.get(url) ?? new Set()).add(each))
      }
    })
  }

  /**
   * Whether the target is a path without parameters that lacks the method. The router would read
   * its last part as a parameter of another path that has the method.
   * @param target as it was sent, in origin-form
   */
  lacks(method: string, target: string): boolean {
    const path = target.split(/[?#]/, 1)[0] as string
    return this.#fixed.get(decodedPath(path))?.has(method) === false
  }

  /** @param target as it was sent, in origin-form */
  unrouted(method: string, target: string): Unrouted {
    const path = target.split(/[?#]/, 1)[0] as string
    const decoded = decodedPath(path)
    const methods = [
      ...(this.#fixed.get(decoded) ??
        new Set(
          this.#routes.filter(({ pattern }) => pattern.test(decoded)).map((route) => route.method),
        )),
    ]
    if (methods.length === 0) {
      return {
        error: new ApiError(
          'NOT_FOUND',
          `no such path: ${method} ${path.slice(0, PATH_SHOWN_MAX)}`,
        ),
        allow: null,
      }
    }
    const isOtherCase = METHODS.includes(method.toUpperCase()) && method !== method.toUpperCase()
    const hint = isOtherCase ? '; methods are case-sensitive' : ''
    const error = new ApiError(
      'METHOD_NOT_ALLOWED',
      `${method} is not supported here${hint}; use ${methods.join(' or ')}`,
    )
    return { error, allow: methods.join(', ') }
  }

  /**
   * The same for a method that Node does not parse.
   * @param bytes that it refused
   * @returns null where they do not begin with a request line of such a method
   */
  unknownMethod(bytes: Buffer): Unrouted | null {
    const [, method, target] = REQUEST_LINE.exec(bytes.toString('latin1', 0, 20_000)) ?? []
    return method === undefined || target === undefined || METHODS.includes(method)
      ? null
      : this.unrouted(method, target)
  }
}

/** As the router reads a path: reserved characters stay encoded. */
function decodedPath(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
