import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  assemble,
  loadRegistry,
  policyRegistry,
  signing,
  type Network,
  type Registry,
  type UnsignedTransaction,
} from '@custody/chains'
import { platformCall } from '../../signer/src/api/index.ts'
import { errorAnswer, Refusal } from '../../signer/src/errors.ts'
import { Policies } from '../../signer/src/governance/policies.ts'
import { HostClock } from '../../signer/src/transport/host-clock.ts'
import type { Peers } from '../../signer/src/transport/peers.ts'
import type { NodeContext } from '../../signer/src/node-context.ts'
import type { PolicyJudge } from '../../signer/src/policy/governed/policy-judge.ts'
import type { Context } from '../../signer/src/policy/context.ts'
import { Judge } from '../../signer/src/policy/judge.ts'
import { accountOf, isNonceGap } from '../../signer/src/policy/nonce.ts'
import {
  orderSchema,
  type GovernedVerdict,
  type Order,
  type Verdict,
} from '../../signer/src/policy/order.ts'
import { Store } from '../../signer/src/store/index.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../src/core/signing/nodes.ts'
import { WholeKeys } from '../../signer/testing/whole-keys.ts'

/**
 * Fixture with the rules and records of real signer nodes in this process, without their sockets
 * and signing rounds. Admitted requests are signed with one whole key. The nodes' entry point
 * (`platformCall`) reads the same text that it reads over TLS.
 */
const registry = loadRegistry('local')
const shared = new WholeKeys(7)
/** Public key of every workspace that was not assigned keys of its own. */
export const publicKeyAt = shared.at.secp256k1

/**
 * Fault of a signing step; `undefined` for none. `torn`: one node has recorded the signature, and
 * the other one ends. `unapproved`: the policy requires approvals. `full`: a window of the policy
 * is full. `busy`: the nodes have too much to do.
 */
export type Fault = 'refuse' | 'unapproved' | 'full' | 'busy' | 'lost' | 'away' | 'torn' | undefined

/** Codes of the refusals of a test. */
const REFUSALS = {
  refuse: 'SHAPE',
  unapproved: 'POLICY_APPROVAL',
  full: 'POLICY_WINDOW',
  busy: 'TOO_BUSY',
} as const
const isRefusal = (fault: Fault): fault is keyof typeof REFUSALS =>
  fault !== undefined && fault in REFUSALS

/**
 * Returns the identity key of a node. It is the same each time, because a simulation must be
 * reproducible.
 */
function identityOf(node: number): KeyObject {
  const secret = createHash('sha256').update(`identity of node ${node}`).digest()
  return createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret]),
    format: 'der',
    type: 'pkcs8',
  })
}

/** What a pair of nodes needs besides its rules and records to sign under policies. */
export interface SigningRound {
  faults: readonly Fault[]
  /** Makes a node query its peers for transactions that they signed without it. */
  learn(parts: NodeContext, verdict: Verdict): void
  signaturesOf(orders: readonly Order[]): SignedOrder[]
}

/** Policies of the workspaces at the nodes. */
export interface NodePolicies {
  /** Connects a node that starts, with the identity keys of all nodes. */
  connect(parts: {
    node: number
    store: Store
    registry: Registry
    identities: ReadonlyMap<number, KeyObject>
    keyOf: Context['keyOf']
  }): { governance: NodeContext['governance']; policyJudge: PolicyJudge }
  /** Lets a pair judge, record and sign orders. @throws Refusal; NodeUnavailable */
  sign(
    pair: readonly [NodeContext, NodeContext],
    orders: readonly Order[],
    round: SigningRound,
  ): Promise<SignedOrder[]>
  /** Like `sign`, with a first node that judges and records nothing. @throws Refusal */
  signAsHostileLeader(
    pair: readonly [NodeContext, NodeContext],
    orders: readonly Order[],
    round: SigningRound,
  ): Promise<SignedOrder[]>
}

/** Signatures of an order with the signed transaction. */
export interface SignedOrder {
  signatures: { signature: string; recovery_id: number | null }[]
  hash: string
  raw: string
}

export class InProcessNodes {
  readonly home = mkdtempSync(join(tmpdir(), 'custody-nodes-'))
  readonly #nodes = new Map<number, NodeContext>()
  /**
   * Returns the fault of a signature, before each signature; `lost` signs and drops the response.
   */
  fault: (order: Order) => Fault = () => undefined
  now: () => number
  /** Offset of each node's clock in milliseconds. */
  readonly offMs = new Map<number, number>()

  readonly #keys: WholeKeys
  readonly #policies: NodePolicies | null

  readonly #budgetFeeCaps: number
  /** Whether the last order had the fault `away`; then its withdrawal is not answered either. */
  #isAway = false

