import { X509Certificate } from 'node:crypto'
import { loadRegistry, policyRegistry } from '@custody/chains'
import { readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { platformCall } from './api/index.ts'
import { ConfigError, type Config } from './config.ts'
import { SubAccounts } from './enrolment/sub-accounts.ts'
import type { Environment } from './environment.ts'
import { Refusal } from './errors.ts'
import { PolicyExchange } from './governance/exchange.ts'
import { Policies } from './governance/policies.ts'
import { nodesHash } from './governance/word.ts'
import { keysAsWritten } from './kek/data-dir.ts'
import { awaitVault } from './kek/wait.ts'
import { Backups } from './keys/backup.ts'
import { Confirmation } from './keys/confirmation.ts'
import { Ceremonies } from './keys/ceremony.ts'
import { Keyring } from './keys/keyring.ts'
import { PairTests } from './keys/pair-tests.ts'
import { Refresher } from './keys/refresh.ts'
import { reason, type Log } from './log.ts'
import { listenOperator, openOperator } from './operator/server.ts'
import type { NodeContext } from './node-context.ts'
import { freezeRegistry } from './policy/frozen.ts'
import type { Context } from './policy/context.ts'
import { OwnAddresses } from './policy/governed/own-addresses.ts'
import { PolicyJudge } from './policy/governed/policy-judge.ts'
import { Judge } from './policy/judge.ts'
import { Coordinator, type SigningParts } from './signing/coordinator.ts'
import { CatchUp } from './signing/catch-up.ts'
import { Participant } from './signing/participant.ts'
import { PlatformOrders } from './signing/platform-orders.ts'
import { Reservations } from './signing/reservations.ts'
import { SharedSpending } from './signing/shared-spending.ts'
import { Slots } from './signing/slots.ts'
import { fingerprintsOf } from './fingerprints.ts'
import { BanReports } from './sessions/ban-reports.ts'
import { Bans } from './sessions/bans.ts'
import { nativeEngine, type Engine } from './sessions/engine.ts'
import { Store } from './store/index.ts'
import { OwnCertificate } from './transport/own-certificate.ts'
import { HostClock } from './transport/host-clock.ts'
import { Peers } from './transport/peers.ts'
import { openServer } from './transport/server.ts'

const TICK_MS = 2000
/** Number of ticks after which the clock's high-water mark is written to disk. */
const CLOCK_TICKS = 15
/** Number of ticks after which a peer is pinged although there is nothing new to send. */
export const QUIET_TICKS = 5

export interface RunningNode {
  parts: NodeContext
  /** Resolves at the end of a round of housekeeping, which runs automatically every two seconds. */
  housekeeping: () => Promise<void>
  stop: () => Promise<void>
}

/**
 * Starts a signer node: it opens the vault and the record, connects its modules, listens, and
 * begins housekeeping.
 * @throws ConfigError if keys.json was changed during the start
 */
export async function startNode(
  config: Config,
  environment: Environment,
  log: Log,
  env: NodeJS.ProcessEnv,
  engine: Engine = nativeEngine,
): Promise<RunningNode> {
  // Read before the record is locked, because the node may be waiting for a key rotation, which
  // needs that lock.
  const written = keysAsWritten(config.home)
  const vault = await awaitVault(config, env, log, () => environment.now(), listenOperator)
  const store = openStore(config, environment, written)
  const registry = loadRegistry(config.mode)
  freezeRegistry(registry, store)
  const parts = connectModules({ config, environment, log, store, registry, engine, vault })
  const { server, channels } = openPeerServer(parts)
  const ownCertificate = new OwnCertificate({ config, server, now: () => environment.now(), log })
  const operator: Server = openOperator(parts)
  await listenOperator(operator, config.socket)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(config.port, config.host, resolve)
  })
  const housekeeping = housekeepingOf(parts, ownCertificate)
  const timer = setInterval(() => {
    void housekeeping()
  }, TICK_MS)
  void housekeeping()

  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      clearInterval(timer)
      parts.keyring.stop()
      await closeServers({ server, channels, operator })
      parts.participant.stop()
      parts.peers.close()
      rmSync(config.socket, { force: true })
      store.saveClock()
      store.close()
    })()
    return stopping
  }
  return { parts, housekeeping, stop }
}

