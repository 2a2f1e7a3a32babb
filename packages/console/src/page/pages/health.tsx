import { useEffect } from 'preact/hooks'
import { ofWorkspace, pageAt } from '../api/scope.ts'
import type { Health } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Empty, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Id } from '../parts/values.tsx'
import { Status, wordOf } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const AGAIN_MS = 10_000
const UNITS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** Formats a time as `3 min`. */
function ago(seconds: number | null): string {
  if (seconds === null) return '–'
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit}`
}

export function HealthPage() {
  const health = useRead<Health>(ofWorkspace('/health'))
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && health.reload(), AGAIN_MS)
    return () => clearInterval(timer)
  }, [health.reload])
  const { data } = health
  const states = Object.entries(data?.queue.by_state ?? {}).sort(([, a], [, b]) => b - a)
  return (
    <Page title="Health" lead="Signer nodes, chains and queues. Read again every ten seconds.">
      {data === undefined ? (
        health.problem === null ? (
          <Skeleton lines={3} />
        ) : (
          <ProblemNote problem={health.problem} retry={health.reload} />
        )
      ) : (
        <>
          {data.alerts.length === 0 ? (
            <Note tone="ok">
              <p>All is well.</p>
            </Note>
          ) : (
            data.alerts.map(({ level, code, message }) => (
              <Note key={code + message} tone={level === 'critical' ? 'bad' : 'warn'}>
                <p>{message}</p>
                <p class="note-fine">
                  <code>{code}</code>
                </p>
              </Note>
            ))
          )}
          <Figures
            of={[
              {
                name: 'Due now',
                value: data.queue.due,
                note:
                  data.queue.oldest_s === null
                    ? 'no transaction is waiting'
                    : `the oldest for ${ago(data.queue.oldest_s)}`,
              },
              {
                name: 'Waiting for something',
                value: data.queue.waiting,
                note:
                  states
                    .slice(0, 3)
                    .map(([state, count]) => `${count} ${wordOf(state).toLowerCase()}`)
                    .join(', ') || undefined,
              },
              {
                name: 'Webhooks to deliver',
                value: data.webhooks.pending,
                note:
                  data.webhooks.oldest_s === null
                    ? 'none is late'
                    : `the oldest for ${ago(data.webhooks.oldest_s)}`,
                href: pageAt('/webhooks'),
              },
              { name: 'Webhooks disabled', value: data.webhooks.disabled },
            ]}
          />
        </>
      )}
      <Card
        title="Signer nodes"
        lead="Each node has its own key share and its own record. Compare the head of the record shown here with the one that the node’s operator sees."
        isBare
      >
        <Table
          label="Signer nodes"
          reading={health}
          rows={data?.nodes}
          keyOf={({ node }) => String(node)}
          columns={[
            { head: 'Node', cell: ({ node }) => `Node ${node}` },
            {
              head: 'State',
              cell: ({ reachable, ready }) => (
                <Status
                  of={reachable ? (ready ? 'reachable' : 'warn') : 'unreachable'}
                  word={reachable ? (ready ? 'Ready' : 'Not ready') : 'Unreachable'}
                />
              ),
            },
            {
              head: 'Record',
              isNumber: true,
              cell: ({ height }) => height ?? <span class="muted">–</span>,
            },
            { head: 'Head', cell: ({ head }) => <Id value={head} keep={8} label="head" /> },
            {
              head: 'Keys',
              isNumber: true,
              isMinor: true,
              cell: ({ keys }) => keys ?? <span class="muted">–</span>,
            },
          ]}
          empty={<Empty icon="health" title="No signer nodes are configured" />}
        />
      </Card>
      <Card title="Chains" isBare>
        <Table
          label="Chains"
          reading={health}
          rows={data?.chains}
          keyOf={({ network }) => network}
          columns={[
            { head: 'Network', cell: ({ network }) => <strong>{network}</strong> },
            {
              head: 'State',
              cell: ({ ok, reason, height }) =>
                ok && height === null ? (
                  <Status of="unknown" tone="neutral" word="Not used yet" />
                ) : (
                  <Status of={ok ? 'ok' : 'warn'} word={ok ? 'Follows' : (reason ?? 'Lags')} />
                ),
            },
            {
              head: 'Read up to',
              isNumber: true,
              cell: ({ height }) => height?.toLocaleString('en') ?? <span class="muted">–</span>,
            },
            {
              head: 'Tip',
              isNumber: true,
              isMinor: true,
              cell: ({ tip }) => tip?.toLocaleString('en') ?? <span class="muted">–</span>,
            },
            {
              head: 'Behind',
              isNumber: true,
              cell: ({ lag_blocks: lag }) =>
                lag === null ? (
                  <span class="muted">–</span>
                ) : (
                  `${lag} ${lag === 1 ? 'block' : 'blocks'}`
                ),
            },
            {
              head: 'Last block',
              isNumber: true,
              isMinor: true,
              cell: ({ tip_age_s: age }) =>
                age === null ? <span class="muted">–</span> : `${ago(age)} ago`,
            },
          ]}
          empty={
            <Empty icon="health" title="No network is scanned yet">
              A chain is read once an address on it exists.
            </Empty>
          }
        />
      </Card>
    </Page>
  )
}
