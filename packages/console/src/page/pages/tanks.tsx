import { mirror, pageAt } from '../api/scope.ts'
import type { GasTank } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Empty, Page } from '../parts/page.tsx'
import { Amount, AssetName, Id } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

/** Page of gas tanks, which pay network fees on account-based chains. */
export function Tanks() {
  const tanks = useRead<GasTank[]>(mirror('/dac/v1/gas-tanks'), /^(?:gas_tank|transaction)\./)
  const rows = tanks.data?.toSorted(
    (a, b) =>
      Number(a.status === 'ok') - Number(b.status === 'ok') || a.network.localeCompare(b.network),
  )
  return (
    <Page
      title="Gas tanks"
      lead="Gas tanks pay the network fees on EVM networks and Tron; wallets do not. They belong to the whole workspace."
    >
      <Card isBare>
        <Table
          label="Gas tanks"
          reading={tanks}
          rows={rows}
          keyOf={({ network }) => network}
          hrefOf={({ network }) => pageAt(`/tanks/${encodeURIComponent(network)}`)}
          columns={[
            {
              head: 'Network',
              cell: ({ network, asset }) => (
                <>
                  <AssetName of={asset} /> <span class="sr-only">{network}</span>
                </>
              ),
            },
            { head: 'Level', cell: ({ status }) => <Status of={status} /> },
            {
              head: 'Balance',
              isNumber: true,
              cell: ({ balance, asset }) => <Amount value={balance} of={asset} />,
            },
            {
              head: 'Low below',
              isNumber: true,
              isMinor: true,
              cell: ({ threshold, asset }) => <Amount value={threshold} of={asset} />,
            },
            {
              head: 'Refill address',
              isMinor: true,
              cell: ({ address }) => <Id value={address} label="refill address" />,
            },
          ]}
          empty={
            <Empty icon="tanks" title="No gas tanks yet">
              One is made for a network with the first wallet there.
            </Empty>
          }
        />
      </Card>
    </Page>
  )
}
