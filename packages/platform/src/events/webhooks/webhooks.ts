import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Environment } from '../../core/environment.ts'
import { Notifier } from '../../core/ledger/notifier.ts'
import { loadPlatformKey, type PlatformKey } from './platform-key.ts'
import { EgressPolicy, type Resolve } from './egress-policy.ts'
import { Sender } from './send.ts'

interface Services {
  database: Database
  aml: Aml
}

/** The services that webhooks need, created once at start. */
export interface Webhooks {
  reach: EgressPolicy
  sender: Sender
  /** Notified when there may be deliveries to send. */
  due: Notifier
  key(): Promise<PlatformKey>
}

/**
 * Creates the services of webhooks.
 * @param o `allow`: CIDRs that are allowed although they are not public addresses
 */
export function createWebhooks(o: {
  services: () => Services
  environment: Environment
  allow: readonly string[]
  resolve: Resolve
}): Webhooks {
  let key: Promise<PlatformKey> | null = null
  const reach = new EgressPolicy(o.allow, o.resolve)
  return {
    reach,
    sender: new Sender(o.environment, reach),
    due: new Notifier(o.environment),
    key() {
      key ??= loadPlatformKey(o.services()).catch((error: unknown) => {
        key = null
        throw error
      })
      return key
    },
  }
}
