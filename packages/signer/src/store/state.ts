import { AddressMarks } from './address-marks.ts'
import type { Body, Entry, Kind } from './entries/index.ts'
import type { GovernanceKind } from './entries/governance.ts'
import { budgetChargesOf, windowChargesOf } from './charges.ts'
import { Ends } from './ends.ts'
import { FuelledAddresses } from './fuelled.ts'
import { LargeMap } from './large.ts'
import { OrderedTransactions } from './ordered.ts'
import { PolicyReading } from './policy-reading.ts'
import { Spending } from './spending.ts'
import type {
  Allocation,
  Ban,
  DrainOrder,
  Enrolment,
  ImportedEntry,
  Intent,
  KeyState,
  PeerHead,
  RecoverOrder,
  Seen,
  StandingRule,
  StepBody,
  StepEntry,
  SubAccountBinding,
  TankStakeOrder,
} from './state-content.ts'

export type * from './state-content.ts'

type OwnEntry = Entry<Exclude<Kind, 'imported'>>
/** Kinds that are applied in the same way for every node's entries. */
type Bound<E> = Extract<
  E,
  {
    kind: 'revoke' | 'sub-account' | 'allocate' | 'session' | 'nonce' | 'void' | 'rule' | 'charged'
  }
>

const pair = (a: string, b: string): string => JSON.stringify([a, b])

/**
 * Indexed content of the record. It is built from the verified record at start and by every append,
 * and never stored.
 */
export class State {
  readonly enrolments = new Map<string, Enrolment>()
  /** Revoked API keys, including those that this node never enrolled. */
  readonly revoked = new Set<string>()
  readonly subAccounts = new Map<string, SubAccountBinding>()
  /**
   * Names of sub-accounts by workspace and index; null: an enrolment from before names were bound.
   */
  readonly subAccountNames = new Map<string, string | null>()
  /** Indexes of the sub-accounts on record, by workspace. */
  readonly subAccountIndexes = new Map<string, Set<number>>()
  readonly addressMarks = new AddressMarks()
  readonly #highestSubAccount = new Map<string, number>()
  readonly keys = new Map<string, KeyState>()
  readonly allocations = new Map<string, Allocation>()
  readonly seen = new LargeMap<string, Seen>()
  /** Intents by their key, with the steps that were signed for them. */
  readonly intents = new LargeMap<string, Intent>()
  /** Public ID of a request → its intent's key. */
  readonly intentOfTransaction = new LargeMap<string, string>()
  /** Voids by the voided name (`policy/identity.ts`). */
  readonly voids = new LargeMap<string, { height: number; at: number }>()
  /** Step key → transactions that entered round 1, oldest first. */
  readonly steps = new LargeMap<string, StepEntry[]>()
  /** Steps by height in the record. */
  readonly stepAt = new LargeMap<number, StepEntry>()
  /** Account → the highest nonce on record. */
  readonly nonces = new LargeMap<string, bigint>()
  /** Seen expiries by network. */
  readonly ends = new Map<string, Ends>()
  readonly spending = new Spending()
  /** Standing rules by ID. */
  readonly rules = new Map<string, StandingRule>()
  /** Forwards that entered signing, by the ID of their rule. */
  readonly forwards = new LargeMap<string, StepEntry[]>()
  readonly fuelled = new FuelledAddresses()
  readonly ordered = new OrderedTransactions()
  readonly sessions = new LargeMap<string, true>()
  readonly bans: Ban[] = []
  /**
   * Height at which the generation of a key started here, by key. Absent for a key that came from a
   * backup.
   */
  readonly #keygens = new Map<string, number>()
  /** Bans that peers have reported. */
  readonly banReports: Body<'ban-told'>[] = []
  readonly heads = new Map<number, PeerHead>()
  readonly drains = new Map<string, DrainOrder>()
  readonly recoveries = new Map<string, RecoverOrder>()
  readonly tankStakes = new Map<string, TankStakeOrder>()
  readonly frozen = new Map<string, string>()
  /** Heights of the entries about each workspace's policy, in their order. */
  readonly policies = new Map<string, number[]>()
  /** Heights of all of them. */
  readonly policyHeights: number[] = []
  /** How often the operator replaced or removed a policy of this node. */
  policiesReplaced = 0
  readonly policyReading = new PolicyReading()
  generation = 0
  /** Height of the entry about this node's last backup; 0 without one. */
  backupHeight = 0
  /** True between the restoration of the shares and that of the peers' records. */
  restoring = false
  /** The node has no platform and permanently signs recovery orders only. */
  recovering = false
  /** Refreshes in progress: the new epoch's session and the peers with which it was tested. */
  readonly prepared = new Map<string, { epoch: number; session: string; tested: Set<number> }>()
  /** Unix ms; requests that were issued earlier are rejected (a restored node). */
  notBefore = 0

