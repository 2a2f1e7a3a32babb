import { documentJsonSchema } from '@custody/policy'
import { z } from 'zod'

/** Lower-case hex of SHA-256, in requests. */
export const HASH_PATTERN = /^[0-9a-f]{64}$/
const HASH = 'c2b5a0f1e7d34986b1c0a7f2e9d84c635a1f0b7e2d9c8a4f6b3e1d0c7a9f8e25'

export const policyNumber = z
  .int()
  .min(1)
  .max(1_000_000_000)
  .meta({ description: 'Number of the document' })
export const policyHash = z
  .string()
  .max(64)
  .meta({ description: 'Hash of the document, which people sign', examples: [HASH] })
export const policyRef = z
  .object({ number: policyNumber, hash: policyHash })
  .meta({ id: 'PolicyReference', examples: [{ number: 1, hash: HASH }] })

/** A complete document of an example. */
export const DOCUMENT_EXAMPLE = {
  kind: 'custody-policy',
  v: 1,
  mode: 'local',
  workspace: 'acme',
  number: 1,
  previous: '0'.repeat(64),
  nodes: HASH,
  people: ['alice', 'bob', 'safe'].map((id, at) => ({
    id,
    name: id,
    api_keys: [],
    keys: [
      {
        id: 'k1',
        kind: 'key',
        alg: 'Ed25519',
        spki: `MCowBQYDK2VwAyEA${'ABC'[at]}2i5XG9NhbXcPWqNYw4Vgk2o0bS4l0vC4zCqkq1xZ1U=`,
      },
    ],
  })),
  groups: { admins: ['alice', 'bob', 'safe'] },
  change: { approvals: [{ group: 'admins', k: 2 }], delay_s: 3600, veto: 'admins' },
  stop: { group: 'admins' },
  resume: { approvals: [{ group: 'admins', k: 2 }] },
  rules: [
    {
      id: 'daily',
      effect: 'allow',
      match: { action: ['transfer'], assets: ['ETH'], to: 'any' },
      fee_max: { ETH: '0.05' },
      windows: [{ name: 'day', hours: 24, per: 'workspace', max: { ETH: '5' }, share: '1' }],
    },
  ],
}

/**
 * A policy document as JSON (docs/policies.md). The policy package reads it, because its errors name
 * the field and the reason; the OpenAPI document contains the schema that it reads it by.
 */
export const documentShape = z.looseObject({}).meta({
  ...documentJsonSchema(),
  id: 'PolicyDocument',
  description: 'A policy document; docs/policy-reference.md explains each field',
  examples: [DOCUMENT_EXAMPLE],
})

/** Nodes, as `held`. */
export const heldShape = z
  .array(z.int().min(1).max(3))
  .max(3)
  .meta({ description: 'Signer nodes that have it', examples: [[1, 2, 3]] })

export const personId = z
  .string()
  .max(64)
  .meta({ description: 'ID of the person in the policy document', examples: ['alice'] })
