import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Reading } from '../api/use.ts'
import { go, place, withQuery } from '../router.ts'
import { Icon } from './icons.tsx'
import { ProblemNote } from './page.tsx'

export interface Column<Row> {
  head: string
  cell: (row: Row) => ComponentChildren
  /** Numbers are right-aligned. */
  isNumber?: boolean
  /**
   * On a phone the column is omitted if the row opens a page; otherwise it is displayed below the
   * row with its name.
   */
  isMinor?: boolean
  /** On a phone the column is omitted, because another cell of the row displays its content. */
  isElsewhere?: boolean
}

const ROWS_EXPECTED = 5

/**
 * Table with its loading, error and empty states. With `hrefOf` a row is opened by a click, Enter,
 * and `j` `k`. The page's notice, and not the table, reports that rows could not be read again.
 * @param rows undefined: not read yet
 */
export function Table<Row>({
  label,
  reading,
  rows,
  columns,
  keyOf,
  hrefOf,
  empty,
}: {
  label: string
  reading: Pick<Reading<unknown>, 'problem' | 'reload'>
  rows: readonly Row[] | undefined
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
  hrefOf?: (row: Row) => string
  empty: ComponentChildren
}) {
  const body = useRef<HTMLTableSectionElement>(null)
  useEffect(() => {
    if (hrefOf === undefined) return
    const step = (event: KeyboardEvent) => {
      if ((event.key !== 'j' && event.key !== 'k') || isTyping(event)) return
      const links = Array.from(
        body.current?.querySelectorAll<HTMLAnchorElement>('a.row-link') ?? [],
      )
      const at = links.indexOf(document.activeElement as HTMLAnchorElement)
      links[event.key === 'j' ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0)]?.focus()
    }
    addEventListener('keydown', step)
    return () => removeEventListener('keydown', step)
  }, [hrefOf === undefined])
  if (reading.problem !== null && rows === undefined)
    return <ProblemNote problem={reading.problem} retry={reading.reload} />
  if (rows?.length === 0) return <>{empty}</>
  const classOf = ({ isNumber, isMinor, isElsewhere }: Column<Row>) =>
    [isNumber ? 'is-number' : '', isMinor ? 'is-minor' : '', isElsewhere ? 'is-elsewhere' : '']
      .join(' ')
      .trim()
  const isStacked = hrefOf === undefined && columns.some(({ isMinor }) => isMinor)
  // Browsers drop the roles of a table that is laid out as blocks.
  const role = (name: 'table' | 'rowgroup' | 'row' | 'cell' | 'columnheader') =>
    isStacked ? { role: name } : {}
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={label}>
        <table
          class={`table${hrefOf !== undefined ? ' is-linked' : isStacked ? ' is-stacked' : ''}`}
          aria-busy={rows === undefined ? 'true' : undefined}
          {...role('table')}
        >
          <caption class="sr-only">{label}</caption>
          <thead {...role('rowgroup')}>
            <tr {...role('row')}>
              {columns.map((column) => (
                <th key={column.head} scope="col" class={classOf(column)} {...role('columnheader')}>
                  {column.head === '' ? <span class="sr-only">Actions</span> : column.head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body} {...role('rowgroup')}>
            {rows === undefined
              ? Array.from({ length: ROWS_EXPECTED }, (_, index) => (
                  <tr key={index} {...role('row')}>
                    {columns.map((column) => (
                      <td
                        key={column.head}
                        class={classOf(column)}
                        data-head={column.head}
                        {...role('cell')}
                      >
                        <span class="skeleton" data-line={index % 4} />
                      </td>
                    ))}
                  </tr>
                ))
              : rows.map((row) => (
                  <tr
                    key={keyOf(row)}
                    onClick={(event) => hrefOf !== undefined && openRow(event, hrefOf(row))}
                    {...role('row')}
                  >
                    {columns.map((column, index) => (
                      <td
                        key={column.head}
                        class={classOf(column)}
                        data-head={column.head}
                        {...role('cell')}
                      >
                        {index === 0 && hrefOf !== undefined ? (
                          <a class="row-link" href={hrefOf(row)}>
                            {column.cell(row)}
                          </a>
                        ) : (
                          column.cell(row)
                        )}
                      </td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

/** Returns whether the person is typing text into a control. */
export const isTyping = (event: KeyboardEvent): boolean =>
  event.ctrlKey ||
  event.metaKey ||
  event.altKey ||
  (event.target instanceof HTMLElement &&
    (event.target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))) ||
  document.querySelector('dialog[open]') !== null

/** Opens a row on a click anywhere in it, except on a control or during a text selection. */
function openRow(event: MouseEvent, href: string): void {
  if (
    event.target instanceof Element &&
    event.target.closest('a, button, input, select, label') !== null
  )
    return
  if ((getSelection()?.toString() ?? '') !== '') return
  go(href)
}

/** Navigation of a long list's pages, stored in the URL. */
export function Pager({ page, limit, total }: { page: number; limit: number; total: number }) {
  const last = Math.max(1, Math.ceil(total / limit))
  if (total === 0) return null
  const link = (to: number, word: string, icon: 'left' | 'right') =>
    to < 1 || to > last ? (
      <span class="button small is-off" aria-hidden="true">
        <Icon name={icon} />
      </span>
    ) : (
      <a
        class="button small"
        aria-label={word}
        href={withQuery({ page: to === 1 ? null : String(to) })}
      >
        <Icon name={icon} />
      </a>
    )
  return (
    <nav class="pager" aria-label="Pages">
      <span class="muted">
        {(page - 1) * limit + 1}–{Math.min(page * limit, total)} of {total.toLocaleString('en')}
      </span>
      {link(page - 1, 'Previous page', 'left')}
      {link(page + 1, 'Next page', 'right')}
    </nav>
  )
}

/** Returns the page number in the URL. */
export const pageInQuery = (): string => place.value.query.get('page') ?? '1'
