import asyncHooks from 'node:async_hooks'

/**
 * Loaded before a process's tests. node:test tracks every promise of the process, in order to
 * attribute unhandled errors and new tests to a test, which takes a tenth of the time of a whole
 * platform. Here it tracks only the tests, except while `followingPromises` runs. An unattributed
 * error fails the file and is reported separately.
 */
const { createHook } = asyncHooks
let follow = () => undefined
asyncHooks.createHook = (callbacks) => {
  // The first hook is node:test's own.
  asyncHooks.createHook = createHook
  const all = createHook(callbacks)
  // The destroy hook is disabled too, because it makes the garbage collector track every socket and
  // timer.
  const few = createHook({
    init: (id, type, trigger, resource) => {
      if (type === 'Test') callbacks.init(id, type, trigger, resource)
    },
    trackPromises: false,
  })
  follow = (promises) => {
    ;(promises ? few : all).disable()
    ;(promises ? all : few).enable()
  }
  return few
}

/**
 * Loads a suite whose tests are defined in another file: tests that the file defines while it loads
 * belong to the suite.
 */
export async function followingPromises(load) {
  follow(true)
  try {
    await load()
  } finally {
    follow(false)
  }
}
