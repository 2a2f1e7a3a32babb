import { jsonText } from '@custody/chains/terminal'

/**
 * Writes one JSON object per line to standard error. Callers pass only public values; complete
 * objects or errors are never written.
 */
export type Log = (
  level: 'info' | 'warn' | 'error' | 'alert',
  message: string,
  fields?: Record<string, string | number | boolean | null>,
) => void

export function openLog(
  node: number,
  now: () => number,
  write: (line: string) => void = (line) => {
    process.stderr.write(line)
  },
): Log {
  return (level, message, fields = {}) => {
    write(`${jsonText({ at: new Date(now()).toISOString(), level, node, message, ...fields })}\n`)
  }
}

/**
 * Returns the first line of an error's message, with a maximum length. Stack traces and causes are
 * not logged.
 */
export function reason(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.split('\n', 1)[0]!.slice(0, 300)
}
