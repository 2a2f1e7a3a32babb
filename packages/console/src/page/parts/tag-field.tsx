import type { ComponentChildren } from 'preact'
import { assetNames } from '../api/assets.ts'
import { validateAddress } from '../api/queries.ts'
import { useDebounced } from '../api/debounced.ts'
import { tagState, type TagDraft, type TagState } from '../api/tag.ts'
import type { AddressValidation } from '../api/types.ts'
import { Check, Text } from './form.tsx'
import { Shape } from './icons.tsx'
import { tickerOf } from './values.tsx'

export const EMPTY_TAG: TagDraft = { tag: '', hasNoTag: false }
const TAG_LENGTH_MAX = 100

/** Returns the network's name of a tag. */
export const tagName = (asset: string): string =>
  assetNames.value.get(asset)?.family === 'stellar' ? 'Destination memo' : 'Destination tag'

/** The platform's validation of a destination while it is typed. */
export interface Destination extends TagState {
  validity: AddressValidation | null
  isAsking: boolean
  /** Error of the address, and error of the tag. */
  addressError: string | null
  tagError: string | null
  /** The address is valid, and its tag is settled. */
  isReady: boolean
}

/** Lets the platform validate an address with its tag as they are typed. */
export function useDestination(asset: string, address: string, draft: TagDraft): Destination {
  const takesTag = asset !== '' && (assetNames.value.get(asset)?.takes_tag ?? true)
  const typed = takesTag ? draft.tag.trim() : ''
  const { data, isAsking, failure } = useDebounced<AddressValidation>(
    asset !== '' && address !== '' ? () => validateAddress(asset, address, typed) : null,
    `${asset} ${address} ${typed}`,
  )
  const state = tagState(takesTag, data, draft)
  const reason = data?.valid === false ? (data.reason ?? 'it is not well formed') : null
  const isOfTag = reason?.startsWith('address_tag') === true
  return {
    ...state,
    validity: data,
    isAsking,
    addressError: reason === null || isOfTag ? failure : `No ${tickerOf(asset)} address: ${reason}`,
    tagError: isOfTag ? (reason as string).replace(/^address_tag:? /, 'The tag ') : null,
    isReady: data?.valid === true && state.isSettled,
  }
}

/** Returns the hint below the address field. */
export const addressHint = (asset: string, { validity, isAsking }: Destination) =>
  validity?.valid === true ? (
    <span class="status tone-ok">
      <Shape tone="ok" />A valid {asset} address
    </span>
  ) : isAsking ? (
    'Checking…'
  ) : (
    'Checked as you type'
  )

function withinSentence(asset: string, { validity }: Destination) {
  const word = tagName(asset).toLowerCase()
  const inside = validity?.address_tag ?? null
  if (inside !== null)
    return (
      <>
        The address contains the {word} <code>{inside}</code>.
      </>
    )
  return assetNames.value.get(asset)?.family === 'stellar'
    ? `The address contains an id of its own and takes no ${word}.`
    : `The address states that it has no ${word}.`
}

/**
 * Returns the tag of a payment for a review, or a text if it has none. Null for assets without
 * tags.
 */
export function tagShown(
  asset: string,
  destination: Destination,
): { name: string; shown: ComponentChildren } | null {
  if (destination.is === 'none') return null
  const name = tagName(asset)
  if (destination.is === 'within') return { name, shown: withinSentence(asset, destination) }
  return {
    name,
    shown:
      destination.tag === '' ? (
        `The payee has no ${name.toLowerCase()}`
      ) : (
        <code>{destination.tag}</code>
      ),
  }
}

/**
 * Input for the tag of a destination, or for the statement that it has none. Renders nothing for
 * assets without tags.
 */
export function TagField({
  asset,
  destination,
  draft,
  onDraft,
  error,
}: {
  asset: string
  destination: Destination
  draft: TagDraft
  onDraft(draft: TagDraft): void
  error?: string | null
}) {
  const name = tagName(asset)
  const word = name.toLowerCase()
  if (destination.is === 'none') return null
  if (destination.is === 'within') {
    return <p class="is-wide muted">{withinSentence(asset, destination)}</p>
  }
  const isMissing = destination.isRequired && destination.tag === ''
  return (
    <div class="tag-field">
      <Text
        label={name}
        value={draft.tag}
        onValue={(tag) => onDraft({ tag, hasNoTag: false })}
        maxLength={TAG_LENGTH_MAX}
        class="input code"
        hint="The payee states it together with the address. Exchanges cannot credit a payment without it."
        error={
          error ??
          destination.tagError ??
          (isMissing ? `This account refuses payments without a ${word}.` : null)
        }
      />
      {destination.tag === '' && !destination.isRequired ? (
        <Check
          label={`The payee has no ${word}`}
          value={draft.hasNoTag}
          onValue={(hasNoTag) => onDraft({ tag: '', hasNoTag })}
        />
      ) : null}
    </div>
  )
}
