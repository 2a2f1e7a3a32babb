import type { Loop } from '../../../core/engine/loops/loop.ts'
import { tryAdvance, type Services } from './progress.ts'

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
    async run(signal) {
      const due = await services.database.query<{ workspace_id: string; id: string }>(
        'select workspace_id, id from policy_changes where is_due order by workspace_id, id limit $1',
        [CHANGES_MAX],
      )
      for (const { workspace_id: workspace, id } of due) {
        if (signal.aborted) break
        await tryAdvance(services, workspace, id)
      }
      return false
    },
  }
}
