/** Checks a time or duration of the caller. @throws TypeError if it is not a whole number of seconds */
export function assertSeconds(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new TypeError(`${name} must be a whole number of seconds`)
}
