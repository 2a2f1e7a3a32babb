export const INVOICE_STATUSES = ['Pending', 'Processing', 'Paid', 'Expired', 'Invalid'] as const
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number]
export const EXCEPTIONS = ['late', 'partial', 'over'] as const
export type InvoiceException = (typeof EXCEPTIONS)[number]

/**
 * States of a payment: waiting in a mempool, in a block, credited with enough confirmations, held
 * by screening, undone by a reorganisation, or gone from the mempool without a block.
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

/** Returns whether a payment counts as made. Only `confirmed` payments make an invoice Paid. */
export const stands = (status: PaymentStatus): boolean =>
  status !== 'reverted' && status !== 'dropped'

/** Divisor of a tolerance, which is in millionths of the amount. */
const TOLERANCE_WHOLE = 1_000_000n

/**
 * The terms of an invoice, and the merchant's later decisions. Times are milliseconds since the
 * Unix Epoch.
 */
export interface Terms {
  /** Amount of each asset that pays the whole invoice, in the smallest unit. */
  offers: ReadonlyMap<string, bigint>
  /** Accepted shortfall in millionths of the amount. */
  tolerance: number
  expiresAt: number
  cancelledAt: number | null
  marked: 'settled' | 'invalid' | null
}

/**
 * A payment to an address of the invoice. `amount` in the asset's smallest unit. `seenAt`: the
 * payment was made after this time.
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
 * Returns the fraction of the invoice that the payments cover, each converted at the fixed rate of
 * its asset; an asset that was not offered counts as zero.
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
 * Returns the covered part of an amount, rounded down, and the missing part, rounded up and never
 * negative.
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
 * Returns the state of an invoice. It depends only on the terms, the payments and the time.
 * docs/invoices.md has the table with examples.
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
  // A payment that a reorganisation undid may be included again after the cancellation; the
  // payments that pay the invoice then are all late.
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