  /**
   * @param policies of the workspaces; null: no workspace has one
   * @param budgetFeeCaps fee caps that a sub-account may use on a network in 24 hours
   */
  constructor(
    count: number,
    now: () => number = () => Date.now(),
    keys: WholeKeys = shared,
    policies: NodePolicies | null = null,
    budgetFeeCaps = 10_000,
  ) {
    this.now = now
    this.#budgetFeeCaps = budgetFeeCaps
    this.#keys = keys
    this.#policies = policies
    const identities = new Map<number, KeyObject>()
    for (let node = 1; node <= count; node++)
      identities.set(node, createPublicKey(identityOf(node)))
    for (const node of identities.keys()) this.#start(node, identities)
    this.#identities = identities
  }

  readonly #identities: ReadonlyMap<number, KeyObject>

  #start(node: number, identities: ReadonlyMap<number, KeyObject>): void {
    const keys = this.#keys
    const store = new Store(
      join(this.home, `record-${node}.sqlite`),
      () => this.now() + (this.offMs.get(node) ?? 0),
    )
    const keyOf: Context['keyOf'] = async (_workspace, curve) => ({
      ...keys.keys[curve],
      publicKeyAt: keys.at[curve],
    })
    const connected = this.#policies?.connect({ node, store, registry, identities, keyOf })
    const judge = new Judge(
      {
        registry,
        store,
        identities,
        budgetFeeCaps: this.#budgetFeeCaps,
        keyOf,
      },
      connected?.policyJudge ?? null,
    )
    const coordinator = {
      sign: async (order: Order, partner: number) => (await this.#sign(node, partner, [order]))[0],
      signAll: (orders: Order[], partner: number) => this.#sign(node, partner, orders),
    }
    const peers = {
      nodes: [...identities.keys()].filter((each) => each !== node),
      call: async (peer: number) => ({ clock: this.now() + (this.offMs.get(peer) ?? 0) }),
    } as unknown as Peers
    this.#nodes.set(node, {
      environment: { now: () => this.now() + (this.offMs.get(node) ?? 0) },
      store,
      hostClock: new HostClock({ store, peers, log: () => undefined }),
      registry,
      judge,
      coordinator,
      config: { node, identity: identityOf(node) },
      // Without policies, no workspace has one at these nodes.
      governance: connected?.governance ?? {
        policies: new Policies({
          store,
          rules: {
            registry: policyRegistry(registry),
            place: { mode: 'local', nodes: '0'.repeat(64) },
          },
          log: () => undefined,
        }),
        exchange: { firstsOf: () => [], resets: { of: () => null } },
      },
      restoring: () => false,
    } as unknown as NodeContext)
  }

  /** Ends a node and starts it again; the node then knows only its stored record. */
  restart(node: number): void {
    this.#nodes.get(node)?.store.close()
    this.#start(node, this.#identities)
  }

  /** Ends a node and starts it again with an empty record, as after the loss of its host. */
  lose(node: number): void {
    this.#nodes.get(node)?.store.close()
    for (const end of ['', '-wal', '-shm'])
      rmSync(join(this.home, `record-${node}.sqlite${end}`), { force: true })
    this.#start(node, this.#identities)
  }

  enrol(enrolment: {
    api_key: string
    public_key_pem: string
    role: 'full'
    workspace: string
    sub_account: number
  }): void {
    for (const { store } of this.#nodes.values())
      store.append('enrol', { ...enrolment, sub_account_name: `sub-${enrolment.sub_account}` })
  }

  /** Enters an operator's order to drain a gas tank at all nodes. */
  enterDrain(drain: {
    order: string
    workspace: string
    network: string
    to_address: string
  }): void {
    for (const { store } of this.#nodes.values())
      store.append('drain', { ...drain, expires_at: store.seconds() + 3600 })
  }

  /**
   * Makes the nodes write their delayed records immediately, because a simulation must not depend
   * on when they would write them.
   */
  flush(): void {
    for (const { store } of this.#nodes.values()) store.flush()
  }

  /** Like `SignerNodes.call`, through the nodes' own entry point. */
  async call(node: number, method: string, path: string, body: unknown): Promise<unknown> {
    const parts = this.#nodes.get(node)
    if (!parts) throw new NodeUnavailable(node, 'is not there')
    if (path === '/withdraw' && this.#isAway) throw new NodeUnavailable(node, 'is away')
    try {
      return (await platformCall(parts, method, path, JSON.stringify(body))).body
    } catch (error) {
      if (error instanceof NodeUnavailable) throw error
      const answer = errorAnswer(error)
      // As the client of the nodes reports a refusal for the time being.
      if (answer.status >= 500 && error instanceof Refusal)
        throw new NodeUnavailable(node, error.message, error.code)
      if (answer.status >= 500) throw error
      throw new NodeRefused(node, answer.status, answer.body)
    }
  }

  async #sign(first: number, second: number, orders: readonly Order[]): Promise<unknown[]> {
    const faults = orders.map((order) => this.fault(order))
    this.#isAway = faults.includes('away')
    const at = faults.findIndex(isRefusal)
    const refusal = faults[at]
    if (isRefusal(refusal))
      throw new Refusal(REFUSALS[refusal], 'refused by the test', orders.length > 1 ? { at } : {})
    if (this.#isAway) throw new NodeUnavailable(first, 'is away')
    const pair = [first, second].map((node) => this.#nodes.get(node) as NodeContext)
    await pair[0]!.judge.judgeAll(orders)
    return this.#signTogether(pair as [NodeContext, NodeContext], orders, faults)
  }

  async #signTogether(
    pair: [NodeContext, NodeContext],
    orders: readonly Order[],
    faults: readonly Fault[],
  ): Promise<unknown[]> {
    const [first, second] = pair.map(({ config }) => config.node) as [number, number]
    if (this.#policies) {
      const signed = await this.#policies.sign(pair, orders, {
        faults,
        learn: (parts, verdict) => this.#learn(parts, verdict),
        signaturesOf: (allowed) => this.#signaturesOf(allowed),
      })
      return signed.map(({ signatures }) => ({ signatures }))
    }
    const judged: GovernedVerdict[][] = []
    for (const parts of pair) {
      try {
        const verdicts = parts.judge.govern(await parts.judge.judgeAll(orders))
        this.#learn(parts, verdicts[0] as Verdict)
        parts.judge.assertAllAllowed(verdicts)
        judged.push(verdicts)
      } catch (error) {
        // A refusal by the partner is passed on with its number, because the first node could sign
        // with another partner.
        if (!(error instanceof Refusal) || parts === pair[0]) throw error
        throw new Refusal(error.code, error.message, { ...error.detail, node: second })
      }
    }
    const signed = this.#signaturesOf(orders)
    for (const [of, { judge, store }] of pair.entries()) {
      const session = {
        sessions: [],
        partner: pair[1 - of]!.config.node,
        peer_head: null,
      }
      const steps = judge.admitAll(
        judged[of] as GovernedVerdict[],
        orders.map(() => session),
      )
      if (faults.includes('torn')) throw new NodeUnavailable(second, 'ended in mid-round')
      for (const [each, step] of steps.entries()) {
        if (!step.signed)
          store.append('signed', {
            step_height: step.height,
            ...(signed[each] as SignedOrder),
          })
      }
    }
    if (faults.includes('lost')) throw new NodeUnavailable(first, 'no answer')
    return signed.map(({ signatures }) => ({ signatures }))
  }

  /**
   * Lets node 1, which is hostile, lead a session: it judges nothing, and tells its partner nothing.
   * @param run orders, as a platform sends them
   */
  async signAsHostileLeader(
    partner: number,
    workspace: string,
    run: readonly object[],
  ): Promise<SignedOrder[]> {
    const [leader, honest] = [1, partner].map((node) => this.#nodes.get(node) as NodeContext)
    const parsed = run.map((order) => orderSchema.safeParse({ workspace, ...order }))
    const orders = parsed.flatMap(({ data }) => (data ? [data] : []))
    if (orders.length < run.length) throw new NodeRefused(partner, 400, { error: 'BAD_ORDER' })
    try {
      return await this.#policies!.signAsHostileLeader(
        [leader as NodeContext, honest as NodeContext],
        orders,
        {
          faults: [],
          learn: (parts, verdict) => this.#learn(parts, verdict),
          signaturesOf: (each) => this.#signaturesOf(each),
        },
      )
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      throw new NodeRefused(partner, 403, errorAnswer(error).body)
    }
  }

  /** Returns a transaction with the signatures of the whole key. */
  signedWith(unsigned: UnsignedTransaction): SignedOrder {
    return this.#signaturesOf([{ unsigned }])[0]!
  }

  /** Signs orders with the whole key. */
  #signaturesOf(orders: readonly Pick<Order, 'unsigned'>[]): SignedOrder[] {
    return orders.map(({ unsigned }) => {
      const { curve } = registry.network(unsigned.network) as Network
      const made = signing(registry, unsigned, this.#keys.at[curve]).map(({ message, path }) =>
        this.#keys.sign(curve, message, path),
      )
      const { hash, raw } = assemble(registry, unsigned, made, this.#keys.at[curve])
      return {
        signatures: made.map(({ signature, recoveryId }) => ({
          signature: Buffer.from(signature).toString('hex'),
          recovery_id: recoveryId,
        })),
        hash,
        raw,
      }
    })
  }

  /** Makes a node query its peers for transactions that they signed without it. */
  #learn({ store }: NodeContext, verdict: Verdict): void {
    const account = accountOf(verdict)
    if (account === null || !isNonceGap(store.state, verdict)) return
    for (const [from, peer] of this.#nodes) {
      const nonce = peer.store.state.nonces.get(account)
      if (nonce !== undefined && nonce > (store.state.nonces.get(account) ?? -1n))
        store.append('nonce', { account, nonce: nonce.toString(), from })
    }
  }

  /** The platform's interface to the nodes. */
  get signers(): SignerNodes {
    const peers = [...this.#nodes.keys()].map((node) => ({ node }))
    return {
      peers,
      call: (node: number, method: string, path: string, body: unknown) =>
        this.call(node, method, path, body),
      verify: () => true,
      penalise: () => undefined,
      isPenalised: () => false,
    } as unknown as SignerNodes
  }

  close(): void {
    for (const { store } of this.#nodes.values()) store.close()
    rmSync(this.home, { recursive: true, force: true })
  }
}