/**
 * Opens and locks the record.
 * @param written keys.json as it was before
 * @throws ConfigError if keys.json was changed since then
 */
function openStore(
  config: Config,
  environment: Environment,
  written: ReturnType<typeof keysAsWritten>,
): Store {
  const store = new Store(
    join(config.home, 'record.sqlite'),
    () => environment.now(),
    () => environment.monotonic(),
  )
  if (keysAsWritten(config.home) !== written) {
    store.close()
    throw new ConfigError('keys.json was changed while this node was starting: start it again')
  }
  // Records of earlier versions begin to require authorisations with the first one.
  if (store.record.height === 0) store.append('orders-authorised', {})
  return store
}

/** Creates the modules of a node; calls of coordinators are handled from then on. */
function connectModules({
  config,
  environment,
  log,
  store,
  registry,
  engine,
  vault,
}: Pick<
  NodeContext,
  'config' | 'environment' | 'log' | 'store' | 'registry' | 'engine' | 'vault'
>): NodeContext {
  const bans = new Bans({ config, store, log })
  const assertNotBanned = (node: number): void => {
    bans.assertNot(node)
  }
  const peers = new Peers({ config, store, environment, log, assertNotBanned })
  const banReports = new BanReports({ config, store, peers, bans, log })
  const own = { config, store, peers, environment, log, bans }
  const slots = new Slots(() => environment.monotonic())
  const isSigning = (withinMs?: number): boolean => slots.areInUse(withinMs)
  const tests = new PairTests({ ...own, engine, vault })
  const ceremonies = new Ceremonies({ ...own, engine, vault, tests, isSigning })
  const keyring = new Keyring({ ...own, ceremonies, isSigning })
  const governance = connectGovernance({ ...own, registry, keyring })
  const spending = new SharedSpending({ store, peers, timeoutMs: config.timeouts_ms.round })
  const keyOf: Context['keyOf'] = (workspace, curve) => keyring.workspaceKey(workspace, curve)
  const addresses = new OwnAddresses({ registry, store, keyOf, log })
  const judge = new Judge(
    {
      registry,
      store,
      identities: keyring.identities,
      budgetFeeCaps: config.budget_fee_caps,
      keyOf,
    },
    new PolicyJudge({ store, ...governance, known: () => spending.known(), own: addresses }),
  )
  const hostClock = new HostClock({ store, peers, log })
  const confirmation = new Confirmation({ config, store, peers })
  const base = { ...own, registry, engine, vault, keyring, judge }
  const limits = connectLimits({ ...own, keyring, spending, slots })
  const signing = { ...base, ...limits, policies: governance.exchange }
  const parts: NodeContext = {
    ...base,
    governance,
    hostClock,
    banReports,
    subAccounts: new SubAccounts({ config, store, peers, identities: keyring.identities }),
    coordinator: new Coordinator(signing),
    participant: new Participant(signing),
    backups: new Backups({
      config,
      store,
      peers,
      keyring,
      vault,
      log,
      confirmation,
      policies: () => governance.policies.forBackup(),
    }),
    refresher: new Refresher({ config, store, peers, keyring, log, ceremonies, tests }),
    restoring: () => store.state.restoring || store.state.recovering,
  }
  parts.participant.listen()
  return parts
}

/** Creates what limits the orders that this node signs, besides their rules. */
function connectLimits({
  config,
  environment,
  log,
  store,
  peers,
  keyring,
  spending,
  slots,
}: Pick<NodeContext, 'config' | 'environment' | 'log' | 'store' | 'peers' | 'keyring'> &
  Pick<SigningParts, 'spending' | 'slots'>): Pick<
  SigningParts,
  'catchUp' | 'spending' | 'slots' | 'reservations' | 'platformOrders'
> {
  const platformOrders = new PlatformOrders({
    platformKey: new X509Certificate(config.platform_certificate).publicKey,
    nodes: nodesHash(keyring.identities),
    store,
    environment,
  })
  const catchUp = new CatchUp({ config, store, peers, log })
  return { catchUp, spending, slots, reservations: new Reservations(spending), platformOrders }
}

