import { useState } from 'preact/hooks'
import { custody } from '../api/command.ts'
import { query } from '../api/http.ts'
import { ofWorkspace } from '../api/scope.ts'
import type { AuditEntry } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Button, Dialog } from '../parts/form.tsx'
import { Icon } from '../parts/icons.tsx'
import { Card, Empty, Facts, Page } from '../parts/page.tsx'
import { Code, Id, Time } from '../parts/values.tsx'
import { Pager, pageInQuery, Table } from '../parts/table.tsx'
import { go, place, withQuery } from '../router.ts'

const LIMIT = 50
const LEAD =
  'What people and the operator do here, what a person’s own API key asks for, and changes of settings by every API key. ' +
  'Transfers of machines’ keys are under Transactions. Lines are only added; each holds the hash of the one before.'
const FILTERS = ['actor', 'action'] as const
const day = (name: string, end: string) => {
  const value = place.value.query.get(name)
  return value === null || !/^\d{4}-\d\d-\d\d$/.test(value) ? null : `${value}T${end}Z`
}

/** Converts `api_user.requested` to `API user requested`. */
const sentence = (action: string) => {
  const text = action.replaceAll(/[._]/g, ' ').replace('api ', 'API ')
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

export function AuditLog() {
  const of = (name: string) => place.value.query.get(name)
  const values = {
    ...Object.fromEntries(FILTERS.map((name) => [name, of(name)])),
    from: day('from', '00:00:00.000'),
    to: day('to', '23:59:59.999'),
  }
  const reading = useRead<{ data: AuditEntry[]; page: number; limit: number; total: number }>(
    ofWorkspace(`/audit-log${query({ ...values, page: pageInQuery(), limit: LIMIT })}`),
  )
  const [shown, setShown] = useState<AuditEntry | null>(null)
  const set = (name: string, value: string) =>
    go(withQuery({ [name]: value.trim(), page: null }), 'replace')
  const isFiltered = Object.values(values).some((value) => value !== null)
  const box = (name: string, label: string, type: 'text' | 'date' = 'text') => (
    <label class="mini">
      <span>{label}</span>
      <input
        class="input"
        type={type as 'text'}
        data-search={name === 'actor' ? '' : undefined}
        value={of(name) ?? ''}
        onChange={(event) => set(name, event.currentTarget.value)}
      />
    </label>
  )
  return (
    <Page
      title="Audit log"
      lead={LEAD}
      actions={
        <a class="button secondary" href={ofWorkspace('/audit-log/export')} download>
          <Icon name="download" />
          <span>Export</span>
        </a>
      }
    >
      <Card isBare>
        <form
          class="filters"
          role="search"
          aria-label="Filter the audit log"
          onSubmit={(event) => event.preventDefault()}
        >
          <div class="filters-more">
            {box('actor', 'Who (name or id)')}
            {box('action', 'Action')}
            {box('from', 'From (UTC)', 'date')}
            {box('to', 'To (UTC)', 'date')}
          </div>
          {isFiltered ? (
            <div>
              <Button kind="quiet" onClick={() => go(place.value.path, 'replace')}>
                Clear
              </Button>
            </div>
          ) : null}
        </form>
        <Table
          label="Audit log"
          reading={reading}
          rows={reading.data?.data}
          keyOf={({ seq }) => String(seq)}
          columns={[
            {
              head: 'Action',
              cell: (entry) => (
                <button type="button" class="link" onClick={() => setShown(entry)}>
                  {sentence(entry.action)}
                </button>
              ),
            },
            { head: 'Who', cell: ({ actor }) => actor.name },
            {
              head: 'About',
              isMinor: true,
              cell: ({ object }) =>
                object === null ? (
                  <span class="muted">–</span>
                ) : object.length > 24 ? (
                  <Id value={object} label="object" />
                ) : (
                  object
                ),
            },
            { head: 'From', isMinor: true, cell: ({ ip }) => ip ?? <span class="muted">–</span> },
            { head: 'When', cell: ({ at }) => <Time at={at} /> },
            {
              head: 'Line',
              isNumber: true,
              isMinor: true,
              cell: ({ seq }) => <span class="muted">{seq}</span>,
            },
          ]}
          empty={
            <Empty
              icon="audit"
              title={isFiltered ? 'Nothing fits these filters' : 'Nothing happened yet'}
              action={
                isFiltered ? (
                  <Button onClick={() => go(place.value.path, 'replace')}>Clear the filters</Button>
                ) : undefined
              }
            />
          }
        />
        {reading.data === undefined ? null : (
          <Pager page={reading.data.page} limit={reading.data.limit} total={reading.data.total} />
        )}
      </Card>
      <Card
        title="Verify an export"
        lead="Without the platform: recomputes every hash, and says where the chain breaks."
      >
        <Code text={custody('audit-log verify FILE')} label="Command" />
      </Card>
      {shown === null ? null : (
        <Dialog title={sentence(shown.action)} onClose={() => setShown(null)} isWide>
          <Facts
            of={[
              ['Who', `${shown.actor.name} (${shown.actor.type.replace('_', ' ')})`],
              ['When', <Time key="at" at={shown.at} isLong />],
              ['From', shown.ip ?? '–'],
              [
                'About',
                shown.object === null ? (
                  '–'
                ) : (
                  <Id key="object" value={shown.object} isWhole label="object" />
                ),
              ],
              shown.session === null
                ? null
                : ['Session', <Id key="session" value={shown.session} label="session" />],
              ['Line', String(shown.seq)],
              ['Hash', <Id key="hash" value={shown.hash} isWhole label="hash" />],
              [
                'Hash of the line before',
                <Id key="before" value={shown.prev_hash} isWhole label="hash of the line before" />,
              ],
            ]}
          />
          <Code text={JSON.stringify(shown.details, null, 2)} label="Details" />
        </Dialog>
      )}
    </Page>
  )
}
