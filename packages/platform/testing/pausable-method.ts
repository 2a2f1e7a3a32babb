/** Pauses the first call of a method until it is released; later calls are not paused. */
export function pauseMethod<T extends object, K extends keyof T>(
  of: T,
  method: K,
): { reached: Promise<void>; open: () => void } {
  const real = (of[method] as (...args: unknown[]) => unknown).bind(of)
  const [reached, pause] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let calls = 0
  Object.assign(of, {
    [method]: async (...values: unknown[]) => {
      if (calls++ === 0) {
        reached.resolve()
        await pause.promise
      }
      return real(...values)
    },
  })
  return { reached: reached.promise, open: () => pause.resolve() }
}
