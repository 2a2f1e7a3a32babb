import { jsonText, oneLine } from '@custody/chains/terminal'
import { pino, type DestinationStream } from 'pino'
import type { Settings } from '../../core/settings/settings.ts'

/** Maximum number of characters of one value in a line. JSON has all of it. */
const VALUE_CHARACTERS_MAX = 200
/** Fields of every entry that say nothing on the terminal of the process itself. */
const OMITTED = new Set(['level', 'time', 'pid', 'hostname', 'msg'])

function valueOf(value: unknown): string {
  const isError = typeof value === 'object' && value !== null && 'message' in value
  const shown = isError ? value.message : value
  const text =
    typeof shown === 'string' && !/[\s"]/.test(shown) && shown !== '' ? shown : jsonText(shown)
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX)}…`
}

/**
 * Returns an entry of the log as a line for people: local time, level, message, and the other
 * fields. Control characters are visible.
 * @param entry a JSON object; other text is returned as it is
 */
export function logLine(entry: string): string {
  let fields: Record<string, unknown>
  try {
    fields = JSON.parse(entry) as Record<string, unknown>
  } catch {
    return oneLine(entry.trimEnd())
  }
  const time = new Date(Number(fields['time'])).toTimeString().slice(0, 8)
  const level = pino.levels.labels[Number(fields['level'])] ?? ''
  const more = Object.entries(fields)
    .filter(([name]) => !OMITTED.has(name))
    .map(([name, value]) => `${name}=${valueOf(value)}`)
  return oneLine([time, level.padEnd(5), String(fields['msg'] ?? ''), ...more].join('  '))
}

/** Returns the log's destination on standard error. */
export function logDestination(
  format: Settings['logFormat'],
  isTerminal: boolean = process.stderr.isTTY,
): DestinationStream {
  const stderr = pino.destination(2)
  if (format === 'json' || (format === 'auto' && !isTerminal)) return stderr
  return { write: (entry) => stderr.write(`${logLine(entry)}\n`) }
}
