import type { PolicyDocument } from '@custody/policy'
import { z } from 'zod'
import { TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer } from '../../core/http/schemas.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { askAll, disagreement, type Answer } from './node-answers.ts'
import { documentOf, timeOf } from './policy-in-force.ts'
import { documentShape, heldShape, personId, policyHash, policyNumber } from './shapes.ts'

interface Services {
  signers: SignerNodes
}

const PAGE_MAX = 20
const NUMBER_MAX = 1_000_000_000
const SIGNERS_MAX = 2000

const KINDS = ['first', 'change', 'reset'] as const

const versionShape = z
  .object({
    number: policyNumber,
    hash: policyHash,
    kind: z.enum(KINDS).meta({
      description:
        '`first`: the operators of two signer nodes entered it. `change`: people approved it. `reset`: the operators of all three signer nodes replaced the policy by it',
    }),
    since: z.string().max(TIME_MAX).meta({ description: 'Time from which it was in force' }),
    document: documentShape,
    signed_by: z
      .array(
        z.object({
          person: personId,
          key: z.string().max(64).meta({ description: 'ID of the key of that person' }),
          at: z.string().max(TIME_MAX).nullable(),
        }),
      )
      .max(SIGNERS_MAX)
      .meta({
        description:
          'Who approved the change; for the first document and a reset, who proved that they hold its keys',
        examples: [[{ person: 'alice', key: 'k1', at: '2026-11-27T12:00:00.000Z' }]],
      }),
    held: heldShape,
  })
  .meta({ id: 'PolicyVersion' })

/** Response of a node to `POST /policy/versions` (packages/signer/README.md). */
const nodeVersions = z.object({
  versions: z.array(
    z.object({
      number: z.int(),
      hash: z.string().max(64),
      /** Absent in earlier versions of the node. */
      kind: z.enum(KINDS).optional(),
      since: z.int(),
      document: z.string(),
      signed_by: z.array(
        z.object({ person: z.string().max(64), key: z.string().max(64), at: z.int().nullable() }),
      ),
    }),
  ),
})
type NodeVersions = z.output<typeof nodeVersions>
type NodeVersion = NodeVersions['versions'][number]

/** A version that at least two nodes have on record. */
interface Version {
  version: NodeVersion
  document: PolicyDocument
  kind: (typeof KINDS)[number]
  held: number[]
}

/** Lists the policy documents that were in force, newest first. */
export const listPolicyVersions = endpoint({
  id: 'listPolicyVersions',
  tag: 'Policy',
  description:
    'Returns the policy documents that were in force for the workspace, newest first, with how each came into force and the people who signed it, as at least two signer nodes have them on record. To continue, pass `next` of the response as `after`.',
  errors: ['SIGNERS_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/policy/versions',
  summary: 'List the policy documents that were in force',
  access: 'read',
  query: z.strictObject({
    after: integer(
      1,
      NUMBER_MAX,
      '`next` of an earlier response: returns the documents that follow',
    ).optional(),
    limit: integer(
      1,
      PAGE_MAX,
      'Maximum number of documents in the response; by default 10',
    ).default(10),
  }),
  response: z.object({
    data: z.array(versionShape).max(PAGE_MAX),
    next: z
      .string()
      .max(WORD_MAX)
      .nullable()
      .meta({
        description: 'Cursor of the next page: pass it as `after`; null on the last page',
        examples: ['3'],
      }),
    has_more: z.boolean().meta({ description: 'Whether there are more records' }),
  }),
  async handler({ caller, query: { after, limit } }, { signers }: Services) {
    const answers = await askAll(signers, nodeVersions, '/policy/versions', {
      workspace: caller.workspace,
      ...(after === undefined ? {} : { before: after }),
      limit: limit + 1,
    })
    const versions = agreedVersions(answers)
    const shown = versions.slice(0, limit)
    const hasMore = versions.length > limit
    return {
      body: {
        data: shown.map(
          ({ version: { number, hash, since, signed_by }, document, kind, held }) => ({
            number,
            hash,
            kind,
            since: timeOf(since),
            document,
            signed_by: signed_by
              .slice(0, SIGNERS_MAX)
              .map((each) => ({ ...each, at: each.at === null ? null : timeOf(each.at) })),
            held,
          }),
        ),
        next: hasMore ? String(shown.at(-1)?.version.number) : null,
        has_more: hasMore,
      },
    }
  },
})

/**
 * Returns how a document came into force. If nodes differ, it is a reset unless most of them state
 * otherwise, because a reset needs attention.
 */
function kindOf(
  { number }: PolicyDocument,
  kinds: readonly NodeVersion['kind'][],
): Version['kind'] {
  if (number === 1) return 'first'
  const stated = kinds.filter((kind) => kind !== undefined)
  const resets = stated.filter((kind) => kind === 'reset').length
  return resets > 0 && 2 * resets >= stated.length ? 'reset' : 'change'
}

/**
 * Returns the versions that at least two nodes have, newest first. A node that was away can miss the
 * newest ones.
 * @throws ApiError `SIGNERS_UNAVAILABLE` if fewer than two nodes responded
 */
function agreedVersions(answers: readonly Answer<NodeVersions>[]): Version[] {
  const given = answers.flatMap((answer) => ('value' in answer ? [answer] : []))
  if (given.length < 2) throw disagreement(answers)
  const all = given.flatMap(({ node, value }) =>
    value.versions.map((version) => ({ node, version })),
  )
  const versions: Version[] = []
  for (const group of Map.groupBy(all, ({ version }) => version.hash).values()) {
    const [first] = group
    const held = group.map(({ node }) => node).sort((a, b) => a - b)
    const document = first && documentOf(first.version.document, first.version.hash)
    if (first && document && held.length >= 2 && document.number === first.version.number)
      versions.push({
        version: first.version,
        document,
        kind: kindOf(
          document,
          group.map(({ version }) => version.kind),
        ),
        held,
      })
  }
  return versions.sort((a, b) => b.version.number - a.version.number)
}
