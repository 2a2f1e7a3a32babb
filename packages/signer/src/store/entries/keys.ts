import { z } from 'zod'
import { count, curve, node, nodeSignatures } from './values.ts'

const certified = z.strictObject({
  curve,
  key_id: z.string(),
  public_key: z.string(),
  chain_code: z.string(),
  mode: z.string(),
  epoch: count,
  signatures: nodeSignatures,
})

/** Entries about a key: generated, assigned to a workspace, refreshed. */
export const KEYS = {
  /** `session`: of the run that generated it; absent in records of earlier versions. */
  key: certified.extend({ session: z.string().optional() }),
  allocate: z.strictObject({ workspace: z.string(), curve, key_id: z.string(), epoch: count }),
  certificates: z.strictObject({
    workspace: z.string(),
    curve,
    key_id: z.string(),
    certificates: nodeSignatures,
  }),
  prepared: certified.extend({ session: z.string() }),
  tested: z.strictObject({ key_id: z.string(), epoch: count, session: z.string(), partner: node }),
  /** Without a session if the share of a later epoch came from a backup. */
  refreshed: z.strictObject({ key_id: z.string(), epoch: count, session: z.string().optional() }),
  forgotten: z.strictObject({ key_id: z.string(), epoch: count }),
  /** A promise never to switch to the shares of a refresh. */
  abandoned: z.strictObject({ key_id: z.string(), epoch: count, session: z.string() }),
  /** Return to the previous share, from the shares of a refresh that the peers have abandoned. */
  reverted: z.strictObject({ key_id: z.string(), epoch: count, session: z.string() }),
}
