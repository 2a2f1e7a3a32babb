import { addressAt, ChainError, decode, OMNIBUS_INDEX, TANK_SUB_ACCOUNT, type DecodedTransaction, type Network, type Registry } from '@custody/chains'
import type { KeyObject } from 'node:crypto'
import { Refusal, type Code } from '../errors.ts'
import type { AmendIntent } from '../intent/amend.ts'
import type { ForwardIntent } from '../intent/forward.ts'
import { intentOf, type Intent } from '../intent/index.ts'
import type { PayIntent } from '../intent/pay.ts'
import { prove, type Proven } from '../intent/request.ts'
import type { StakeIntent } from '../intent/stake.ts'
import type { Store } from '../store/index.ts'
import type { Body, NewEntry } from '../store/entries/index.ts'
import { State, type StepEntry } from '../store/state.ts'
import { assertAge, isTimely } from './age.ts'
import { assertBudget, beyondShare, charge, chargeOnce, costOfFuel, sweepCharges } from './budget.ts'
import { assertDrains, drainOrder } from './drain.ts'
import { assertExclusive, decodeDecoded, encodeDecoded } from './exclusivity.ts'
import { assertExpiry } from './expiry.ts'
import { assertForwards, assertStands, standingRule } from './forward.ts'
import { assertFuels, FUELLED } from './fuel.ts'
import { assertLeftover } from './leftover.ts'
import { sha256hex } from '../canonical.ts'
import { assertNotVoided, assertOneMeaning, endNameOfRule, forwardName, voidNameOfRequest } from './identity.ts'
import { assertCancels } from './cancel.ts'
import { accountOf, assertNonce } from './nonce.ts'
import { hashOfUnsigned, type Cancel, type Forward, type Lend, type Order, type Pay, type Receipt, type SeenRequest, type Signed, type Stake, type Subject, type Sweep, type Verdict, type WorkspaceKey } from './order.ts'
import { assertOnlyPath, assertSweepPaths, assertWalletPaths } from './paths.ts'
import { assertPays } from './pay.ts'
import { assertStakes } from './stake.ts'
import { assertSweeps } from './sweep.ts'
import { assertLends, assertTankStakes, tankStakeOrder } from './tank.ts'

const CHAIN_CODES: Record<string, Code> = {
  CHAIN_ID: 'CHAIN_ID_MISMATCH',
  CONTRACT: 'CONTRACT_MISMATCH',
  CHANGE: 'CHANGE_MISMATCH',
  NETWORK: 'NETWORK_MISMATCH',
  PREVIOUS_TRANSACTION: 'PREVIOUS_TRANSACTION',
  PATH: 'FOREIGN_PATH',
}

export interface JudgeParts {
  registry: Registry
  store: Store
  identities: ReadonlyMap<number, KeyObject>
  budgetFeeCaps: number
  /** The workspace's certified key; may ask the peers for a certificate set this node missed. */
  keyOf(workspace: string, curve: Network['curve']): Promise<WorkspaceKey>
}

/** A payment that a caller asked for, with what a signed request about it has changed. `name`: of the intent, `step`: of its payment. */
type Payer = Pick<Verdict, 'intent' | 'seen' | 'callers' | 'assertAge' | 'voidNames'> & {
  proven: Proven; want: Pick<PayIntent, 'asset' | 'fee_rate'> & Partial<PayIntent>; amend: Pick<AmendIntent, 'key' | 'fee_rate'> | null; name: string; step: string
}

/** One forward by a caller's standing rule. */
type Forwarder = Pick<Verdict, 'intent' | 'seen' | 'callers' | 'assertAge' | 'voidNames' | 'rule'> & { proven: Proven; want: ForwardIntent; step: string }

/** Who asked for a stake, an unstake or a release. */
type Staker = Pick<Verdict, 'intent' | 'seen' | 'callers' | 'assertAge' | 'voidNames'> & { proven: Proven; want: StakeIntent }

/** Every rule, in one place and order: what does not depend on the record in `judge`, what does in `assertAllowed`. */
export class Judge {
  readonly #parts: JudgeParts

