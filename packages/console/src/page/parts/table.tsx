import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Reading } from '../api/use.ts'
import { go, place, withQuery } from '../router.ts'
import { Icon } from './icons.tsx'
import { ProblemNote } from './page.tsx'

export interface Column<Row> {
  head: string
  cell: (row: Row) => ComponentChildren
  /** Figures stand at the right. */
  isNumber?: boolean
  /** Left out where there is little room. */
  isMinor?: boolean
}

const ROWS_EXPECTED = 5

/**
 * Rows of one kind; loading, refused and empty states are its own. With `hrefOf` a row is opened by a click, Enter, and `j` `k`.
 * The notice of the page, and not the table, tells that rows could not be read again.
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
      const links = Array.from(body.current?.querySelectorAll<HTMLAnchorElement>('a.row-link') ?? [])
      const at = links.indexOf(document.activeElement as HTMLAnchorElement)
      links[event.key === 'j' ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0)]?.focus()
    }
    addEventListener('keydown', step)
    return () => removeEventListener('keydown', step)
  }, [hrefOf === undefined])
  if (reading.problem !== null && rows === undefined) return <ProblemNote problem={reading.problem} retry={reading.reload} />
  if (rows?.length === 0) return <>{empty}</>
  const classOf = ({ isNumber, isMinor }: Column<Row>) => [isNumber ? 'is-number' : '', isMinor ? 'is-minor' : ''].join(' ').trim()
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={label}>
        <table class={hrefOf === undefined ? 'table' : 'table is-linked'} aria-busy={rows === undefined ? 'true' : undefined}>
          <caption class="sr-only">{label}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.head} scope="col" class={classOf(column)}>
                  {column.head === '' ? <span class="sr-only">Actions</span> : column.head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows === undefined
              ? Array.from({ length: ROWS_EXPECTED }, (_, index) => (
                  <tr key={index}>
                    {columns.map((column) => (
                      <td key={column.head} class={classOf(column)}>
                        <span class="skeleton" data-line={index % 4} />
                      </td>
                    ))}
                  </tr>
                ))
              : rows.map((row) => (
                  <tr key={keyOf(row)} onClick={(event) => hrefOf !== undefined && openRow(event, hrefOf(row))}>
                    {columns.map((column, index) => (
                      <td key={column.head} class={classOf(column)}>
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

/** Whether keys are somebody's text at this moment. */
export const isTyping = (event: KeyboardEvent): boolean =>
  event.ctrlKey ||
  event.metaKey ||
  event.altKey ||
  (event.target instanceof HTMLElement && (event.target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))) ||
  document.querySelector('dialog[open]') !== null

/** A click anywhere in the row that is none on a control, and selects no text. */
function openRow(event: MouseEvent, href: string): void {
  if (event.target instanceof Element && event.target.closest('a, button, input, select, label') !== null) return
  if ((getSelection()?.toString() ?? '') !== '') return
  go(href)
}

/** Pages of a long list, in the address. */
export function Pager({ page, limit, total }: { page: number; limit: number; total: number }) {
  const last = Math.max(1, Math.ceil(total / limit))
  if (total === 0) return null
  const link = (to: number, word: string, icon: 'left' | 'right') =>
    to < 1 || to > last ? (
      <span class="button small is-off" aria-hidden="true">
        <Icon name={icon} />
      </span>
    ) : (
      <a class="button small" aria-label={word} href={withQuery({ page: to === 1 ? null : String(to) })}>
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

/** The page that the address names. */
export const pageInQuery = (): string => place.value.query.get('page') ?? '1'
