import type { CheckoutState } from '../../state.ts'
import { useSpeech } from '../language.ts'
import { Payments } from '../parts/payments.tsx'
import { Status } from '../parts/status.tsx'
import { viewNameOf, viewOf } from '../view.ts'

const RADIUS = 44
const AROUND = 2 * Math.PI * RADIUS

/** Returns the confirmations of the payment that is furthest from its required number. */
function slowest(state: CheckoutState): { confirmations: number; required: number } | null {
  const open = state.payments.filter(
    ({ counts, status }) => counts && status !== 'reverted' && status !== 'dropped',
  )
  const [first] = open.toSorted(
    (a, b) => a.confirmations / (a.required || 1) - b.confirmations / (b.required || 1),
  )
  return first ?? null
}

function Ring({ confirmations, required }: { confirmations: number; required: number }) {
  const { words, count, whole } = useSpeech()
  const shown = Math.min(confirmations, required)
  const share = required === 0 ? 1 : shown / required
  const text = count(words.confirmations, required, { n: shown, m: required })
  return (
    <div
      class="ring"
      role="progressbar"
      aria-label={words.confirming}
      aria-valuetext={text}
      aria-valuemin={0}
      aria-valuemax={required}
      aria-valuenow={shown}
    >
      <svg viewBox="0 0 100 100" aria-hidden="true" focusable="false">
        <circle class="ring-track" cx="50" cy="50" r={RADIUS} />
        <circle
          class="ring-part"
          cx="50"
          cy="50"
          r={RADIUS}
          stroke-dasharray={`${AROUND * Math.max(share, 0.02)} ${AROUND}`}
        />
      </svg>
      <bdi dir="ltr" class="ring-words">
        {whole(shown)}/{whole(required)}
      </bdi>
    </div>
  )
}

/** Shown when the payment has arrived and waits for confirmations. */
export function Progress({ state }: { state: CheckoutState }) {
  const { words } = useSpeech()
  const { shape, tone, title, detail } = viewOf(viewNameOf(state, false))
  const depth = slowest(state)
  return (
    <div class="screen is-centred">
      <Status shape={shape} tone={tone} title={words[title]} detail={words[detail]} large>
        {depth && shape === 'progress' ? <Ring {...depth} /> : undefined}
      </Status>
      <Payments payments={state.payments} />
    </div>
  )
}
