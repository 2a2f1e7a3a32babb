import type { Proof } from '../transport/envelope.ts'
import type { Body, Entry } from './record.ts'

/** What the record says, indexed. Built from the verified record at start and by every append: it is never stored. */

export interface Enrolment { api_key: string; public_key_pem: string; role: 'full' | 'read-only'; workspace: string; sub_account: number; /** Null in records of before names were bound. */ sub_account_name: string | null; revoked: boolean }
export interface NodeSignature { node: number; signature: string }
export interface KeyState { key_id: string; curve: 'secp256k1' | 'ed25519'; public_key: string; chain_code: string; epoch: number; workspace: string | null; height: number }
export interface Allocation { workspace: string; curve: 'secp256k1' | 'ed25519'; key_id: string; epoch: number; certificates: NodeSignature[] | null }
/** A sub-account's index; certified by all three, or only written down here. */
export interface SubAccountBinding { index: number; certificates: NodeSignature[] | null }
/** A caller's request as this node first understood it. */
export interface Seen { api_key: string; nonce: string; intent: string; content: string; transaction_id: string; iat: number; exp: number; seen_at: number; timely: boolean }
export interface StepEntry { height: number; unsigned_hash: string; consumes: string[]; signed: { height: number; hash: string } | null }
export interface Intent { key: string; content: string | null; transaction_id: string; steps: Map<string, StepEntry[]> }
export interface Drain { order: string; workspace: string; network: string; to_address: string; expires_at: number }
/** Rule 13: a caller's standing rule, seen while its request was live. Amounts as decimal text. */
export interface StandingRule { rule: string; api_key: string; nonce: string; content: string; workspace: string; sub_account: number; asset: string; destination: string; tag: string | null; min_amount: string; daily_cap: string; expires_at: number }
/** The operator's order about a tank's stake; `resource` null and `amount` 0 for a release. */
export interface TankStake { order: string; workspace: string; network: string; action: 'stake' | 'unstake' | 'release'; resource: 'ENERGY' | 'BANDWIDTH' | null; amount: string; expires_at: number }
/** What was signed about an address: fuel to it, and the most that sweeps from it have cost; by nonce, else by transaction. */
export interface Fuelled { fuel: Map<string, bigint>; fees: Map<string, bigint> }
export interface PeerHead { height: number; hash: string; generation: number; proof: Proof | null }

const pair = (a: string, b: string): string => JSON.stringify([a, b])
const raise = (map: Map<string, bigint>, key: string, value: bigint): void => { if (value > (map.get(key) ?? -1n)) map.set(key, value) }

export class State {
  readonly enrolments = new Map<string, Enrolment>()
  /** API keys that were revoked, those included that this node never enrolled. */
  readonly revoked = new Set<string>()
  readonly subAccounts = new Map<string, SubAccountBinding>()
  /** By workspace and index; null: an enrolment of before names were bound. */
  readonly subAccountNames = new Map<string, string | null>()
  readonly #highestSubAccount = new Map<string, number>()
  readonly keys = new Map<string, KeyState>()
  readonly allocations = new Map<string, Allocation>()
  readonly seen = new Map<string, Seen>()
  /** Receipts' ids by (API key, nonce): what a peer's first-seen time was accepted as. */
  readonly intents = new Map<string, Intent>()
  readonly intentOfTransaction = new Map<string, string>()
  readonly voids = new Map<string, { height: number; at: number }>()
  /** Step key → transactions that entered round 1, oldest first. */
  readonly steps = new Map<string, StepEntry[]>()
  readonly stepAt = new Map<number, StepEntry>()
  readonly nonces = new Map<string, bigint>()
  /** Network → the highest end of a transaction's life on record, where its chain counts ledgers. */
  readonly ends = new Map<string, { end: number; at: number }>()
  readonly spending = new Map<string, { at: number; amount: bigint; step: string }[]>()
  /** By the rule's id. */
  readonly rules = new Map<string, StandingRule>()
  /** By the rule's id: its forwards that entered signing. */
  readonly forwards = new Map<string, StepEntry[]>()
  /** By address, where fuel went to a deposit address. */
  readonly fuelled = new Map<string, Fuelled>()
  readonly sessions = new Set<string>()
  readonly bans = new Map<number, { at: number; reason: string }>()
  readonly heads = new Map<number, PeerHead>()
  readonly drains = new Map<string, Drain>()
  readonly tankStakes = new Map<string, TankStake>()
  readonly frozen = new Map<string, string>()
  generation = 0
  /** Between the shares' return and the peers' records. */
  restoring = false
  /** Refreshes under way: the new epoch's session and the peers it was tested with. */
  readonly prepared = new Map<string, { epoch: number; session: string; tested: Set<number> }>()
  /** Unix ms; requests issued before are refused (a restored node). */
  notBefore = 0

