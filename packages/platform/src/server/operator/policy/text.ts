import { documentHash, ruleSentence, type Approvals, type PolicyDocument } from '@custody/policy'
import { createHash } from 'node:crypto'

const quorum = (approvals: Approvals): string =>
  approvals.map(({ group, k }) => `${k} of ${group}`).join(' and ')

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

/** Returns the rules about the document itself as sentences. */
function governanceLines({ groups, change, stop, resume, enrolment, orders }: PolicyDocument) {
  const optional = (what: string, need: { approvals: Approvals } | undefined) =>
    need ? [`${what} requires ${quorum(need.approvals)}.`] : []
  return [
    ...Object.entries(groups).map(([name, members]) => `group ${name}: ${members.join(', ')}`),
    `A change of the policy requires ${quorum(change.approvals)} and waits ${change.delay_s} seconds; each member of ${change.veto} can veto it.`,
    `Each member of ${stop.group} can stop all signing; the end of a stop requires ${quorum(resume.approvals)}.`,
    ...optional('The enrolment of an API key', enrolment),
    ...optional('An order for a gas tank', orders),
  ]
}

/** Returns what the operator compares before a document is installed. */
export const documentLines = (document: PolicyDocument): string[] => [
  `policy ${document.number} of the workspace ${document.workspace}, mode ${document.mode}`,
  `hash: ${documentHash(document)}`,
  ...peopleLines(document),
  ...governanceLines(document),
  ...(document.rules.length === 0
    ? ['The document has no rules: every act is denied.']
    : document.rules.map((rule) => `rule ${ruleSentence(rule)}`)),
]

export const needsLine = (needs: readonly { group: string; k: number; have: number }[]): string =>
  needs.map(({ group, k, have }) => `${have} of ${k} of ${group}`).join(' and ')
