import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { exact } from '../api/wire.ts'
import { Choice } from './form.tsx'

/**
 * Returns an idempotency key for as long as a form is open, so that sending it twice creates one
 * object. `renew` generates a new key afterwards.
 */
export function useSequence(): { sequence: string; renew(): void } {
  const [sequence, setSequence] = useState(() => crypto.randomUUID() as string)
  return { sequence, renew: () => setSequence(crypto.randomUUID()) }
}

export const NO_DECIMAL = 'Not a decimal number: digits, and a point before the decimals.'

/** Returns why a typed amount is invalid; null if it is valid or empty. */
export function amountError(text: string): string | null {
  if (text.trim() === '') return null
  const amount = exact(text)
  return amount === null
    ? NO_DECIMAL
    : /^0(?:\.0*)?$/.test(amount.text)
      ? 'Must be more than zero.'
      : null
}

/** Returns a typed amount for a request body; null if it is invalid. */
export const amountOf = (text: string) => (amountError(text) === null ? exact(text) : null)

/** Choice of an asset, by name and network. */
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
