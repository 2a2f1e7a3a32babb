import type { Registry } from '@custody/chains'
import type { Vault } from '@custody/threshold'
import type { Config } from './config.ts'
import type { SubAccounts } from './enrolment/sub-accounts.ts'
import type { Environment } from './environment.ts'
import type { PolicyExchange } from './governance/exchange.ts'
import type { Policies } from './governance/policies.ts'
import type { Backups } from './keys/backup.ts'
import type { Keyring } from './keys/keyring.ts'
import type { Refresher } from './keys/refresh.ts'
import type { Log } from './log.ts'
import type { Judge } from './policy/judge.ts'
import type { Coordinator } from './signing/coordinator.ts'
import type { Participant } from './signing/participant.ts'
import type { BanReports } from './sessions/ban-reports.ts'
import type { Bans } from './sessions/bans.ts'
import type { Engine } from './sessions/engine.ts'
import type { Store } from './store/index.ts'
import type { HostClock } from './transport/host-clock.ts'
import type { Peers } from './transport/peers.ts'

/** The modules of a running node, as its servers use them. */
export interface NodeContext {
  config: Config
  environment: Environment
  log: Log
  store: Store
  registry: Registry
  engine: Engine
  vault: Vault
  peers: Peers
  hostClock: HostClock
  bans: Bans
  banReports: BanReports
  keyring: Keyring
  subAccounts: SubAccounts
  judge: Judge
  governance: { policies: Policies; exchange: PolicyExchange }
  coordinator: Coordinator
  participant: Participant
  backups: Backups
  refresher: Refresher
  /**
   * Returns whether requests must be rejected: a restored node that has not read its peers' records
   * signs nothing, and a node that was opened for a recovery serves no platform.
   */
  restoring(): boolean
}
