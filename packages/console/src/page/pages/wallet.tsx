import { QrCode } from '@custody/site/qr'
import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Address, Overview, Series, TransactionPage, WalletBalance } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Chart } from '../parts/chart.tsx'
import { CoinsAside } from '../parts/coins-aside.tsx'
import { Derivation } from '../parts/derivation.tsx'
import { Button, Dialog, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { Card, Empty, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, Copy, Id, tickerOf, Time, usd } from '../parts/show.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { TransactionTable } from '../parts/transaction-table.tsx'

function NewAddress({ asset, onClose, onMade }: { asset: string; onClose(): void; onMade(address: Address): void }) {
  const [label, setLabel] = useState('')
  const { isBusy, problem, run } = useAction()
  return (
    <Dialog title={`New ${tickerOf(asset)} address`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            onMade(await sign<Address>('POST', '/dac/v1/address', { asset, ...(label.trim() === '' ? {} : { label: label.trim() }) }))
            toast('The address is there')
          }),
        )}
      >
        <Text
          label="Label"
          hint="For you: a customer’s number, an order. It never leaves the platform."
          value={label}
          onValue={setLabel}
          maxLength={100}
        />
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Make the address
        </Button>
      </form>
    </Dialog>
  )
}

function Receive({ address, onClose }: { address: Address; onClose(): void }) {
  const [isUri, setUri] = useState(address.payment_uri !== null)
  const text = isUri && address.payment_uri !== null ? address.payment_uri : address.address
  const asset = assetNames.value.get(address.asset)
  return (
    <Dialog title={address.label ?? `Receive ${tickerOf(address.asset)}`} onClose={onClose}>
      <div class="receive">
        <div class="qr-box">
          <QrCode text={text} label={isUri ? 'Payment URI' : 'Address'} />
        </div>
        {address.payment_uri === null ? null : (
          <div class="switch" role="group" aria-label="What the code holds">
            <button type="button" aria-pressed={isUri} onClick={() => setUri(true)}>
              Payment URI
            </button>
            <button type="button" aria-pressed={!isUri} onClick={() => setUri(false)}>
              Address only
            </button>
          </div>
        )}
      </div>
      <dl class="lines">
        <div>
          <dt>Address</dt>
          <dd>
            <Id value={address.address} label="address" isWhole />
          </dd>
        </div>
        {address.address_tag === null ? null : (
          <div>
            <dt>Tag</dt>
            <dd>
              <Id value={address.address_tag} label="tag" isWhole />
            </dd>
          </div>
        )}
        {address.payment_uri === null ? null : (
          <div>
            <dt>Payment URI</dt>
            <dd>
              <Copy text={address.payment_uri} label="payment URI" word="Copy" />
            </dd>
          </div>
        )}
        <div>
          <dt>Path</dt>
          <dd>
            <code>{address.path.join(' / ')}</code>
          </dd>
        </div>
        <div>
          <dt>Made</dt>
          <dd>
            <Time at={address.created_at} isLong />
          </dd>
        </div>
      </dl>
      {address.address_tag === null ? null : (
        <Note tone="warn">
          <p>Without the tag, a payment cannot be told apart from others’.</p>
        </Note>
      )}
      <p class="muted">
        Send only {tickerOf(address.asset)} here, and only on {asset?.network ?? 'its own network'}.
      </p>
      <Derivation address={address} />
    </Dialog>
  )
}

export function WalletPage({ asset = '' }: { asset?: string }) {
  const wallet = useRead<WalletBalance[]>(
    mirror(`/dac/v1/wallets?asset=${encodeURIComponent(asset)}`),
    /^(?:transaction|deposit|wallet)\./,
  )
  const addresses = useRead<Address[]>(mirror(`/dac/v1/addresses?asset=${encodeURIComponent(asset)}`), /^address\./)
  const overview = useRead<Overview>(ofSub('/overview'), /^(?:transaction|deposit|wallet)\./)
  const latest = useRead<TransactionPage>(
    mirror(`/dac/v1/transactions?asset=${encodeURIComponent(asset)}&limit=10`),
    /^(?:transaction|deposit)\./,
  )
  const level = useRead<Series>(ofSub(`/series?metric=balance&asset=${encodeURIComponent(asset)}&days=30`))
  const [shown, setShown] = useState<Address | null>(null)
  const [isMaking, setMaking] = useState(false)
  const [find, setFind] = useState('')
  const mine = wallet.data?.[0]
  const worth = overview.data?.balances.find((each) => each.asset === asset)
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
      title={name === undefined ? asset : `${name.name}${name.network === name.ticker ? '' : ` on ${name.network}`}`}
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
          <LinkButton href={pageAt(`/send?asset=${encodeURIComponent(asset)}`)} kind="primary" icon="send">
            Send
          </LinkButton>
        </>
      }
    >
      <ProblemNote problem={wallet.problem} retry={wallet.reload} />
      {mine?.closed ? (
        <Note tone="warn">
          <p>
            {asset} is {mine.closed.status} since {mine.closed.since}: {mine.closed.reason}. No new address is made. Do not ask for
            payments to the addresses below. What is held can still be sent.
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
            {
              name: 'Can be sent',
              value: <Amount value={mine.balance} of={asset} />,
              note: worth === undefined || worth.usd === null ? undefined : usd(worth.usd),
            },
            {
              name: 'On its addresses',
              value: <Amount value={mine.omnibus_balance} of={asset} />,
              note: 'with what is reserved, or not swept yet',
            },
            { name: 'On the way', value: <Amount value={worth?.pending ?? null} of={asset} />, note: 'seen, not deep enough yet' },
          ]}
        />
      )}
      {level.data?.points.some(({ value }) => Number(value) !== 0) === true ? (
        <Card title="Balance, last 30 days">
          <Chart series={level.data} label="Balance at the end of each day" />
        </Card>
      ) : null}
      <Card title="Addresses" lead={addresses.data === undefined ? undefined : `${addresses.data.length} in all`} isBare>
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
                    (address.address === mine?.omnibus_address && address.address_tag === null ? 'Main address' : 'No label')}
                </button>
              ),
            },
            { head: 'Address', cell: ({ address }) => <Id value={address} label="address" keep={8} /> },
            ...(name?.takes_tag
              ? [
                  {
                    head: 'Tag',
                    cell: ({ address_tag: tag }: Address) =>
                      tag === null ? <span class="muted">–</span> : <Id value={tag} label="tag" isWhole />,
                  },
                ]
              : []),
            { head: 'Path', isMinor: true, cell: ({ path }) => <code class="muted">{path.join(' / ')}</code> },
            { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              icon="wallets"
              title={wanted === '' ? 'No addresses yet' : `Nothing fits “${find}”`}
              action={wanted === '' && !mine?.closed ? <Button onClick={() => setMaking(true)}>New address</Button> : undefined}
            />
          }
        />
        {(rows?.length ?? 0) > 100 ? <p class="pad muted">The first hundred of {rows?.length}: type above to find another.</p> : null}
      </Card>
      <CoinsAside asset={asset} />
      <Card
        title="Latest transactions"
        isBare
        actions={
          <LinkButton href={pageAt(`/transactions?asset=${encodeURIComponent(asset)}`)} kind="quiet">
            All of them
          </LinkButton>
        }
      >
        <TransactionTable
          reading={latest}
          rows={latest.data?.data}
          empty={
            <Empty icon="transactions" title="Nothing yet">
              Send something to one of the addresses above: it is shown here when the network has it.
            </Empty>
          }
        />
      </Card>
      {shown === null ? null : <Receive address={shown} onClose={() => setShown(null)} />}
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
