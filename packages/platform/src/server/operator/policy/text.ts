import {
  documentHash,
  governanceSentences,
  ruleSentence,
  type PolicyDocument,
} from '@custody/policy'
import { createHash } from 'node:crypto'

/** Returns the lower-case hex SHA-256 of a public key's DER SubjectPublicKeyInfo. */
const fingerprint = (spki: string): string =>
  createHash('sha256').update(Buffer.from(spki, 'base64')).digest('hex')

/** Returns a line for each key of each person, with its fingerprint. */
const peopleLines = ({ people }: PolicyDocument): string[] =>
  people.flatMap(({ id, keys }) =>
    keys.length === 0
      ? [`person ${id}: no key`]
      : keys.map(
          (key) =>
            `person ${id}: ${key.kind} ${key.id}, ${key.alg}, SHA-256 ${fingerprint(key.spki)}`,
        ),
  )

/** Returns a line for each group. */
const groupLines = ({ groups }: PolicyDocument): string[] =>
  Object.entries(groups).map(([name, members]) => `group ${name}: ${members.join(', ')}`)

/** Returns what the operator compares before a document is installed. */
export const documentLines = (document: PolicyDocument): string[] => [
  `policy ${document.number} of the workspace ${document.workspace}, mode ${document.mode}`,
  `hash: ${documentHash(document)}`,
  ...peopleLines(document),
  ...groupLines(document),
  ...governanceSentences(document),
  ...(document.rules.length === 0
    ? ['The document has no rules: every act is denied.']
    : document.rules.map((rule) => `rule ${ruleSentence(rule)}`)),
]

export const needsLine = (needs: readonly { group: string; k: number; have: number }[]): string =>
  needs.map(({ group, k, have }) => `${have} of ${k} of ${group}`).join(' and ')
