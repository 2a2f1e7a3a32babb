import { JsonNumber, parseJson } from '@custody/request-auth'
import type { Logger } from 'pino'
import type { EventType } from '../database/event-types.ts'
import type { EmittedAudit, EmittedEvent } from '../database/pool.ts'

/** Log level and message of an event. Events that are not listed are logged at `debug`. */
const WORDS: Partial<Record<EventType, ['info' | 'warn', string]>> = {
  'transaction.created': ['info', 'transfer created'],
  'transaction.confirmed': ['info', 'transfer confirmed'],
  'transaction.failed': ['info', 'transfer failed'],
  'transaction.reverted': ['warn', 'transfer taken back by a reorganisation'],
  'approval.requested': ['info', 'transfer waits for approvals'],
  'approval.closed': ['info', 'approval request closed'],
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

/**
 * Logged fields. Requests and memos are excluded, because they may contain data that callers do not
 * want in a log.
 */
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
  'state',
] as const

/** Logs one line for a committed event. */
export function logEvent(log: Logger, { type, workspace, payload }: EmittedEvent): void {
  const [level, words] = WORDS[type] ?? ['debug' as const, type]
  if (!log.isLevelEnabled(level)) return
  const reported = parseJson(payload) as Record<string, unknown>
  const fields = FIELDS.flatMap((name) => {
    const value = reported[name]
    return value === undefined || value === null
      ? []
      : [[name, value instanceof JsonNumber ? value.text : value]]
  })
  log[level]({ event: type, workspace_id: workspace, ...Object.fromEntries(fields) }, words)
}

/**
 * Logs one line for each entry of the audit log. Names and details, which may be personal data, and
 * the query string of a signed request are omitted. The hash allows a later export to be verified.
 */
export function logAuditEntry(
  log: Logger,
  { workspace, seq, hash, action, object, actorType, actorId, ip }: EmittedAudit,
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
