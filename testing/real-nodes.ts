import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'

/**
 * Programs of other projects against which tests compare the local chains. `version`: version that
 * `npm run nodes:build` builds, null if the distribution provides the program. `variable`:
 * environment variable with the path of another build.
 */
export const REAL_NODES = {
  geth: {
    version: '1.17.10',
    variable: 'GETH',
    howToGet: 'npm run nodes:build -- geth, or set GETH to its path',
  },
  bitcoind: {
    // Version of the source, and of the crate that contains it.
    version: '31.99.0-0.4.1',
    variable: 'BITCOIND',
    howToGet: 'npm run nodes:build -- bitcoind, or set BITCOIND to its path',
  },
  litecoind: {
    version: null,
    variable: 'LITECOIND',
    howToGet: 'apt-get install litecoind, or set LITECOIND to its path',
  },
} as const
export type RealNode = keyof typeof REAL_NODES

/**
 * Returns the folder of the built nodes: CUSTODY_NODES_CACHE, or `custody/nodes` in the user's
 * cache. It is outside of the checkout, so that all checkouts share the builds.
 * @throws Error if CUSTODY_NODES_CACHE is not an absolute path
 */
export function nodesCache(): string {
  const named = process.env['CUSTODY_NODES_CACHE'] ?? ''
  if (named !== '') {
    if (!isAbsolute(named))
      throw new Error(`CUSTODY_NODES_CACHE=${named}: must be an absolute path`)
    return named
  }
  const cache = process.env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(cache) ? cache : join(homedir(), '.cache'), 'custody', 'nodes')
}

/** Returns the path at which a node is built; null if it is not built here. */
export function builtPath(name: RealNode): string | null {
  const { version } = REAL_NODES[name]
  return version === null ? null : join(nodesCache(), `${name}-${version}`, name)
}

/**
 * Returns the path of a node: the one that its environment variable names, the built one, or one in
 * the PATH; null if there is none.
 * @throws Error if the variable names a file that does not exist
 */
export function findNode(name: RealNode): string | null {
  const { variable } = REAL_NODES[name]
  const named = process.env[variable] ?? ''
  if (named !== '') {
    if (!existsSync(named)) throw new Error(`${variable}=${named}: this file does not exist`)
    return named
  }
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const candidates = [builtPath(name) ?? [], folders.map((folder) => join(folder, name))].flat()
  return candidates.find((path) => existsSync(path)) ?? null
}

/**
 * Returns the path of a node for a test file, and the reason for which its tests are skipped: false
 * if the node is available.
 */
export function nodeForTests(name: RealNode): { path: string; skip: string | false } {
  const path = findNode(name)
  if (path !== null) return { path, skip: false }
  return { path: name, skip: `${name} is not installed (${REAL_NODES[name].howToGet})` }
}
