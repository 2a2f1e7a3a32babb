import type { Destinations, Rule, SubAccounts } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import type { PolicyRegistry } from '../registry.ts'
import { error, type Finding } from './finding.ts'

/**
 * Characters that are invisible, break a line, or change the direction of text: a name with them could
 * look like another name, or reorder the rest of a line. Except for control characters they are listed,
 * because the Unicode classes of two versions of Node may differ.
 */
const DECEPTIVE =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Variation_Selector}\u{ad}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{e0000}-\u{e0fff}]/u

const findDeceptive = (path: string, text: string): Finding[] =>
  DECEPTIVE.test(text)
    ? [
        error(
          path,
          'DECEPTIVE_NAME',
          'The name contains control characters, invisible characters or characters that change the direction of text.',
        ),
      ]
    : []

function findInSubAccounts(accounts: SubAccounts | undefined, path: string): Finding[] {
  if (accounts === undefined) return []
  if (!Array.isArray(accounts)) return findDeceptive(`${path}.prefix`, accounts.prefix)
  return accounts.flatMap((name, at) => findDeceptive(`${path}[${at}]`, name))
}

type Entry = NonNullable<Destinations['addresses']>[number]

/** Returns why a rule cannot list a tag; null if it can. A tag in another spelling would match nothing. */
function whyNoTag({ network, address, tag }: Entry, registry: PolicyRegistry): string | null {
  if (tag === undefined) return null
  const canonicalOf = (text: string) => registry.canonicalTag(network, address, text)
  const canonical = canonicalOf(tag) ?? canonicalOf(tag.trim().replace(/^0+(?=\d)/, ''))
  if (canonical === undefined) return `The field is not a valid tag of ${network}.`
  return canonical === tag
    ? null
    : `The tag must be in its canonical form, ${JSON.stringify(canonical)}.`
}

function findTags({ match: { to } }: Rule, path: string, registry: PolicyRegistry): Finding[] {
  if (typeof to !== 'object') return []
  return (to.addresses ?? []).flatMap((entry, at) => {
    const why = registry.hasNetwork(entry.network) ? whyNoTag(entry, registry) : null
    return why === null ? [] : [error(`${path}.to.addresses[${at}].tag`, 'TAG', why)]
  })
}

/**
 * Names that could look like others, and tags that no payment has. They are no error of the shape,
 * because documents of earlier versions may contain them.
 */
export const findSpellingFaults = (
  { people, rules }: PolicyDocument,
  registry: PolicyRegistry,
): Finding[] => [
  ...people.flatMap(({ name }, at) => findDeceptive(`people[${at}].name`, name)),
  ...rules.flatMap((rule, at) => {
    const path = `rules[${at}].match`
    const { sub_accounts: only, sub_accounts_not: not } = rule.match
    return [
      ...findInSubAccounts(only, `${path}.sub_accounts`),
      ...findInSubAccounts(not, `${path}.sub_accounts_not`),
      ...findTags(rule, path, registry),
    ]
  }),
]
