import { useState } from 'preact/hooks'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { TagDraft } from '../api/tag.ts'
import type { ForwardRule, Overview, Page as PageOf } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Note, Page, ProblemNote } from '../parts/page.tsx'
import { amountError, amountOf, AssetChoice } from '../parts/pick.tsx'
import { Amount, AssetName, Id, tickerOf, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { EMPTY_TAG, TagField, useDestination } from '../parts/tag-field.tsx'
import { go } from '../router.ts'

const DAY_MS = 86_400_000
const LIFE_DAYS = 365

function NewRule({ of, onClose }: { of: readonly string[]; onClose(): void }) {
  const [asset, setAsset] = useState(of[0] ?? '')
  const [least, setLeast] = useState('')
  const [cap, setCap] = useState('')
  const [address, setAddress] = useState('')
  const [tag, setTag] = useState<TagDraft>(EMPTY_TAG)
  const [until, setUntil] = useState(() =>
    new Date(Date.now() + LIFE_DAYS * DAY_MS).toISOString().slice(0, 10),
  )
  const { isBusy, problem, run } = useAction()
  const [min, daily] = [amountOf(least), amountOf(cap)]
  const destination = useDestination(asset, address.trim(), tag)
  const submit = () =>
    run(async () => {
      const rule = await sign<ForwardRule>('POST', '/dac/v1/auto-forwarding', {
        asset,
        min_amount: min,
        daily_cap: daily,
        destination_address: address.trim(),
        expires_at: `${until}T00:00:00Z`,
        ...(destination.tag === '' ? {} : { address_tag: destination.tag }),
      })
      toast('The rule is made')
      go(pageAt(`/forwarding/${rule.id}`))
    })
  const of2 = (field: string) => (problem?.field === field ? problem.message : null)
  return (
    <Dialog title="Forward what comes in" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <AssetChoice
          value={asset}
          onValue={(value) => {
            setAsset(value)
            setTag((before) => ({ ...before, hasNoTag: false }))
          }}
          of={of}
          hint="Deposits credited after the rule was created"
        />
        <Text
          label="Until"
          type="date"
          value={until}
          onValue={setUntil}
          required
          hint="00:00 UTC of that day"
          error={of2('expires_at')}
        />
        <Text
          label="From"
          value={least}
          onValue={setLeast}
          inputMode="decimal"
          suffix={tickerOf(asset)}
          required
          error={amountError(least) ?? of2('min_amount')}
          hint="Deposits are forwarded once their sum reaches this amount"
          maxLength={60}
        />
        <Text
          label="Maximum in 24 hours"
          value={cap}
          onValue={setCap}
          inputMode="decimal"
          suffix={tickerOf(asset)}
          required
          error={amountError(cap) ?? of2('daily_cap')}
          hint="Enforced by the signer nodes"
          maxLength={60}
        />
        <Text
          isWide
          label="Destination address"
          value={address}
          onValue={(value) => {
            setAddress(value)
            setTag((before) => ({ ...before, hasNoTag: false }))
          }}
          class="input code"
          required
          maxLength={256}
          error={of2('destination_address') ?? destination.addressError}
          hint="It cannot be changed afterwards"
        />
        <TagField
          asset={asset}
          destination={destination}
          draft={tag}
          onDraft={setTag}
          error={of2('address_tag')}
        />
        <Note tone="warn">
          <p>
            A rule pays by itself until it ends. Compare the address with its owner, by another way
            than the one it came by.
          </p>
        </Note>
        <div class="is-wide">
          <KeyNotice />
        </div>
        <div class="is-wide">
          <ProblemNote problem={problem} />
        </div>
        <div class="form-end">
          <Button
            kind="primary"
            type="submit"
            icon="key"
            isBusy={isBusy}
            disabled={min === null || daily === null || !destination.isReady || until === ''}
          >
            Sign the rule
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Page of rules that forward incoming payments to one destination. */
export function Forwarding() {
  const rules = useRead<PageOf<ForwardRule>>(
    mirror('/dac/v1/auto-forwarding?limit=100'),
    /^(?:forward|auto_forwarding|transaction|deposit)/,
  )
  const overview = useRead<Overview>(ofSub('/overview'))
  const [isMaking, setMaking] = useState(false)
  const assets = overview.data?.balances.map(({ asset }) => asset) ?? []
  const make = (
    <Button
      kind="primary"
      icon="plus"
      onClick={() => setMaking(true)}
      disabled={assets.length === 0}
    >
      New rule
    </Button>
  )
  return (
    <Page
      title="Auto-forwarding"
      lead="Deposits are forwarded to one destination by a rule that you sign once and the signer nodes enforce."
      actions={make}
    >
      <Card isBare>
        <Table
          label="Rules"
          reading={rules}
          rows={rules.data?.data}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageAt(`/forwarding/${id}`)}
          columns={[
            { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} /> },
            { head: 'State', cell: ({ status }) => <Status of={status} /> },
            {
              head: 'To',
              cell: ({ destination_address: to, address_tag: of }) => (
                <>
                  <Id value={to} label="destination" keep={6} />
                  {of === null ? null : <span class="muted"> tag {of}</span>}
                </>
              ),
            },
            {
              head: 'Waiting',
              isNumber: true,
              isMinor: true,
              cell: ({ waiting, asset }) => <Amount value={waiting} of={asset} />,
            },
            {
              head: 'From',
              isNumber: true,
              isMinor: true,
              cell: ({ min_amount: least, asset }) => <Amount value={least} of={asset} />,
            },
            {
              head: 'A day',
              isNumber: true,
              isMinor: true,
              cell: ({ daily_cap: cap, asset }) => <Amount value={cap} of={asset} />,
            },
            { head: 'Until', isMinor: true, cell: ({ expires_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              icon="forward"
              title="No rules yet"
              action={assets.length === 0 ? undefined : make}
            >
              A rule forwards deposits automatically, for example to a treasury or an exchange.
            </Empty>
          }
        />
      </Card>
      {isMaking ? <NewRule of={assets} onClose={() => setMaking(false)} /> : null}
    </Page>
  )
}
