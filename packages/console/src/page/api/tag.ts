// Determines whether the tag of a payment is settled: entered, contained in the address, or stated
// to be absent. Sends no request.
import type { AddressValidation } from '@custody/client'

/** Tag input of a form: its text, or the person's statement that the payee has none. */
export interface TagDraft {
  tag: string
  hasNoTag: boolean
}

export interface TagState {
  /**
   * `none`: the asset has no tags. `within`: the address contains its tag, or states that it has
   * none. `asked`: the person must enter it.
   */
  is: 'none' | 'within' | 'asked'
  /** Value of `address_tag` in a request; empty if there is none. */
  tag: string
  /** The account rejects payments without a tag. */
  isRequired: boolean
  /** The payment may be sent with this tag. */
  isSettled: boolean
}

/**
 * Computes the tag's state.
 * @param takesTag of the asset; true while the list of assets is unknown, so that the field is
 *   never hidden by mistake
 * @param validity the platform's response about address and tag; null before it
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

/** Returns whether the note looks like the missing tag. A note is never sent to the network. */
export const isTagInMemo = ({ is, tag }: TagState, memo: string): boolean =>
  is === 'asked' && tag === '' && /^\d+$/.test(memo.trim())
