import { diff, LIMITS, ruleSentence } from '@custody/policy'
import { networkMode } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { NAME_MAX, TIME_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { policyInForce, timeOf } from './policy-in-force.ts'
import { documentShape, heldShape, personId, policyHash, policyNumber } from './shapes.ts'

interface Services {
  signers: SignerNodes
}

const STOPS_MAX = 1000
const SENTENCE_EXAMPLE =
  'daily: Allow transfers of ETH to any address, up to 5 ETH in 24 hours for the workspace.'
/** Greatest number of differences in a response: of rules, people, groups and other fields. */
const DIFFERENCES_MAX = 1000

const proposalShape = z
  .object({
    number: policyNumber,
    hash: policyHash,
    document: documentShape,
    acts_at: z
      .string()
      .max(30)
      .meta({
        description: 'Time from which it is in force, unless it is vetoed',
        examples: ['2026-11-27T12:00:00.000Z'],
      }),
    changes: z
      .array(z.string().max(LIMITS.documentBytes))
      .max(DIFFERENCES_MAX)
      .meta({
        description: 'What it changes, as sentences',
        examples: [['The rule daily is removed.']],
      }),
    vetoed_by: personId.nullable().meta({
      description:
        'Person whom the change removes and who has vetoed it: the operators of two nodes must confirm it',
    }),
    held: heldShape,
  })
  .meta({ id: 'PolicyProposal' })

const statementShape = z
  .object({
    node: z
      .int()
      .min(1)
      .max(3)
      .meta({ description: 'Signer node', examples: [1] }),
    mode: networkMode,
    nodes: policyHash.meta({ description: 'Hash of the identity keys of the signer nodes' }),
    workspace: z.string().max(200).meta({ description: 'Workspace' }),
    number: policyNumber,
    hash: policyHash,
    at: z
      .int()
      .min(0)
      .meta({ description: "Unix seconds by the node's clock", examples: [1795780800] }),
    signature: z
      .string()
      .max(128)
      .meta({
        description:
          "Ed25519 signature of the node's identity key, in hex, over `custody/policy-in-force/v1`, a line feed, and the JSON of the other fields in this order",
        examples: ['5a'.repeat(64)],
      }),
    stops: z.array(policyHash).max(STOPS_MAX).optional().meta({
      description: 'Hashes of the stops that apply at the node, in ascending order',
    }),
    stops_signature: z.string().max(128).optional().meta({
      description:
        "Ed25519 signature of the node's identity key, in hex, over `custody/policy-stops/v1`, a line feed, and the JSON of the fields `node` to `at` in this order and `stops`",
    }),
  })
  .meta({ id: 'PolicyStatement' })

const ruleShape = z
  .object({
    id: z.string().max(64).meta({ description: 'ID of the rule' }),
    sentence: z
      .string()
      .max(LIMITS.documentBytes)
      .meta({ description: 'The rule in plain English', examples: [SENTENCE_EXAMPLE] }),
  })
  .meta({ id: 'PolicyRule' })

const stopShape = z
  .object({
    hash: policyHash,
    sub_account: z
      .string()
      .max(NAME_MAX)
      .nullable()
      .meta({ description: 'null: the stop is for the whole workspace' }),
    by: personId,
    at: z.string().max(TIME_MAX),
  })
  .meta({ id: 'PolicyStop' })

/** Resets in a response: three operators can enter different ones, and a node can lie. */
const RESETS_MAX = 9
const resetShape = z
  .object({
    hash: policyHash,
    given_by: heldShape.meta({
      description: 'Signer nodes whose operators have entered it: all three are required',
      examples: [[1, 2]],
    }),
    acts_at: z
      .string()
      .max(30)
      .nullable()
      .meta({
        description:
          'Time from which it is in force, unless a change of the policy is approved before; null while an operator is missing',
        examples: ['2026-12-04T12:00:00.000Z'],
      }),
  })
  .meta({ id: 'PolicyReset' })

/** Returns the policy document in force for the caller's workspace. */
export const readPolicy = endpoint({
  id: 'readPolicy',
  tag: 'Policy',
  description:
    'Returns the policy document that at least two signer nodes have in force for the workspace, the nodes that have it with their signed statements, the pending change, the stops, and resets by the operators. `number`, `hash` and `document` are null if the workspace has no policy.',
  errors: ['SIGNERS_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/policy',
  summary: 'Read the policy in force',
  access: 'read',
  response: z.object({
    number: policyNumber.nullable(),
    hash: policyHash.nullable(),
    document: documentShape.nullable(),
    rules: z
      .array(ruleShape)
      .max(LIMITS.rules)
      .meta({ description: 'The rules of `document`, as sentences' }),
    held: heldShape,
    statements: z.array(statementShape).max(3).meta({
      description:
        'Statements of the signer nodes that they judge by this document, which a client verifies with its trust file. A node that may have missed a change makes none',
    }),
    pending: z.array(proposalShape).max(3),
    stops: z.array(stopShape).max(STOPS_MAX),
    resets: z
      .array(resetShape)
      .max(RESETS_MAX)
      .meta({ description: 'Documents by which operators of signer nodes want to replace it' }),
  }),
  async handler({ caller }, { signers }: Services) {
    const policy = await policyInForce(signers, caller.workspace)
    if (policy === null)
      return {
        body: {
          number: null,
          hash: null,
          document: null,
          rules: [],
          held: [],
          statements: [],
          pending: [],
          stops: [],
          resets: [],
        },
      }
    const { number, hash, document, held, statements, pending, stops, resets } = policy
    return {
      body: {
        number,
        hash,
        document,
        rules: document.rules.map((rule) => ({ id: rule.id, sentence: ruleSentence(rule) })),
        held,
        statements,
        pending: pending.map((each) => ({
          ...each,
          acts_at: timeOf(each.acts_at),
          changes: diff(document, each.document)
            .slice(0, DIFFERENCES_MAX)
            .map(({ sentence }) => sentence),
        })),
        stops: stops.slice(0, STOPS_MAX).map((each) => ({ ...each, at: timeOf(each.at) })),
        resets: resets.slice(0, RESETS_MAX).map((each) => ({
          ...each,
          acts_at: each.acts_at === null ? null : timeOf(each.acts_at),
        })),
      },
    }
  },
})
