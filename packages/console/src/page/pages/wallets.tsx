import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Overview, Wallet } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, Dialog, onSubmit } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Page, ProblemNote } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Amount, AssetName } from '../parts/values.tsx'
import { BALANCE, sortedByWorth } from '../worth/worth.tsx'
import { Table } from '../parts/table.tsx'
import { go, place, withQuery } from '../router.ts'

function CreateWallet({ held, onClose }: { held: ReadonlySet<string>; onClose(): void }) {
  const free = [...assetNames.value.values()].filter(
    ({ asset_name, is_active }) => is_active && !held.has(asset_name),
  )
  const [asset, setAsset] = useState(free[0]?.asset_name ?? '')
  const { isBusy, problem, run } = useAction()
  const submit = () =>
    run(async () => {
      const wallet = await sign<Wallet>('POST', '/dac/v1/create-wallet', { asset })
      toast('The wallet was created')
      go(pageAt(`/wallets/${wallet.asset}`))
    })
  return (
    <Dialog title="Create a wallet" onClose={onClose}>
      {free.length === 0 ? (
        <p>Every asset has a wallet.</p>
      ) : (
        <form class="stack" onSubmit={onSubmit(submit)}>
          <Choice
            label="Asset"
            value={asset}
            onValue={setAsset}
            options={free.map(({ asset_name, name, network, ticker, bridged }) => [
              asset_name,
              `${name} (${ticker})${network === ticker ? '' : ` on ${network}`}${bridged ? ', bridged' : ''}`,
            ])}
          />
          <p class="muted">
            It gets its first address at once, derived from the key that the three signer nodes
            certify.
          </p>
          <KeyNotice />
          <ProblemNote problem={problem} />
          <Button kind="primary" type="submit" isBusy={isBusy}>
            Create
          </Button>
        </form>
      )}
    </Dialog>
  )
}

export function Wallets() {
  const overview = useRead<Overview>(ofSub('/overview'), /^(?:transaction|deposit|wallet)\./)
  const wanted = (place.value.query.get('q') ?? '').toLowerCase()
  const [isCreating, setCreating] = useState(place.value.query.get('new') !== null)
  const all = sortedByWorth(overview.data?.balances)
  const rows = all?.filter(({ asset }) =>
    `${asset} ${assetNames.value.get(asset)?.name ?? ''}`.toLowerCase().includes(wanted),
  )
  const create = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      Create a wallet
    </Button>
  )
  return (
    <Page
      title="Wallets"
      lead="One for each asset, with as many deposit addresses as you like."
      actions={create}
    >
      <Card isBare>
        <div class="bar">
          <Search label="Find an asset" />
        </div>
        <Table
          label="Wallets"
          reading={overview}
          rows={rows}
          keyOf={({ asset }) => asset}
          hrefOf={({ asset }) => pageAt(`/wallets/${asset}`)}
          columns={[
            { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} isLong /> },
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
            wanted === '' ? (
              <Empty icon="wallets" title="No wallets yet" action={create}>
                A wallet gives you addresses for one asset.
              </Empty>
            ) : (
              <Empty
                icon="search"
                title={`No wallet fits “${wanted}”`}
                action={
                  <Button onClick={() => go(withQuery({ q: null }), 'replace')}>Show all</Button>
                }
              />
            )
          }
        />
      </Card>
      {isCreating && all !== undefined ? (
        <CreateWallet
          held={new Set(all.map(({ asset }) => asset))}
          onClose={() => {
            setCreating(false)
            go(withQuery({ new: null }), 'replace')
          }}
        />
      ) : null}
    </Page>
  )
}
