import { join } from 'node:path'
import { policyRegistry } from '@custody/chains'
import { platformCall } from '../../../../signer/src/api/index.ts'
import type { Config, Peer } from '../../../../signer/src/config.ts'
import { errorAnswer } from '../../../../signer/src/errors.ts'
import { PolicyExchange } from '../../../../signer/src/governance/exchange.ts'
import { Policies } from '../../../../signer/src/governance/policies.ts'
import { nodesHash } from '../../../../signer/src/governance/word.ts'
import type { Log } from '../../../../signer/src/log.ts'
import type { NodeContext } from '../../../../signer/src/node-context.ts'
import { OwnAddresses } from '../../../../signer/src/policy/governed/own-addresses.ts'
import { PolicyJudge } from '../../../../signer/src/policy/governed/policy-judge.ts'
import { Judge } from '../../../../signer/src/policy/judge.ts'
import { Bans } from '../../../../signer/src/sessions/bans.ts'
import { CatchUp } from '../../../../signer/src/signing/catch-up.ts'
import { Coordinator, type SigningParts } from '../../../../signer/src/signing/coordinator.ts'
import { Participant } from '../../../../signer/src/signing/participant.ts'
import { PlatformOrders } from '../../../../signer/src/signing/platform-orders.ts'
import { Reservations } from '../../../../signer/src/signing/reservations.ts'
import { SharedSpending } from '../../../../signer/src/signing/shared-spending.ts'
import { Slots } from '../../../../signer/src/signing/slots.ts'
import { Store } from '../../../../signer/src/store/index.ts'
import { HostClock } from '../../../../signer/src/transport/host-clock.ts'
import { Peers, type PeerLink } from '../../../../signer/src/transport/peers.ts'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import { bytesOf } from '../seeded-random.ts'
import { NODES, PLATFORM, type ClusterKeys } from './cluster-keys.ts'
import type { Vault } from './engine-types.ts'
import type { Endpoint, Network } from './network.ts'
import type { FirstDocument } from './policy-document.ts'
import type { Signatures } from './signatures.ts'
import { Process, type VirtualClock } from './virtual-clock.ts'
import { SUB_ACCOUNT } from './wallets.ts'

/** Fee caps that the fees of fuel and sweeps of a workspace may reach in 24 hours. */
const BUDGET_FEE_CAPS = 4
const TIMEOUTS_MS = { round: 5000, keygen: 60_000, sign: 30_000 }
/** Deposit addresses of a sub-account that a node counts as its own. */
const DEPOSITS = 4
/** Interval of the pings to peers; a node process pings more often. */
const PING_MS = 300_000

/** A node as the platform and its peers call it. */
export interface SimulatedNode extends Endpoint {
  readonly node: number
  /** Handles a call of the platform. */
  platform(
    path: string,
    text: string,
    order: string | undefined,
  ): Promise<{ status: number; body: unknown }>
  /** Handles an encrypted call of a peer. */
  peer(from: number, call: string, sealed: Buffer): Promise<Buffer>
}

export interface Surroundings {
  clock: VirtualClock
  network: Network
  keys: ClusterKeys
  signatures: Signatures
  /** Folder of the records. */
  home: string
  nodes: ReadonlyMap<number, SimulatedNode>
  log: (line: string) => void
  /** Called with an error that an honest node did not expect. */
  failed: (text: string) => void
}

/**
 * An unmodified honest node: its rules, record, bans, policies, sessions and calls. Only keys, engine,
 * clock and connections are doubles. Its modules are connected as in `node.ts`.
 */
export class HonestNode implements SimulatedNode {
  readonly node: number
  readonly name: string
  process: Process | null = null
  readonly #around: Surroundings
  #context!: NodeContext
  #starts = 0

  constructor(node: number, around: Surroundings) {
    this.node = node
    this.name = `node ${node}`
    this.#around = around
  }

  get store(): Store {
    return this.#context.store
  }

