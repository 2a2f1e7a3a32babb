import { EVENT_TYPES } from '../../core/database/event-types.ts'
import { Components } from '../../core/http/openapi/components.ts'
import { EVENTS } from './registry.ts'

const BEGIN = '<!-- made by scripts/events-table.mjs -->'
const END = '<!-- so far -->'

const RECIPIENTS = {
  'sub-account': 'its sub-account',
  workspace: 'all keys of the workspace',
  owner: 'its sub-account; for a gas tank’s own transaction all keys of the workspace',
}

/** Returns the Markdown table of all event types for docs/events.md. */
function eventsTable(): string {
  const components = new Components()
  const rows = EVENT_TYPES.map((type) => {
    const { says, object, scope, data } = EVENTS[type]
    const shape = components.resolve(components.shown(data))['properties'] ?? {}
    const fields = Object.keys(shape)
      .map((name) => `\`${name}\``)
      .join(', ')
    return [`\`${type}\``, says, object, RECIPIENTS[scope], fields]
  })
  return tableOf([['Event', 'When', 'Object', 'Recipients', '`data`'], ...rows])
}

/**
 * Formats rows as a Markdown table with aligned columns, like the formatter. The first row is the
 * heading.
 */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] as readonly string[]).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] as string).length)),
  )
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const [heading, ...body] = rows.map((row) =>
    line(row.map((cell, column) => cell.padEnd(widths[column] as number))),
  )
  return [heading, line(widths.map((width) => '-'.repeat(width))), ...body].join('\n')
}

/**
 * Returns the document with its table of events replaced by the current one.
 *
 * @throws Error if the document does not contain both markers
 */
export function withTable(document: string): string {
  const [from, to] = [document.indexOf(BEGIN), document.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`the document has no "${BEGIN}" and "${END}" after it`)
  return `${document.slice(0, from)}${BEGIN}\n\n${eventsTable()}\n\n${document.slice(to)}`
}
