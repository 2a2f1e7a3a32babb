import { custody } from '../api/command.ts'
import { mirror, ofSub, pageAt, scope } from '../api/scope.ts'
import { query } from '../api/http.ts'
import { quoted } from '../api/sign.ts'
import type { GasTank, GasTankEntry, Page as PageOf, Series } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Chart } from '../parts/chart.tsx'
import { Card, Empty, Facts, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { PayTo } from '../parts/receive.tsx'
import { Amount, Code, Time } from '../parts/values.tsx'
import { StatementLink } from '../parts/statement-link.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'

const DAYS = 30
const LIMIT = 20
const LIVE = /^(?:gas_tank|transaction)\./

/** Converts `fuel_reservation` to words. */
const words = (type: string) => type.charAt(0).toUpperCase() + type.slice(1).replaceAll('_', ' ')

function Operator({ network }: { network: string }) {
  const { workspace } = scope.value
  const of = `--workspace ${quoted(workspace)} --network ${network}`
  return (
    <Card
      title="For the operator"
      lead="What changes or empties a tank is said at the signer nodes’ own sockets, not here."
    >
      <Code
        label="Commands of the operator"
        text={[
          custody(`gas-tank set ${of} --threshold 0.5`),
          custody(`gas-tank drain ${of} --to ADDRESS`),
          ...(network === 'TRX' ? [custody(`gas-tank stake ${of} --amount 500`)] : []),
        ].join('\n')}
      />
    </Card>
  )
}

export function TankPage({ network }: { network: string }) {
  const tanks = useRead<GasTank[]>(mirror('/dac/v1/gas-tanks'), LIVE)
  const path = `/dac/v1/gas-tanks/${encodeURIComponent(network)}/entries${query({ page: pageInQuery(), limit: LIMIT })}`
  const entries = useRead<PageOf<GasTankEntry>>(mirror(path), LIVE)
  const levels = useRead<Series>(ofSub(`/series${query({ metric: 'tank', network, days: DAYS })}`))
  const tank = tanks.data?.find((each) => each.network === network)
  const back = { href: pageAt('/tanks'), word: 'Gas tanks' }
  if (tank === undefined) {
    return (
      <Page title={`${network} gas tank`} back={back}>
        {tanks.problem === null && tanks.data === undefined ? (
          <Skeleton lines={5} />
        ) : (
          <ProblemNote problem={tanks.problem} retry={tanks.reload} />
        )}
        {tanks.data === undefined ? null : (
          <Empty icon="tanks" title={`There is no tank on ${network} yet`}>
            It is made with the first wallet there.
          </Empty>
        )}
      </Page>
    )
  }
  const change = (value: string, of = tank.asset) =>
    Number(value) === 0 ? <span class="muted">–</span> : <Amount value={value} of={of} isSigned />
  return (
    <Page
      title={`${network} gas tank`}
      back={back}
      lead={<Status of={tank.status} />}
      actions={<StatementLink of={{ asset: tank.asset, account: 'gas_tank' }} />}
    >
      {tank.status === 'ok' ? null : (
        <Note tone={tank.status === 'empty' ? 'bad' : 'warn'}>
          <p>
            {tank.status === 'empty'
              ? 'It is empty: transfers and sweeps on this network wait until it is filled.'
              : 'It is low: fill it before transfers have to wait.'}
          </p>
        </Note>
      )}
      <Figures
        of={[
          { name: 'Can be spent', value: <Amount value={tank.balance} of={tank.asset} /> },
          { name: 'Low below', value: <Amount value={tank.threshold} of={tank.asset} /> },
          {
            name: 'Left at addresses',
            value: <Amount value={tank.float} of={tank.asset} />,
            note: 'fuel of earlier transactions, used first',
          },
        ]}
      />
      <div class="columns">
        <div class="column-main">
          <Card title={`Level, last ${DAYS} days`}>
            {levels.problem !== null ? (
              <ProblemNote problem={levels.problem} retry={levels.reload} />
            ) : levels.data === undefined ? (
              <div class="chart is-waiting" aria-busy="true" />
            ) : levels.data.points.length === 0 ? (
              <p class="chart chart-empty muted">Nothing moved yet.</p>
            ) : (
              <Chart series={levels.data} label="Level of the tank" />
            )}
          </Card>
          <Card title="Movements" isBare>
            <Table
              label="Movements"
              reading={entries}
              rows={entries.data?.data}
              keyOf={({ id }) => id}
              columns={[
                { head: 'When', cell: ({ created_at: at }) => <Time at={at} /> },
                { head: 'What', cell: ({ type }) => words(type) },
                { head: 'Balance', isNumber: true, cell: (entry) => change(entry.balance_change) },
                {
                  head: 'Held',
                  isNumber: true,
                  isMinor: true,
                  cell: (entry) => change(entry.reserved_change),
                },
                {
                  head: 'At addresses',
                  isNumber: true,
                  isMinor: true,
                  cell: (entry) => change(entry.float_change),
                },
                {
                  head: 'For',
                  isMinor: true,
                  cell: ({ for_transaction_id: id }) =>
                    id === null ? (
                      <span class="muted">–</span>
                    ) : (
                      <a href={pageAt(`/transactions/${id}`)}>Transaction</a>
                    ),
                },
              ]}
              empty={<Empty icon="tanks" title="Nothing moved yet" />}
            />
            {entries.data === undefined ? null : <Pager {...entries.data} />}
          </Card>
        </div>
        <div class="column-side">
          <Card title="Refill" lead={`Send ${tank.asset} on ${network}, from anywhere.`}>
            {tank.address === null ? (
              <p class="muted">Its address is made with the first wallet on this network.</p>
            ) : (
              <PayTo address={tank.address} label="Refill address" />
            )}
          </Card>
          <Card title="Limits">
            <Facts
              of={[
                [
                  'Most for one transaction',
                  tank.fee_cap === null ? (
                    'The network’s own'
                  ) : (
                    <Amount value={tank.fee_cap} of={tank.asset} />
                  ),
                ],
                [
                  'Highest gas price',
                  tank.max_gas_price === null ? 'The network’s own' : tank.max_gas_price,
                ],
              ]}
            />
          </Card>
          <Operator network={network} />
        </div>
      </div>
    </Page>
  )
}
