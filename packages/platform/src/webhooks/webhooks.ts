import type { Services } from '../engine/services.ts'
import type { Environment } from '../environment.ts'
import { Bell } from '../ledger/bell.ts'
import { loadPlatformKey, type PlatformKey } from './platform-key.ts'
import { Reach, type Resolve } from './reach.ts'
import { Sender } from './send.ts'

/** What webhooks need of an installation; made once at start. */
export interface Webhooks {
  reach: Reach
  sender: Sender
  /** Rung when there may be something to deliver. */
  due: Bell
  key(): Promise<PlatformKey>
}

/** @param o.allow CIDRs that are sent to although they are no public addresses */
export function createWebhooks(o: {
  services: () => Services
  environment: Environment
  allow: readonly string[]
  resolve: Resolve
}): Webhooks {
  let key: Promise<PlatformKey> | null = null
  const reach = new Reach(o.allow, o.resolve)
  return {
    reach,
    sender: new Sender(o.environment, reach),
    due: new Bell(o.environment),
    key() {
      key ??= loadPlatformKey(o.services()).catch((error: unknown) => {
        key = null
        throw error
      })
      return key
    },
  }
}

declare module '../engine/services.ts' {
  interface Services {
    webhooks: Webhooks
  }
}