  constructor(parts: JudgeParts) { this.#parts = parts }

  async judge(order: Order): Promise<Verdict> {
    const { purpose } = order
    switch (purpose.kind) {
      case 'pay': return this.#pay(order, purpose)
      case 'cancel': return this.#cancel(order, purpose)
      case 'forward': return this.#forward(order, purpose)
      case 'stake': return this.#stake(order, purpose)
      case 'fuel': {
        if (purpose.for.kind === 'sweep') return this.#sweepFuel(order, purpose, purpose.for)
        if (purpose.for.kind === 'forward') return this.#forwardFuel(order, purpose, purpose.for)
        if (purpose.for.kind === 'stake') return this.#stakeFuel(order, purpose, purpose.for)
        const { want, proven, amend, name, ...base } = purpose.for.kind === 'cancel' ? await this.#canceller(order, purpose.for) : await this.#payer(order, purpose.for)
        const network = this.#networkOf(want.asset)
        if (!FUELLED.has(network.family)) throw new Refusal('FUEL_WITHOUT_INTENT', `${network.code} pays its own fees`)
        assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
        const subject = await this.#decoded(order, network)
        assertFuels(subject, purpose, [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX], want.fee_rate)
        return this.#verdict(subject, { ...base, step: JSON.stringify(amend === null ? ['fuel', name] : ['fuel', name, amend.key]), repeatable: false, charges: [charge(subject, proven.enrolment.sub_account, costOfFuel(subject), this.#parts.budgetFeeCaps)] })
      }
      case 'sweep': {
        const network = this.#sweepNetwork(order.workspace, purpose)
        assertSweepPaths(order, network, purpose.sub_account, purpose.address_index)
        const subject = await this.#decoded(order, network)
        assertSweeps(subject, purpose)
        return this.#sweep(subject, purpose)
      }
      case 'lend': return this.#lend(order, purpose)
      case 'tank-stake': {
        const stake = tankStakeOrder(this.#parts.store.state, order, purpose.order, this.#parts.store.seconds())
        const network = this.#network(stake.network)
        assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
        const subject = await this.#decoded(order, network)
        assertTankStakes(subject, stake)
        return this.#verdict(subject, { step: JSON.stringify(['tank-stake', stake.order]), repeatable: false })
      }
      case 'drain': {
        const drain = drainOrder(this.#parts.store.state, order, purpose.order, this.#parts.store.seconds())
        const network = this.#network(drain.network)
        assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
        const subject = await this.#decoded(order, network)
        assertDrains(subject, this.#parts.registry, drain)
        return this.#verdict(subject, { step: JSON.stringify(['drain', drain.order]), repeatable: false })
      }
    }
  }

  /** What the record says. Synchronous: nothing happens between this and the write that follows it. */
  assertAllowed(verdict: Verdict): StepEntry | null {
    const { state } = this.#parts.store
    assertNotVoided(state, verdict.voidNames)
    if (verdict.callers.some((apiKey) => state.enrolments.get(apiKey)?.revoked !== false)) throw new Refusal('NOT_ENROLLED', 'The API key is revoked at this node')
    for (const seen of verdict.seen) assertOneMeaning(state, seen.api_key, seen.nonce, seen.intent, seen.content)
    const steps = state.steps.get(verdict.step) ?? []
    const same = steps.find((entry) => entry.unsigned_hash === verdict.unsignedHash)
    // The very same transaction counts as signed already: it may be signed again whatever its age.
    if (same) {
      if (!same.signed) this.#parts.store.flush()
      return same
    }
    verdict.assertAge()
    assertExclusive(this.#parts.registry, steps, (entry) => this.#decodedOf(entry), (entry) => this.#recordedOf(entry), verdict)
    assertNonce(state, verdict)
    assertExpiry(state, verdict, this.#parts.store.seconds())
    assertLeftover(state, verdict)
    assertBudget(state, verdict, this.#parts.store.clock())
    return null
  }

  /** Writes the step down, durably, before round 1. */
  admit(verdict: Verdict, session: Pick<Body<'step'>, 'sessions' | 'partner' | 'peer_head'>): StepEntry {
    const same = this.assertAllowed(verdict)
    const { store } = this.#parts
    if (same) {
      store.append('session', { step_height: same.height, ...session })
      return same
    }
    const entries: NewEntry[] = []
    for (const seen of verdict.seen) if (!store.state.seen.has(State.requestKey(seen.api_key, seen.nonce))) entries.push({ kind: 'seen', body: { ...seen } })
    if (verdict.rule && !store.state.rules.has(verdict.rule.rule)) entries.push({ kind: 'rule', body: { ...verdict.rule } })
    if (verdict.voids.some((name) => !store.state.voids.has(name))) entries.push({ kind: 'void', body: { keys: verdict.voids, transaction_id: verdict.intent?.transaction_id ?? null, signed_hashes: [] } })
    const { unsigned, workspace, purpose } = verdict.order
    entries.push({
      kind: 'step',
      body: {
        step: verdict.step,
        purpose: purpose.kind,
        workspace,
        key_id: verdict.key.key_id,
        intent: verdict.intent?.key ?? null,
        content: verdict.intent?.content ?? null,
        transaction_id: verdict.intent?.transaction_id ?? null,
        unsigned_hash: verdict.unsignedHash,
        unsigned: { network: unsigned.network, bytes: unsigned.bytes, inputs: unsigned.inputs.map(({ path }) => ({ path })), change: unsigned.change },
        decoded: encodeDecoded(verdict.decoded),
        consumes: verdict.decoded.consumes,
        account: accountOf(verdict),
        nonce: verdict.decoded.nonce?.toString() ?? null,
        // What a deletion of the rule must be able to name.
        rule: purpose.kind === 'forward' ? verdict.rule?.rule ?? null : null,
        fuelled: verdict.fuelled && { ...verdict.fuelled, network: verdict.network.code, amount: verdict.fuelled.amount.toString() },
        charges: verdict.charges.map(({ budget, amount }) => ({ budget, amount: amount.toString() })),
        ...session,
      },
    })
    const step = store.appendAll(entries).at(-1)!
    return store.state.stepAt.get(step.height)!
  }

  /** A caller's request and what it means, for orders, receipts and voids alike. */
  async understand(request: Signed['request'], revokedToo = false): Promise<{ proven: Proven; want: Intent }> {
    const proven = await prove(this.#parts.store.state, request, this.#parts.store.seconds(), revokedToo)
    return { proven, want: intentOf(this.#parts.registry, proven) }
  }

  /** The payment that a caller asked for; with a signed speed-up its limit is the later request's. */
  async #payer(order: Order, pay: Pay, revokedToo = false): Promise<Payer & { want: PayIntent }> {
    const { proven, want } = await this.understand(pay.request, revokedToo)
    if (want.action !== 'pay') throw new Refusal('ACTION_NOT_ALLOWED', 'The request asks for no payment')
    if (proven.enrolment.workspace !== order.workspace) throw new Refusal('WORKSPACE_MISMATCH', "The caller's workspace is another one")
    const faster = pay.speed_up && await this.#amender(pay.speed_up, proven, 'speed-up')
    const fresh = this.#ageOf(proven, want.content, pay.receipts ?? [])
    return {
      proven,
      name: want.key,
      step: JSON.stringify(['pay', want.key]),
      want: faster ? { ...want, fee_rate: faster.amend.fee_rate } : want,
      amend: faster?.amend ?? null,
      intent: { key: want.key, content: want.content, transaction_id: proven.transaction_id },
      seen: [this.#seen(proven, want), ...(faster ? [faster.seen] : [])],
      callers: [proven.enrolment.api_key, ...(faster ? [faster.seen.api_key] : [])],
      // The later request proves that the payment is still wanted.
      assertAge: faster?.assertAge ?? fresh,
      voidNames: [want.key, voidNameOfRequest(proven.enrolment.api_key, proven.nonce), ...(faster ? [voidNameOfRequest(faster.seen.api_key, faster.seen.nonce)] : [])],
    }
  }

  /** A signed request about a payment, by a caller of the same sub-account. */
  async #amender(signed: Signed, about: Proven, action: AmendIntent['action']): Promise<{ amend: AmendIntent; seen: SeenRequest; assertAge: () => void }> {
    const { proven, want } = await this.understand(signed.request)
    if (want.action !== action || want.transaction_id !== about.transaction_id) throw new Refusal('ACTION_NOT_ALLOWED', `The request asks for no ${action} of this payment`)
    const { workspace, sub_account } = about.enrolment
    if (proven.enrolment.workspace !== workspace || proven.enrolment.sub_account !== sub_account) throw new Refusal('WORKSPACE_MISMATCH', "The caller's sub-account is another one")
    return { amend: want, seen: this.#seen(proven, want), assertAge: this.#ageOf(proven, want.content, signed.receipts ?? []) }
  }

  #seen({ enrolment, nonce, iat, exp, transaction_id }: Proven, want: Intent): SeenRequest {
    return { api_key: enrolment.api_key, nonce, intent: want.key, content: want.content, transaction_id, iat, exp, timely: isTimely(exp, this.#parts.store.seconds()) }
  }

  #ageOf(proven: Proven, content: string, receipts: readonly Receipt[]): () => void {
    return () => { assertAge(this.#parts.store.state, this.#parts.identities, proven, content, receipts, this.#parts.store.seconds()) }
  }

  async #pay(order: Order, pay: Pay): Promise<Verdict> {
    const { proven, want, amend: _amend, name: _name, ...base } = await this.#payer(order, pay)
    const network = this.#networkOf(want.asset)
    if (order.unsigned.network !== network.code) throw new Refusal('NETWORK_MISMATCH', `The asset lives on ${network.code}`)
    assertWalletPaths(order, network, proven.enrolment.sub_account)
    const subject = await this.#decoded(order, network)
    assertPays(subject, want)
    return this.#verdict(subject, { ...base, repeatable: false })
  }

  /** Rule 14: the payment is voided, and one transaction that pays nobody takes its place on the chain. */
  async #cancel(order: Order, cancel: Cancel): Promise<Verdict> {
    const { want, proven, amend, name: _, ...base } = await this.#canceller(order, cancel)
    const network = this.#networkOf(want.asset)
    assertWalletPaths(order, network, proven.enrolment.sub_account)
    const subject = await this.#decoded(order, network)
    assertCancels(subject, proven.enrolment.sub_account, amend?.fee_rate ?? null)
    return this.#verdict(subject, { ...base, repeatable: false })
  }

  /** Who takes a payment back. Who may no longer pay may still be stopped. */
  async #canceller(order: Order, cancel: Cancel): Promise<Payer & { voids: string[] }> {
    const { of } = cancel
    const payer = of.kind === 'forward' ? await this.#cancelledForward(order, of) : await this.#payer(order, of, true)
    const { amend, seen: asked, assertAge } = of.kind === 'forward'
      ? await this.#forwardAmender(cancel, payer.proven, of) : await this.#amender(cancel, payer.proven, 'cancel')
    return {
      ...payer, want: { ...payer.want, fee_rate: amend.fee_rate }, amend, seen: [...payer.seen.slice(0, 1), asked], callers: [asked.api_key], assertAge,
      voidNames: [voidNameOfRequest(asked.api_key, asked.nonce)], voids: of.kind === 'forward' ? [payer.name] : payer.voidNames.slice(0, 2),
    }
  }

  /** One forward as a payment that its owner takes back. */
  async #cancelledForward(order: Order, forward: Forward): Promise<Payer> {
    const { proven, want, step, rule: _, ...base } = await this.#forwarder(order, forward, true)
    return { ...base, proven, want: { asset: want.asset, fee_rate: null }, amend: null, name: step, step }
  }

  /** A forward is taken back by its own cancellation, or by the deletion of its rule. */
  async #forwardAmender(signed: Signed, about: Proven, forward: Forward): Promise<{ amend: Pick<AmendIntent, 'key' | 'fee_rate'>; seen: SeenRequest; assertAge: () => void }> {
    const { proven, want } = await this.understand(signed.request)
    if (want.action !== 'end-forward') return this.#amender(signed, { ...about, transaction_id: forward.id }, 'cancel')
    const { workspace, sub_account } = about.enrolment
    const isOwn = want.rule_id === about.transaction_id && proven.enrolment.workspace === workspace && proven.enrolment.sub_account === sub_account
    if (!isOwn) throw new Refusal('ACTION_NOT_ALLOWED', 'The request deletes another rule')
    return { amend: { key: want.key, fee_rate: null }, seen: this.#seen(proven, want), assertAge: this.#ageOf(proven, want.content, signed.receipts ?? []) }
  }

  /** Rule 13: to the rule's destination, within its cap and until it ends; each forward is one payment. */
  async #forward(order: Order, forward: Forward): Promise<Verdict> {
    const { proven, want, ...base } = await this.#forwarder(order, forward)
    const network = this.#networkOf(want.asset)
    assertWalletPaths(order, network, proven.enrolment.sub_account)
    const subject = await this.#decoded(order, network)
    const fee = chargeOnce(subject, proven.enrolment.sub_account, subject.decoded.fee_max, this.#parts.budgetFeeCaps)
    return this.#verdict(subject, { ...base, repeatable: false, charges: [assertForwards(subject, want), fee] })
  }

  async #forwardFuel(order: Order, fuel: Extract<Order['purpose'], { kind: 'fuel' }>, forward: Forward): Promise<Verdict> {
    const { proven, want, step, ...base } = await this.#forwarder(order, forward)
    const network = this.#networkOf(want.asset)
    if (!FUELLED.has(network.family)) throw new Refusal('FUEL_WITHOUT_INTENT', `${network.code} pays its own fees`)
    assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
    const subject = await this.#decoded(order, network)
    assertFuels(subject, fuel, [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX], null)
    return this.#verdict(subject, { ...base, step: JSON.stringify(['fuel', step]), repeatable: false, charges: [charge(subject, proven.enrolment.sub_account, costOfFuel(subject), this.#parts.budgetFeeCaps)] })
  }

  async #forwarder(order: Order, forward: Forward, revokedToo = false): Promise<Forwarder> {
    const { proven, want } = await this.understand(forward.rule, revokedToo)
    if (want.action !== 'forward') throw new Refusal('ACTION_NOT_ALLOWED', 'The request makes no rule')
    const { workspace, sub_account, api_key } = proven.enrolment
    if (workspace !== order.workspace) throw new Refusal('WORKSPACE_MISMATCH', "The caller's workspace is another one")
    const { store, identities } = this.#parts
    const step = forwardName(want.rule_id, forward.id)
    return {
      proven, want, step,
      intent: { key: step, content: sha256hex(JSON.stringify([step, want.content])), transaction_id: forward.id },
      seen: [this.#seen(proven, want)],
      callers: [api_key],
      assertAge: () => { assertStands(store.state, identities, proven, want, forward.receipts ?? [], store.seconds()) },
      voidNames: [want.key, voidNameOfRequest(api_key, proven.nonce), endNameOfRule(workspace, sub_account, want.rule_id), step],
      rule: standingRule(proven, want),
    }
  }

  /** Each step of a stake is a transaction of its own, from the omnibus address only. */
  async #stake(order: Order, stake: Stake): Promise<Verdict> {
    const { proven, want, ...base } = await this.#staker(order, stake)
    const network = this.#networkOf(want.asset)
    const path = [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX]
    assertOnlyPath(order, path)
    const subject = await this.#decoded(order, network)
    assertStakes(subject, want, stake.step, addressAt(network, subject.key, path))
    return this.#verdict(subject, { ...base, step: JSON.stringify([stake.step, want.key]), repeatable: false })
  }

  async #stakeFuel(order: Order, fuel: Extract<Order['purpose'], { kind: 'fuel' }>, stake: Stake): Promise<Verdict> {
    const { proven, want, ...base } = await this.#staker(order, stake)
    const network = this.#networkOf(want.asset)
    assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
    const subject = await this.#decoded(order, network)
    assertFuels(subject, fuel, [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX], null)
    return this.#verdict(subject, { ...base, step: JSON.stringify(['fuel', want.key]), repeatable: false, charges: [charge(subject, proven.enrolment.sub_account, costOfFuel(subject), this.#parts.budgetFeeCaps)] })
  }

  async #staker(order: Order, stake: Stake): Promise<Staker> {
    const { proven, want } = await this.understand(stake.request)
    if (want.action !== 'stake' && want.action !== 'unstake' && want.action !== 'release') throw new Refusal('ACTION_NOT_ALLOWED', 'The request asks for no staking')
    if (proven.enrolment.workspace !== order.workspace) throw new Refusal('WORKSPACE_MISMATCH', "The caller's workspace is another one")
    return {
      proven, want,
      intent: { key: want.key, content: want.content, transaction_id: proven.transaction_id },
      seen: [this.#seen(proven, want)],
      callers: [proven.enrolment.api_key],
      assertAge: this.#ageOf(proven, want.content, stake.receipts ?? []),
      voidNames: [want.key, voidNameOfRequest(proven.enrolment.api_key, proven.nonce)],
    }
  }

  #sweep(subject: Subject, sweep: Sweep): Verdict {
    const { order, network, decoded } = subject
    const [payment] = decoded.payments as [DecodedTransaction['payments'][number]]
    const native = sweep.asset === network.native_asset
    const counted = native ? beyondShare(decoded.fee_max, payment.amount) : decoded.fee_max
    return this.#verdict(subject, {
      step: JSON.stringify(['sweep', order.workspace, sweep.sub_account, sweep.asset, sweep.address_index]), repeatable: true,
      charges: sweepCharges(subject, sweep.sub_account, counted, this.#parts.budgetFeeCaps),
      ...(!FUELLED.has(network.family) ? {}
        : native ? { leftover: { address: decoded.from[0]!, amount: payment.amount, least: true as const } }
        : { fuelled: { kind: 'fees' as const, address: decoded.from[0]!, amount: decoded.fee_max } }),
    })
  }

  async #sweepFuel(order: Order, fuel: Extract<Order['purpose'], { kind: 'fuel' }>, sweep: Sweep): Promise<Verdict> {
    const network = this.#sweepNetwork(order.workspace, sweep)
    assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
    const subject = await this.#decoded(order, network)
    if (sweep.asset === network.native_asset) throw new Refusal('FUEL_WITHOUT_INTENT', `A sweep of ${sweep.asset} pays for itself`)
    const most = assertFuels(subject, fuel, [sweep.sub_account, network.chain_index, sweep.address_index], null)
    const [payment] = subject.decoded.payments as [DecodedTransaction['payments'][number]]
    // Deposits come again and again to one address, so its fuel does too, within the budget and what is left of the last.
    return this.#verdict(subject, {
      step: JSON.stringify(['fuel', 'sweep', order.workspace, sweep.sub_account, sweep.asset, sweep.address_index]), repeatable: true,
      charges: sweepCharges(subject, sweep.sub_account, costOfFuel(subject), this.#parts.budgetFeeCaps), leftover: { address: payment.address, amount: payment.amount, most },
      fuelled: { kind: 'fuel', address: payment.address, amount: payment.amount },
    })
  }

  /** Energy lent once for an intent, within the budget; taken back as often as it takes, also after its end. */
  async #lend(order: Order, lend: Lend): Promise<Verdict> {
    const { base, network, source, name } = await this.#borrower(order, lend)
    if (network.family !== 'tron') throw new Refusal('FUEL_WITHOUT_INTENT', `${network.code} knows no energy`)
    assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
    const subject = await this.#decoded(order, network)
    assertLends(subject, lend, source)
    const fee = subject.decoded.fee_max
    const charges = base === null ? sweepCharges(subject, source[0]!, fee, this.#parts.budgetFeeCaps) : [charge(subject, source[0]!, fee, this.#parts.budgetFeeCaps)]
    if (lend.step === 'undelegate') return this.#verdict(subject, { step: JSON.stringify(['undelegate', name]), repeatable: true, charges })
    return this.#verdict(subject, { ...base, step: JSON.stringify(['lend', name]), repeatable: base === null, charges })
  }

  /** For whom a tank lends: `base` is null for a sweep, to which deposits come again and again. */
  async #borrower(order: Order, { for: purpose, step }: Lend): Promise<{ base: Pick<Payer, 'intent' | 'seen' | 'callers' | 'assertAge' | 'voidNames'> | null; network: Network; source: number[]; name: string }> {
    if (purpose.kind === 'sweep') {
      const network = this.#sweepNetwork(order.workspace, purpose)
      const name = JSON.stringify(['sweep', order.workspace, purpose.sub_account, purpose.asset, purpose.address_index])
      return { base: null, network, source: [purpose.sub_account, network.chain_index, purpose.address_index], name }
    }
    const returns = step === 'undelegate'
    const by = purpose.kind === 'forward' ? await this.#forwarder(order, purpose, returns) : await this.#payer(order, purpose, returns)
    const { proven, want, intent, seen, callers, assertAge: age, voidNames } = by
    const network = this.#networkOf(want.asset)
    return { base: { intent, seen, callers, assertAge: age, voidNames }, network, source: [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX], name: 'name' in by ? by.name : by.step }
  }

