// Components that display amounts, times, ids and assets.
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { serverNow } from '../api/http.ts'
import { amountShort, amountText, usd, usdShort } from '../amounts.ts'
import { assetNames } from '../api/assets.ts'
import { announce, toast } from './announce.tsx'
import { Icon } from './icons.tsx'

const phone = matchMedia('(width < 480px)')
/** Whether the page is as narrow as on a phone. */
export const isPhone = signal(phone.matches)
phone.addEventListener('change', ({ matches }) => (isPhone.value = matches))

/**
 * An amount without trailing zeros. On phones a long amount is shortened, and a tap displays all
 * digits.
 * @param of the asset
 * @param isExact all digits also on phones, because a person decides about this amount
 */
export function Amount({
  value,
  of,
  isSigned = false,
  isExact = false,
}: {
  value: string | null | undefined
  of?: string | undefined
  isSigned?: boolean
  isExact?: boolean
}) {
  if (value === null || value === undefined)
    return (
      <span class="muted" title="not known">
        –
      </span>
    )
  const shown = amountText(value)
  const sign = isSigned && !shown.startsWith('−') && shown !== '0' ? '+' : ''
  const short =
    isPhone.value && !isExact ? (amountShort(value)?.replace(' ', `\u00a0${sign}`) ?? null) : null
  const exact = `${sign}${shown}${of === undefined ? '' : ` ${tickerOf(of)}`}`
  return (
    <bdi dir="ltr" class={`amount${shown.length > LONG ? ' is-long' : ''}`}>
      {short === null ? (
        <span class="number">
          {sign}
          {shown}
        </span>
      ) : (
        <button
          type="button"
          class="number"
          aria-label={`${short}, exactly ${exact}`}
          onClick={() => toast(exact)}
        >
          {short}
        </button>
      )}
      {of === undefined ? null : <span class="unit"> {tickerOf(of)}</span>}
    </bdi>
  )
}

/** Number of characters above which an amount is too wide for a phone in large type. */
const LONG = 16

/** Dollars with all their digits, for charges and balances in USD. */
export const Usd = ({ value }: { value: string | null | undefined }) => (
  <span class="amount">{usd(value)}</span>
)

/**
 * Dollars to the cent. If digits are omitted it is marked, and a tooltip contains all of them. The
 * value of coins is displayed by the components of `worth.tsx`.
 */
export function Dollars({ value }: { value: string | null | undefined }) {
  const { text, exact } = usdShort(value)
  return (
    <span class={`amount${text.length > LONG ? ' is-long' : ''}`} title={exact ?? undefined}>
      {text}
    </span>
  )
}

/** Returns `USDT` of `USDT_ETH`. */
export const tickerOf = (asset: string): string =>
  assetNames.value.get(asset)?.ticker ?? asset.split('_')[0] ?? asset

/** An asset's badge and ticker, and its network if it is not the coin's own. */
export function AssetName({ of, isLong = false }: { of: string; isLong?: boolean }) {
  const asset = assetNames.value.get(of)
  const ticker = tickerOf(of)
  const network = asset?.network ?? of.split('_')[1] ?? ''
  return (
    <span class="asset">
      <span class="asset-badge" data-hue={hueOf(ticker)} aria-hidden="true">
        {ticker.slice(0, ticker.length > 4 ? 3 : 4)}
      </span>
      <span class="asset-words">
        <span class="asset-ticker">{ticker}</span>
        {isLong || network !== ticker ? (
          <span class="asset-network muted">
            {isLong
              ? `${asset?.name ?? ticker}${network === ticker ? '' : ` on ${network}`}`
              : `on ${network}`}
          </span>
        ) : null}
      </span>
    </span>
  )
}

/** Returns one of eight hues, always the same for a word. */
function hueOf(word: string): number {
  let sum = 7
  for (const char of word) sum = (sum * 31 + char.charCodeAt(0)) % 8191
  return sum % 8
}

const now = signal(Date.now())
setInterval(() => (now.value = Date.now()), 10_000)

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/**
 * Formats `3 min ago`, `in 2 d`.
 * @param ms the difference in milliseconds, negative for the past
 */
function relative(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 5) return 'now'
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, 's']
  const text = `${Math.floor(seconds / size)} ${unit}`
  return ms > 0 ? `in ${text}` : `${text} ago`
}

/** Formats `22 Nov 2026, 19:36:05 UTC`. */
export function utc(at: string): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return at
  const [, day, month, year, time] =
    /^\w+, (\d+) (\w+) (\d+) ([\d:]+)/.exec(date.toUTCString()) ?? []
  return `${Number(day)} ${month} ${year}, ${time} UTC`
}

/** A relative time with the exact time in a tooltip, or next to it if there is enough space. */
export function Time({ at, isLong = false }: { at: string | null | undefined; isLong?: boolean }) {
  void now.value
  if (at === null || at === undefined) return <span class="muted">–</span>
  const text = relative(new Date(at).getTime() - serverNow())
  return (
    <time dateTime={at} title={utc(at)} class="time">
      <span>{text}</span>
      {isLong ? <span class="muted time-exact">{utc(at)}</span> : null}
    </time>
  )
}

const GROUP_LENGTH = 4

/** Text that breaks only after every fourth character, so lines of it can be compared. */
export const Groups = ({ of }: { of: string }) => (
  <>
    {(of.match(new RegExp(`.{1,${GROUP_LENGTH}}`, 'gsu')) ?? []).map((group, at) => (
      <span key={at} class="group">
        {group}
        <wbr />
      </span>
    ))}
  </>
)

/**
 * An id that is shortened in the middle and copied completely.
 * @param keep characters at either end
 */
export function Id({
  value,
  keep = 6,
  label = 'id',
  isWhole = false,
}: {
  value: string | null | undefined
  keep?: number
  label?: string
  isWhole?: boolean
}) {
  if (value === null || value === undefined) return <span class="muted">–</span>
  const isCut = !isWhole && value.length > 2 * keep + 3
  const shown = isCut ? `${value.slice(0, keep)}…${value.slice(-keep)}` : value
  return (
    <span class={`id${isWhole ? ' is-whole' : ''}`}>
      <bdi dir="ltr" class="code" title={isCut ? value : undefined}>
        {isWhole ? <Groups of={value} /> : shown}
      </bdi>
      <Copy text={value} label={label} />
    </span>
  )
}

const COPIED_MS = 1600

/** Button that copies a text and confirms it. */
export function Copy({ text, label, word }: { text: string; label: string; word?: string }) {
  const [isDone, setDone] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setDone(true)
      announce(`Copied ${label}`)
      setTimeout(() => setDone(false), COPIED_MS)
    } catch {
      announce('The browser did not allow copying')
    }
  }
  return (
    <button
      type="button"
      class={word === undefined ? 'copy' : 'button small'}
      onClick={copy}
      aria-label={word === undefined ? `Copy ${label}` : undefined}
      title={word === undefined ? `Copy ${label}` : undefined}
    >
      <Icon name={isDone ? 'check' : 'copy'} />
      {word === undefined ? null : <span>{isDone ? 'Copied' : word}</span>}
    </button>
  )
}

/** Text to be copied completely: a command, a body. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} label={label} />
    </div>
  )
}
