/** Returns the message of an error; for any other thrown value, its text. */
export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
