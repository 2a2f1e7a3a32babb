import { useEffect, useMemo, useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { estimateFee } from '../api/queries.ts'
import { units } from '../api/decimal.ts'
import { mirror, ofSub, pageAt, scope } from '../api/scope.ts'
import { useDebounced } from '../api/debounced.ts'
import { isTagInMemo } from '../api/tag.ts'
import type { FeeEstimate, FeeRates, Overview, Price } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { exact } from '../api/wire.ts'
import { Button, Choice, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { Review, type Draft } from '../parts/review.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { NO_DECIMAL } from '../parts/pick.tsx'
import { Amount, tickerOf } from '../parts/values.tsx'
import { AmountWorth, Worth } from '../worth/worth.tsx'
import {
  addressHint,
  EMPTY_TAG,
  TagField,
  tagName,
  tagShown,
  useDestination,
} from '../parts/tag-field.tsx'
import { place } from '../router.ts'

/**
 * Storage key of the form. It is kept over a reload, so sending the same form again is the same
 * order.
 */
const stored = () => `custody-console-send:${scope.value.subPath}`
function firstDraft(asset: string): Draft {
  try {
    const draft = JSON.parse(sessionStorage.getItem(stored()) ?? 'null') as Draft | null
    if (draft !== null && (asset === '' || draft.asset === asset))
      return { ...draft, hasNoTag: draft.hasNoTag === true }
  } catch {
    // Stored by another version.
  }
  return {
    asset,
    amount: '',
    address: '',
    ...EMPTY_TAG,
    memo: '',
    level: 'medium',
    sequence_id: crypto.randomUUID(),
  }
}

function Estimate({
  estimate,
  failure,
  isAsking,
  price,
}: {
  estimate: FeeEstimate | null
  failure: string | null
  isAsking: boolean
  price: string | null
}) {
  if (failure !== null) return <p class="field-error">{failure}</p>
  if (estimate === null)
    return (
      <p class="muted estimate">
        {isAsking
          ? 'Estimating the network fee…'
          : 'The network fee is estimated once you choose an asset.'}
      </p>
    )
  return (
    <p class="estimate">
      Network fee about{' '}
      <AmountWorth of={{ amount: estimate.fee, asset: estimate.fee_asset, price }} />
      {estimate.basis === 'typical' ? <span class="muted"> for a typical transfer</span> : null}
      {estimate.activation === undefined || Number(estimate.activation) === 0 ? null : (
        <span class="muted">, with the receiver’s activation</span>
      )}
    </p>
  )
}

function usePrice(asset: string): string | null {
  const prices = useRead<Price[]>(asset === '' ? null : mirror('/dac/v1/prices'))
  return (
    prices.data?.find((price) => price.asset === asset || price.asset === tickerOf(asset))
      ?.price_usd ?? null
  )
}

export function Send() {
  const overview = useRead<Overview>(ofSub('/overview'))
  const [draft, setDraft] = useState(() => firstDraft(place.value.query.get('asset') ?? ''))
  const [isReview, setReview] = useState(false)
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }))
  useEffect(() => sessionStorage.setItem(stored(), JSON.stringify(draft)), [draft])
  const asset = draft.asset === '' ? (overview.data?.balances[0]?.asset ?? '') : draft.asset
  const assetInfo = assetNames.value.get(asset)
  const held = overview.data?.balances.find((each) => each.asset === asset)
  const price = usePrice(asset)
  const feePrice = usePrice(assetInfo?.fee_asset ?? '')
  const rates = useRead<FeeRates>(
    asset === '' ? null : mirror(`/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`),
  )
  const address = draft.address.trim()
  const destination = useDestination(asset, address, draft)
  const payable = destination.validity?.valid === true ? address : ''
  const amount = exact(draft.amount)
  const rate = rates.data === undefined ? null : exact(rates.data[draft.level])
  const fee = useDebounced(
    asset !== '' && rate !== null ? () => estimateFee(asset, rate, amount, payable) : null,
    `${asset} ${rate?.text ?? ''} ${amount?.text ?? ''} ${payable}`,
  )
  const amountProblem = useMemo(() => {
    if (draft.amount.trim() === '') return null
    if (amount === null) return NO_DECIMAL
    const decimals = assetInfo?.decimals ?? 18
    const wanted = units(amount.text, decimals)
    if (wanted === null) return `${tickerOf(asset)} has ${decimals} decimal places.`
    if (wanted === 0n) return 'The amount must be greater than zero.'
    const most = held === undefined ? null : units(held.available, decimals)
    return most !== null && wanted > most ? 'More than can be sent.' : null
  }, [draft.amount, asset, held?.available])
  const memoProblem = isTagInMemo(destination, draft.memo)
    ? `Digits here never reach the network. Enter them as ${tagName(asset).toLowerCase()}, or put a word before them.`
    : null
  const isReady =
    amount !== null &&
    amountProblem === null &&
    destination.isReady &&
    memoProblem === null &&
    asset !== ''
  if (overview.data === undefined) {
    return (
      <Page title="Send">
        {overview.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={overview.problem} retry={overview.reload} />
        )}
      </Page>
    )
  }
  if (overview.data.balances.length === 0) {
    return (
      <Page title="Send">
        <Empty
          icon="wallets"
          title="No wallet to send from"
          action={
            <LinkButton href={pageAt('/wallets?new=')} kind="primary">
              Create a wallet
            </LinkButton>
          }
        />
      </Page>
    )
  }
  if (isReview && amount !== null) {
    return (
      <Review
        draft={{ ...draft, asset, address, tag: destination.tag }}
        tag={tagShown(asset, destination)}
        amount={amount}
        fee={fee.data}
        price={price}
        onBack={() => setReview(false)}
        onSent={() => sessionStorage.removeItem(stored())}
        onAnother={() => change({ sequence_id: crypto.randomUUID() })}
      />
    )
  }
  return (
    <Page
      title="Send"
      lead="Signed in this browser, verified by the signer nodes."
      back={{ href: pageAt('/transactions'), word: 'Transactions' }}
      actions={
        <LinkButton href={pageAt('/batch')} icon="batch">
          Many at once
        </LinkButton>
      }
    >
      <KeyNotice />
      <Card>
        <form class="grid-form send-form" onSubmit={onSubmit(() => isReady && setReview(true))}>
          <Choice
            label="Asset"
            value={asset}
            onValue={(value) => change({ asset: value, hasNoTag: false })}
            options={overview.data.balances.map((each) => [
              each.asset,
              `${each.asset} · ${each.available}`,
            ])}
            hint={
              held === undefined ? undefined : (
                <>
                  Can be sent: <Amount value={held.available} of={asset} />
                </>
              )
            }
          />
          <Text
            label="Amount"
            value={draft.amount}
            onValue={(value) => change({ amount: value })}
            inputMode="decimal"
            required
            error={amountProblem}
            suffix={tickerOf(asset)}
            hint={
              amount === null || price === null ? (
                'Exact, with as many decimals as you need'
              ) : (
                <>
                  Worth <Worth amount={amount.text} price={price} />
                </>
              )
            }
            maxLength={60}
          />
          <Text
            isWide
            label="Destination address"
            value={draft.address}
            onValue={(value) => change({ address: value, hasNoTag: false })}
            required
            class="input code"
            maxLength={256}
            error={destination.addressError}
            hint={addressHint(asset, destination)}
          />
          <TagField asset={asset} destination={destination} draft={draft} onDraft={change} />
          <Text
            label="Memo for your records"
            value={draft.memo}
            onValue={(value) => change({ memo: value })}
            hint="Your own note. It is not sent to the network."
            error={memoProblem}
            maxLength={200}
          />
          <fieldset class="field">
            <legend>Network fee</legend>
            <div class="switch" role="group" aria-label="Fee level">
              {(['low', 'medium', 'high'] as const).map((level) => (
                <button
                  key={level}
                  type="button"
                  aria-pressed={draft.level === level}
                  onClick={() => change({ level })}
                >
                  {level === 'low' ? 'Slow' : level === 'medium' ? 'Normal' : 'Fast'}
                </button>
              ))}
            </div>
            {rates.problem === null ? (
              <Estimate
                estimate={fee.data}
                failure={fee.failure}
                isAsking={fee.isAsking || rates.data === undefined}
                price={feePrice}
              />
            ) : (
              <p class="field-error">{rates.problem.message}</p>
            )}
          </fieldset>
          <div class="form-end">
            <Button kind="primary" type="submit" disabled={!isReady}>
              Review
            </Button>
          </div>
        </form>
      </Card>
    </Page>
  )
}
