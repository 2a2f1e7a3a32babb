import { query } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import type { Approval, ApprovalPage as PageOfApprovals } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { unitsText } from '../amounts.ts'
import { Tabs } from '../parts/form.tsx'
import { Card, Empty, Page } from '../parts/page.tsx'
import { Amount, Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { place, withQuery } from '../router.ts'

/** Events after which approvals are read again. */
export const APPROVALS_LIVE = /^(?:approval|policy)/
const LIMIT = 25
const STATES = [
  [null, 'Open'],
  ['approved', 'Approved'],
  ['rejected', 'Rejected'],
  ['expired', 'Expired'],
  ['ended', 'Ended'],
] as const

/** How many people of each group have approved. */
export function Needs({ of }: { of: Approval['needs'] }) {
  return (
    <>
      {of.map(({ group, k, have }, at) => (
        <span key={group}>
          {at === 0 ? '' : ', '}
          {have} of {k} <span class="muted">of {group}</span>
        </span>
      ))}
    </>
  )
}

/** What a transfer does, as its approvals sign it. */
export type TransferFacts = NonNullable<Approval['facts']>

/** Who requested it: the person or label of the API key, or the key itself. */
export function Requester({ of }: { of: Approval['requested_by'] }) {
  if (of === undefined) return <span class="muted">–</span>
  return of.name === null ? <Id value={of.api_key} label="API key" /> : <>{of.name}</>
}

/** The amount that a transfer pays; forwards of a rule have none. */
export function ApprovalAmount({ of }: { of: TransferFacts }) {
  return of.amount === null ? (
    <span class="muted">each forward of the rule</span>
  ) : (
    <Amount isExact value={unitsText(of.amount, of.decimals)} of={of.asset} />
  )
}

const COLUMNS = [
  {
    head: 'Amount',
    isNumber: true,
    cell: ({ facts, change }: Approval) =>
      facts === null ? <>Policy document {change?.number}</> : <ApprovalAmount of={facts} />,
  },
  {
    head: 'To',
    cell: ({ facts, change }: Approval) =>
      facts === null ? change?.comment : <Id value={facts.to} label="destination" keep={6} />,
  },
  {
    head: 'Memo',
    isMinor: true,
    cell: ({ memo }: Approval) =>
      memo === undefined ? <span class="muted">–</span> : <span class="cut">{memo}</span>,
  },
  {
    head: 'Requested by',
    isMinor: true,
    cell: ({ requested_by: by }: Approval) => <Requester of={by} />,
  },
  { head: 'Approvals', cell: ({ needs }: Approval) => <Needs of={needs} /> },
  { head: 'State', isMinor: true, cell: ({ state }: Approval) => <Status of={state} /> },
  {
    head: 'Requested',
    isMinor: true,
    cell: ({ created_at: at }: Approval) => <Time at={at} />,
  },
  { head: 'Expires', isMinor: true, cell: ({ expires_at: at }: Approval) => <Time at={at} /> },
]

/** Page of the transfers and policy changes that require approvals by people. */
export function Approvals() {
  const chosen = place.value.query.get('state')
  const after = place.value.query.get('after')
  const list = useRead<PageOfApprovals>(
    mirror(`/dac/v1/approvals${query({ state: chosen, after, limit: LIMIT })}`),
    APPROVALS_LIVE,
  )
  const next = list.data?.next
  return (
    <Page
      title="Approvals"
      lead="Transfers that the policy allows only if people approve them, and proposed changes of the policy. The signer nodes verify each approval."
    >
      <Card isBare>
        <div class="filters">
          <Tabs
            label="Which approvals"
            of={STATES.map(([name, word]) => ({
              href: withQuery({ state: name, after: null }),
              word,
              isOpen: chosen === name,
            }))}
          />
        </div>
        <Table
          label="Approvals"
          reading={list}
          rows={list.data?.data}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageAt(`/approvals/${id}`)}
          columns={COLUMNS}
          empty={
            <Empty
              icon="check"
              title={chosen === null ? 'Nothing waits for approvals' : 'None in this state'}
            >
              A policy decides which transfers require approvals.
            </Empty>
          }
        />
        {after === null && !next ? null : (
          <nav class="pager" aria-label="Pages">
            {after === null ? null : (
              <a class="button small" href={withQuery({ after: null })}>
                Newest
              </a>
            )}
            {next ? (
              <a class="button small" href={withQuery({ after: next })}>
                Older
              </a>
            ) : null}
          </nav>
        )}
      </Card>
    </Page>
  )
}
