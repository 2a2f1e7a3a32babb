import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'

const PATH_SHOWN_MAX = 200
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]{1,30}) (\S+) HTTP\/1\.[01]\r?\n/

/**
 * Reason why a request has no endpoint. `allow`: the methods of its path; null if the path does not
 * exist.
 */
export interface Unrouted {
  error: ApiError
  allow: string | null
}

/** The paths of a server, with the methods of each. */
export class Routes {
  readonly #routes: { method: string; pattern: RegExp }[] = []
  /** Methods of each path without parameters. */
  readonly #fixed = new Map<string, Set<string>>()

  /** Collects the routes of a server. Must be called before the first route is added. */
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
   * Returns whether the target is a path without parameters that does not support the method. The
   * router would match its last part as a parameter of another path that supports the method.
   * @param target request target as sent, in origin-form
   */
  lacks(method: string, target: string): boolean {
    const path = target.split(/[?#]/, 1)[0] as string
    return this.#fixed.get(decodedPath(path))?.has(method) === false
  }

  /**
   * Returns why the target has no endpoint for this method.
   * @param target request target as sent, in origin-form
   */
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
   * Returns why a request has no endpoint if Node does not parse its method.
   * @param bytes the bytes that Node rejected
   * @returns null if they do not begin with a request line of such a method
   */
  unknownMethod(bytes: Buffer): Unrouted | null {
    const [, method, target] = REQUEST_LINE.exec(bytes.toString('latin1', 0, 20_000)) ?? []
    return method === undefined || target === undefined || METHODS.includes(method)
      ? null
      : this.unrouted(method, target)
  }
}

/** Decodes a path as the router does: reserved characters stay encoded. */
function decodedPath(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
