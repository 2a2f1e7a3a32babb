import { jsonText } from '@custody/chains/terminal'

/**
 * One JSON object a line on standard error. Callers pass only public values; nothing here dumps
 * objects or errors whole.
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

/** The first line of an error's message, bounded: stack traces and causes stay out of logs. */
export function reason(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.split('\n', 1)[0]!.slice(0, 300)
}
