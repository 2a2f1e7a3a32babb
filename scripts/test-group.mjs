// The test files that are named, one after the other in one process, each as a suite whose hooks are its own: see scripts/test.mjs.
import { basename } from 'node:path'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'

// A test may wait for nothing but a timer that keeps no process alive, as AbortSignal.timeout is.
const alive = setInterval(() => undefined, 60_000)
for (const file of process.argv.slice(2)) await describe(basename(file), async () => void await import(pathToFileURL(file).href))
clearInterval(alive)
