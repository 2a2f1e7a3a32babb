import { usd } from '../amounts.ts'
import { custody } from '../api/command.ts'
import { readPrepaidFee } from '../api/queries.ts'
import { query } from '../api/http.ts'
import { mirror, ofSub, pageAt, scope } from '../api/scope.ts'
import { quoted } from '../api/sign.ts'
import type { Page as PageOf, PrepaidEntry, PrepaidFee, Series } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Chart } from '../parts/chart.tsx'
import { Card, Empty, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Code, Dollars, Time, Usd } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'

const LIMIT = 25
const LIVE = /^(?:prepaid_fee|transaction)\./
const WORDS: Record<PrepaidEntry['type'], string> = {
  reservation: 'Reserved',
  charge: 'Charged',
  refund: 'Given back',
  adjustment: 'Topped up or taken',
  subscription: 'Subscription',
}
const signed = (value: string) => (
  <span class="amount">{value.startsWith('-') ? usd(value) : `+${usd(value)}`}</span>
)

/** Page of the prepaid account, from which platform fees are charged. */
export function Prepaid() {
  const account = useRead<PrepaidFee>(mirror('/dac/v1/prepaid-fee'), LIVE, readPrepaidFee)
  const entries = useRead<PageOf<PrepaidEntry>>(
    mirror(`/dac/v1/prepaid-fee/entries${query({ page: pageInQuery(), limit: LIMIT })}`),
    LIVE,
  )
  const fees = useRead<Series>(ofSub('/series?metric=fees&days=30'))
  const { data } = account
  return (
    <Page
      title="Prepaid account"
      lead={
        data === undefined ? (
          'Platform fees are charged from here, never from a wallet.'
        ) : (
          <Status of={data.status} />
        )
      }
    >
      {data === undefined ? (
        account.problem === null ? (
          <Skeleton lines={4} />
        ) : (
          <ProblemNote problem={account.problem} retry={account.reload} />
        )
      ) : (
        <>
          {data.status === 'ok' ? null : (
            <Note tone={data.status === 'empty' ? 'bad' : 'warn'}>
              <p>
                {data.status === 'empty'
                  ? 'It is empty: new transfers are refused until it is topped up. Everything else goes on.'
                  : 'It is low: top it up before new transfers are refused.'}
              </p>
            </Note>
          )}
          <Figures
            of={[
              {
                name: 'Balance',
                value: <Dollars value={data.balance} />,
                note: (
                  <>
                    <Dollars value={data.reserved} /> more are reserved for transfers under way
                  </>
                ),
              },
              {
                name: 'Tier',
                value: data.tier.charAt(0) + data.tier.slice(1).toLowerCase(),
                note: `${data.fees.percent} % of a transfer, at least ${usd(data.fees.minimum)}`,
              },
              {
                name: 'Volume in 30 days',
                value: usd(data.volume_30d),
                note:
                  Number(data.fees.monthly) === 0
                    ? 'no subscription'
                    : `${usd(data.fees.monthly)} a month`,
              },
            ]}
          />
        </>
      )}
      <div class="columns">
        <div class="column-main">
          <Card title="Entries" isBare>
            <Table
              label="Entries"
              reading={entries}
              rows={entries.data?.data}
              keyOf={({ id }) => id}
              columns={[
                { head: 'When', cell: ({ created_at: at }) => <Time at={at} /> },
                { head: 'What', cell: ({ type }) => WORDS[type] },
                { head: 'Amount', isNumber: true, cell: ({ amount }) => <Usd value={amount} /> },
                {
                  head: 'Change',
                  isNumber: true,
                  cell: ({ balance_change: change }) =>
                    Number(change) === 0 ? <span class="muted">–</span> : signed(change),
                },
                {
                  head: 'Balance',
                  isNumber: true,
                  cell: ({ balance_after: after }) => <Usd value={after} />,
                },
                {
                  head: 'For',
                  isMinor: true,
                  cell: ({ transaction_id: id }) =>
                    id === null ? (
                      <span class="muted">–</span>
                    ) : (
                      <a href={pageAt(`/transactions/${id}`)}>Transaction</a>
                    ),
                },
              ]}
              empty={
                <Empty icon="prepaid" title="No entries yet">
                  The first transfer reserves its platform fee here.
                </Empty>
              }
            />
            {entries.data === undefined ? null : <Pager {...entries.data} />}
          </Card>
        </div>
        <div class="column-side">
          <Card title="Fees, last 30 days">
            {fees.problem !== null ? (
              <ProblemNote problem={fees.problem} retry={fees.reload} />
            ) : fees.data === undefined ? (
              <div class="chart is-waiting" aria-busy="true" />
            ) : fees.data.points.every(({ value }) => Number(value) === 0) ? (
              <p class="chart chart-empty muted">None were charged.</p>
            ) : (
              <Chart series={fees.data} label="Fees per day" kind="bars" />
            )}
          </Card>
          <Card title="Top up" lead="The operator enters your payments.">
            <Code
              label="Command of the operator"
              text={custody(
                `prepaid-fee adjust --workspace ${quoted(scope.value.workspace)} --amount 500`,
              )}
            />
          </Card>
        </div>
      </div>
    </Page>
  )
}
