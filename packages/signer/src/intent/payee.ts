import { validateAddress, type Registry } from '@custody/chains'
import { JsonNumber } from '@custody/request-auth'
import { badField, type Fields } from './fields.ts'

/** `destination_address` in its canonical spelling, and `address_tag`. A tag of 0 is a tag; an absent one is not (rule 7). */
export function payeeOf(registry: Registry, ticker: string, { raw, text }: Fields): { destination: string; tag: string | null } {
  const given = raw['address_tag'] instanceof JsonNumber ? raw['address_tag'].text : text('address_tag', true)
  const checked = validateAddress(registry, ticker, text('destination_address') as string, given)
  if (!checked.valid) throw badField('destination_address', checked.reason)
  return { destination: checked.address, tag: checked.address_tag }
}
