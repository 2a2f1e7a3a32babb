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
const tokenColumns = [
  {
    head: 'Category',
    cell: ({ token }: CoinAside) =>
      token === null ? unknown : <Id value={token.category} label="category" />,
  },
  {
    head: 'Tokens',
    isNumber: true,
    cell: ({ token }: CoinAside) => (token === null ? unknown : grouped(token.amount)),
  },
  { head: 'NFT', cell: nftText },
]

const LEADS = {
  CASH_TOKENS:
    'These outputs contain CashTokens, which a transfer would destroy. Their coins are excluded from the balance and are not spent.',
  TOKEN_ACCOUNT:
    'These tokens were paid to another token account of an address than its usual one. They are excluded from the balance and are not spent.',
} as const

export function CoinsAside({ asset }: { asset: string }) {
  const coins = useRead<CoinAsidePage>(
    mirror(`/dac/v1/coins-aside?asset=${encodeURIComponent(asset)}&limit=${SHOWN}`),
  )
  const rows = coins.data?.data ?? []
  if (rows.length === 0) return null
  // All coins of one asset have the same reason.
  const isInAccounts = rows[0]?.reason === 'TOKEN_ACCOUNT'
  return (
    <Card title="Kept apart" lead={LEADS[isInAccounts ? 'TOKEN_ACCOUNT' : 'CASH_TOKENS']} isBare>
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
          ...(isInAccounts
            ? [
                {
                  head: 'Token account',
                  cell: ({ account }: CoinAside) => (
                    <Id value={account ?? ''} label="token account" />
                  ),
                },
              ]
            : tokenColumns),
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
