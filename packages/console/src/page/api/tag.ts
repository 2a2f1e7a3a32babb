// Whether the tag of a payment is settled: given, contained in the address, or stated to be absent.
// Requests nothing.
import type { AddressValidation } from '@custody/client'

/** What a form holds of a tag: its text, or the person's statement that the payee has none. */
export interface TagDraft {
  tag: string
  hasNoTag: boolean
}

export interface TagState {
  /**
   * `none`: the asset has no tags. `within`: the address contains its tag, or states that it has
   * none. `asked`: the person answers.
   */
  is: 'none' | 'within' | 'asked'
  /** What a request carries as `address_tag`; empty: nothing. */
  tag: string
  /** The account refuses payments without a tag. */
  isRequired: boolean
  /** The payment may be sent so. */
  isSettled: boolean
}

/**
 * @param takesTag of the asset; true while the list of assets is not known, so that the field is
 *   never hidden by mistake
 * @param validity the platform's answer about the address and the tag; null while there is none
 */
export function tagState(
  takesTag: boolean,
  validity: AddressValidation | null,
  { tag, hasNoTag }: TagDraft,
): TagState {
  const isUntagged = !takesTag || (validity?.valid === true && validity.takes_tag === undefined)
  if (isUntagged) return { is: 'none', tag: '', isRequired: false, isSettled: true }
  const text = tag.trim()
  if (validity?.valid === true && validity.takes_tag === false)
    return { is: 'within', tag: text, isRequired: false, isSettled: true }
  const isRequired = validity?.requires_tag === true
  return { is: 'asked', tag: text, isRequired, isSettled: text !== '' || (hasNoTag && !isRequired) }
}

/**
 * Whether a note has been typed that looks like the tag that is missing: it would never reach the
 * network.
 */
export const isTagInMemo = ({ is, tag }: TagState, memo: string): boolean =>
  is === 'asked' && tag === '' && /^\d+$/.test(memo.trim())
