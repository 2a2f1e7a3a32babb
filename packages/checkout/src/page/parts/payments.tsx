import type { Payment } from '../../state.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { useSpeech } from '../language.ts'
import { webLink } from '../links.ts'
import type { Shape, Tone } from '../view.ts'
import { Amount, ShortCode } from './amount.tsx'
import { OutIcon, StatusIcon } from './icons.tsx'

const LOOKS = {
  seen: { shape: 'waiting', tone: 'info', words: 'awaitsBlock' },
  detected: { shape: 'progress', tone: 'info', words: 'detected' },
  confirmed: { shape: 'check', tone: 'ok', words: 'confirmed' },
  held: { shape: 'shield', tone: 'warn', words: 'held' },
  reverted: { shape: 'slash', tone: 'bad', words: 'reverted' },
  dropped: { shape: 'slash', tone: 'bad', words: 'dropped' },
} as const satisfies Record<Payment['status'], { shape: Shape; tone: Tone; words: keyof Catalogue }>

/** The transaction of a payment; nothing if none lists it, because a contract paid. */
function Hash({ hash, link }: { hash: string | null; link: string | null }) {
  const { words } = useSpeech()
  if (hash === null) return null
  if (link === null) return <ShortCode text={hash} />
  return (
    <a class="payment-link" href={link} target="_blank" rel="noopener noreferrer">
      <span class="sr-only">{words.viewTransaction}</span>
      <ShortCode text={hash} />
      <OutIcon />
    </a>
  )
}

function Line({ payment }: { payment: Payment }) {
  const { words, count } = useSpeech()
  const { shape, tone, words: status } = LOOKS[payment.status]
  const { confirmations, required } = payment
  const isCounting = payment.status === 'detected'
  return (
    <li class="payment">
      <span class={`payment-shape tone-${tone}`}>
        <StatusIcon shape={shape} />
      </span>
      <div class="payment-words">
        <p class="payment-amount">
          <Amount amount={payment.amount} ticker={payment.ticker} />
        </p>
        <p class="payment-status">
          {isCounting
            ? count(words.confirmations, required, { n: confirmations, m: required })
            : words[status]}
          {payment.counts || tone === 'bad' ? null : ` · ${words.notCounted}`}
        </p>
      </div>
      <Hash hash={payment.hash} link={webLink(payment.explorer_url)} />
    </li>
  )
}

/** List of received payments. */
export function Payments({ payments }: { payments: readonly Payment[] }) {
  const { words } = useSpeech()
  if (payments.length === 0) return null
  return (
    <section class="payments" aria-labelledby="payments-title">
      <h3 id="payments-title" class="label">
        {words.payments}
      </h3>
      <ul>
        {payments.map((payment, at) => (
          <Line key={`${at} ${payment.hash}`} payment={payment} />
        ))}
      </ul>
    </section>
  )
}
