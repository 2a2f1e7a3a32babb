import { createHash } from 'node:crypto'
import { RequestError } from '../../errors.ts'
import type { LocalChain, Payment } from '../../local-chain.ts'
import type { Engine } from '../engine/engine.ts'
import { rescale, trimmed } from '../engine/numbers.ts'
import type { Coin } from '../engine/markets.ts'
import type {
  Deposit,
  DepositAddress,
  KnownAddress,
  Route,
  Withdrawal,
  WithdrawalStatus,
} from './types.ts'
import { look, type Cursor } from './watch.ts'

/** Time in milliseconds between two states of a withdrawal. */
const STAGE_MS = 400
/** Time in milliseconds between two scans of a chain. */
const LOOK_MS = 200
/**
 * Initial balance, in whole coins, of the venue's account on networks where accounts must be
 * created.
 */
const RESERVE = '20'
const TAG_FIRST = 100_000
const ACTIVE: readonly WithdrawalStatus[] = ['initial', 'paying', 'pending']

/** Changes of a funding operation. They are stored in one record with the trading engine's changes. */
export interface FundingEntry {
  addresses?: DepositAddress[]
  deposits?: Deposit[]
  withdrawals?: Withdrawal[]
  cursors?: Cursor[]
  /** Registered addresses. The name of the field is stored in journals. */
  known?: KnownAddress[]
}

export interface FundingOptions {
  engine: Engine
  coins: ReadonlyMap<string, Coin>
  routes: readonly Route[]
  chains: readonly LocalChain[]
  /** Seed from which the keys of this venue's addresses are derived. */
  seed: () => string
  now: () => number
  isStuck: () => boolean
  /** Stores the changes in one record with the trading engine's changes. */
  commit: (entry: FundingEntry) => void
}

