import asyncHooks from 'node:async_hooks'

/**
 * Loaded before a process's tests. node:test follows every promise of the process, so as to know
 * from within which test an error came that nobody caught, or a test was made: a tenth of what a
 * whole platform takes. Here it follows the tests alone, but while `followingPromises` runs. Such
 * an error fails the file, told beside its tests and not as one of them.
 */
const { createHook } = asyncHooks
let follow = () => undefined
asyncHooks.createHook = (callbacks) => {
  // The first is node:test's own.
  asyncHooks.createHook = createHook
  const all = createHook(callbacks)
  // No destroying either: for that every socket and timer is followed to its end by the collector
  // of garbage.
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
 * For a suite whose tests are made in another file: what that file makes while it loads is the
 * suite's.
 */
export async function followingPromises(load) {
  follow(true)
  try {
    await load()
  } finally {
    follow(false)
  }
}
