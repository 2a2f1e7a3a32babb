import { formatUnits } from '../amounts.ts'

/**
 * Quotes a text that another party has chosen, for example the name of a sub-account. Characters
 * that are invisible or change the direction of text are written as their code points, so that a
 * name cannot change what the rest of a sentence appears to say.
 */
export const quote = (text: string): string => `"${visible(text)}"`

/** Returns a text as {@link quote} does, without the quotation marks around it. */
export const visible = (text: string): string =>
  text.replace(
    /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}"\\]|(?! )\p{Zs}/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  )

/** Joins words: `a`, `a and b`, `a, b and c`. */
export function join(words: readonly string[], last: 'and' | 'or' = 'and'): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1) as string}`
}

/** Returns an amount in the asset's unit: `0.5 BTC`. */
export const amountText = (digits: string, decimals: number, asset: string): string =>
  `${formatUnits(BigInt(digits), decimals)} ${asset}`

/** Returns a time in UTC: `2030-03-17T17:46:40Z`. */
export const timeText = (seconds: number): string =>
  `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`

/** Returns a duration: `24 hours`, `90 minutes`, `45 seconds`. */
export function durationText(seconds: number): string {
  const [unit, size] =
    seconds % 3600 === 0 ? ['hour', 3600] : seconds % 60 === 0 ? ['minute', 60] : ['second', 1]
  const count = seconds / (size as number)
  return `${count} ${unit as string}${count === 1 ? '' : 's'}`
}
