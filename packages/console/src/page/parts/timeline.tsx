// The parts of a transaction's timeline.
import { pageAt } from '../api/scope.ts'
import type { Replacement, TransactionTimeline } from '../api/types.ts'
import { Shape } from './icons.tsx'
import { Card } from './page.tsx'
import { Amount, Code, Id, Time, utc } from './values.tsx'
import { Status, toneOf, wordOf } from './status.tsx'
import { Table } from './table.tsx'

/** Nothing is loaded separately, because the data is part of the timeline. */
const READ = { problem: null, reload: () => undefined }

/** Each state with its time and reason, the latest first. */
export function Timeline({
  states,
  isWaiting,
}: {
  states: TransactionTimeline['states']
  isWaiting: boolean
}) {
  const latest = states.toReversed()
  return (
    <Card title="Timeline">
      <ol class="timeline">
        {latest.map(({ state, at, reason }, index) => (
          <li
            key={`${state}${at}${index}`}
            class={`tone-${index === 0 ? toneOf(state) : 'neutral'}${index === 0 && isWaiting ? ' is-now' : ''}`}
          >
            <span class="timeline-mark">
              <Shape tone={index === 0 ? toneOf(state) : 'neutral'} />
            </span>
            <div>
              <p class="timeline-state">{wordOf(state)}</p>
              {reason === null || reason === undefined ? null : <p>{reason}</p>}
              <p class="muted timeline-time">
                <time dateTime={at} title={utc(at)}>
                  {utc(at)}
                </time>
              </p>
            </div>
          </li>
        ))}
      </ol>
    </Card>
  )
}

/** Transactions that were broadcast, and their replacements. */
export function Attempts({
  attempts,
  replacements,
  asset,
}: {
  attempts: TransactionTimeline['attempts']
  replacements: readonly Replacement[]
  asset: string
}) {
  if (attempts.length === 0 && replacements.length === 0) return null
  return (
    <Card
      title="Attempts"
      lead="Chain transactions that were made for it. Of those that replace each other only one can be mined."
      isBare
    >
      <Table
        label="Attempts"
        reading={READ}
        rows={attempts}
        keyOf={({ attempt }) => String(attempt)}
        columns={[
          { head: 'Hash', cell: ({ hash }) => <Id value={hash} keep={8} label="hash" /> },
          {
            head: 'Kind',
            isMinor: true,
            cell: ({ kind }) => kind.toLowerCase().replaceAll('_', ' '),
          },
          {
            head: 'State',
            cell: ({ state, replaced_by: by }) =>
              by ? <Status of={state} word="Replaced" tone="neutral" /> : <Status of={state} />,
          },
          {
            head: 'Fee',
            isNumber: true,
            cell: ({ fee, fee_max: most }) =>
              fee === null ? (
                <span class="muted">
                  up to <Amount value={most} of={asset} />
                </span>
              ) : (
                <Amount value={fee} of={asset} />
              ),
          },
          {
            head: 'Block',
            isMinor: true,
            cell: ({ block_height: height }) => height ?? <span class="muted">–</span>,
          },
          { head: 'Offered', cell: ({ broadcast_at: at }) => <Time at={at} /> },
        ]}
        empty={<p class="pad muted">Nothing was offered to the network yet.</p>}
      />
      {replacements.length === 0 ? null : (
        <ul class="pad plain-list">
          {replacements.map(
            ({ kind, state, reason, created_at: at, fee_level: level, fee_rate: rate }) => (
              <li key={at}>
                <Status of={state} /> {kind}
                {level === null && rate === null ? '' : ` at ${level ?? rate}`}
                {reason === null ? '' : `: ${reason}`} · <Time at={at} />
              </li>
            ),
          )}
        </ul>
      )}
    </Card>
  )
}

/** The request that ordered the transaction, and its signer. */
export function Request({ request }: { request: TransactionTimeline['request'] }) {
  if (request === null) return null
  let body = request.body
  try {
    // The body as it was sent, with line breaks between its fields.
    body = body.replaceAll(
      /("(?:[^"\\]|\\.)*")|([{,])(?=\s*")|(\})$/g,
      (_all, text?: string, mark?: string, end?: string) =>
        text ?? (mark === undefined ? `\n${end ?? ''}` : `${mark}\n  `),
    )
  } catch {
    // Displayed unchanged.
  }
  return (
    <Card
      title="Request"
      lead={
        <>
          Signed by{' '}
          {request.person ? (
            <strong>{request.person.name}</strong>
          ) : (
            <strong>{request.label ?? 'an API user'}</strong>
          )}{' '}
          · API key <Id value={request.api_key} label="API key" /> ·{' '}
          <Time at={request.received_at} />
        </>
      }
    >
      <Code text={`${request.method} ${request.uri}\n${body}`} label="Request" />
      <details>
        <summary>Claims of its token</summary>
        <Code text={JSON.stringify(request.claims, null, 2)} label="Claims" />
      </details>
    </Card>
  )
}

