import { assemble, type SignedTransaction } from '@custody/chains'
import { ORDER_HEADER } from '@custody/request-auth/orders'
import { verify } from 'node:crypto'
import { Unreachable } from '../../../../signer/src/transport/client.ts'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import { waitMs } from '../../../src/custody/approvals/judge-again.ts'
import { isHeldByPolicy } from '../../../src/core/signing/refusal.ts'
import {
  RUN_MAX,
  signOrder,
  signRun,
  type Assemble,
  type Purpose,
  type SignOutcome,
} from '../../../src/core/signing/sign.ts'
import { OrderHeaders } from '../../../src/core/signing/order-header.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../../src/core/signing/nodes.ts'
import type { Signing } from '../../../src/core/signing/signing.ts'
import { voidIntent } from '../../../src/core/signing/void.ts'
import { endOpen } from '../../../src/core/signing/withdraw.ts'
import { bytesOf } from '../seeded-random.ts'
import type { Chain } from './chain.ts'
import { NODES, PLATFORM_PEM, WORKSPACE } from './cluster-keys.ts'
import type { Surroundings } from './honest-node.ts'
import type { Known } from './signatures.ts'
import { Transfer, type Attempt, type Planned } from './transfers.ts'
import { Process } from './virtual-clock.ts'
import type { Code, Coin, Wallets } from './wallets.ts'

const RETRY_MS = 2000
const RETRY_MS_MAX = 240_000
const POLL_MS = 1000
const CONFIRM_POLL_MS = 5000
const SIGNED_ELSEWHERE_RETRY_MS = 60_000
const MAY_BE_PAID_RETRY_MS = 20_000
const LEASED_POLL_MS = 500

type NotSigned = Exclude<SignOutcome, { kind: 'signed' }>

interface Sweep {
  name: string
  unsigned: ReturnType<Wallets['sweep']>
  purpose: Purpose
  isSigned: boolean
  lastError: string
}

/**
 * An honest platform: the real `signOrder`, `signRun` and `voidIntent`, and a model in memory of the
 * life of a transfer, which follows the decisions of `core/engine/sign.ts`, `nonce-order.ts`,
 * `unbuild.ts` and `outcomes/fail.ts`.
 */
export class Platform {
  readonly process = new Process('platform')
  readonly transfers: Transfer[] = []
  readonly sweeps: Sweep[] = []
  /** Orders in calls to nodes, and voids. */
  orders = 0
  readonly #around: Surroundings
  readonly #chain: Chain
  readonly #wallets: Wallets
  readonly #coins: Coin[]
  readonly #services: Signing
  readonly #penalties = new Map<number, number>()
  readonly #orderHeaders: OrderHeaders

