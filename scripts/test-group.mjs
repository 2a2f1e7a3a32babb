// The test files that are named, one after the other in one process, each as a suite whose hooks
// are its own: see scripts/test.mjs.
import { AsyncResource } from 'node:async_hooks'
import { basename } from 'node:path'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { followingPromises } from './test-hooks.mjs'

// A test may wait for nothing but a timer that keeps no process alive, as AbortSignal.timeout is.
const alive = setInterval(() => undefined, 60_000)
for (const file of process.argv.slice(2)) {
  // Outside of the suite before: where no promise is followed, what comes after it would seem to be
  // within it.
  await new AsyncResource('file', { triggerAsyncId: 0 }).runInAsyncScope(() =>
    describe(basename(file), () => followingPromises(() => import(pathToFileURL(file).href))),
  )
}
clearInterval(alive)