  start(): void {
    const process = new Process(this.name)
    this.process = process
    this.#around.clock.as(process, () => {
      this.#context = this.#connect()
      void this.#keepPinging(process)
    })
  }

  /** Enters the first policy of a workspace, as the operator of this node does. */
  async enterPolicy(first: FirstDocument): Promise<void> {
    const { workspace, document, possessions } = first
    const { exchange } = this.#context.governance
    this.store.append('sub-account', { workspace, name: `sub-${SUB_ACCOUNT}`, index: SUB_ACCOUNT })
    exchange.type({ kind: 'first', workspace, document, possessions })
    await exchange.announce()
  }

  /** Whether the first policy is in force. */
  isGoverned(workspace: string): boolean {
    return this.#context.governance.policies.held(workspace).governance !== null
  }

  /** Ends the process at any moment: entries that are not on disk are lost. */
  kill(): void {
    const { process } = this
    if (!process) return
    process.hasEnded = true
    this.process = null
    this.store.record.close()
  }

  close(): void {
    if (this.process) this.kill()
  }

  async #keepPinging(process: Process): Promise<void> {
    for (;;) {
      await this.#around.clock.sleep(PING_MS)
      if (process.hasEnded) return
      const { peers, store, bans } = this.#context
      await peers.ping()
      store.saveHeads()
      bans.write()
    }
  }

  #config(): Config {
    const { keys } = this.#around
    const peerList = NODES.filter((each) => each !== this.node).map(
      (node) => ({ node, identity: keys.identities.get(node)! }) as Peer,
    )
    return {
      node: this.node,
      mode: 'local',
      identity: keys.identityOf(this.node),
      identityPublic: keys.identities.get(this.node)!,
      peerList,
      budget_fee_caps: BUDGET_FEE_CAPS,
      timeouts_ms: TIMEOUTS_MS,
    } as unknown as Config
  }

  #link(peer: Peer): PeerLink {
    const { network, nodes } = this.#around
    const target = (): SimulatedNode => nodes.get(peer.node)!
    return {
      peer,
      post: (call, sealed, timeoutMs) =>
        network.call(target, () => target().peer(this.node, call, sealed), timeoutMs),
      close: () => {},
    }
  }

  #connect(): NodeContext {
    const { clock, keys, home, signatures } = this.#around
    const random = bytesOf(`node ${this.node} start ${++this.#starts}`)
    const environment = { now: () => clock.nowMs, monotonic: () => clock.nowMs, random, exit() {} }
    const config = this.#config()
    const store = new Store(
      join(home, `record-${this.node}.sqlite`),
      environment.now,
      environment.monotonic,
    )
    if (store.record.height === 0) store.append('orders-authorised', {})
    const log: Log = (level, message, fields) => {
      const text = `${this.name}: ${message} ${JSON.stringify(fields ?? {})}`
      if (level === 'error') this.#around.failed(text)
      if (level === 'alert') this.#around.log(text)
    }
    const bans = new Bans({ config, store, log })
    const peers = new Peers({
      config,
      store,
      environment,
      log,
      assertNotBanned: (node) => bans.assertNot(node),
      link: (peer) => this.#link(peer),
    })
    const keyring = this.#keyring()
    const governance = this.#governance({ store, peers, log })
    const spending = new SharedSpending({ store, peers, timeoutMs: TIMEOUTS_MS.round })
    const keyOf = keyring.workspaceKey
    const judge = new Judge(
      { registry, store, identities: keys.identities, budgetFeeCaps: BUDGET_FEE_CAPS, keyOf },
      new PolicyJudge({
        store,
        ...governance,
        known: () => spending.known(),
        own: new OwnAddresses({ registry, store, keyOf, log }, { deposits: DEPOSITS }),
      }),
    )
    const parts: SigningParts = {
      config,
      environment,
      store,
      registry,
      engine: signatures.engineOf(this.node),
      vault: {} as Vault,
      judge,
      keyring,
      peers,
      bans,
      catchUp: new CatchUp({ config, store, peers, log }),
      slots: new Slots(environment.monotonic),
      spending,
      reservations: new Reservations(spending),
      platformOrders: new PlatformOrders({
        platformKey: PLATFORM.publicKey,
        nodes: nodesHash(keys.identities),
        store,
        environment,
      }),
      policies: governance.exchange,
      log,
    }
    const participant = new Participant(parts)
    participant.listen()
    return {
      ...parts,
      governance,
      participant,
      coordinator: new Coordinator(parts),
      hostClock: new HostClock({ store, peers, log }),
      restoring: () => false,
    } as unknown as NodeContext
  }

  /** The workspace's keys without generations and certificates. */
  #keyring(): SigningParts['keyring'] {
    const { keys } = this.#around
    return {
      identities: keys.identities,
      workspaceKey: async (_workspace: string, curve: 'secp256k1' | 'ed25519') =>
        keys.certified[curve],
      epochOf: () => 0,
      isUsable: (_keyId: string, epoch: number) => epoch === 0,
      material: (keyId: string) => keys.shareOf(this.node, keyId),
    } as unknown as SigningParts['keyring']
  }

  #governance({
    store,
    peers,
    log,
  }: Pick<SigningParts, 'store' | 'peers' | 'log'>): NodeContext['governance'] {
    const { clock, keys } = this.#around
    const place = { mode: 'local', nodes: nodesHash(keys.identities) } as const
    const policies = new Policies({
      store,
      rules: { registry: policyRegistry(registry), place },
      log,
    })
    const exchange = new PolicyExchange({
      node: this.node,
      identity: keys.identityOf(this.node),
      identities: keys.identities,
      policies,
      store,
      peers,
      monotonic: () => clock.nowMs,
      timeoutMs: TIMEOUTS_MS.round,
      log,
    })
    peers.pingFields = () => exchange.pingFields()
    peers.onPing = (node, body) => {
      exchange.onPing(node, body)
    }
    return { policies, exchange }
  }

  async platform(
    path: string,
    text: string,
    order: string | undefined,
  ): Promise<{ status: number; body: unknown }> {
    if (path === '/status') return { status: 200, body: {} }
    try {
      return await platformCall(this.#context, 'POST', path, text, order)
    } catch (error) {
      const answer = errorAnswer(error)
      if (answer.status === 500) this.#around.failed(`${this.name}: ${(error as Error).stack}`)
      return answer
    }
  }

  peer(from: number, call: string, sealed: Buffer): Promise<Buffer> {
    return this.#context.peers.receive(from, call, sealed)
  }
}
