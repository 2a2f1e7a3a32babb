import type { Services } from '../../core/engine/services.ts'
import type { Environment } from '../../core/environment.ts'
import { Notifier } from '../../core/ledger/notifier.ts'
import { loadPlatformKey, type PlatformKey } from './platform-key.ts'
import { EgressPolicy, type Resolve } from './egress-policy.ts'
import { Sender } from './send.ts'

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

declare module '../../core/engine/services.ts' {
  interface Services {
    webhooks: Webhooks
  }
}
