import asyncHooks from 'node:async_hooks'

/**
 * Loaded before a test file that has a process to itself. node:test follows every promise of the process, so as to know from
 * within which test an error came that nobody caught, or a test was made: a tenth of what a whole platform takes. Here it
 * follows what is no promise alone. Such an error fails the file, told beside its tests and not as one of them.
 */
const { createHook } = asyncHooks
asyncHooks.createHook = (callbacks) => {
  // The first is node:test's own.
  asyncHooks.createHook = createHook
  return createHook({ ...callbacks, trackPromises: false })
}