  constructor(around: Surroundings, chain: Chain, wallets: Wallets, coins: Coin[]) {
    this.#around = around
    this.#chain = chain
    this.#wallets = wallets
    this.#coins = coins
    const random = bytesOf('platform')
    const { identities } = around.keys
    this.#orderHeaders = new OrderHeaders(PLATFORM_PEM, identities, () => around.clock.nowMs)
    const count = { labels: () => ({ inc() {}, observe() {} }) }
    this.#services = {
      signers: this.#signers(),
      environment: { now: () => around.clock.nowMs, bytes: random },
      metrics: { signatures: count, signingSeconds: count, disputedRefusals: count },
      database: null,
      log: { error: () => {} },
    } as unknown as Signing
  }

  /** The platform's client of the nodes. */
  #signers(): SignerNodes {
    const { clock, keys } = this.#around
    return {
      peers: NODES.map((node) => ({ node })),
      call: (node: number, _method: string, path: string, body: unknown, timeoutMs: number) =>
        this.#call(node, path, body, timeoutMs),
      verify: (node: number, message: string, signature: string) =>
        verify(
          null,
          Buffer.from(message),
          keys.identities.get(node)!,
          Buffer.from(signature, 'hex'),
        ),
      penalise: (node: number, untilMs: number) => void this.#penalties.set(node, untilMs),
      isPenalised: (node: number) => (this.#penalties.get(node) ?? 0) > clock.nowMs,
    } as unknown as SignerNodes
  }

  /** Calls a node. Answers become the same errors as in `SignerNodes`. */
  async #call(node: number, path: string, body: unknown, timeoutMs: number): Promise<unknown> {
    const { network, nodes } = this.#around
    const target = () => nodes.get(node)!
    const { [ORDER_HEADER]: order } = this.#orderHeaders.of(node, path, body, timeoutMs)
    const text = JSON.stringify(body ?? null)
    if (path !== '/status') this.orders += (body as { run?: unknown[] }).run?.length ?? 1
    const answer = await network
      .call(target, () => target().platform(path, text, order), timeoutMs)
      .catch((error: unknown) => {
        if (!(error instanceof Unreachable)) throw error
        throw new NodeUnavailable(node, error.message)
      })
    const { status } = answer
    const content = JSON.parse(JSON.stringify(answer.body)) as Record<string, unknown>
    if (status >= 500)
      throw new NodeUnavailable(
        node,
        String(content['message'] ?? content['error'] ?? status),
        String(content['error'] ?? status),
      )
    if (status >= 400) throw new NodeRefused(node, status, content)
    return content
  }

  #log(line: string): void {
    this.#around.log(`platform: ${line}`)
  }

  /** Accepts a request at its time, and processes it to its end. */
  accept(planned: Planned): void {
    const { clock } = this.#around
    const transfer = new Transfer(`transfer ${this.transfers.length + 1}`, planned)
    this.transfers.push(transfer)
    clock.as(this.process, () => {
      clock.later(planned.atMs - clock.nowMs, () => void this.#live(transfer))
      const { cancel } = planned
      if (cancel)
        clock.later(cancel.atMs - clock.nowMs, () => {
          transfer.isCancelled = true
        })
    })
  }

  /** Orders a sweep at a time, until it is signed. */
  sweep(index: number, atMs: number, amount: bigint, fee: bigint): void {
    const { clock, signatures } = this.#around
    const unsigned = this.#wallets.sweep(index, amount, fee)
    const purpose: Purpose = { kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: index }
    const sweep = { name: `sweep ${index}`, unsigned, purpose, isSigned: false, lastError: '' }
    this.sweeps.push(sweep)
    signatures.note(unsigned, sweep.name)
    clock.as(this.process, () => {
      clock.later(atMs - clock.nowMs, () => void this.#runSweep(sweep))
    })
  }

  async #runSweep(sweep: Sweep): Promise<void> {
    const account = this.#wallets.address('ETH', (sweep.unsigned.inputs[0]!.path as number[])[2]!)
    while (!sweep.isSigned) {
      try {
        await this.#signSweep(sweep, account)
      } catch (error) {
        sweep.lastError = (error as Error).message
        this.#log(`${sweep.name} is not signed: ${sweep.lastError}`)
        await this.#around.clock.sleep(RETRY_MS * 5)
      }
    }
    this.#log(`${sweep.name} is signed`)
  }

  async #signSweep(sweep: Sweep, account: string): Promise<void> {
    const { purpose, unsigned } = sweep
    const order = { workspace: WORKSPACE, purpose, unsigned }
    const outcome = await signOrder(this.#services, order, account, this.#assemble)
    if (outcome.kind !== 'signed') throw new Error(outcome.message)
    sweep.isSigned = true
  }

  async #live(transfer: Transfer): Promise<void> {
    const { clock } = this.#around
    this.#log(`${transfer.name} (${transfer.code}) begins`)
    while (!transfer.hasEnded) {
      if (transfer.isLeased) {
        await clock.sleep(LEASED_POLL_MS)
        continue
      }
      transfer.isLeased = true
      const before = transfer.state
      let pauseMs = RETRY_MS
      try {
        pauseMs = await this.#step(transfer)
      } catch (error) {
        transfer.lastError = (error as Error).message
      }
      transfer.isLeased = false
      if (transfer.state !== before) {
        transfer.retries = 0
        this.#log(`${transfer.name}: ${before} -> ${transfer.state} ${transfer.lastError}`)
      }
      // A transfer that fails again and again is tried less often, which keeps a run short.
      await clock.sleep(
        Math.max(pauseMs, Math.min(pauseMs * 1.3 ** transfer.retries++, RETRY_MS_MAX)),
      )
    }
  }

  /** Runs the present state. @returns milliseconds until the next step */
  async #step(transfer: Transfer): Promise<number> {
    if (transfer.isCancelled && ['QUEUED', 'APPROVAL', 'SIGNING'].includes(transfer.state))
      return this.#startFailing(transfer, 'it was cancelled')
    switch (transfer.state) {
      case 'QUEUED':
        return this.#build(transfer)
      case 'APPROVAL':
        // The nodes have no policy, so the platform's judgement needs no approvals.
        transfer.state = transfer.built ? 'SIGNING' : 'QUEUED'
        return POLL_MS
      case 'SIGNING':
        return this.#sign(transfer)
      case 'SIGNED':
        return this.#broadcast(transfer)
      case 'CONFIRMING':
        return this.#confirm(transfer)
      case 'VOIDING':
        return this.#void(transfer)
      default:
        return 0
    }
  }

  #startFailing(transfer: Transfer, reason: string): number {
    transfer.state = 'VOIDING'
    transfer.reason = reason
    return 0
  }

  #nonceOf(code: Code): bigint {
    return this.#chain.nextNonce(code, this.#wallets.address(code))
  }

  /** The lowest nonce that no transaction of the account uses, except those that were given up. */
  #lowestFree(code: Code): bigint {
    const used = new Set(
      this.transfers
        .filter((each) => each.code === code)
        .flatMap(({ attempts }) => attempts)
        .filter(({ state }) => state !== 'VOID')
        .map(({ nonce }) => nonce),
    )
    let nonce = this.#nonceOf(code)
    while (used.has(nonce)) nonce++
    return nonce
  }

  #build(transfer: Transfer): number {
    const { code, planned } = transfer
    const { clock, signatures } = this.#around
    const earlier = transfer.attempts.findLast(({ state }) => state === 'EXPIRED')
    const taken = new Set(
      this.transfers
        .flatMap(({ attempts }) => attempts)
        .filter(({ state }) => state !== 'VOID')
        .flatMap(({ coins }) => coins),
    )
    const coin = this.#coins.find((each) => !taken.has(each))
    const place = {
      nonce: this.#wallets.hasNonces(code) ? (earlier?.nonce ?? this.#lowestFree(code)) : null,
      coins: code === 'BTC' && coin ? [coin] : [],
      validUntil: this.#wallets.validUntil(code, clock.nowMs),
    }
    const unsigned = this.#wallets.pay(code, planned.amount, place)
    const known = signatures.note(unsigned, transfer.name)
    this.#log(`${transfer.name} is built: nonce ${place.nonce}, ${known.hash.slice(0, 6)}`)
    transfer.attempts.push({
      ...place,
      unsigned,
      state: 'BUILT',
      isShown: false,
      submittedAtMs: 0,
      isCancellation: false,
      signed: null,
    })
    transfer.state = 'SIGNING'
    return 0
  }

  /** As `placeToSign`: closes a gap of nonces, and marks the transaction as submitted. */
  #place(transfer: Transfer, built: Attempt): boolean {
    const { code } = transfer
    if (built.nonce !== null) {
      const others = this.transfers.filter((each) => each !== transfer && each.code === code)
      if (others.some((each) => each.built && each.built.nonce! < built.nonce!)) return false
      const free = this.#lowestFree(code)
      if (free < built.nonce) {
        const movable = [...others, transfer]
          .filter(
            ({ state, built: each, isCancelled, attempts }) =>
              state === 'SIGNING' && each && !each.isShown && !isCancelled && attempts.length === 1,
          )
          .filter((each) => each.built!.nonce! > free)
          .sort((a, b) => Number(b.built!.nonce! - a.built!.nonce!))
        const [last] = movable
        if (last) this.#renumber(last, last.built!, free)
        if (last && last !== transfer) return false
      }
    }
    this.#show(built)
    return true
  }

  #show(attempt: Attempt): void {
    if (!attempt.isShown) attempt.submittedAtMs = this.#around.clock.nowMs
    attempt.isShown = true
  }

  #renumber(transfer: Transfer, built: Attempt, nonce: bigint): void {
    built.unsigned = this.#wallets.renumbered(built.unsigned, nonce)
    built.nonce = nonce
    const known = this.#around.signatures.note(built.unsigned, transfer.name)
    this.#log(`${transfer.name} is renumbered: nonce ${nonce}, ${known.hash.slice(0, 6)}`)
  }

  #purposeOf({ planned: { request } }: Transfer): Purpose {
    return { kind: 'pay', request }
  }

  #account(transfer: Transfer, { nonce }: Attempt): string | null {
    return nonce === null ? null : this.#wallets.address(transfer.code)
  }

  readonly #assemble: Assemble = (unsigned, signatures) => {
    const { curve } = registry.network(unsigned.network)!
    return assemble(registry, unsigned, signatures, this.#around.keys.whole.at[curve])
  }

  async #sign(transfer: Transfer): Promise<number> {
    const built = transfer.built!
    const isNew = !built.isShown
    if (!this.#place(transfer, built)) return POLL_MS
    const run = await this.#signRun(transfer, built, isNew)
    if (run === 'done') return RETRY_MS
    const outcome = await signOrder(
      this.#services,
      { workspace: WORKSPACE, purpose: this.#purposeOf(transfer), unsigned: built.unsigned },
      this.#account(transfer, built),
      this.#assemble,
    )
    if (outcome.kind === 'signed') {
      this.#keepSigned(transfer, built, outcome.signed)
      return 0
    }
    const isUntouched = outcome.isUnsigned || (isNew && run.isUntouched && outcome.isUntouched)
    return this.#notSigned(transfer, built, { ...outcome, isUntouched })
  }

  #keepSigned(transfer: Transfer, built: Attempt, signed: SignedTransaction): void {
    built.signed = signed
    built.state = 'SIGNED'
    transfer.state = 'SIGNED'
    transfer.lastError = ''
  }

  #notSigned(transfer: Transfer, built: Attempt, outcome: NotSigned): number {
    const { isUntouched, message } = outcome
    transfer.lastError = `${outcome.code}: ${message}`
    if (outcome.kind === 'unavailable') {
      if (isUntouched && isHeldByPolicy(outcome.code) && this.#unbuild(transfer, built, true)) {
        transfer.state = 'QUEUED'
        return waitMs(outcome.freesAt, this.#around.clock.nowMs)
      }
      if (isUntouched) built.isShown = false
      return RETRY_MS
    }
    if (outcome.code === 'POLICY_APPROVAL') {
      this.#unbuild(transfer, built, isUntouched)
      transfer.state = 'APPROVAL'
      return POLL_MS
    }
    return this.#startFailing(transfer, `the nodes reject it: ${outcome.code}: ${message}`)
  }

  /** As `unbuild`: frees the nonce or the coins of a transaction that no node has begun to sign. */
  #unbuild(transfer: Transfer, built: Attempt, isUntouched: boolean): boolean {
    if (transfer.attempts.length > 1 || (built.isShown && !isUntouched)) return false
    transfer.attempts.length = 0
    // The next transfer that is built takes its coins.
    for (const coin of built.coins) {
      this.#coins.splice(this.#coins.indexOf(coin), 1)
      this.#coins.push(coin)
    }
    return true
  }

  /** As `signRunOf`: signs a payment together with those that wait behind it. */
  async #signRun(
    transfer: Transfer,
    built: Attempt,
    isNew: boolean,
  ): Promise<'done' | { isUntouched: boolean }> {
    if (built.nonce === null) return { isUntouched: true }
    let followers = this.#followers(transfer, built)
    let isUntouched = true
    try {
      while (followers.length > 0) {
        const members = [{ transfer, built }, ...followers]
        const outcome = await signRun(
          this.#services,
          WORKSPACE,
          members.map((each) => ({
            purpose: this.#purposeOf(each.transfer),
            unsigned: each.built.unsigned,
          })),
          this.#account(transfer, built),
          this.#assemble,
        )
        if (outcome.kind === 'signed') {
          const { signed } = outcome
          members.forEach((each, at) => this.#keepSigned(each.transfer, each.built, signed[at]!))
          return 'done'
        }
        isUntouched &&= outcome.isUntouched
        transfer.lastError = outcome.message
        const at = outcome.kind === 'refused' ? outcome.body['at'] : outcome.at
        const isOfOne = outcome.kind === 'refused' || (typeof at === 'number' && at > 0)
        if (!isOfOne) {
          const { isUnsigned } = outcome
          this.#release(followers, { isUntouched, isUnsigned })
          followers = []
          if (isHeldByPolicy(outcome.code)) break
          if (isUnsigned || (isNew && isUntouched)) built.isShown = false
          return 'done'
        }
        const kept = typeof at === 'number' ? Math.max(0, at - 1) : 0
        this.#release(followers.slice(kept), { isUntouched, isUnsigned: false })
        followers = followers.slice(0, kept)
      }
      return { isUntouched }
    } finally {
      this.#release(followers, { isUntouched: false, isUnsigned: false })
    }
  }

  #followers(transfer: Transfer, built: Attempt): Follower[] {
    const followers: Follower[] = []
    for (let nonce = built.nonce! + 1n; followers.length + 1 < RUN_MAX; nonce++) {
      const next = this.transfers.find(
        (each) => each.code === transfer.code && each.built?.nonce === nonce,
      )
      if (!next || next.state !== 'SIGNING' || next.isLeased || next.isCancelled) break
      const attempt = next.built!
      next.isLeased = true
      followers.push({ transfer: next, built: attempt, isNew: !attempt.isShown })
      this.#show(attempt)
    }
    return followers
  }

  #release(
    followers: readonly Follower[],
    { isUntouched, isUnsigned }: { isUntouched: boolean; isUnsigned: boolean },
  ): void {
    for (const { transfer, built, isNew } of followers) {
      if (isUnsigned || (isUntouched && isNew)) built.isShown = built.state !== 'BUILT'
      transfer.isLeased = false
    }
  }

  #broadcast(transfer: Transfer): number {
    for (const { unsigned } of transfer.signed) this.#chain.publish(this.#known(transfer, unsigned))
    transfer.state = 'CONFIRMING'
    return CONFIRM_POLL_MS
  }

  #known(transfer: Transfer, unsigned: Attempt['unsigned']): Known {
    return this.#around.signatures.note(unsigned, transfer.name)
  }

  async #confirm(transfer: Transfer): Promise<number> {
    const attempts = transfer.attempts.map((attempt) => ({
      attempt,
      known: this.#known(transfer, attempt.unsigned),
    }))
    const confirmed = attempts.find(({ known }) => this.#chain.confirmed.has(known))
    if (confirmed) {
      transfer.state = confirmed.attempt.isCancellation ? 'CANCELLED' : 'CONFIRMED'
      return 0
    }
    const live = attempts.filter(({ attempt }) => attempt.state === 'SIGNED')
    for (const { attempt, known } of live)
      if (this.#chain.isExpired(known)) attempt.state = 'EXPIRED'
    if (transfer.signed.length === 0) {
      transfer.state = 'QUEUED'
      transfer.lastError = 'it expired before the chain included it'
      return 0
    }
    if (transfer.isCancelled) await this.#replace(transfer)
    for (const { unsigned } of transfer.signed) this.#chain.publish(this.#known(transfer, unsigned))
    return CONFIRM_POLL_MS
  }

  /** Has the cancelling transaction of a signed payment signed, where the chain has one. */
  async #replace(transfer: Transfer): Promise<void> {
    const [payment] = transfer.signed
    if (!payment || transfer.attempts.some(({ isCancellation }) => isCancellation)) return
    const unsigned = this.#wallets.cancel(transfer.code, payment)
    if (!unsigned) return
    this.#around.signatures.note(unsigned, transfer.name)
    const purpose = {
      kind: 'cancel',
      of: this.#purposeOf(transfer),
      request: transfer.planned.cancel!.request,
      replaces: [{ unsigned: payment.unsigned, signed: payment.signed!.raw }],
    } as Purpose
    const outcome = await signOrder(
      this.#services,
      { workspace: WORKSPACE, purpose, unsigned },
      this.#account(transfer, payment),
      this.#assemble,
    )
    if (outcome.kind !== 'signed') return
    const { signed } = outcome
    transfer.attempts.push({ ...payment, unsigned, signed, isCancellation: true })
  }

  /** As `voidAndFail`. */
  async #void(transfer: Transfer): Promise<number> {
    const open = transfer.attempts.filter(
      ({ isShown, signed, state }) => isShown && !signed && state !== 'EXPIRED',
    )
    const ended = await endOpen(
      this.#services,
      open.map((attempt) => ({
        ...attempt,
        attempt,
        isDead: async () => !this.#chain.mayConfirm(this.#known(transfer, attempt.unsigned)),
      })),
    )
    if (!ended) return this.#mayBePaid(transfer, open)
    for (const { attempt } of ended.unsigned) attempt.isShown = false
    for (const { attempt } of ended.excluded) attempt.state = 'EXPIRED'
    const expired = transfer.attempts.filter(({ state }) => state === 'EXPIRED')
    const hashes = expired.flatMap(({ signed }) => (signed ? [signed.hash] : []))
    const unsigned = expired.length - hashes.length
    const { request } = transfer.planned
    const dead = { hashes, unsigned, harmless: [] }
    const outcome = await voidIntent(this.#services, { request }, dead)
    if (outcome.signed.length > 0) {
      transfer.lastError = 'the nodes have already signed it'
      return SIGNED_ELSEWHERE_RETRY_MS
    }
    if (outcome.held < outcome.needed)
      throw new Error(`only ${outcome.held} of ${outcome.needed} nodes have stored the void`)
    for (const attempt of transfer.attempts)
      if (attempt.state === 'BUILT' || attempt.state === 'EXPIRED') attempt.state = 'VOID'
    transfer.state = transfer.isCancelled ? 'CANCELLED' : 'FAILED'
    return 0
  }

  /** As `adoptPublished` and `mayBePaid`. */
  #mayBePaid(transfer: Transfer, open: readonly Attempt[]): number {
    const published = open.find(({ unsigned }) =>
      this.#chain.confirmed.has(this.#known(transfer, unsigned)),
    )
    if (published) {
      published.state = 'SIGNED'
      transfer.state = 'CONFIRMED'
      return 0
    }
    if (transfer.isCancelled && transfer.built && transfer.code !== 'XLM') {
      transfer.state = 'SIGNING'
      transfer.isCancelled = false
      return 0
    }
    for (const attempt of open)
      if (attempt.validUntil === null && attempt.state === 'BUILT') attempt.state = 'VOID'
    return MAY_BE_PAID_RETRY_MS
  }
}

interface Follower {
  transfer: Transfer
  built: Attempt
  isNew: boolean
}