  static requestKey(apiKey: string, nonce: string): string { return pair(apiKey, nonce) }
  static subAccountKey(workspace: string, name: string): string { return pair(workspace, name) }
  static subAccountIndexKey(workspace: string, index: number): string { return pair(workspace, String(index)) }
  static allocationKey(workspace: string, curve: string): string { return pair(workspace, curve) }
  static accountKey(network: string, address: string): string { return pair(network, address) }
  static budgetKey(workspace: string, network: string, who: string): string { return JSON.stringify([workspace, network, who]) }

  intent(key: string, transactionId: string): Intent {
    let intent = this.intents.get(key)
    if (!intent) {
      intent = { key, content: null, transaction_id: transactionId, steps: new Map() }
      this.intents.set(key, intent)
    }
    return intent
  }

  /** Applies one entry; `imported`: it comes from a peer's record, so that what is the peer's own is left out. */
  apply(entry: Entry, imported = false): void {
    const { body, at, height } = entry
    switch (entry.kind) {
      case 'registry':
        if (!imported) for (const [name, meaning] of Object.entries(body['frozen'] as Record<string, string>)) this.frozen.set(name, meaning)
        break
      case 'enrol':
        if (!imported) {
          this.enrolments.set(body['api_key'], {
            api_key: body['api_key'], public_key_pem: body['public_key_pem'], role: body['role'], workspace: body['workspace'], sub_account: body['sub_account'],
            sub_account_name: body['sub_account_name'] ?? null, revoked: this.revoked.has(body['api_key']),
          })
          this.#holdIndex(body['workspace'], body['sub_account'], null)
        }
        break
      case 'sub-account': {
        const name = State.subAccountKey(body['workspace'], body['name'])
        if (!this.subAccounts.has(name)) this.subAccounts.set(name, { index: body['index'], certificates: null })
        this.#holdIndex(body['workspace'], body['index'], body['name'])
        break
      }
      case 'sub-account-set': {
        const binding = this.subAccounts.get(State.subAccountKey(body['workspace'], body['name']))
        if (!imported && binding?.index === body['index']) binding!.certificates = body['certificates']
        break
      }
      case 'revoke': {
        this.revoked.add(body['api_key'])
        const enrolment = this.enrolments.get(body['api_key'])
        if (enrolment) enrolment.revoked = true
        break
      }
      case 'key': {
        const known = this.keys.get(body['key_id'])
        if (!imported && (!known || known.epoch < body['epoch'])) {
          this.keys.set(body['key_id'], { key_id: body['key_id'], curve: body['curve'], public_key: body['public_key'], chain_code: body['chain_code'], epoch: body['epoch'], workspace: known?.workspace ?? this.#workspaceOf(body['key_id']), height })
        }
        break
      }
      case 'prepared':
        if (!imported) this.prepared.set(body['key_id'], { epoch: body['epoch'], session: body['session'], tested: new Set() })
        break
      case 'tested': {
        const prepared = this.prepared.get(body['key_id'])
        if (!imported && prepared && prepared.session === body['session']) prepared.tested.add(body['partner'])
        break
      }
      case 'refreshed': {
        const key = this.keys.get(body['key_id'])
        if (!imported && key && body['epoch'] > key.epoch) key.epoch = body['epoch']
        break
      }
      case 'restoring':
        if (!imported) this.restoring = true
        break
      case 'allocate': {
        const name = State.allocationKey(body['workspace'], body['curve'])
        if (!this.allocations.has(name)) this.allocations.set(name, { workspace: body['workspace'], curve: body['curve'], key_id: body['key_id'], epoch: body['epoch'], certificates: null })
        const key = this.keys.get(body['key_id'])
        if (key) key.workspace = body['workspace']
        break
      }
      case 'certificates': {
        // A peer's word is not enough here: a restored node asks for the set and verifies it.
        if (imported) break
        const allocation = this.allocations.get(State.allocationKey(body['workspace'], body['curve']))
        if (allocation && allocation.key_id === body['key_id']) allocation.certificates = body['certificates']
        break
      }
      case 'seen': {
        const name = State.requestKey(body['api_key'], body['nonce'])
        if (!this.seen.has(name)) this.seen.set(name, { ...(body as Omit<Seen, 'seen_at'>), seen_at: Math.floor(at / 1000), timely: body['timely'] && !imported })
        this.intent(body['intent'], body['transaction_id'])
        this.intentOfTransaction.set(body['transaction_id'], body['intent'])
        break
      }
      case 'step': {
        const step: StepEntry = { height, unsigned_hash: body['unsigned_hash'], consumes: body['consumes'], signed: null }
        const name: string = body['step']
        const list = this.steps.get(name) ?? []
        this.steps.set(name, list)
        if (imported && list.some((known) => known.unsigned_hash === step.unsigned_hash)) break
        list.push(step)
        this.stepAt.set(height, step)
        if (body['rule']) {
          const forwards = this.forwards.get(body['rule'])
          if (forwards) forwards.push(step)
          else this.forwards.set(body['rule'], [step])
        }
        if (body['intent']) {
          const intent = this.intent(body['intent'], body['transaction_id'] ?? '')
          intent.content ??= body['content'] ?? null
          intent.steps.set(name, list)
        }
        if (body['account']) this.#raiseNonce(body['account'], BigInt(body['nonce']))
        if (body['decoded']?.valid_until !== undefined) this.#raiseEnd(body['decoded'].network, body['decoded'].valid_until, at)
        for (const { budget, amount } of (body['charges'] ?? (body['charge'] ? [body['charge']] : [])) as { budget: string; amount: string }[]) {
          const spent = this.spending.get(budget) ?? []
          this.spending.set(budget, spent)
          spent.push({ at, amount: BigInt(amount), step: name })
        }
        if (body['fuelled']) this.#countFuel(body)
        for (const id of body['sessions'] ?? []) this.sessions.add(id)
        break
      }
      case 'session':
        for (const id of body['sessions'] ?? []) this.sessions.add(id)
        break
      case 'signed': {
        const step = this.stepAt.get(body['step_height'])
        if (step && !imported) step.signed = { height, hash: body['hash'] }
        break
      }
      case 'nonce':
        this.#raiseNonce(body['account'], BigInt(body['nonce']))
        break
      case 'void':
        for (const name of body['keys'] as string[]) if (!this.voids.has(name)) this.voids.set(name, { height, at })
        break
      case 'rule':
        if (!this.rules.has(body['rule'])) this.rules.set(body['rule'], body as StandingRule)
        break
      case 'ban':
        if (!imported) this.bans.set(body['node'], { at, reason: body['reason'] })
        break
      case 'head':
        if (!imported) this.heads.set(body['node'], { height: body['height'], hash: body['hash'], generation: body['generation'], proof: body['proof'] ?? null })
        break
      case 'drain':
        if (!imported) this.drains.set(body['order'], body as Drain)
        break
      case 'tank-stake':
        if (!imported) this.tankStakes.set(body['order'], body as TankStake)
        break
      case 'restored':
        if (!imported) {
          this.generation = body['generation']
          this.notBefore = body['not_before']
          this.restoring = false
        }
        break
      default:
        break
    }
    if (!imported && body['peer_head']) {
      const { node, ...head } = body['peer_head'] as PeerHead & { node: number }
      this.heads.set(node, head)
    }
  }

  /** Transactions of one nonce exclude each other: the dearest counts. */
  #countFuel(body: Body): void {
    const { kind, network, address, amount } = body['fuelled'] as { kind: 'fuel' | 'fees'; network: string; address: string; amount: string }
    raise(this.fuelledAt(network, address)[kind], body['nonce'] ?? body['unsigned_hash'], BigInt(amount))
  }

  fuelledAt(network: string, address: string): Fuelled {
    const key = State.accountKey(network, address)
    const known = this.fuelled.get(key) ?? { fuel: new Map<string, bigint>(), fees: new Map<string, bigint>() }
    this.fuelled.set(key, known)
    return known
  }

  /** A peer's account of an address: it took part in what this node did not see. */
  mergeFuelled(network: string, address: string, theirs: Fuelled): void {
    const mine = this.fuelledAt(network, address)
    for (const name of ['fuel', 'fees'] as const) for (const [place, amount] of theirs[name]) raise(mine[name], place, amount)
  }

  /** Fuel that lies at a deposit address at least. Smallest native unit. */
  leftoverAt(network: string, address: string): bigint {
    const known = this.fuelled.get(State.accountKey(network, address))
    if (!known) return 0n
    const sum = (map: Map<string, bigint>) => [...map.values()].reduce((all, each) => all + each, 0n)
    const left = sum(known.fuel) - sum(known.fees)
    return left > 0n ? left : 0n
  }

  #holdIndex(workspace: string, index: number, name: string | null): void {
    const key = State.subAccountIndexKey(workspace, index)
    this.subAccountNames.set(key, this.subAccountNames.get(key) ?? name)
    this.#highestSubAccount.set(workspace, Math.max(index, this.#highestSubAccount.get(workspace) ?? 0))
  }