/** Deposits to a venue's addresses on the local chains, and withdrawals. */
export class Funding {
  readonly addresses: DepositAddress[] = []
  readonly deposits = new Map<string, Deposit>()
  readonly withdrawals = new Map<string, Withdrawal>()
  readonly knownAddresses: KnownAddress[] = []
  readonly routes: readonly Route[]
  readonly #o: FundingOptions
  readonly #cursors = new Map<string, number>()
  readonly #waiting = new Map<string, Deposit[]>()
  #looking: Promise<void> | undefined
  #lookedMs = 0
  #timer: NodeJS.Timeout | undefined
  #advancing: Promise<void> = Promise.resolve()
  #addressing: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(options: FundingOptions) {
    this.#o = options
    this.routes = options.routes
  }

  restore({
    addresses = [],
    deposits = [],
    withdrawals = [],
    cursors = [],
    known = [],
  }: FundingEntry): void {
    this.addresses.push(...addresses)
    this.knownAddresses.push(...known)
    for (const deposit of deposits) this.deposits.set(deposit.id, deposit)
    for (const withdrawal of withdrawals) this.withdrawals.set(withdrawal.id, withdrawal)
    for (const { network, height } of cursors) this.#cursors.set(network, height)
    this.#schedule()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /**
   * Returns an account's address on a network. It is created if the account has none, or if a new
   * one is requested. On networks with tags it is the venue's one address with the account's own
   * tag.
   */
  async address(account: string, network: string, isNew: boolean): Promise<DepositAddress> {
    // Calls run one after another, so that two concurrent first calls return the same address.
    const turn = this.#addressing.then(() => this.#address(account, network, isNew))
    this.#addressing = turn.catch(() => undefined)
    return turn
  }

  async #address(account: string, network: string, isNew: boolean): Promise<DepositAddress> {
    const own = this.addresses.findLast(
      (each) => each.account === account && each.network === network,
    )
    if (own && !isNew) return own
    const chain = this.#o.chains.find(({ code }) => code === network)!
    await chain.start()
    const isTagged = chain.fundExtras.includes('tag')
    const count = this.addresses.filter((each) => each.network === network).length
    const secret = createHash('sha256')
      .update(`${this.#o.seed()} ${network} ${isTagged ? 0 : count}`)
      .digest()
    const address = await chain.addressOf(secret)
    if (!this.#cursors.has(network)) {
      const reserve = {
        asset: chain.assets[0]!,
        address,
        amount: RESERVE,
        tag: null,
        tokens: undefined,
        delivered: undefined,
      }
      if (isTagged) await chain.fund(reserve)
      this.#cursors.set(network, (await chain.info()).head?.height ?? 0)
    }
    const tag = isTagged ? String(TAG_FIRST + count) : null
    const made = { account, network, address, tag, createdMs: this.#o.now() }
    this.addresses.push(made)
    this.#o.commit({
      addresses: [made],
      cursors: [{ network, height: this.#cursors.get(network)! }],
    })
    return made
  }

  /** Returns the deposits of an account, credited or waiting for confirmations, newest first. */
  depositsOf(account: string): Deposit[] {
    const waiting = [...this.#waiting.values()].flat().filter(({ id }) => !this.deposits.has(id))
    return [...this.deposits.values(), ...waiting]
      .filter((each) => each.account === account)
      .reverse()
  }

  /** Scans the chains and credits confirmed deposits. */
  async look(): Promise<void> {
    if (this.#looking) return this.#looking
    if (this.#cursors.size === 0 || this.#o.now() - this.#lookedMs < LOOK_MS) return undefined
    this.#looking = this.#lookAtAll().finally(() => {
      this.#looking = undefined
      this.#lookedMs = this.#o.now()
    })
    return this.#looking
  }

  async #lookAtAll(): Promise<void> {
    for (const [network, after] of this.#cursors) {
      const chain = this.#o.chains.find(({ code }) => code === network)!
      const ownerOf = ({ address, tag }: Payment) =>
        this.addresses.find(
          (each) =>
            each.network === network &&
            each.address === address &&
            (each.tag === null || each.tag === tag),
        )
      const seen = await look(chain, {
        after,
        routes: this.routes,
        coins: this.#o.coins,
        ownerOf,
        nowMs: this.#o.now(),
      }).catch((error: unknown) => {
        console.error(`devnet: deposits on ${network} are not read: ${(error as Error).message}`)
        return null
      })
      if (!seen || this.#closed) continue
      const before = new Map((this.#waiting.get(network) ?? []).map(({ id, atMs }) => [id, atMs]))
      for (const deposit of [...seen.final, ...seen.waiting])
        deposit.atMs = before.get(deposit.id) ?? deposit.atMs
      this.#waiting.set(
        network,
        seen.waiting.filter(({ isCredited }) => !isCredited),
      )
      const credited = [
        ...seen.final,
        ...seen.waiting.filter(({ isCredited }) => isCredited),
      ].filter(({ id }) => !this.deposits.has(id))
      if (seen.height === after && credited.length === 0) continue
      for (const deposit of credited) {
        this.deposits.set(deposit.id, deposit)
        this.#o.engine.move(deposit.account, deposit.coin, deposit.amount, 0n)
      }
      this.#cursors.set(network, seen.height)
      // The cursor is not stored after empty blocks, because they can be read again.
      if (credited.length > 0)
        this.#o.commit({ deposits: credited, cursors: [{ network, height: seen.height }] })
    }
  }

  /**
   * Reserves the amount of a withdrawal and begins it.
   * @throws Refused if the balance is too low
   */
  withdraw(
    order: Omit<
      Withdrawal,
      'number' | 'status' | 'reason' | 'hash' | 'fromHeight' | 'atMs' | 'changedMs'
    >,
  ): Withdrawal {
    const now = this.#o.now()
    this.#o.engine.move(order.account, order.coin, -(order.amount + order.fee), 0n)
    const withdrawal: Withdrawal = {
      ...order,
      number: this.withdrawals.size + 1,
      status: 'initial',
      reason: null,
      hash: null,
      fromHeight: null,
      atMs: now,
      changedMs: now,
    }
    this.withdrawals.set(withdrawal.id, withdrawal)
    this.#o.commit({ withdrawals: [withdrawal] })
    this.#schedule()
    return withdrawal
  }

  /** Cancels a withdrawal; returns false if it is too late. */
  cancel(withdrawal: Withdrawal): boolean {
    if (withdrawal.status !== 'initial') return false
    this.#release(withdrawal, 'cancelled', null)
    return true
  }

  #schedule(): void {
    const isActive = [...this.withdrawals.values()].some(({ status }) => ACTIVE.includes(status))
    if (this.#closed || !isActive || this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#advancing = this.#advancing.then(() => this.#advance()).finally(() => this.#schedule())
    }, STAGE_MS).unref()
  }

  async #advance(): Promise<void> {
    for (const withdrawal of this.withdrawals.values()) {
      const isDue = this.#o.now() - withdrawal.changedMs >= STAGE_MS - 50
      if (!isDue || this.#o.isStuck() || this.#closed) continue
      if (withdrawal.status === 'pending') this.#become(withdrawal, { status: 'success' })
      if (withdrawal.status === 'initial' || withdrawal.status === 'paying') {
        await this.#pay(withdrawal).catch((error: unknown) => {
          if (error instanceof RequestError) this.#release(withdrawal, 'failed', error.message)
          else
            console.error(
              `devnet: a withdrawal of ${withdrawal.coin} is not paid yet: ${(error as Error).message}`,
            )
        })
      }
    }
  }

  /**
   * Pays a withdrawal. A payment that may have been made before is searched on the chain first, so
   * nothing is paid twice.
   */
  async #pay(withdrawal: Withdrawal): Promise<void> {
    const { coin, network, amount, address, tag } = withdrawal
    const route = this.routes.find((each) => each.coin === coin && each.network === network)!
    const chain = this.#o.chains.find(({ code }) => code === network)!
    await chain.start()
    const units = rescale(amount, this.#o.coins.get(coin)!.decimals, route.chainDecimals)
    const height = (await chain.info()).head?.height ?? 0
    const paid =
      withdrawal.status === 'paying'
        ? await this.#paid(chain, withdrawal, { route, units, height })
        : null
    // It may have been cancelled in the meantime.
    if (withdrawal.status !== 'paying' && withdrawal.status !== 'initial') return
    if (withdrawal.status === 'initial')
      this.#become(withdrawal, { status: 'paying', fromHeight: height })
    const order = {
      asset: route.asset,
      address,
      amount: trimmed(units, route.chainDecimals),
      tag,
      tokens: undefined,
      delivered: undefined,
    }
    const hash = paid ?? (await chain.fund(order))
    if (this.#closed) return
    this.#become(withdrawal, { status: 'pending', hash })
  }

  async #paid(
    chain: LocalChain,
    { fromHeight, address, tag }: Withdrawal,
    o: { route: Route; units: bigint; height: number },
  ): Promise<string | null> {
    const used = new Set([...this.withdrawals.values()].map(({ hash }) => hash))
    for (let height = (fromHeight ?? o.height) + 1; height <= o.height; height += 1) {
      const result = ((await chain.paymentsIn(height)) ?? []).find(
        (payment) =>
          payment.asset === o.route.asset &&
          payment.amount === o.units &&
          payment.address.toLowerCase() === address.toLowerCase() &&
          (tag === null || payment.tag === tag) &&
          !used.has(payment.hash),
      )
      if (result) return result.hash
    }
    return null
  }

  #release(withdrawal: Withdrawal, status: 'failed' | 'cancelled', reason: string | null): void {
    this.#o.engine.move(withdrawal.account, withdrawal.coin, withdrawal.amount + withdrawal.fee, 0n)
    this.#become(withdrawal, { status, reason })
  }

  #become(withdrawal: Withdrawal, change: Partial<Withdrawal>): void {
    Object.assign(withdrawal, change, { changedMs: this.#o.now() })
    this.#o.commit({ withdrawals: [withdrawal] })
  }
}
