import type { xdr } from '@stellar/stellar-base'
import { ChainError } from '../types.ts'
import { library } from './library.ts'

/**
 * A memo as the text of `address_tag`: digits are MEMO_ID, `hash:` and `return:` with 64 hexadecimal digits are
 * MEMO_HASH and MEMO_RETURN, everything else is MEMO_TEXT. `id:` and `text:` say it explicitly, which a text needs
 * that looks like one of the others.
 */

const ID_MAX = 2n ** 64n - 1n
const TEXT_BYTES_MAX = 28
const PREFIXED = /^(id|text|hash|return):([\s\S]*)$/
const DIGITS = /^\d+$/

/** The canonical spelling of a tag, or why it is none. */
export function readMemo(tag: string): { tag: string; memo: xdr.Memo } | { reason: string } {
  const prefixed = PREFIXED.exec(tag)
  const kind = prefixed ? prefixed[1] : DIGITS.test(tag) ? 'id' : 'text'
  const value = prefixed ? prefixed[2] as string : tag
  if (kind === 'id') {
    if (!/^(?:0|[1-9]\d{0,19})$/.test(value) || BigInt(value) > ID_MAX) {
      return {
        reason: 'address_tag in digits is a memo id, a whole number below 2^64 without leading zeros; put text: before it for a memo text'
      }
    }
    return { tag: value, memo: library().xdr.Memo.memoId(library().xdr.Uint64.fromString(value)) }
  }
  if (kind === 'text') {
    const bytes = Buffer.from(value, 'utf8')
    if (bytes.length === 0 || bytes.length > TEXT_BYTES_MAX || bytes.toString('utf8') !== value) {
      return { reason: `address_tag as a memo text has 1 to ${TEXT_BYTES_MAX} bytes` }
    }
    return { tag: spellText(value), memo: library().xdr.Memo.memoText(bytes) }
  }
  if (!/^[0-9a-fA-F]{64}$/.test(value)) return { reason: `address_tag: ${kind}: is followed by 64 hexadecimal digits` }
  const bytes = Buffer.from(value, 'hex')
  return {
    tag: `${kind}:${value.toLowerCase()}`,
    memo: kind === 'hash' ? library().xdr.Memo.memoHash(bytes) : library().xdr.Memo.memoReturn(bytes),
  }
}

function spellText(text: string): string {
  return DIGITS.test(text) || PREFIXED.test(text) ? `text:${text}` : text
}

/** The tag of a memo; null where there is none. Text that is not UTF-8 keeps its bytes as `text-hex:`. */
export function tagOf(memo: xdr.Memo): string | null {
  switch (memo.switch().name) {
    case 'memoNone': return null
    case 'memoId': return memo.id().toString()
    case 'memoHash': return `hash:${memo.hash().toString('hex')}`
    case 'memoReturn': return `return:${memo.retHash().toString('hex')}`
    case 'memoText': {
      const raw = memo.text()
      const bytes = typeof raw === 'string' ? Buffer.from(raw, 'utf8') : raw
      const text = bytes.toString('utf8')
      return text !== '' && Buffer.from(text, 'utf8').equals(bytes) ? spellText(text) : `text-hex:${bytes.toString('hex')}`
    }
    default: throw new ChainError('SHAPE', 'an unknown kind of memo')
  }
}
