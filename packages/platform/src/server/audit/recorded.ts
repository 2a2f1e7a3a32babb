import { reasonOf } from '@custody/chains/reason'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import { audit } from './audit.ts'
import type { AuditReport } from './report.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  aml: Aml
  exchanges: Venues
}

/** Stored summary of an audit, for monitoring. */
export interface AuditRecord {
  at: Date
  compared: number
  differences: number
  surpluses: number
  /** Differences at exchanges, which are not part of `differences`. */
  exchange_differences: number
}

/**
 * Runs an audit and stores its result for monitoring. The report is returned even if it cannot be
 * stored.
 * @param signal ends the audit between two networks
 * @throws the signal's reason after it was aborted
 */
export async function recordedAudit(
  services: Services,
  signal?: AbortSignal,
): Promise<AuditReport> {
  const began = services.environment.now()
  const report = await audit(services, signal)
  await services.database
    .query(
      `insert into audits (at, took_ms, compared, differences, surpluses, ok, exchange_differences)
        values ($1, $2, $3, $4, $5, $6, $7)`,
      [
        new Date(began),
        services.environment.now() - began,
        report.compared,
        report.differences.length,
        report.differences.filter(({ kind }) => kind === 'surplus').length,
        report.ok,
        report.exchange_differences.length,
      ],
    )
    .catch((error: unknown) =>
      services.log.warn({ err: reasonOf(error) }, 'the result of an audit could not be stored'),
    )
  return report
}

/** Returns the latest audit, made by any process. */
export const latestAudit = (database: Queryable): Promise<AuditRecord | undefined> =>
  database.one<AuditRecord>(
    `select at, compared, differences, surpluses, exchange_differences from audits
      order by at desc, id desc limit 1`,
  )
