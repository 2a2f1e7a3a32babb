import { validateAddress, type Registry } from '@custody/chains'
import { badField } from './fields.ts'

/**
 * Returns `destination_address` in canonical form, and `address_tag`. A tag of 0 counts as a tag;
 * an absent tag does not (rule 7).
 */
export function payeeOf(
  registry: Registry,
  ticker: string,
  body: { destination_address: string; address_tag?: string | undefined },
): { destination: string; tag: string | null } {
  const checked = validateAddress(
    registry,
    ticker,
    body.destination_address,
    body.address_tag ?? null,
  )
  if (!checked.valid) throw badField(checked.field ?? 'destination_address', checked.reason)
  return { destination: checked.address, tag: checked.address_tag }
}
