import {
  assemble,
  decode,
  type DecodedTransaction,
  type SignedTransaction,
  type UnsignedTransaction,
  type Registry,
} from '@custody/chains'
import type { Queryable, Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds, SigningRefusal } from './interfaces/kind.ts'
import { orderPolicy, workspaceOf } from '../signing/approvals.ts'
import { ownPathsOf } from '../signing/own-paths.ts'
import { signOrder, type SignOutcome } from '../signing/sign.ts'
import { recordChange } from './change-coins.ts'
import { advance, wakeBuilding } from './lease.ts'
import { ASKED_FOR, type TransactionRow } from './transaction.ts'
import type { Replacement } from './replacement.ts'
import { startFailing } from './outcomes/fail.ts'
import { placeToSign, wakeNextNonce } from './nonce-order.ts'
import { askPurpose } from './purpose.ts'
import { letGo, signTogether, takeFollowers, type Member, type Together } from './run-together.ts'
import { isHeldByPolicy, refusalReason } from '../signing/refusal.ts'
import { markNotSubmitted } from './submission.ts'
import { rebuildStale, returnToEarlier, STILL_BUILT } from './stale.ts'
import type { WaitCode } from './waiting.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

/**
 * Milliseconds until signing is retried while signer nodes are unavailable. Their clocks may need
 * to advance, or a peer may need to return.
 */
const UNAVAILABLE_RETRY_MS = 2000
/** The same for what a budget, a stop or a missing approval holds; nodes write an entry for each attempt. */
const HELD_RETRY_MS = 20_000
export const retryMsOf = ({ code }: { code?: string | undefined }): number =>
  code === 'BUDGET' || isHeldByPolicy(code) ? HELD_RETRY_MS : UNAVAILABLE_RETRY_MS

type Signed =
  | {
      kind: 'signed'
      signed: SignedTransaction
      decoded: DecodedTransaction
      nodes: [number, number]
    }
  | Exclude<SignOutcome, { kind: 'signed' }>

/**
 * Requests the signatures of a built transaction from the signer nodes, then assembles and verifies
 * them locally as well, because the response of one node is not trusted.
 */
export async function signBuilt(
  services: Services,
  row: TransactionRow,
  built: { unsigned: UnsignedTransaction; account: string | null; nonce: string | null },
  replacement?: Replacement,
): Promise<Signed> {
  const { name: workspace, approves } = await workspaceOf(services.database, row.workspace_id)
  const { unsigned, account, nonce } = built
  const purpose = await askPurpose(services, row, replacement)
  const served = row.parent_id === null ? [row.id] : [row.id, row.parent_id]
  const paths = await ownPathsOf(services, row.workspace_id, served)
  // Gas funding for several transfers can name the destination of one of them only.
  const path = ASKED_FOR.has(row.kind) ? paths.get(row.id) : [...paths.values()][0]
  const policy = await orderPolicy(services.database, row, { approves, path })
  const order = { workspace, purpose, unsigned, policy }
  const { curve } = services.networks.get(row.network).network
  const { at: key } = await services.keys.get(row.workspace_id, curve)
  const outcome = await signOrder(services, order, nonce === null ? null : account, (of, made) =>
    assemble(services.registry, of, made, key),
  )
  if (outcome.kind === 'unavailable' && row.attempts === 1) {
    services.log.warn(
      { transaction: row.id, reason: outcome.message },
      'signing waits for the signer nodes',
    )
  }
  if (outcome.kind !== 'signed') return outcome
  const { nodes, signed } = outcome
  return { kind: 'signed', nodes, signed, decoded: decode(services.registry, unsigned, key) }
}

/** Stores the signed bytes of a built transaction and the nodes that signed it. */
export async function noteSigned(
  tx: Queryable,
  workspace: string,
  id: string,
  signed: SignedTransaction,
  nodes: readonly number[],
): Promise<void> {
  await tx.query(
    `update chain_transactions set state = 'SIGNED', signed = $2, hash = $3, signed_by = $4
     where workspace_id = $5 and id = $1 and ${STILL_BUILT}`,
    [id, signed.raw, signed.hash, nodes, workspace],
  )
}