  static requestKey(apiKey: string, nonce: string): string {
    return pair(apiKey, nonce)
  }
  static subAccountKey(workspace: string, name: string): string {
    return pair(workspace, name)
  }
  static subAccountIndexKey(workspace: string, index: number): string {
    return pair(workspace, String(index))
  }
  static allocationKey(workspace: string, curve: string): string {
    return pair(workspace, curve)
  }
  static accountKey(network: string, address: string): string {
    return pair(network, address)
  }
  static budgetKey(workspace: string, network: string, who: string): string {
    return JSON.stringify([workspace, network, who])
  }

  /**
   * Returns the session of the share of an epoch that signs here: the current one, or the previous
   * one until it is forgotten. Otherwise undefined.
   */
  sessionOf(keyId: string, epoch: number): string | null | undefined {
    const key = this.keys.get(keyId)
    if (!key) return undefined
    if (key.epoch === epoch) return key.session
    return key.previous?.epoch === epoch ? key.previous.session : undefined
  }

  intent(key: string, transactionId: string): Intent {
    let intent = this.intents.get(key)
    if (!intent) {
      intent = { key, content: null, transaction_id: transactionId, steps: new Map() }
      this.intents.set(key, intent)
    }
    return intent
  }

  /** Applies one entry of this node's own. */
  apply(entry: OwnEntry): void {
    const effect = State.#effects[entry.kind] as (state: State, entry: OwnEntry) => void
    effect(this, entry)
  }

