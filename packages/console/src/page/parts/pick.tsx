import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { exact } from '../api/wire.ts'
import { Choice } from './form.tsx'

/**
 * An idempotency key for as long as a form is open: what is sent from it twice is done once.
 * Afterwards `renew` makes another.
 */
export function useSequence(): { sequence: string; renew(): void } {
  const [sequence, setSequence] = useState(() => crypto.randomUUID() as string)
  return { sequence, renew: () => setSequence(crypto.randomUUID()) }
}

export const NO_DECIMAL = 'Not a decimal number: digits, and a point before the decimals.'

/** Why a typed amount is none; null where it is one, or nothing was typed yet. */
export function amountError(text: string): string | null {
  if (text.trim() === '') return null
  const amount = exact(text)
  return amount === null
    ? NO_DECIMAL
    : /^0(?:\.0*)?$/.test(amount.text)
      ? 'Must be more than zero.'
      : null
}

/** What a typed amount is in a body; null where it is none. */
export const amountOf = (text: string) => (amountError(text) === null ? exact(text) : null)

/** One of these assets, by name and network. */
export function AssetChoice({
  label = 'Asset',
  value,
  onValue,
  of,
  hint,
}: {
  label?: string
  value: string
  onValue(value: string): void
  of: readonly string[]
  hint?: string | undefined
}) {
  const word = (name: string) => {
    const asset = assetNames.value.get(name)
    return asset === undefined
      ? name
      : `${asset.ticker} · ${asset.name}${asset.network === asset.ticker ? '' : ` on ${asset.network}`}`
  }
  return (
    <Choice
      label={label}
      value={value}
      onValue={onValue}
      hint={hint}
      options={of.map((name) => [name, word(name)])}
    />
  )
}
