// Interprets a search text on the page of transactions.

/** Filters of the API that a search text can be meant for. */
export const FOUND_BY = ['id', 'sequence_id', 'address', 'memo_begins', 'memo'] as const
export type FoundBy = (typeof FOUND_BY)[number]

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/**
 * Hexadecimal, with or without 0x, or a signature of Solana. Aptos, Sui and NEAR have addresses of
 * the first form too.
 */
const HASH = /^(?:0x)?[0-9a-f]{64}$|^[1-9A-HJ-NP-Za-km-z]{80,90}$/i
/** Maximum length of ids and addresses in the API. */
const WORD_MAX = 200
/**
 * Maximum length of the beginning of a memo in the API; a longer text is treated as a whole memo.
 */
const BEGINNING_MAX = 100

/** Returns the filters that a text can be meant for, the most likely first. */
export function filtersFor(text: string): readonly FoundBy[] {
  if (text === '') return []
  if (UUID.test(text)) return ['id', 'sequence_id']
  const memo = text.length > BEGINNING_MAX ? 'memo' : 'memo_begins'
  if (text.length > WORD_MAX) return [memo]
  if (/\s/.test(text)) return [memo, 'sequence_id']
  if (HASH.test(text)) return ['id', 'address', memo, 'sequence_id']
  // Addresses of most networks are long words with digits; short ones, such as alice.near and
  // 0.0.1234, are tried too.
  return text.length >= 20 && /\d/.test(text)
    ? ['address', memo, 'sequence_id']
    : [memo, 'address', 'sequence_id']
}
