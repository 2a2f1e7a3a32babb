import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'

/**
 * Largest memo id. A memo is written as the text of `address_tag`: digits are MEMO_ID, `hash:` and
 * `return:` with 64 hexadecimal digits are MEMO_HASH and MEMO_RETURN, everything else is MEMO_TEXT.
 * The prefixes `id:` and `text:` state the kind explicitly, which a text needs if it looks like one
 * of the others.
 */

const ID_MAX = 2n ** 64n - 1n
const TEXT_BYTES_MAX = 28
const PREFIXED = /^(id|text|hash|return):([\s\S]*)$/
const DIGITS = /^\d+$/

/**
 * A memo with its canonical `address_tag`. `text` is set for an id or a text; `bytes` for the other
 * kinds and for a text.
 */
export interface Memo {
  tag: string
  kind: 'id' | 'text' | 'hash' | 'return'
  text: string
  bytes: Uint8Array
}

/** Parses a tag, or returns the reason why it is invalid. */
export function readMemo(tag: string): Memo | { reason: string } {
  const prefixed = PREFIXED.exec(tag)
  const kind = (prefixed ? prefixed[1] : DIGITS.test(tag) ? 'id' : 'text') as Memo['kind']
  const value = prefixed ? (prefixed[2] as string) : tag
  if (kind === 'id') {
    if (!/^(?:0|[1-9]\d{0,19})$/.test(value) || BigInt(value) > ID_MAX) {
      return {
        reason:
          'address_tag: digits are a memo id, which must be a whole number below 2^64 without leading zeros; for a memo text, begin with text:',
      }
    }
    return { tag: value, kind, text: value, bytes: new Uint8Array() }
  }
  if (kind === 'text') {
    const bytes = utf8ToBytes(value)
    if (bytes.length === 0 || bytes.length > TEXT_BYTES_MAX || !value.isWellFormed()) {
      return { reason: `address_tag: a memo text must have 1 to ${TEXT_BYTES_MAX} bytes` }
    }
    return { tag: spellText(value), kind, text: value, bytes }
  }
  if (!/^[0-9a-fA-F]{64}$/.test(value))
    return { reason: `address_tag: ${kind}: must be followed by 64 hexadecimal digits` }
  return { tag: `${kind}:${value.toLowerCase()}`, kind, text: '', bytes: hexToBytes(value) }
}

/**
 * Returns whether a tag is a memo id in digits, or states its kind (`id:`, `text:`, `hash:`,
 * `return:`). Any other text is ambiguous.
 */
export function isExplicit(tag: string): boolean {
  return (DIGITS.test(tag) || PREFIXED.test(tag)) && !('reason' in readMemo(tag))
}

/** Returns the tag of a memo text. */
export function spellText(text: string): string {
  return DIGITS.test(text) || PREFIXED.test(text) ? `text:${text}` : text
}
