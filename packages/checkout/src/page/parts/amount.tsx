import { useSpeech } from '../language.ts'

/**
 * An amount of coins: every digit of it with the separators of the language, from left to right in
 * all of them.
 */
export function Amount({ amount, ticker }: { amount: string; ticker: string }) {
  const { decimal } = useSpeech()
  return (
    <bdi dir="ltr" class="amount">
      {decimal(amount)} {ticker}
    </bdi>
  )
}

/** A long code, of which the ends are compared: they stand out. */
export function Code({ text }: { text: string }) {
  const end = text.length > 24 ? 6 : 0
  if (end === 0)
    return (
      <bdi dir="ltr" class="code">
        {text}
      </bdi>
    )
  return (
    <bdi dir="ltr" class="code">
      <b>{text.slice(0, end)}</b>
      {text.slice(end, -end)}
      <b>{text.slice(-end)}</b>
    </bdi>
  )
}

/** A long code cut in the middle, where it is only to be recognised. */
export const ShortCode = ({ text }: { text: string }) => (
  <bdi dir="ltr" class="code" title={text}>
    {text.length > 20 ? `${text.slice(0, 8)}…${text.slice(-8)}` : text}
  </bdi>
)
