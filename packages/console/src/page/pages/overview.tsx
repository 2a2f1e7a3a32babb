import { useState } from 'preact/hooks'
import { ofSub, pageAt, scope } from '../api/scope.ts'
import type { Attention, Overview, Series } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Chart } from '../parts/chart.tsx'
import { LinkButton } from '../parts/form.tsx'
import { Shape } from '../parts/icons.tsx'
import { Card, Empty, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, AssetName, Dollars } from '../parts/values.tsx'
import { BALANCE, sortedByWorth } from '../worth/worth.tsx'
import { Table } from '../parts/table.tsx'

/** What needs attention, in the order of the platform: the most urgent first. */
function NeedsAttention() {
  const { data, problem, reload } = useRead<Attention>(
    ofSub('/attention'),
    /^(?:transaction|deposit|approval|policy|prepaid_fee|gas_tank|address|webhook)\./,
  )
  if (data === undefined)
    return problem === null ? (
      <Skeleton lines={3} />
    ) : (
      <ProblemNote problem={problem} retry={reload} />
    )
  if (data.items.length === 0)
    return (
      <p class="quiet-ok tone-ok">
        <Shape tone="ok" />
        <span>Nothing needs your attention.</span>
      </p>
    )
  return (
    <ul class="needs">
      {data.items.map(({ tone, text, link }) => (
        <li key={text}>
          <a href={link} class={`tone-${tone}`}>
            <Shape tone={tone} />
            <span>{text}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

const METRICS = [
  ['volume', 'Volume'],
  ['fees', 'Platform fees'],
] as const
const DAYS = 30

function OverTime() {
  const [metric, setMetric] = useState<(typeof METRICS)[number][0]>('volume')
  const series = useRead<Series>(ofSub(`/series?metric=${metric}&days=${DAYS}`))
  return (
    <Card
      title="Last 30 days"
      actions={
        <div class="switch" role="group" aria-label="What is drawn">
          {METRICS.map(([name, word]) => (
            <button
              key={name}
              type="button"
              aria-pressed={metric === name}
              onClick={() => setMetric(name)}
            >
              {word}
            </button>
          ))}
        </div>
      }
    >
      {series.problem !== null ? (
        <ProblemNote problem={series.problem} retry={series.reload} />
      ) : series.data === undefined ? (
        <div class="chart is-waiting" aria-busy="true" />
      ) : series.data.points.every(({ value }) => Number(value) === 0) ? (
        <p class="chart chart-empty muted">Nothing moved in these {DAYS} days.</p>
      ) : (
        <Chart
          series={series.data}
          label={`${METRICS.find(([name]) => name === metric)?.[1] ?? ''} per day`}
          kind="bars"
        />
      )}
    </Card>
  )
}

export function OverviewPage() {
  const overview = useRead<Overview>(
    ofSub('/overview'),
    /^(?:transaction|deposit|wallet|prepaid_fee|gas_tank|address)\./,
  )
  const { data } = overview
  return (
    <Page
      title="Overview"
      lead={
        <>
          {scope.value.workspace} / {scope.value.subAccount}
        </>
      }
      actions={
        <LinkButton href={pageAt('/send')} kind="primary" icon="send">
          Send
        </LinkButton>
      }
    >
      {data === undefined && overview.problem !== null ? (
        <ProblemNote problem={overview.problem} retry={overview.reload} />
      ) : null}
      <div class="columns">
        <div class="column-main">
          <Card>
            <p class="label">Total balance</p>
            <p class="total">
              {data === undefined ? (
                <span class="skeleton total-waiting" />
              ) : (
                <Dollars value={data.total_usd} />
              )}
            </p>
          </Card>
          <OverTime />
          <Card
            title="Balances"
            isBare
            actions={
              <LinkButton href={pageAt('/wallets')} kind="quiet">
                All wallets
              </LinkButton>
            }
          >
            <Table
              label="Balances"
              reading={overview}
              rows={sortedByWorth(data?.balances)}
              keyOf={({ asset }) => asset}
              hrefOf={({ asset }) => pageAt(`/wallets/${asset}`)}
              columns={[
                { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} /> },
                BALANCE.amount,
                {
                  head: 'On the way',
                  isNumber: true,
                  isMinor: true,
                  cell: ({ asset, pending }) =>
                    Number(pending) === 0 ? (
                      <span class="muted">–</span>
                    ) : (
                      <Amount value={pending} of={asset} />
                    ),
                },
                BALANCE.worth,
              ]}
              empty={
                <Empty
                  icon="wallets"
                  title="No wallets yet"
                  action={
                    <LinkButton href={pageAt('/wallets')} kind="primary">
                      Create a wallet
                    </LinkButton>
                  }
                >
                  A wallet holds one asset, and has as many deposit addresses as you like.
                </Empty>
              }
            />
          </Card>
        </div>
        <div class="column-side">
          <Card title="Needs attention">
            <NeedsAttention />
          </Card>
          <Card title="Fees">
            {data === undefined ? (
              <Skeleton lines={2} />
            ) : (
              <dl class="lines">
                <div>
                  <dt>Prepaid balance</dt>
                  <dd>
                    <Dollars value={data.prepaid.balance} />
                  </dd>
                </div>
                <div>
                  <dt>Reserved besides</dt>
                  <dd>
                    <Dollars value={data.prepaid.reserved} />
                  </dd>
                </div>
                <div>
                  <dt>Tier</dt>
                  <dd>{data.prepaid.tier}</dd>
                </div>
                {data.tanks_low.slice(0, 6).map(({ network, asset, balance }) => (
                  <div key={network}>
                    <dt>{network} tank</dt>
                    <dd>
                      <Amount value={balance} of={asset} />
                    </dd>
                  </div>
                ))}
              </dl>
            )}
          </Card>
        </div>
      </div>
    </Page>
  )
}
