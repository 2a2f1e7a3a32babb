import type { Loop } from '../../../core/engine/loops/loop.ts'
import { FIRST_ID, inTurn } from '../in-turn.ts'
import { advance, type Services } from './progress.ts'

/** Changes that one run processes. */
const CHANGES_MAX = 100
const EVERY_MS = 3000

/**
 * Creates the loop that presents approved policy changes and vetoes to the signer nodes, again after
 * a crash, and that notes when a change comes into force, expires or is vetoed.
 */
export function policyChangesLoop(services: Services): Loop {
  return {
    name: 'policy changes',
    everyMs: EVERY_MS,
    due: 'exists (select 1 from policy_changes where is_due)',
    run: inTurn({
      first: { workspace_id: FIRST_ID, id: FIRST_ID },
      max: CHANGES_MAX,
      read: ({ workspace_id, id }, max) =>
        services.database.query<{ workspace_id: string; id: string }>(
          `select workspace_id, id from policy_changes
           where is_due and (workspace_id, id) > ($1::uuid, $2::uuid)
           order by workspace_id, id limit $3`,
          [workspace_id, id, max],
        ),
      process: ({ workspace_id, id }) => advance(services, workspace_id, id),
    }),
  }
}
