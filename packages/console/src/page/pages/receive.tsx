import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import type { Address, Overview } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Button, Choice, LinkButton } from '../parts/form.tsx'
import { NewAddress } from '../parts/new-address.tsx'
import { Card, Empty, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { AddressFacts } from '../parts/receive.tsx'
import { go, place, withQuery } from '../router.ts'

/** Returns the label of an asset in a list. */
function wordOf(asset: string): string {
  const name = assetNames.value.get(asset)
  return name === undefined
    ? asset
    : `${name.name} (${name.ticker})${name.network === name.ticker ? '' : ` on ${name.network}`}`
}

/** Page with a deposit address of the selected wallet. */
export function ReceivePage() {
  const overview = useRead<Overview>(ofSub('/overview'), /^wallet\./)
  const held = overview.data?.balances.map(({ asset }) => asset)
  const requested = place.value.query.get('asset')
  const asset = requested !== null && held?.includes(requested) ? requested : held?.[0]
  return (
    <Page
      title="Receive"
      lead="An address for your payers. You can give each payer a separate address."
    >
      {held === undefined ? (
        overview.problem === null ? (
          <Skeleton lines={4} />
        ) : (
          <ProblemNote problem={overview.problem} retry={overview.reload} />
        )
      ) : asset === undefined ? (
        <Empty
          icon="wallets"
          title="No wallets yet"
          action={
            <LinkButton href={pageAt('/wallets?new=')} kind="primary">
              Create a wallet
            </LinkButton>
          }
        >
          A wallet gives you addresses for one asset.
        </Empty>
      ) : (
        <>
          <Card>
            <Choice
              label="Asset"
              value={asset}
              onValue={(chosen) => go(withQuery({ asset: chosen }), 'replace')}
              options={held.map((each) => [each, wordOf(each)])}
            />
          </Card>
          <OfAsset key={asset} asset={asset} />
        </>
      )}
    </Page>
  )
}

function OfAsset({ asset }: { asset: string }) {
  const addresses = useRead<Address[]>(
    mirror(`/dac/v1/addresses?asset=${encodeURIComponent(asset)}`),
    /^address\./,
  )
  const [made, setMade] = useState<Address | null>(null)
  const [isMaking, setMaking] = useState(false)
  const name = assetNames.value.get(asset)
  // The address that was just created, otherwise the last one of the list.
  const shown = made ?? addresses.data?.at(-1)
  if (addresses.data === undefined) {
    return addresses.problem === null ? (
      <Skeleton lines={4} />
    ) : (
      <ProblemNote problem={addresses.problem} retry={addresses.reload} />
    )
  }
  const isClosed = name?.is_active === false
  return (
    <>
      {isClosed ? (
        <Note tone="warn">
          <p>
            {asset} is closed: no new addresses are made. Do not ask for payments to the one below.
          </p>
        </Note>
      ) : null}
      <Card
        title={shown === undefined ? 'Address' : (shown.label ?? 'Newest address')}
        lead={addresses.data.length > 1 ? `One of ${addresses.data.length}` : undefined}
        actions={
          <>
            {isClosed ? null : (
              <Button icon="plus" onClick={() => setMaking(true)}>
                New address
              </Button>
            )}
            <LinkButton href={pageAt(`/wallets/${asset}`)} kind="quiet">
              All addresses
            </LinkButton>
          </>
        }
      >
        {shown === undefined ? (
          <Empty icon="wallets" title="No addresses yet" />
        ) : (
          <AddressFacts key={shown.id} address={shown} />
        )}
      </Card>
      {isMaking ? (
        <NewAddress
          asset={asset}
          onClose={() => setMaking(false)}
          onMade={(address) => {
            setMaking(false)
            setMade(address)
            addresses.reload()
          }}
        />
      ) : null}
    </>
  )
}
