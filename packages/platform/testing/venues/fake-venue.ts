import { randomUUID } from 'node:crypto'
import {
  VenueError,
  type DepositAddress,
  type NewWithdrawal,
  type Placed,
  type Transfer,
  type Venue,
  type VenueTraits,
} from '../../src/commerce/exchanges/venue.ts'

/** Response to the next withdrawal request. */
export type Mood = 'ok' | 'lost' | 'never' | 'refuse' | 'later'

/**
 * Emulates the funding side of an exchange in memory. Tests compare the ledger with its balances.
 */
export class FakeVenue implements Venue {
  readonly exchange = 'kraken'
  traits: VenueTraits = {
    orders: 'tested',
    absence: { afterMs: 90_000, beforeMs: null },
    passphrase: false,
    postOnly: true,
    timesInForce: ['GTC'],
    withdrawalId: true,
  }
  held = 10n * 10n ** 18n
  readonly fee = 10n ** 14n
  mood: Mood = 'ok'
  isDown = false
  keyOf: string | null = null
  isUnregistered = false
  requestCount = 0
  readonly payouts: (Transfer & { clientId: string | null })[] = []
  readonly credits: Transfer[] = []
  address: DepositAddress = { address: '', tag: null, network: 'BTC' }
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  #up(): void {
    if (this.isDown) throw new VenueError('unavailable', 'kraken does not answer')
  }

  readonly reportsAccountId = true
  accountId = async () => 'AA00 FAKE'
  obstacle: string | null = null
  assertWithdrawable = async () => {
    if (this.obstacle !== null) throw new VenueError('unsupported', this.obstacle)
  }
  probe = async () => ({ trade: true, withdraw: true, ip_restricted: null })
  balances = async () => [{ coin: 'BTC', total: this.held, available: this.held }]
  place = async () => ({ kind: 'refused' as const, code: 'NO' })
  find = async () => ({ kind: 'absent' as const })
  cancel = async () => 'gone' as const
  fills = async () => []

  async depositAddress(): Promise<DepositAddress> {
    this.#up()
    return this.address
  }

  async deposits(): Promise<Transfer[]> {
    this.#up()
    return this.credits
  }

  async withdrawalKey(): Promise<string | null> {
    if (this.isUnregistered)
      throw new VenueError(
        'missing',
        'kraken knows no withdrawal address; register it there first, under any name',
      )
    return this.keyOf
  }

  async withdraw({
    clientId,
    coin,
    network,
    address,
    tag,
    amount,
  }: NewWithdrawal): Promise<Placed> {
    this.requestCount++
    const { mood } = this
    this.mood = 'ok'
    if (mood === 'refuse' || amount > this.held)
      return { kind: 'refused', code: 'INSUFFICIENT_FUNDS' }
    if (mood === 'later') return { kind: 'later', code: 'RATE_LIMITED' }
    if (mood === 'never') return { kind: 'unknown', reason: 'no answer' }
    this.held -= amount
    const payout = {
      venueId: randomUUID(),
      clientId: this.traits.withdrawalId ? clientId : null,
      coin,
      network,
      address,
      tag,
      amount: amount - this.fee,
      fee: this.fee,
      hash: null,
      status: 'pending' as const,
      at: this.#now(),
    }
    this.payouts.push(payout)
    return mood === 'lost'
      ? { kind: 'unknown', reason: 'no answer' }
      : { kind: 'accepted', venueId: payout.venueId }
  }

  async withdrawals(): Promise<Transfer[]> {
    this.#up()
    return this.payouts
  }

  /** Marks a withdrawal as paid. */
  pay(payout: Transfer, hash: string): void {
    Object.assign(payout, { hash, status: 'done' })
  }

  giveBack(payout: Transfer): void {
    Object.assign(payout, { status: 'failed' })
    this.held += payout.amount + (payout.fee ?? 0n)
  }

  /** Credits a deposit to the exchange's own address. */
  credit(hash: string, amount: bigint): void {
    this.credits.push({
      venueId: randomUUID(),
      clientId: null,
      coin: 'BTC',
      network: 'BTC',
      amount,
      fee: 0n,
      address: this.address.address,
      tag: null,
      hash,
      status: 'done',
      at: this.#now(),
    })
    this.held += amount
  }
}
