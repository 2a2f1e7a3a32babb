import type { Registry } from '@custody/chains'
import type { Vault } from '@custody/threshold'
import type { Config } from './config.ts'
import type { SubAccounts } from './enrolment/sub-accounts.ts'
import type { Environment } from './environment.ts'
import type { Backups } from './keys/backup.ts'
import type { Keyring } from './keys/keyring.ts'
import type { Refresher } from './keys/refresh.ts'
import type { Log } from './log.ts'
import type { Judge } from './policy/judge.ts'
import type { Coordinator } from './signing/coordinator.ts'
import type { BanReports } from './sessions/ban-reports.ts'
import type { Bans } from './sessions/bans.ts'
import type { Store } from './store/index.ts'
import type { HostClock } from './transport/host-clock.ts'
import type { Peers } from './transport/peers.ts'

/** The rooms of a running node, as its entrances see them. */
export interface NodeContext {
  config: Config
  environment: Environment
  log: Log
  store: Store
  registry: Registry
  vault: Vault
  peers: Peers
  hostClock: HostClock
  bans: Bans
  banReports: BanReports
  keyring: Keyring
  subAccounts: SubAccounts
  judge: Judge
  coordinator: Coordinator
  backups: Backups
  refresher: Refresher
  /**
   * A restored node that has not taken its peers' records signs nothing, and one that was opened
   * for a recovery serves no platform.
   */
  restoring(): boolean
}
