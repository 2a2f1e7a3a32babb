import type { Fetch } from '@custody/chains'
import type { Logger } from 'pino'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { Secrets } from '../../core/secrets.ts'
import { Sanctions, sanctionsFile } from './ofac.ts'
import { chainalysis } from './providers/chainalysis.ts'
import { elliptic } from './providers/elliptic.ts'
import { databasePace } from './providers/pace.ts'
import { ProviderHttp, type Provider } from './providers/provider.ts'
import { trm } from './providers/trm.ts'
import type { ProviderName } from './levels.ts'
import type { AmlInstallation } from './settings.ts'

/** Dependencies of screening in an installation, created once at start. */
export interface Aml {
  providers: Record<ProviderName, Provider>
  sanctions: Sanctions
  secrets: Secrets
  /**
   * Time in milliseconds for which a provider's response also counts for other transactions of the
   * sub-account; absent: it does not.
   */
  cacheMs?: number
}

export function createAml(o: {
  home: string
  installation: AmlInstallation
  secrets: Secrets
  environment: Environment
  database: Queryable
  fetch: Fetch
  log: Logger
}): Aml {
  const { urls, ellipticThresholds, trmChains, exposureUsd, ofacFile, cacheMs } = o.installation
  const http = new ProviderHttp(o.fetch, o.environment, databasePace(o.database, o.environment))
  return {
    providers: {
      CHAINALYSIS: chainalysis(urls.CHAINALYSIS, http),
      ELLIPTIC: elliptic(urls.ELLIPTIC, http, ellipticThresholds),
      TRM: trm(urls.TRM, http, trmChains, exposureUsd),
    },
    sanctions: new Sanctions(() => sanctionsFile(o.home, ofacFile), o.log),
    secrets: o.secrets,
    cacheMs,
  }
}
