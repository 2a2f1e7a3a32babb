import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import type { Address, Overview, Series, TransactionPage, WalletBalance } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Chart } from '../parts/chart.tsx'
import { CoinsAside } from '../parts/coins-aside.tsx'
import { Button, Dialog, LinkButton } from '../parts/form.tsx'
import { NewAddress } from '../parts/new-address.tsx'
import { Card, Empty, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { AddressFacts } from '../parts/receive.tsx'
import { Amount, Id, tickerOf, Time } from '../parts/values.tsx'
import { worthFigure } from '../worth/worth.tsx'
import { StatementLink } from '../parts/statement-link.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { TransactionTable } from '../parts/transaction-table.tsx'

/** Whether one transfer can pay only a part of the balance, because of frozen or many coins or its fee. */
const isPartly = ({ balance, max_spendable: most }: WalletBalance): boolean =>
  most !== null && Number(most) < Number(balance)

export function WalletPage({ asset = '' }: { asset?: string }) {
  const wallet = useRead<WalletBalance[]>(
    mirror(`/dac/v1/wallets?asset=${encodeURIComponent(asset)}`),
    /^(?:transaction|deposit|wallet)\./,
  )
  const addresses = useRead<Address[]>(
    mirror(`/dac/v1/addresses?asset=${encodeURIComponent(asset)}`),
    /^address\./,
  )
  const overview = useRead<Overview>(ofSub('/overview'), /^(?:transaction|deposit|wallet)\./)
  const latest = useRead<TransactionPage>(
    mirror(`/dac/v1/transactions?asset=${encodeURIComponent(asset)}&limit=10`),
    /^(?:transaction|deposit)\./,
  )
  const level = useRead<Series>(
    ofSub(`/series?metric=balance&asset=${encodeURIComponent(asset)}&days=30`),
  )
  const [shown, setShown] = useState<Address | null>(null)
  const [isMaking, setMaking] = useState(false)
  const [find, setFind] = useState('')
  const mine = wallet.data?.[0]
  const whole = overview.data?.balances.find((each) => each.asset === asset)
  const name = assetNames.value.get(asset)
  const back = { href: pageAt('/wallets'), word: 'Wallets' }
  if (wallet.data?.length === 0) {
    return (
      <Page title={asset} back={back}>
        <Empty
          icon="wallets"
          title={`This sub-account has no ${asset} wallet`}
          action={
            <LinkButton href={pageAt('/wallets?new=')} kind="primary">
              Create a wallet
            </LinkButton>
          }
        />
      </Page>
    )
  }
  const wanted = find.trim().toLowerCase()
  const rows = addresses.data?.filter(({ address, label, address_tag: tag }) =>
    `${address} ${label ?? ''} ${tag ?? ''}`.toLowerCase().includes(wanted),
  )
  return (
    <Page
      title={
        name === undefined
          ? asset
          : `${name.name}${name.network === name.ticker ? '' : ` on ${name.network}`}`
      }
      back={back}
      lead={
        mine === undefined ? (
          asset
        ) : (
          <>
            <code>{asset}</code> · <Status of={mine.status} />
            {name?.issuer ? ` · ${name.bridged ? 'bridged by' : 'issued by'} ${name.issuer}` : ''}
          </>
        )
      }
      actions={
        <>
          {mine?.closed ? null : (
            <Button icon="plus" onClick={() => setMaking(true)}>
              New address
            </Button>
          )}
          {mine === undefined ? null : <StatementLink of={{ asset }} />}
          <LinkButton
            href={pageAt(`/send?asset=${encodeURIComponent(asset)}`)}
            kind="primary"
            icon="send"
          >
            Send
          </LinkButton>
        </>
      }
    >
      <ProblemNote problem={wallet.problem} retry={wallet.reload} />
      {mine?.closed ? (
        <Note tone="warn">
          <p>
            {asset} is {mine.closed.status} since {mine.closed.since}: {mine.closed.reason}. No new
            address is made. Do not ask for payments to the addresses below. What is held can still
            be sent.
          </p>
        </Note>
      ) : null}
      {mine === undefined ? (
        wallet.problem === null ? (
          <Skeleton lines={3} />
        ) : null
      ) : (
        <Figures
          of={[
            worthFigure(
              'Can be sent',
              { amount: mine.balance, asset, price: whole?.price_usd ?? null },
              isPartly(mine) ? (
                <p>
                  One transfer can pay up to <Amount value={mine.max_spendable} of={asset} />
                </p>
              ) : null,
            ),
            {
              name: 'At its addresses',
              value: <Amount value={mine.omnibus_balance} of={asset} />,
              note: 'with what is reserved, or not swept yet',
            },
            {
              name: 'On the way',
              value: <Amount value={whole?.pending ?? null} of={asset} />,
              note: 'seen, not deep enough yet',
            },
          ]}
        />
      )}
      {level.data?.points.some(({ value }) => Number(value) !== 0) === true ? (
        <Card title="Balance, last 30 days">
          <Chart series={level.data} label="Balance at the end of each day" />
        </Card>
      ) : null}
      <Card
        title="Addresses"
        lead={addresses.data === undefined ? undefined : `${addresses.data.length} in all`}
        isBare
      >
        {(addresses.data?.length ?? 0) > 8 ? (
          <div class="bar">
            <input
              class="input"
              data-search
              type="search"
              aria-label="Find an address or label"
              placeholder="Find an address or label"
              value={find}
              onInput={(event) => setFind(event.currentTarget.value)}
            />
          </div>
        ) : null}
        <Table
          label="Addresses"
          reading={addresses}
          rows={rows?.slice(0, 100)}
          keyOf={({ id }) => id}
          columns={[
            {
              head: 'Label',
              cell: (address) => (
                <button type="button" class="link" onClick={() => setShown(address)}>
                  {address.label ??
                    (address.address === mine?.omnibus_address && address.address_tag === null
                      ? 'Main address'
                      : 'No label')}
                </button>
              ),
            },
            {
              head: 'Address',
              cell: ({ address }) => <Id value={address} label="address" keep={8} />,
            },
            ...(name?.takes_tag
              ? [
                  {
                    head: 'Tag',
                    cell: ({ address_tag: tag }: Address) =>
                      tag === null ? (
                        <span class="muted">–</span>
                      ) : (
                        <Id value={tag} label="tag" isWhole />
                      ),
                  },
                ]
              : []),
            {
              head: 'Path',
              isMinor: true,
              cell: ({ path }) => <code class="muted">{path.join(' / ')}</code>,
            },
            { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              icon="wallets"
              title={wanted === '' ? 'No addresses yet' : `Nothing fits “${find}”`}
              action={
                wanted === '' && !mine?.closed ? (
                  <Button onClick={() => setMaking(true)}>New address</Button>
                ) : undefined
              }
            />
          }
        />
        {(rows?.length ?? 0) > 100 ? (
          <p class="pad muted">The first hundred of {rows?.length}: type above to find another.</p>
        ) : null}
      </Card>
      <CoinsAside asset={asset} />
      <Card
        title="Latest transactions"
        isBare
        actions={
          <LinkButton
            href={pageAt(`/transactions?asset=${encodeURIComponent(asset)}`)}
            kind="quiet"
          >
            All of them
          </LinkButton>
        }
      >
        <TransactionTable
          reading={latest}
          rows={latest.data?.data}
          empty={
            <Empty icon="transactions" title="Nothing yet">
              {mine?.closed
                ? 'What still comes to the addresses above is shown here.'
                : 'Send coins to one of the addresses above. The deposit is shown here when the network reports it.'}
            </Empty>
          }
        />
      </Card>
      {shown === null ? null : (
        <Dialog title={shown.label ?? `Receive ${tickerOf(asset)}`} onClose={() => setShown(null)}>
          <AddressFacts address={shown} />
        </Dialog>
      )}
      {isMaking ? (
        <NewAddress
          asset={asset}
          onClose={() => setMaking(false)}
          onMade={(address) => {
            setMaking(false)
            addresses.reload()
            setShown(address)
          }}
        />
      ) : null}
    </Page>
  )
}
