// Runs the given test files one after another in one process, each as a suite with its own hooks:
// see scripts/test.mjs.
import { AsyncResource } from 'node:async_hooks'
import { basename } from 'node:path'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { followingPromises } from './test-hooks.mjs'

// A test may wait only for a timer that does not keep the process alive, such as
// AbortSignal.timeout.
const alive = setInterval(() => undefined, 60_000)
for (const file of process.argv.slice(2)) {
  // Outside of the previous suite: without promise tracking, later code would appear to be inside
  // of it.
  await new AsyncResource('file', { triggerAsyncId: 0 }).runInAsyncScope(() =>
    describe(basename(file), () => followingPromises(() => import(pathToFileURL(file).href))),
  )
}
clearInterval(alive)
