import { z } from 'zod'
import { policyVersions } from '../governance/versions.ts'
import type { NodeContext } from '../node-context.ts'

/** Maximum number of documents in one response. */
const VERSIONS_MAX = 21

export const versionsBodySchema = z.strictObject({
  workspace: z.string().min(1).max(200),
  /** Only documents with a smaller number; default: all. */
  before: z.int().min(1).max(1_000_000_001).optional(),
  limit: z.int().min(1).max(VERSIONS_MAX),
})

/** `POST /policy/versions`: the documents that were in force at this node, newest first. */
export const versions = (
  { config: { node }, governance: { policies }, store }: NodeContext,
  { workspace, before, limit }: z.infer<typeof versionsBodySchema>,
): Record<string, unknown> => ({
  node,
  workspace,
  versions: policyVersions({ policies, store }, workspace, { before, limit }),
})
