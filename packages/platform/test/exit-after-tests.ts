/** A process that its tests have let go of ends by itself. */
const GRACE_MS = 240_000
let watch: NodeJS.Timeout | null = null

/** Something is under way again. */
export function keepAlive(): void {
  if (watch) clearTimeout(watch)
  watch = null
}

/**
 * The last platform of this process is gone. What still holds the process some minutes later is
 * told, and does not hold it until the whole run is ended for it: its tests have been told of by
 * then. @param failed what was told of last was wrong
 */
export function exitAfterTests(failed: boolean): void {
  keepAlive()
  watch = setTimeout(() => {
    console.error(
      `all is removed, and the process is still held: ${process.getActiveResourcesInfo().join(', ')}`,
    )
    process.exit(failed ? 1 : undefined)
  }, GRACE_MS)
  // Alone it holds nothing.
  watch.unref()
}
