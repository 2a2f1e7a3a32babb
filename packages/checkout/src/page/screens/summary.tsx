import type { CheckoutState } from '../../state.ts'
import { useSpeech } from '../language.ts'
import { Amount, Code } from '../parts/amount.tsx'
import { serverNow, TimeLeft } from '../parts/time-left.tsx'

/** The requested amount in its original currency, otherwise in coins. */
function RequestedAmount({ state }: { state: CheckoutState }) {
  const { money } = useSpeech()
  if (state.fiat !== null && state.fiat_amount !== null)
    return <bdi>{money(state.fiat_amount, state.fiat)}</bdi>
  const { selected } = state
  if (selected) return <Amount amount={selected.crypto_amount} ticker={selected.ticker} />
  const [first] = state.assets
  return first ? <Amount amount={first.crypto_amount} ticker={first.ticker} /> : null
}

/** What is paid for, the amount, and the deadline. */
export function Summary({
  state,
  heardMs,
  onEnd,
}: {
  state: CheckoutState
  heardMs: number
  onEnd: () => void
}) {
  const { words, say } = useSpeech()
  return (
    <section class="summary" aria-labelledby="summary-title">
      <h1 id="summary-title" class="summary-title">
        {say(words.payTo, { merchant: state.merchant })}
      </h1>
      <p class="summary-amount">
        <RequestedAmount state={state} />
      </p>
      <p class="summary-memo">
        <bdi>{state.memo}</bdi>
      </p>
      {state.inv_status === 'Pending' ? (
        <div class="summary-time">
          <TimeLeft state={state} heardMs={heardMs} onEnd={onEnd} />
        </div>
      ) : null}
    </section>
  )
}

/** Details that the payer or the merchant may need later. */
export function Facts({ state, heardMs }: { state: CheckoutState; heardMs: number }) {
  const { words, money, time } = useSpeech()
  const { selected } = state
  const now = new Date(serverNow({ now: state.now, heardMs }))
  return (
    <aside class="facts" aria-label={words.details}>
      <dl>
        {state.order_id === null ? null : (
          <div>
            <dt>{words.order}</dt>
            <dd>
              <bdi>{state.order_id}</bdi>
            </dd>
          </div>
        )}
        {selected?.rate && state.fiat ? (
          <div>
            <dt>
              {words.rate}
              {selected.rate_at === null ? null : (
                <>
                  {' '}
                  · <bdi>{time(new Date(selected.rate_at), now)}</bdi>
                </>
              )}
            </dt>
            <dd>
              <bdi dir="ltr">
                1&nbsp;{selected.ticker} = {money(selected.rate, state.fiat)}
              </bdi>
            </dd>
          </div>
        ) : null}
        <div>
          <dt>{words.invoice}</dt>
          <dd>
            <Code text={state.inv_id} />
          </dd>
        </div>
      </dl>
    </aside>
  )
}
