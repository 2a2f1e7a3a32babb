import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * Loads a library that a family needs on first use. Every process knows all families but most
 * processes use few, and loading all libraries would cost some 25 MB and 200 ms at the start.
 * @param name of the package, a dependency of this one
 */
export function lazily<T>(name: string): () => T {
  let loaded: T | undefined
  return () => (loaded ??= require(name) as T)
}