/** Creates what holds the policies of workspaces; peers are informed with each ping from then on. */
function connectGovernance({
  config,
  environment,
  log,
  store,
  registry,
  peers,
  keyring,
}: Pick<
  NodeContext,
  'config' | 'environment' | 'log' | 'store' | 'registry' | 'peers' | 'keyring'
>): NodeContext['governance'] {
  const place = { mode: config.mode, nodes: nodesHash(keyring.identities) }
  const rules = { registry: policyRegistry(registry), place }
  const policies = new Policies({ store, rules, log })
  const exchange = new PolicyExchange({
    node: config.node,
    identity: config.identity,
    identities: keyring.identities,
    policies,
    store,
    peers,
    monotonic: () => environment.monotonic(),
    timeoutMs: config.timeouts_ms.round,
    log,
  })
  peers.pingFields = () => exchange.pingFields()
  peers.onPing = (node, body) => {
    exchange.onPing(node, body)
  }
  return { policies, exchange }
}

/** Opens the server for the platform and the peers; it does not listen yet. */
function openPeerServer(parts: NodeContext): ReturnType<typeof openServer> {
  const { config, environment, log, peers } = parts
  const prints = fingerprintsOf({
    own: {
      node: config.node,
      certificate: config.tlsCertificate,
      identity: readFileSync(join(config.home, 'identity.pub'), 'utf8'),
    },
    peers: config.peerList.map((peer) => ({
      ...peer,
      identity: peer.identity.export({ type: 'spki', format: 'pem' }) as string,
    })),
    platform: config.platform_certificate,
  })
  return openServer(
    config,
    {
      hello: () => ({ node: config.node, mode: config.mode, clock: environment.now(), prints }),
      platform: (method, path, text, order) => platformCall(parts, method, path, text, order),
      peer: async (node, path, sealed) => {
        if (!path.startsWith('/peer/')) throw new Refusal('NOT_FOUND', 'This call does not exist')
        return peers.receive(node, path, sealed)
      },
    },
    log,
    () => environment.now(),
  )
}

/**
 * Returns the function that runs a round of housekeeping, or joins the round in progress. Errors
 * are logged.
 */
function housekeepingOf(
  { log, store, peers, bans, banReports, keyring, refresher }: NodeContext,
  ownCertificate: OwnCertificate,
): () => Promise<void> {
  let round: Promise<void> | null = null
  let ticks = 0
  const tick = async (): Promise<void> => {
    try {
      await peers.ping(
        ticks % QUIET_TICKS === 0
          ? peers.nodes
          : peers.nodes.filter((node) => !peers.isQuiet(node)),
      )
      store.saveHeads()
      bans.write()
      await banReports.report()
      if (ticks++ % CLOCK_TICKS === 0) store.saveClock()
      ownCertificate.check()
      // Not awaited, because a key generation takes seconds and pings must continue.
      if (peers.nodes.every((node) => peers.reachable(node))) {
        keyring.fill()
        void refresher.forgetOld()
      }
    } catch (error) {
      log('warn', 'a periodic task failed; it is retried', { reason: reason(error) })
    }
  }
  return () => {
    round ??= tick().finally(() => {
      round = null
    })
    return round
  }
}

/** Closes both servers. Requests in progress have two seconds to complete. */
async function closeServers({
  server,
  channels,
  operator,
}: ReturnType<typeof openServer> & { operator: Server }): Promise<void> {
  const closed = Promise.all(
    [server, operator].map(
      (each) =>
        new Promise<void>((resolve) => {
          each.close(() => {
            resolve()
          })
        }),
    ),
  )
  // Requests in progress get some time to complete; idle connections are closed immediately.
  server.closeIdleConnections()
  channels.closeIdle()
  operator.closeIdleConnections()
  const cut = setTimeout(() => {
    server.closeAllConnections()
    channels.closeAll()
    operator.closeAllConnections()
  }, 2000)
  await closed
  clearTimeout(cut)
}
