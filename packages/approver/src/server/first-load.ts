/** Time in milliseconds within which a window that was opened loads the page. */
const LOAD_MS = 20_000

/** Calls a function after a time in milliseconds. Returns a function that cancels the call. */
export type After = (ms: number, call: () => void) => () => void

/** Calls a function by the clock of the machine, and keeps no process running. */
const afterTimeout: After = (ms, call) => {
  const timer = setTimeout(call, ms).unref()
  return () => clearTimeout(timer)
}

/**
 * Reports in the terminal whether a browser window has loaded the page from this program. A service
 * worker that another program stored under the origin can answer instead, and imitate the page.
 */
export class FirstLoad {
  readonly #report: (line: string) => void
  readonly #origin: string
  readonly #after: After
  #isLoaded = false
  #cancel = (): void => undefined

  constructor(report: (line: string) => void, origin: string, after: After = afterTimeout) {
    this.#report = report
    this.#origin = origin
    this.#after = after
  }

  /** Expects a load of the page from now on. */
  expect(): void {
    if (this.#isLoaded) return
    this.#cancel = this.#after(LOAD_MS, () =>
      this.#report(
        `no window has loaded the page within ${LOAD_MS / 1000} seconds. If a window displays it, something else shows that page: close the window, do not use your passkey in it, and clear the site data of ${this.#origin} (docs/approver.md)`,
      ),
    )
  }

  /** Reports the first navigation of a browser that reaches this program. */
  note(): void {
    if (this.#isLoaded) return
    this.#isLoaded = true
    this.#cancel()
    this.#report('a browser window has loaded the page from this program')
  }

  close(): void {
    this.#cancel()
  }
}
