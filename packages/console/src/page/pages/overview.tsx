import { usdShort } from '../amounts.ts'
import { useState } from 'preact/hooks'
import { ofSub, ofWorkspace, pageAt, scope, session } from '../api/scope.ts'
import type { Health, Overview, Series } from '../api/types.ts'
import { useRead, type Reading } from '../api/use.ts'
import { Chart } from '../parts/chart.tsx'
import { LinkButton } from '../parts/form.tsx'
import { Shape, type Tone } from '../parts/icons.tsx'
import { Card, Empty, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, AssetName, Dollars } from '../parts/values.tsx'
import { BALANCE, sortedByWorth } from '../worth/worth.tsx'
import { Table } from '../parts/table.tsx'

interface Need {
  tone: Tone
  text: string
  href: string
}

/** Returns warnings from Health that the overview does not contain. Gas tanks have separate warnings. */
const healthNeeds = (health: Health | undefined): Need[] =>
  (health?.alerts ?? [])
    .filter(({ code }) => !code.startsWith('TANK_'))
    .toSorted((a, b) => Number(b.level === 'critical') - Number(a.level === 'critical'))
    .map(({ level, message }) => ({
      tone: level === 'critical' ? 'bad' : 'warn',
      text: message.slice(0, 1).toUpperCase() + message.slice(1),
      href: pageAt('/health'),
    }))

/**
 * Returns a warning for a person whose only factor is one passkey: losing its device would lock
 * them out.
 */
function ownNeeds(): Need[] {
  const person = session.value?.person
  if (
    !person ||
    person.passkeys !== 1 ||
    person.recovery_codes_left > 0 ||
    (person.has_password && person.has_totp)
  )
    return []
  return [
    {
      tone: 'warn',
      text: 'Your only way to sign in is one passkey: make recovery codes, or add another passkey',
      href: '/console/account',
    },
  ]
}

/** Returns what requires attention, the most urgent first. */
function needs(
  { counts, tanks_low: tanks, prepaid }: Overview,
  health: Health | undefined,
): Need[] {
  const some = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`
  const all: (Need | null)[] = [
    ...healthNeeds(health),
    prepaid.status !== 'ok'
      ? {
          tone: prepaid.status === 'empty' ? 'bad' : 'warn',
          text: `The prepaid fee account is ${prepaid.status}: ${usdShort(prepaid.balance).text} left`,
          href: pageAt('/prepaid'),
        }
      : null,
    ...tanks.map(({ network, status }): Need => ({
      tone: status === 'empty' ? 'bad' : 'warn',
      text: `The ${network} gas tank is ${status}`,
      href: pageAt('/tanks'),
    })),
    counts.failed_24h > 0
      ? {
          tone: 'bad',
          text: `${some(counts.failed_24h, 'transaction', 'transactions')} failed in 24 hours`,
          href: pageAt('/transactions?status=failed'),
        }
      : null,
    counts.held > 0
      ? {
          tone: 'frozen',
          text: `${some(counts.held, 'transaction is', 'transactions are')} held by screening`,
          href: pageAt('/aml'),
        }
      : null,
    counts.frozen > 0
      ? {
          tone: 'frozen',
          text: `${some(counts.frozen, 'address is', 'addresses are')} frozen`,
          href: pageAt('/aml'),
        }
      : null,
    counts.pending > 0
      ? {
          tone: 'info',
          text: `${some(counts.pending, 'transaction is', 'transactions are')} on the way`,
          href: pageAt('/transactions?status=pending'),
        }
      : null,
    ...ownNeeds(),
  ]
  return all.filter((need) => need !== null)
}

function Attention({ overview, health }: { overview: Overview; health: Reading<Health> }) {
  const all = needs(overview, health.data)
  if (health.problem !== null)
    all.unshift({
      tone: 'warn',
      text: `Health cannot be read: ${health.problem.message}`,
      href: pageAt('/health'),
    })
  if (all.length === 0)
    return (
      <p class="quiet-ok tone-ok">
        <Shape tone="ok" />
        <span>Nothing needs your attention.</span>
      </p>
    )
  return (
    <ul class="needs">
      {all.map(({ tone, text, href }) => (
        <li key={text}>
          <a href={href} class={`tone-${tone}`}>
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
  const health = useRead<Health>(ofWorkspace('/health'))
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
            {data === undefined ? (
              <Skeleton lines={3} />
            ) : (
              <Attention overview={data} health={health} />
            )}
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
