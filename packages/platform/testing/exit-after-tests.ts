/**
 * Time in milliseconds that the process has to exit by itself after its tests have removed
 * everything.
 */
const GRACE_MS = 240_000
let watch: NodeJS.Timeout | null = null

/** Cancels the pending exit, because the process has work again. */
export function keepAlive(): void {
  if (watch) clearTimeout(watch)
  watch = null
}

/**
 * Schedules the exit of the process after its last platform was removed. If resources still keep
 * the process alive some minutes later, they are logged and the process exits, so that the whole
 * run is not ended because of it. All tests have been reported by then.
 * @param failed whether the last reported result was a failure
 */
export function exitAfterTests(failed: boolean): void {
  keepAlive()
  watch = setTimeout(() => {
    console.error(
      `all is removed, and the process is still held: ${process.getActiveResourcesInfo().join(', ')}`,
    )
    process.exit(failed ? 1 : undefined)
  }, GRACE_MS)
  // The timer alone does not keep the process alive.
  watch.unref()
}
