import { useSpeech } from '../language.ts'

/**
 * An amount of coins with all digits and the language's separators, from left to right in all
 * languages.
 */
export function Amount({ amount, ticker }: { amount: string; ticker: string }) {
  const { decimal } = useSpeech()
  return (
    <bdi dir="ltr" class="amount">
      {decimal(amount)} {ticker}
    </bdi>
  )
}

/** A long code with highlighted ends, which people compare. */
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

/** A long code shortened in the middle, where it only needs to be recognized. */
export const ShortCode = ({ text }: { text: string }) => (
  <bdi dir="ltr" class="code" title={text}>
    {text.length > 20 ? `${text.slice(0, 8)}…${text.slice(-8)}` : text}
  </bdi>
)
