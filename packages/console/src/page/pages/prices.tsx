import { mirror, pageAt } from '../api/scope.ts'
import type { Price } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { LinkButton } from '../parts/form.tsx'
import { Card, Empty, Page } from '../parts/page.tsx'
import { grouped } from '../amounts.ts'
import { AssetName, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { place } from '../router.ts'
import { Search } from '../parts/search.tsx'

/** Page of the prices that platform fees and the panel's values are based on. */
export function Prices() {
  const prices = useRead<Price[]>(mirror('/dac/v1/prices'))
  const wanted = (place.value.query.get('q') ?? '').toLowerCase()
  const rows = prices.data?.filter(({ asset }) => asset.toLowerCase().includes(wanted))
  return (
    <Page
      title="Prices"
      lead="In US dollars: the median of the price sources. Platform fees and values are calculated from these prices."
      actions={
        <LinkButton href={pageAt('/prepaid')} kind="quiet">
          Prepaid account
        </LinkButton>
      }
    >
      <Card isBare>
        <div class="bar">
          <Search label="Find an asset" />
        </div>
        <Table
          label="Prices"
          reading={prices}
          rows={rows}
          keyOf={({ asset }) => asset}
          columns={[
            { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} /> },
            {
              head: 'Price',
              isNumber: true,
              cell: ({ price_usd: price }) => <span class="amount">${grouped(price)}</span>,
            },
            {
              head: 'State',
              cell: ({ stale }) => (
                <Status
                  of={stale ? 'stale' : 'ok'}
                  word={stale ? 'Stale' : 'Current'}
                  tone={stale ? 'warn' : 'ok'}
                />
              ),
            },
            { head: 'Sources', isMinor: true, cell: ({ sources }) => sources.join(', ') },
            { head: 'Asked', isMinor: true, cell: ({ updated_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              icon="prices"
              title={wanted === '' ? 'No prices yet' : `Nothing fits “${wanted}”`}
            />
          }
        />
      </Card>
    </Page>
  )
}
