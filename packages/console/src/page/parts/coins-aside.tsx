import { mirror } from '../api/scope.ts'
import type { CoinAside, CoinAsidePage } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card } from './page.tsx'
import { grouped } from '../amounts.ts'
import { Amount, Id, Time } from './values.tsx'
import { Table } from './table.tsx'

const SHOWN = 50
const unknown = <span class="muted">not known</span>

function nftText({ token }: CoinAside) {
  if (token === null) return unknown
  if (token.nft === null) return <span class="muted">–</span>
  const { capability, commitment } = token.nft
  return (
    <>
      {capability === 'none' ? 'immutable' : capability}
      {commitment === '' ? null : (
        <>
          {' '}
          <Id value={commitment} label="commitment" />
        </>
      )}
    </>
  )
}

/**
 * Coins of an asset that are in no balance and are never spent. Renders nothing if there are none.
 */
export function CoinsAside({ asset }: { asset: string }) {
  const coins = useRead<CoinAsidePage>(
    mirror(`/dac/v1/coins-aside?asset=${encodeURIComponent(asset)}&limit=${SHOWN}`),
  )
  const rows = coins.data?.data ?? []
  if (rows.length === 0) return null
  return (
    <Card
      title="Kept apart"
      lead="These outputs contain CashTokens, which a transfer would destroy. Their coins are excluded from the balance and are not spent."
      isBare
    >
      <Table
        label="Coins that are kept apart"
        reading={coins}
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Coins',
            isNumber: true,
            cell: ({ amount }) => <Amount value={amount} of={asset} />,
          },
          {
            head: 'Category',
            cell: ({ token }) =>
              token === null ? unknown : <Id value={token.category} label="category" />,
          },
          {
            head: 'Tokens',
            isNumber: true,
            cell: ({ token }) => (token === null ? unknown : grouped(token.amount)),
          },
          { head: 'NFT', cell: nftText },
          {
            head: 'Address',
            isMinor: true,
            cell: ({ address }) => <Id value={address} label="address" />,
          },
          {
            head: 'Transaction',
            isMinor: true,
            cell: ({ txid }) => <Id value={txid} label="transaction" />,
          },
          { head: 'Found', isMinor: true, cell: ({ found_at: at }) => <Time at={at} /> },
        ]}
        empty={null}
      />
      {coins.data?.has_more ? (
        <p class="pad muted">The newest {SHOWN} are shown. The API lists all of them.</p>
      ) : null}
    </Card>
  )
}
