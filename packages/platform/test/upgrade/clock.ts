import { chmodSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/** This process's clock is behind by CUSTODY_TEST_BEHIND_MS: what was left behind goes on when it was left. */
const behindMs = Number(process.env['CUSTODY_TEST_BEHIND_MS'] ?? 0)
const Real = Date
const now = () => Real.now() - behindMs
globalThis.Date = new Proxy(Real, {
  construct: (target, given: [], newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget) as Date,
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name) as unknown),
})

/**
 * Nodes and chains see nothing of the environment of who starts them, and would refuse requests of a day that is long gone: what is
 * started as Node from here on is CUSTODY_TEST_NODE, which `nodeWithClock` has written.
 */
process.execPath = process.env['CUSTODY_TEST_NODE'] ?? process.execPath

/** Writes a program that is Node with this clock. @returns what `NODE_OPTIONS` has to be for Node itself to have it */
export function nodeWithClock(file: string, behind: number): string {
  const options = `--import=${pathToFileURL(import.meta.filename).href}`
  writeFileSync(file, `#!/bin/sh\nCUSTODY_TEST_BEHIND_MS=${behind} NODE_OPTIONS='${options}' exec '${process.execPath}' "$@"\n`)
  chmodSync(file, 0o700)
  return options
}
