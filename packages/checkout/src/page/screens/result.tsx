import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CheckoutState } from '../../state.ts'
import { subtract } from '../decimal.ts'
import { isFramed, tellParent } from '../frame.ts'
import { useSpeech, type Speech } from '../language.ts'
import { webLink } from '../links.ts'
import { Amount, Code } from '../parts/amount.tsx'
import { PrintIcon } from '../parts/icons.tsx'
import { Payments } from '../parts/payments.tsx'
import { Status } from '../parts/status.tsx'
import { viewNameOf, viewOf, type ViewName } from '../view.ts'

/** Seconds before the redirect: long enough to see the result, and to cancel. */
const RETURN_S = 10

const line = (name: string, value: ComponentChildren, key?: string) => (
  <div key={key ?? name}>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)

function Receipt({ state }: { state: CheckoutState }) {
  const { words, money, moment } = useSpeech()
  const { selected } = state
  const counted = state.payments.filter(({ counts }) => counts)
  const last =
    counted
      .map(({ seen_at: at }) => at)
      .toSorted()
      .at(-1) ?? state.now
  return (
    <section class="receipt" aria-labelledby="receipt-title">
      <h3 id="receipt-title" class="label">
        {words.receipt}
      </h3>
      <dl>
        {line(words.paidTo, <bdi>{state.merchant}</bdi>)}
        {state.fiat && state.fiat_amount
          ? line(words.payment, <bdi>{money(state.fiat_amount, state.fiat)}</bdi>)
          : null}
        {selected
          ? line(words.received, <Amount amount={selected.paid_amount} ticker={selected.ticker} />)
          : null}
        {line(words.date, <bdi>{moment(new Date(last))}</bdi>)}
        {state.order_id === null ? null : line(words.order, <bdi>{state.order_id}</bdi>)}
        {line(words.invoice, <Code text={state.inv_id} />)}
        {counted.map(({ hash }) =>
          hash === null ? null : line(words.transaction, <Code text={hash} />, hash),
        )}
      </dl>
    </section>
  )
}

/**
 * Redirects the payer to the shop unless they cancel. Only if they saw the payment happen, and if
 * the page is not in a frame.
 */
function Returning({ url, isFresh }: { url: string; isFresh: boolean }) {
  const { words, count } = useSpeech()
  const [leftS, setLeft] = useState(isFresh && !isFramed ? RETURN_S : null)
  useEffect(() => {
    if (leftS === null) return
    if (leftS === 0) {
      location.assign(url)
      return
    }
    const timer = setTimeout(() => setLeft(document.hidden ? leftS : leftS - 1), 1000)
    return () => clearTimeout(timer)
  }, [leftS, url])
  if (leftS === null) return null
  return (
    <p class="returning">
      <span>{count(words.returning, leftS)}</span>
      <button type="button" class="button quiet" onClick={() => setLeft(null)}>
        {words.stay}
      </button>
    </p>
  )
}

/** Link back to the shop; in the widget's frame it closes the dialog. */
function Back({
  url,
  merchant,
  invoiceId,
}: {
  url: string | null
  merchant: string
  invoiceId: string
}) {
  const { words, say } = useSpeech()
  const close = () => tellParent(invoiceId, { event: 'close' })
  if (isFramed)
    return (
      <button type="button" class="button primary" onClick={close}>
        {words.close}
      </button>
    )
  return url === null ? null : (
    <a class="button primary" href={url} rel="noreferrer">
      <span>{say(words.backTo, { merchant })}</span>
    </a>
  )
}

function detailOf(name: ViewName, state: CheckoutState, { words, say }: Speech) {
  const { selected, merchant } = state
  const amount = (value: string) =>
    selected ? <Amount amount={value} ticker={selected.ticker} /> : null
  const values =
    selected === null
      ? {}
      : {
          paid: amount(selected.paid_amount),
          total: amount(selected.crypto_amount),
          over: amount(subtract(selected.paid_amount, selected.crypto_amount)),
        }
  return say(words[viewOf(name).detail], { merchant, ...values })
}

/**
 * The result, and what to do next.
 * @param isFresh the page was open when the status changed
 */
export function Result({ state, isFresh }: { state: CheckoutState; isFresh: boolean }) {
  const speech = useSpeech()
  const { words } = speech
  const name = viewNameOf(state, false)
  const { shape, tone, title } = viewOf(name)
  const isPaid = state.inv_status === 'Paid'
  const url = webLink(isPaid ? state.success_url : state.failed_url)
  const reference = isPaid ? null : (
    <div class="reference">
      <p class="label">{words.invoice}</p>
      <p>
        <Code text={state.inv_id} />
      </p>
    </div>
  )
  return (
    <div class="screen is-centred">
      <Status
        shape={shape}
        tone={tone}
        title={words[title]}
        detail={detailOf(name, state, speech)}
        large
      />
      {isPaid ? <Receipt state={state} /> : null}
      {reference}
      {isPaid ? null : <Payments payments={state.payments} />}
      <div class="actions">
        <Back url={url} merchant={state.merchant} invoiceId={state.inv_id} />
        {isPaid ? (
          <button type="button" class="button secondary" onClick={() => print()}>
            <PrintIcon />
            {words.print}
          </button>
        ) : null}
        {isPaid && url !== null ? (
          <Returning url={url} isFresh={isFresh && name === 'paid'} />
        ) : null}
      </div>
    </div>
  )
}