/** Screening results and holds. */
export function Screening({
  rows,
  holds,
}: {
  rows: TransactionTimeline['screening']
  holds: TransactionTimeline['holds']
}) {
  if (rows.length === 0 && holds.length === 0) return null
  return (
    <Card title="Screening" isBare>
      <Table
        label="Screening"
        reading={READ}
        rows={rows}
        keyOf={({ provider, address, at }) => provider + address + at}
        columns={[
          { head: 'Provider', cell: ({ provider }) => provider },
          {
            head: 'Address',
            cell: ({ address }) => <Id value={address} keep={8} label="address" />,
          },
          {
            head: 'Risk',
            cell: ({ risk_level: level }) =>
              level === null ? (
                <Status of="passed" word="Nothing found" />
              ) : /SEVERE|HIGH/i.test(level) ? (
                <Status of="failed" word={level} />
              ) : (
                <Status of="unknown" tone="neutral" word={level} />
              ),
          },
          { head: 'When', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={<p class="pad muted">No provider was asked.</p>}
      />
      {holds.length === 0 ? null : (
        <ul class="pad plain-list">
          {holds.map(
            ({ address, source, risk_level: level, held_at: at, released_at: released }) => (
              <li key={address + at}>
                <Status
                  of={released === null ? 'FROZEN' : 'done'}
                  word={released === null ? 'Holds it' : 'Let go'}
                />{' '}
                <Id value={address} keep={8} label="address" /> {source}, {level} ·{' '}
                <Time at={released ?? at} />
              </li>
            ),
          )}
        </ul>
      )}
    </Card>
  )
}

/** Automatic transactions of the platform for this one. */
export function Related({ rows }: { rows: TransactionTimeline['related'] }) {
  if (rows.length === 0) return null
  return (
    <Card
      title="Transactions of the platform"
      lead="Transactions of the platform for this transfer, such as gas funding."
      isBare
    >
      <Table
        label="Related transactions"
        reading={READ}
        rows={rows}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pageAt(`/transactions/${id}`)}
        columns={[
          { head: 'Type', cell: ({ type }) => type },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          { head: 'Hash', cell: ({ hash }) => <Id value={hash} keep={8} label="hash" /> },
        ]}
        empty={null}
      />
    </Card>
  )
}

/** Ledger entries of the transaction. */
export function Ledger({ rows }: { rows: TransactionTimeline['ledger'] }) {
  if (rows.length === 0) return null
  return (
    <Card title="Ledger entries" isBare>
      <Table
        label="Ledger entries"
        reading={READ}
        rows={rows.map((row, index) => ({ ...row, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          { head: 'Account', cell: ({ account }) => account.replaceAll('_', ' ') },
          { head: 'Entry', cell: ({ entry }) => entry.replaceAll('_', ' ') },
          {
            head: 'Amount',
            isNumber: true,
            cell: ({ amount, asset }) => <Amount value={amount} of={asset} isSigned />,
          },
          { head: 'When', isMinor: true, cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={null}
      />
    </Card>
  )
}

/** Returns host and path of a webhook, without the query, which can contain a secret. */
const hostOf = (url: string): string => {
  const { host, pathname } = new URL(url)
  return `${host}${pathname === '/' ? '' : pathname}`
}

/** Webhook deliveries about the transaction. */
export function Deliveries({
  events,
  rows,
}: {
  events: TransactionTimeline['events']
  rows: TransactionTimeline['deliveries']
}) {
  if (events.length === 0) return null
  return (
    <Card title="Events" lead={rows.length === 0 ? 'No webhook wanted them.' : undefined} isBare>
      <Table
        label="Events"
        reading={READ}
        rows={events}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Event', cell: ({ type }) => <code>{type}</code> },
          {
            head: 'Webhooks',
            cell: ({ id }) => {
              const mine = rows.filter(({ event }) => event === id)
              return mine.length === 0 ? (
                <span class="muted">–</span>
              ) : (
                <span class="stack-small">
                  {mine.map((each) => (
                    <a key={each.id} href={pageAt(`/webhooks/${each.webhook}`)} class="row">
                      <Status of={each.status} />{' '}
                      <span>
                        at {hostOf(each.url)} after {each.attempts}{' '}
                        {each.attempts === 1 ? 'try' : 'tries'}
                      </span>
                    </a>
                  ))}
                </span>
              )
            },
          },
          { head: 'When', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={null}
      />
    </Card>
  )
}
