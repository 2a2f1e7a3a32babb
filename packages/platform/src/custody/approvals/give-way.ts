import type { Database, Queryable } from '../../core/database/pool.ts'
import type { SigningRefusal } from '../../core/engine/interfaces/kind.ts'
import { advance } from '../../core/engine/lease.ts'
import type { Environment } from '../../core/environment.ts'
import { isHeldByPolicy } from '../../core/signing/refusal.ts'
import type { State, TransactionRow } from '../../core/engine/transaction.ts'
import { waitMs } from './judge-again.ts'
import type { WorkspacePolicies } from './workspace-policies.ts'

/**
 * SIGNING → an earlier state, if the signer nodes do not sign a transfer now because a window of the
 * policy is full or the policy is stopped. Other transfers would otherwise wait behind its nonce or
 * for its change until people end the stop.
 * @param stateAfter releases what is fixed for the transfer and returns the state in which it waits;
 *   the present state, if a node may have begun to sign it
 * @returns whether the transfer has given way
 */
export async function giveWay(
  services: { environment: Environment; database: Database; policies: WorkspacePolicies },
  row: TransactionRow,
  { code, message, freesAt }: Pick<SigningRefusal, 'code' | 'message' | 'freesAt'>,
  stateAfter: (tx: Queryable) => Promise<State>,
): Promise<boolean> {
  if (!isHeldByPolicy(code)) return false
  const { database, environment, policies } = services
  policies.noteGoverned(row.workspace_id)
  return database.transaction(async (tx) => {
    const state = await stateAfter(tx)
    if (state === row.state) return false
    const last_error = message.slice(0, 500)
    await advance(tx, row, {
      state,
      waits: 'POLICY',
      last_error,
      run_in_ms: waitMs(freesAt, environment.now()),
    })
    return true
  })
}
