import { JsonNumber, parseJson } from '@custody/request-auth'
import type { Logger } from 'pino'
import type { EventType } from '../database/event-types.ts'
import type { ToldAudit, ToldEvent } from '../database/pool.ts'

/** What is said of an event, and how loudly. Events that are not named here are told at `debug`. */
const WORDS: Partial<Record<EventType, ['info' | 'warn', string]>> = {
  'transaction.created': ['info', 'transfer created'],
  'transaction.confirmed': ['info', 'transfer confirmed'],
  'transaction.failed': ['info', 'transfer failed'],
  'deposit.confirmed': ['info', 'deposit credited'],
  'deposit.frozen': ['warn', 'deposit held by screening'],
  'deposit.suspended': ['warn', 'deposit in suspense: it belongs to no wallet'],
  'deposit.released': ['info', 'deposit released'],
  'address.unfrozen': ['warn', 'address unfrozen'],
  'deposit.reverted': ['warn', 'deposit reversed by a reorganisation'],
  'address.frozen': ['warn', 'address frozen by screening'],
  'exchange_account.failing': ['warn', 'an exchange rejects a key'],
  'exchange_account.difference': [
    'warn',
    'the balance at an exchange differs from the ledger, or no longer differs',
  ],
  'order.created': ['info', 'order created'],
  'exchange_transfer.created': ['info', 'exchange transfer created'],
}

/** Nothing of a request, and no memo: both may hold what callers would not want in a log. */
const FIELDS = [
  'id',
  'type',
  'asset',
  'network',
  'amount',
  'fee',
  'fee_asset',
  'hash',
  'address',
  'failure_reason',
  'sub_status',
] as const

/** One line of the log for each event that was committed: what happened to whose coins. */
export function narrate(log: Logger, { type, workspace, payload }: ToldEvent): void {
  const [level, words] = WORDS[type] ?? ['debug' as const, type]
  if (!log.isLevelEnabled(level)) return
  const told = parseJson(payload) as Record<string, unknown>
  const fields = FIELDS.flatMap((name) => {
    const value = told[name]
    return value === undefined || value === null
      ? []
      : [[name, value instanceof JsonNumber ? value.text : value]]
  })
  log[level]({ event: type, workspace_id: workspace, ...Object.fromEntries(fields) }, words)
}

/**
 * One line of the log for each entry of an audit log. Without names and details, which may be
 * personal, and without the query of a signed request. By its hash an export that was made later is
 * verified.
 */
export function narrateAudit(
  log: Logger,
  { workspace, seq, hash, action, object, actorType, actorId, ip }: ToldAudit,
): void {
  log.info(
    {
      action,
      workspace_id: workspace,
      seq,
      hash,
      object: object?.split('?', 1)[0] ?? null,
      actor_type: actorType,
      actor_id: actorId,
      ip,
    },
    'audit log entry written',
  )
}
