import { EVENT_TYPES } from '../database/event-types.ts'
import { Components } from '../http/openapi/components.ts'
import { EVENTS } from './registry.ts'

const BEGIN = '<!-- made by scripts/events-table.mjs -->'
const END = '<!-- so far -->'

const TOLD_TO = {
  'sub-account': 'its sub-account',
  workspace: 'all of the workspace',
  owner: 'its sub-account; for transactions of a gas tank: all',
}

/** The table of events for the documentation. */
function eventsTable(): string {
  const components = new Components()
  const rows = EVENT_TYPES.map((type) => {
    const { says, object, scope, data } = EVENTS[type]
    const shape = components.resolve(components.shown(data))['properties'] ?? {}
    const fields = Object.keys(shape)
      .map((name) => `\`${name}\``)
      .join(', ')
    return [`\`${type}\``, says, object, TOLD_TO[scope], fields]
  })
  return tableOf([['Event', 'When', 'Object', 'Told to', '`data`'], ...rows])
}

/**
 * A Markdown table whose columns are aligned, as the formatter leaves it. The first row is the
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
 * A document with the table where it stands, as it would be written now. @throws Error where it has
 * no place for it
 */
export function withTable(document: string): string {
  const [from, to] = [document.indexOf(BEGIN), document.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`the document has no "${BEGIN}" and "${END}" after it`)
  return `${document.slice(0, from)}${BEGIN}\n\n${eventsTable()}\n\n${document.slice(to)}`
}