  #sweepNetwork(workspace: string, sweep: Sweep): Network {
    const network = this.#networkOf(sweep.asset)
    if (network.family === 'utxo' || network.family === 'cardano') throw new Refusal('SWEEP_MISMATCH', `${network.code} needs no sweeps`)
    if (sweep.sub_account === TANK_SUB_ACCOUNT) throw new Refusal('FOREIGN_PATH', 'The gas tank is not swept')
    // Budgets are shared out among sub-accounts: there are only those that the operator named.
    if (!this.#parts.store.state.subAccountNames.has(State.subAccountIndexKey(workspace, sweep.sub_account))) throw new Refusal('NOT_ENROLLED', `No sub-account has the index ${sweep.sub_account}`)
    if (sweep.address_index === OMNIBUS_INDEX) throw new Refusal('SWEEP_MISMATCH', 'The omnibus address is not swept')
    return network
  }

  #verdict(subject: Subject, part: Pick<Verdict, 'step' | 'repeatable'> & Partial<Verdict>): Verdict {
    return { intent: null, seen: [], callers: [], assertAge: () => {}, voidNames: [], voids: [], charges: [], leftover: null, fuelled: null, rule: null, ...subject, unsignedHash: hashOfUnsigned(subject.order.unsigned), ...part }
  }

  #network(code: string): Network {
    const network = this.#parts.registry.network(code)
    if (!network) throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
    return network
  }

  #networkOf(ticker: string): Network {
    const asset = this.#parts.registry.asset(ticker)
    if (!asset) throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
    return this.#network(asset.network)
  }

  async #decoded(order: Order, network: Network): Promise<Subject> {
    if (order.unsigned.network !== network.code) throw new Refusal('NETWORK_MISMATCH', `The transaction must be on ${network.code}`)
    const key = await this.#parts.keyOf(order.workspace, network.curve)
    try {
      return { order, network, key, decoded: decode(this.#parts.registry, order.unsigned, key.publicKeyAt) }
    } catch (error) {
      if (error instanceof ChainError) throw new Refusal(CHAIN_CODES[error.code] ?? 'SHAPE', error.message, { chain_code: error.code })
      throw error
    }
  }

  /** What a platform that lost its memory needs to go on with the transaction that stands. */
  #recordedOf(entry: StepEntry): Record<string, unknown> {
    const { record } = this.#parts.store
    const step = record.read(entry.height)
    const signed = entry.signed && record.readAs(entry.signed.height, 'signed').body
    return {
      unsigned: step.kind === 'step' ? step.body.unsigned : null,
      signatures: signed?.signatures ?? null,
      signed: signed && { raw: signed.raw, hash: signed.hash },
    }
  }

  #decodedOf(entry: StepEntry): DecodedTransaction {
    return decodeDecoded(this.#parts.store.stepBodyAt(entry.height).decoded)
  }
}
