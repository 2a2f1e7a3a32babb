import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { recordedAudit } from './recorded.ts'
import type { AuditReport } from './report.ts'

type Services = Parameters<typeof recordedAudit>[0] & { settings: Pick<Settings, 'auditEveryMs'> }

/** Maximum number of differences of one audit that are logged; `custody audit` prints all. */
const LOGGED_MAX = 50
/** Time in milliseconds after which an audit that failed, not one that found a difference, is repeated. */
const RETRY_MS = 900_000

/**
 * Creates the loop that audits every `auditEveryMs` milliseconds, in one of the workers. The first
 * audit of a new installation is made after that time. An audit that a stop interrupts is due again
 * immediately; after a crash the next one is made at the next time.
 */
export function auditLoop(services: Services): Loop {
  const { database, settings } = services
  const moveTo = (ms: number) =>
    database.query('update installation set audit_due_at = $1', [new Date(ms)])
  return {
    name: 'audit',
    everyMs: 60_000,
    due: 'exists (select 1 from installation where coalesce(audit_due_at, $1::timestamptz) <= $1)',
    async run(signal) {
      const now = services.environment.now()
      const claimed = await database.one<{ was: Date | null }>(
        `update installation set audit_due_at = $2
         from (select audit_due_at was from installation for update) before
         where coalesce(before.was, $1::timestamptz) <= $1 returning before.was`,
        [new Date(now), new Date(now + settings.auditEveryMs)],
      )
      if (!claimed?.was) return false
      services.environment.checkpoint('audit.claimed')
      try {
        report(services, await recordedAudit(services, signal))
      } catch (error) {
        await moveTo(signal.aborted ? now : now + RETRY_MS)
        if (!signal.aborted) throw error
      }
      return false
    },
  }
}

/** Logs what an audit found: a line for each difference, deficits first, and one for the audit. */
function report({ log }: Pick<Services, 'log'>, found: AuditReport): void {
  const deficits = found.differences.filter(({ kind }) => kind === 'deficit')
  const others = found.differences.filter(({ kind }) => kind !== 'deficit')
  for (const each of deficits.slice(0, LOGGED_MAX))
    log.error(each, 'the ledger differs from a chain')
  for (const each of others.slice(0, Math.max(0, LOGGED_MAX - deficits.length)))
    log.warn(each, 'the ledger differs from a chain')
  log.info(
    {
      ok: found.ok,
      compared: found.compared,
      deficits: deficits.length,
      differences: found.differences.length,
      dust: found.dust.reduce((sum, { addresses }) => sum + addresses, 0),
      exchange_differences: found.exchange_differences.length,
    },
    'the audit was completed',
  )
}
