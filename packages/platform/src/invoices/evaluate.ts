export const INVOICE_STATUSES = ['Pending', 'Processing', 'Paid', 'Expired', 'Invalid'] as const
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number]
export const EXCEPTIONS = ['late', 'partial', 'over'] as const
export type InvoiceException = (typeof EXCEPTIONS)[number]

/**
 * What is known of a payment: waiting in a mempool, in a block, credited and deep enough, held by
 * screening, taken back by a reorganisation, or gone from the mempool without a block.
 */
export const PAYMENT_STATUSES = [
  'seen',
  'detected',
  'confirmed',
  'held',
  'reverted',
  'dropped',
] as const
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number]

/** Whether a payment counts as made; only one that is `confirmed` ever makes an invoice Paid. */
export const stands = (status: PaymentStatus): boolean =>
  status !== 'reverted' && status !== 'dropped'

/** A tolerance is told in millionths of the amount. */
const TOLERANCE_WHOLE = 1_000_000n

/**
 * What was agreed, and what the merchant has decided since. Times are milliseconds since the Unix
 * Epoch.
 */
export interface Terms {
  /** What each asset would pay the whole invoice with, smallest unit. */
  offers: ReadonlyMap<string, bigint>
  /** Millionths of the amount that may be missing. */
  tolerance: number
  expiresAt: number
  cancelledAt: number | null
  marked: 'settled' | 'invalid' | null
}

/**
 * A payment to an address of the invoice. `amount` in the asset's smallest unit; `seenAt`: it was
 * made after this time.
 */
export interface Payment {
  asset: string
  amount: bigint
  status: PaymentStatus
  seenAt: number
}

/** A fraction of the whole invoice. */
export interface Share {
  numerator: bigint
  denominator: bigint
}

/**
 * What payments come to, each in coin at the rate that was locked for its asset; what was not
 * offered counts nothing.
 */
export function shareOf(offers: Terms['offers'], payments: readonly Payment[]): Share {
  const paid = new Map<string, bigint>()
  for (const { asset, amount } of payments)
    if (offers.has(asset)) paid.set(asset, (paid.get(asset) ?? 0n) + amount)
  let share: Share = { numerator: 0n, denominator: 1n }
  for (const [asset, amount] of paid) {
    const whole = offers.get(asset) as bigint
    share = {
      numerator: share.numerator * whole + amount * share.denominator,
      denominator: share.denominator * whole,
    }
  }
  return share
}

/**
 * The part of an amount that a share is, rounded down; and what is missing of it, rounded up and
 * never below 0.
 */
export function partOf(
  amount: bigint,
  { numerator, denominator }: Share,
): { paid: bigint; due: bigint } {
  const missing = amount * (denominator - numerator)
  return {
    paid: (amount * numerator) / denominator,
    due: missing > 0n ? (missing + denominator - 1n) / denominator : 0n,
  }
}

const isOver = ({ numerator, denominator }: Share): boolean => numerator > denominator
const isSome = ({ numerator }: Share): boolean => numerator > 0n

/**
 * The state of an invoice: of nothing but what was agreed, what was paid, and the time. Its table
 * with examples is docs/invoices.md.
 * @param now milliseconds since the Unix Epoch
 */
export function evaluate(
  terms: Terms,
  payments: readonly Payment[],
  now: number,
): { status: InvoiceStatus; exception: InvoiceException | null } {
  const { offers, tolerance, expiresAt, cancelledAt, marked } = terms
  const end = cancelledAt === null ? expiresAt : Math.min(expiresAt, cancelledAt)
  const standing = payments.filter(({ asset, status }) => offers.has(asset) && stands(status))
  const inTime = standing.filter(({ seenAt }) => seenAt < end)
  const all = shareOf(offers, standing)
  const isLate = inTime.length < standing.length
  const isEnough = ({ numerator, denominator }: Share) =>
    numerator * TOLERANCE_WHOLE >= denominator * (TOLERANCE_WHOLE - BigInt(tolerance))
  const over = isOver(all) ? ('over' as const) : null
  const short = isSome(all) && !isEnough(all) ? ('partial' as const) : null
  if (marked !== null) {
    return {
      status: marked === 'settled' ? 'Paid' : 'Invalid',
      exception: isLate ? 'late' : (over ?? short),
    }
  }
  const seen = shareOf(offers, inTime)
  // A payment that a reorganisation took back may come again after the cancellation: what then pays
  // it all came too late as well.
  if (cancelledAt !== null)
    return { status: 'Invalid', exception: isLate || isEnough(seen) ? 'late' : short }
  if (isEnough(seen)) {
    const settled = shareOf(
      offers,
      inTime.filter(({ status }) => status === 'confirmed'),
    )
    return { status: isEnough(settled) ? 'Paid' : 'Processing', exception: over }
  }
  if (now < expiresAt) return { status: 'Pending', exception: short }
  return { status: 'Expired', exception: isLate ? 'late' : isSome(seen) ? 'partial' : null }
}