  static readonly #addPolicy = (state: State, entry: Entry<GovernanceKind>): void => {
    const { workspace } = entry.body
    state.policyHeights.push(entry.height)
    const heights = state.policies.get(workspace)
    if (heights) heights.push(entry.height)
    else state.policies.set(workspace, [entry.height])
  }

  /** Peers must read the policies of this node again, because it has less than before. */
  static readonly #replacePolicy = (state: State, entry: Entry<GovernanceKind>): void => {
    state.policiesReplaced++
    State.#addPolicy(state, entry)
  }

  static readonly #bindOwn = (state: State, entry: Bound<OwnEntry>): void => {
    state.#bind(entry)
  }

  /** Effect of each kind of this node's own entries. */
  static readonly #effects: { [K in OwnEntry['kind']]: (state: State, entry: Entry<K>) => void } = {
    registry: ({ frozen }, { body }) => {
      for (const [name, meaning] of Object.entries(body.frozen)) frozen.set(name, meaning)
    },
    enrol: (state, { body }) => {
      const { api_key, sub_account_name = null, ...enrolled } = body
      state.enrolments.set(api_key, {
        ...enrolled,
        api_key,
        sub_account_name,
        revoked: state.revoked.has(api_key),
      })
      state.#holdIndex(enrolled.workspace, enrolled.sub_account, null)
    },
    'sub-account-set': ({ subAccounts }, { body }) => {
      const { workspace, name, index, certificates } = body
      const binding = subAccounts.get(State.subAccountKey(workspace, name))
      if (binding?.index === index) binding.certificates = certificates
    },
    key: (state, { body, height }) => {
      const { key_id, curve, public_key, chain_code, epoch, session = null } = body
      const existing = state.keys.get(key_id)
      if (existing && existing.epoch >= epoch) return
      const workspace = existing?.workspace ?? state.#workspaceOf(key_id)
      state.keys.set(key_id, {
        key_id,
        curve,
        public_key,
        chain_code,
        epoch,
        workspace,
        height,
        session,
        previous: null,
      })
    },
    certificates: ({ allocations }, { body }) => {
      const { workspace, curve, key_id, certificates } = body
      const allocation = allocations.get(State.allocationKey(workspace, curve))
      if (allocation?.key_id === key_id) allocation.certificates = certificates
    },
    prepared: ({ prepared }, { body: { key_id, epoch, session } }) => {
      prepared.set(key_id, { epoch, session, tested: new Set() })
    },
    tested: (state, { body }) => {
      const prepared = state.prepared.get(body.key_id)
      if (prepared?.session === body.session) prepared.tested.add(body.partner)
    },
    refreshed: (state, { body }) => {
      const { key_id, epoch, session = null } = body
      const key = state.keys.get(key_id)
      if (!key || epoch <= key.epoch) return
      // Without a prepared session the share came from a backup, and there is no previous one.
      const isSwitch = state.prepared.get(key_id)?.session === session
      state.keys.set(key_id, {
        ...key,
        epoch,
        session,
        previous: isSwitch ? { epoch: key.epoch, session: key.session } : null,
      })
    },
    forgotten: ({ keys }, { body }) => {
      const key = keys.get(body.key_id)
      if (key?.previous && key.previous.epoch <= body.epoch)
        keys.set(key.key_id, { ...key, previous: null })
    },
    abandoned: ({ prepared }, { body }) => {
      if (prepared.get(body.key_id)?.session === body.session) prepared.delete(body.key_id)
    },
    reverted: ({ keys, prepared }, { body }) => {
      const key = keys.get(body.key_id)
      if (key?.session !== body.session || !key.previous) return
      keys.set(key.key_id, { ...key, ...key.previous, previous: null })
      prepared.delete(key.key_id)
    },
    signed: ({ stepAt }, { body, height }) => {
      const step = stepAt.get(body.step_height)
      if (step) step.signed = { height, hash: body.hash }
    },
    ban: (state, entry) => {
      state.#ban(entry.body, entry)
    },
    'ban-told': ({ banReports }, { body }) => {
      banReports.push(body)
    },
    head: (state, { body }) => {
      state.#hearHead(body)
    },
    drain: ({ drains }, { body }) => {
      drains.set(body.order, body)
    },
    'tank-stake': ({ tankStakes }, { body }) => {
      tankStakes.set(body.order, body)
    },
    restoring: (state) => {
      state.restoring = true
    },
    recover: ({ recoveries }, { body }) => {
      recoveries.set(body.order, body)
    },
    recovering: (state) => {
      state.restoring = false
      state.recovering = true
    },
    restored: (state, { body }) => {
      state.generation = body.generation
      state.notBefore = body.not_before
      state.restoring = false
      state.policyReading.restart()
    },
    'policy-heard': ({ policyReading }, { body }) => {
      policyReading.heard(body)
    },
    'policy-unproven': ({ policyReading }, { body }) => {
      policyReading.ignore(body)
    },
    'policy-accepted': ({ policyReading }, { body }) => {
      policyReading.accept(body)
    },
    clock: (state, { body }) => {
      // This also replaces a later time that a restoration with the same wrong clock had set.
      state.notBefore = body.to
      state.spending.clamp(body.to)
    },
    'address-mark': ({ addressMarks }, { body, at }) => {
      addressMarks.raise(body, at)
    },
    backup: (state, { height }) => {
      state.backupHeight = height
    },
    seen: (state, entry) => {
      state.#see(entry, entry.body.timely)
    },
    step: (state, entry) => {
      state.#enter(entry, false)
      if (entry.body.peer_head) state.#hearHead(entry.body.peer_head)
    },
    session: (state, entry) => {
      state.#bind(entry)
      const { body, height } = entry
      if ('kind' in body && body.kind === 'keygen' && !state.#keygens.has(body.key_id))
        state.#keygens.set(body.key_id, height)
      if ('peer_head' in body && body.peer_head) state.#hearHead(body.peer_head)
    },
    'orders-authorised': ({ ordered }) => {
      ordered.isAuthorisationRequired = true
    },
    withdrawn: ({ ordered }, { body }) => {
      ordered.withdraw(body.hashes, body.until)
    },
    revoke: State.#bindOwn,
    'sub-account': State.#bindOwn,
    allocate: State.#bindOwn,
    nonce: State.#bindOwn,
    void: State.#bindOwn,
    rule: State.#bindOwn,
    charged: State.#bindOwn,
    'policy-typed': State.#addPolicy,
    'policy-begun': State.#addPolicy,
    'policy-change': State.#addPolicy,
    'policy-statement': State.#addPolicy,
    'policy-resumed': State.#addPolicy,
    'policy-confirmed': State.#addPolicy,
    'policy-approved': State.#addPolicy,
    'policy-followed': State.#replacePolicy,
    'policy-uninstalled': (state, entry) => {
      state.policies.delete(entry.body.workspace)
      State.#replacePolicy(state, entry)
    },
    'policy-known': State.#addPolicy,
    'policy-reset-typed': State.#addPolicy,
    'policy-reset-complete': State.#addPolicy,
    'policy-reset-withdrawn': State.#addPolicy,
    'policy-reset-begun': State.#addPolicy,
  }

  /** Applies a peer's entry, with the peer's time: the data that binds every node. */
  take(entry: ImportedEntry): void {
    // This node did not see the request before its expiry, even if its peer did.
    if (entry.kind === 'seen') this.#see(entry, false)
    else if (entry.kind === 'step') this.#enter(entry, true)
    // Certificates are not applied, because a peer's data is not sufficient: a restored node
    // requests and verifies the complete set.
    else this.#bind(entry)
  }

  /** Applies data that has the same effect for every node's entries. */
  #bind(entry: Bound<OwnEntry> | Bound<ImportedEntry>): void {
    switch (entry.kind) {
      case 'revoke': {
        this.revoked.add(entry.body.api_key)
        const enrolment = this.enrolments.get(entry.body.api_key)
        if (enrolment) enrolment.revoked = true
        break
      }
      case 'sub-account': {
        const { workspace, name, index } = entry.body
        const key = State.subAccountKey(workspace, name)
        if (!this.subAccounts.has(key)) this.subAccounts.set(key, { index, certificates: null })
        this.#holdIndex(workspace, index, name)
        break
      }
      case 'allocate': {
        const { workspace, curve, key_id, epoch } = entry.body
        const name = State.allocationKey(workspace, curve)
        if (!this.allocations.has(name))
          this.allocations.set(name, { workspace, curve, key_id, epoch, certificates: null })
        const key = this.keys.get(key_id)
        if (key) key.workspace = workspace
        break
      }
      case 'session':
        for (const id of entry.body.sessions) this.sessions.set(id, true)
        break
      case 'nonce':
        this.#raiseNonce(entry.body.account, BigInt(entry.body.nonce))
        break
      case 'void':
        for (const name of entry.body.keys)
          if (!this.voids.has(name)) this.voids.set(name, { height: entry.height, at: entry.at })
        break
      case 'rule':
        if (!this.rules.has(entry.body.rule)) this.rules.set(entry.body.rule, entry.body)
        break
      case 'charged':
        this.spending.add({
          height: entry.height,
          charges: [],
          windows: windowChargesOf(entry.body, entry.at),
        })
        break
      default:
        entry satisfies never
    }
  }

  #see({ body, at }: { body: Body<'seen'>; at: number }, timely: boolean): void {
    const name = State.requestKey(body.api_key, body.nonce)
    if (!this.seen.has(name))
      this.seen.set(name, { ...body, seen_at: Math.floor(at / 1000), timely })
    this.intent(body.intent, body.transaction_id)
    this.intentOfTransaction.set(body.transaction_id, body.intent)
  }

  /**
   * Adds a step.
   * @param imported whether it is a peer's step; a step that this node has recorded too counts
   *   once, but its charges to windows are added, because the peers may have signed it under
   *   different rules of the policy
   */
  #enter(
    { body, at, height }: { body: StepBody; at: number; height: number },
    imported: boolean,
  ): void {
    const step: StepEntry = {
      height,
      unsigned_hash: body.unsigned_hash,
      consumes: body.consumes,
      signed: null,
    }
    const { step: name, intent: key, content, transaction_id, beside = [] } = body
    this.ordered.bind(step.unsigned_hash)
    const places = [{ step: name, intent: key, content, transaction_id }, ...beside]
    const isKnown = places.map(
      (place) =>
        this.steps
          .get(place.step)
          ?.some((existing) => existing.unsigned_hash === step.unsigned_hash) ?? false,
    )
    const windows = windowChargesOf(body, at)
    if (imported && isKnown.every(Boolean)) {
      this.spending.add({ height, charges: [], windows })
      return
    }
    places.forEach((place, at) => {
      const list =
        !imported || !isKnown[at]
          ? this.#addStep(place.step, step)
          : (this.steps.get(place.step) as StepEntry[])
      if (!place.intent) return
      const intent = this.intent(place.intent, place.transaction_id ?? '')
      intent.content ??= place.content
      intent.steps.set(place.step, list)
    })
    this.stepAt.set(height, step)
    if (body.rule) {
      const forwards = this.forwards.get(body.rule)
      if (forwards) forwards.push(step)
      else this.forwards.set(body.rule, [step])
    }
    if (body.account && body.nonce !== null) this.#raiseNonce(body.account, BigInt(body.nonce))
    const { network, valid_until: end } = body.decoded
    if (end !== undefined) this.#seeEnd(network, end, at, !imported)
    this.spending.add({ height, charges: budgetChargesOf(body, at), windows })
    if (body.fuelled) {
      const { kind, network: of, address, amount } = body.fuelled
      this.fuelled.count(of, address, kind, body.nonce ?? body.unsigned_hash, BigInt(amount))
    }
    for (const id of body.sessions) this.sessions.set(id, true)
  }

  /**
   * Almost every step has a single transaction. A list that is created with it has capacity for one
   * element; an empty list would get capacity for 17.
   */
  #addStep(name: string, step: StepEntry): StepEntry[] {
    const existing = this.steps.get(name)
    if (existing) {
      existing.push(step)
      return existing
    }
    const list = [step]
    this.steps.set(name, list)
    return list
  }

  #hearHead({ node, proof, ...head }: Body<'head'>): void {
    this.heads.set(node, { ...head, proof: proof ?? null })
  }

  #holdIndex(workspace: string, index: number, name: string | null): void {
    const key = State.subAccountIndexKey(workspace, index)
    this.subAccountNames.set(key, this.subAccountNames.get(key) ?? name)
    const indexes = this.subAccountIndexes.get(workspace) ?? new Set()
    this.subAccountIndexes.set(workspace, indexes.add(index))
    this.#highestSubAccount.set(
      workspace,
      Math.max(index, this.#highestSubAccount.get(workspace) ?? 0),
    )
  }

  /** Returns the lowest index above all indexes that this node knows in a workspace. */
  nextSubAccount(workspace: string): number {
    return (this.#highestSubAccount.get(workspace) ?? 0) + 1
  }

  #workspaceOf(keyId: string): string | null {
    for (const allocation of this.allocations.values())
      if (allocation.key_id === keyId) return allocation.workspace
    return null
  }

  #ban(
    { node, identity, reason, cause = 'cheat', at }: Body<'ban'>,
    entry: { at: number; height: number },
  ): void {
    const unnamed = this.bans.find((ban) => ban.node === node && ban.identity === null)
    if (unnamed && identity) unnamed.identity = identity
    else
      this.bans.push({
        node,
        identity: identity ?? null,
        at: at ?? entry.at,
        reason,
        cause,
        height: entry.height,
      })
  }

  /**
   * Returns whether a key is older than a ban on record, or of unknown age. All three identities
   * take part in each key, and a cheater may know bits of the shares of every key that existed when
   * it was banned. The start of a key's generation counts, because a node that lost the last
   * message may record the key after the ban.
   */
  isLost(keyId: string): boolean {
    const height = this.#keygens.get(keyId) ?? this.keys.get(keyId)?.height ?? 0
    return this.bans.some((ban) => height < ban.height)
  }

  #raiseNonce(account: string, nonce: bigint): void {
    const highest = this.nonces.get(account)
    if (highest === undefined || nonce > highest) this.nonces.set(account, nonce)
  }

  #seeEnd(network: string, end: number, at: number, isOwn: boolean): void {
    const ends = this.ends.get(network) ?? new Ends()
    this.ends.set(network, ends)
    ends.add(end, Math.floor(at / 1000), isOwn)
  }
}