  /** The lowest index above all that this node knows in a workspace. */
  nextSubAccount(workspace: string): number { return (this.#highestSubAccount.get(workspace) ?? 0) + 1 }

  #workspaceOf(keyId: string): string | null {
    for (const allocation of this.allocations.values()) if (allocation.key_id === keyId) return allocation.workspace
    return null
  }

  #raiseNonce(account: string, nonce: bigint): void {
    const highest = this.nonces.get(account)
    if (highest === undefined || nonce > highest) this.nonces.set(account, nonce)
  }

  #raiseEnd(network: string, end: number, at: number): void {
    const highest = this.ends.get(network)
    if (!highest || end > highest.end) this.ends.set(network, { end, at })
  }

  /** What was charged to a budget since a time. */
  spentSince(budget: string, since: number): bigint {
    return this.#chargedSince(budget, since).reduce((sum, item) => sum + item.amount, 0n)
  }

  /** The same by step, where the transactions of one step exclude each other: the largest of each. */
  largestSince(budget: string, since: number): Map<string, bigint> {
    const largest = new Map<string, bigint>()
    for (const { step, amount } of this.#chargedSince(budget, since)) if (amount > (largest.get(step) ?? 0n)) largest.set(step, amount)
    return largest
  }

  /** Drops what is older for good: the sums only look forward. A peer's entries come in late and out of order. */
  #chargedSince(budget: string, since: number): { at: number; amount: bigint; step: string }[] {
    const kept = (this.spending.get(budget) ?? []).filter(({ at }) => at >= since)
    if (kept.length > 0) this.spending.set(budget, kept)
    else this.spending.delete(budget)
    return kept
  }
}
