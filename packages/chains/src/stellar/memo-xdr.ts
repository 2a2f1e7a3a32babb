import type { xdr } from '@stellar/stellar-base'
import { ChainError } from '../types.ts'
import { library } from './library.ts'
import { spellText, type Memo } from './memo.ts'

/** Returns the XDR of a memo. */
export function xdrOf({ kind, text, bytes }: Memo): xdr.Memo {
  const { Memo: Memos, Uint64 } = library().xdr
  if (kind === 'id') return Memos.memoId(Uint64.fromString(text))
  const content = Buffer.from(bytes)
  return kind === 'text'
    ? Memos.memoText(content)
    : kind === 'hash'
      ? Memos.memoHash(content)
      : Memos.memoReturn(content)
}

/**
 * Returns the tag of a memo; null if there is none. Text that is not UTF-8 keeps its bytes as
 * `text-hex:`.
 */
export function tagOf(memo: xdr.Memo): string | null {
  switch (memo.switch().name) {
    case 'memoNone':
      return null
    case 'memoId':
      return memo.id().toString()
    case 'memoHash':
      return `hash:${memo.hash().toString('hex')}`
    case 'memoReturn':
      return `return:${memo.retHash().toString('hex')}`
    case 'memoText': {
      const raw = memo.text()
      const bytes = typeof raw === 'string' ? Buffer.from(raw, 'utf8') : raw
      const text = bytes.toString('utf8')
      return text !== '' && Buffer.from(text, 'utf8').equals(bytes)
        ? spellText(text)
        : `text-hex:${bytes.toString('hex')}`
    }
    default:
      throw new ChainError('SHAPE', 'an unknown kind of memo')
  }
}
