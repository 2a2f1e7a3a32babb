import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * A library that a family needs once it is met: every process knows all families and most meet few,
 * and the libraries of all are some 25 MB and 200 ms of a start.
 * @param name of the package, a dependency of this one
 */
export function lazily<T>(name: string): () => T {
  let loaded: T | undefined
  return () => (loaded ??= require(name) as T)
}