/** SIGNING → SIGNED: commits the signed bytes and the hash before any broadcast. */
export async function sign(services: Services, row: TransactionRow): Promise<void> {
  if (await services.kinds[row.kind].heldBack?.(row)) return
  const built = await services.database.one<{
    id: string
    unsigned: UnsignedTransaction
    valid_until: string | null
    account: string | null
    nonce: string | null
    step: string | null
    is_new: boolean
  }>(
    `select id, unsigned, valid_until::text, account, nonce::text, step, shown_at is null is_new
     from chain_transactions
     where workspace_id = $2 and transaction_id = $1 and state = 'BUILT' order by attempt desc
       limit 1`,
    [row.id, row.workspace_id],
  )
  if (!built) throw new Error('a transaction in the state SIGNING has no unsigned transaction')
  if (await rebuildStale(services, row, built)) return
  const unsigned = await placeToSign(services, row, built)
  if (unsigned === null) return
  services.environment.checkpoint('transaction.shown')
  const run = await signRunOf(services, row, built, unsigned)
  if (run === 'done') return
  const outcome = await signBuilt(services, row, { ...built, unsigned })
  const isUntouched =
    outcome.kind !== 'signed' &&
    (outcome.isUnsigned || (built.is_new && run.isUntouched && outcome.isUntouched))
  if (outcome.kind === 'unavailable') {
    if (await givesWay(services, row, { ...outcome, isUntouched })) return
    // Separate commits, so that no two locks are held at a time.
    if (isUntouched) await markNotSubmitted(services.database, row, built.id)
    return advance(services.database, row, {
      waits: waitCodeOf(outcome),
      last_error: outcome.message,
      run_in_ms: retryMsOf(outcome),
    })
  }
  if (outcome.kind === 'refused') return refuse(services, row, built, { ...outcome, isUntouched })
  const { signed, decoded, nodes } = outcome
  await services.database.transaction(async (tx) => {
    await noteSigned(tx, row.workspace_id, built.id, signed, nodes)
    const change = { hash: signed.hash, unsigned, decoded, isContested: false }
    if (await recordChange(tx, row, change)) {
      if (row.wallet_id !== null) await wakeBuilding(tx, row.workspace_id, row.wallet_id)
    }
    if (built.nonce !== null) await wakeNextNonce(tx, row, built)
    await advance(tx, row, { state: 'SIGNED', last_error: null, run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.signed')
}

/**
 * Lets a transaction give way that the policy of its workspace does not allow now: it returns to an
 * earlier state, or it ends if it only serves another transaction, which waits instead.
 * @returns whether it has given way
 */
async function givesWay(
  services: Services,
  row: TransactionRow,
  refusal: Partial<SigningRefusal> & { message: string },
): Promise<boolean> {
  const { code, message, isUntouched, freesAt } = refusal
  if (code === undefined || !isUntouched || !isHeldByPolicy(code)) return false
  const windows = freesAt === undefined ? {} : { freesAt }
  const kind = services.kinds[row.kind]
  const isJudged = (each: TransactionRow) => services.kinds[each.kind].isJudged?.(each) ?? false
  if (!(await kind.endsIfHeld?.(row, isJudged)))
    return (await kind.refused?.(row, { code, message, isUntouched, ...windows })) ?? false
  const reason = refusalReason({ code, message })
  await services.database.transaction((tx) => startFailing(services, tx, row, reason))
  return true
}

/** Returns a refused transaction to an earlier state, or starts its failure. */
async function refuse(
  services: Services,
  row: TransactionRow,
  built: { id: string; step: string | null },
  { code, message, isUntouched }: SigningRefusal,
): Promise<void> {
  // A node that does not have the earlier transaction refuses by the policy first.
  const mayBeSigned = code === 'NOT_EXCLUSIVE' || code.startsWith('POLICY_')
  if (mayBeSigned && (await returnToEarlier(services, row, built))) return
  if (await services.kinds[row.kind].refused?.(row, { code, message, isUntouched })) return
  services.log.error(
    { transaction: row.id, code, reason: message },
    'the signer nodes reject the transaction',
  )
  // A separate commit, so that no two locks are held at a time.
  if (isUntouched) await markNotSubmitted(services.database, row, built.id)
  await services.database.transaction((tx) =>
    startFailing(services, tx, row, refusalReason({ code, message })),
  )
}

/** Returns the reason why a transaction waits that the nodes do not sign now. */
const waitCodeOf = ({ code }: { code?: string | undefined }): WaitCode =>
  isHeldByPolicy(code) ? 'POLICY' : 'SIGNER_NODES'

/**
 * Signs a payment together with those that wait behind it at its account.
 * @returns `done` if it was signed or must wait. Otherwise there are none, or the nodes refuse the
 *   first one: it is then submitted alone, because the refusal of one payment must not affect
 *   another. `isUntouched`: nothing was and nothing will be signed by these orders
 */
async function signRunOf(
  services: Services,
  row: TransactionRow,
  built: { id: string; account: string | null; nonce: string | null; is_new: boolean },
  unsigned: UnsignedTransaction,
): Promise<'done' | { isUntouched: boolean }> {
  const { id, account, nonce, is_new: isNew } = built
  if (account === null || nonce === null) return { isUntouched: true }
  let followers = await takeFollowers(services, row, { id, account })
  let isUntouched = true
  try {
    while (followers.length > 0) {
      const run = [{ row, built: { id, unsigned } }, ...followers]
      const outcome = await signTogether(services, run, account)
      if (outcome.kind !== 'signed') isUntouched &&= outcome.isUntouched
      if (outcome.kind === 'unavailable') {
        await letGo(services.database, followers, { ...outcome, isUntouched })
        followers = []
        // The first one is submitted alone, so that it gives way if only it is held.
        if (isHeldByPolicy(outcome.code)) break
        if (outcome.isUnsigned || (isNew && isUntouched))
          await markNotSubmitted(services.database, row, id)
        await advance(services.database, row, {
          waits: waitCodeOf(outcome),
          last_error: outcome.message,
          run_in_ms: retryMsOf(outcome),
        })
        return 'done'
      }
      if (outcome.kind === 'signed') {
        await keepRun(services, run, outcome, built)
        followers = []
        return 'done'
      }
      // Only the payments before the refused one are signed now.
      const reserve = outcome.at === null ? 0 : Math.max(0, outcome.at - 1)
      await letGo(services.database, followers.slice(reserve), { isUntouched, isUnsigned: false })
      followers = followers.slice(0, reserve)
    }
    return { isUntouched }
  } finally {
    await letGo(services.database, followers)
  }
}

async function keepRun(
  services: Services,
  run: readonly Member[],
  { signed, nodes }: Extract<Together, { kind: 'signed' }>,
  place: { account: string | null },
): Promise<void> {
  const [first] = run as [Member]
  await services.database.transaction(async (tx) => {
    for (const [at, { row, built }] of run.entries()) {
      await noteSigned(tx, row.workspace_id, built.id, signed[at] as SignedTransaction, nodes)
      await advance(tx, row, { state: 'SIGNED', last_error: null, run_in_ms: 0 })
    }
    await wakeNextNonce(tx, first.row, place)
  })
  services.environment.checkpoint('transaction.signed')
}
