import { Refusal } from '../errors.ts'
import { RUN_MAX } from '../store/entries/values.ts'
import { accountOf } from './nonce.ts'
import { namesOf, type Charge, type Verdict, type VerdictPolicy } from './order.ts'

/** What a transaction of a run is charged by a policy. */
export interface AheadWindows {
  step: string
  policy: VerdictPolicy
}

/**
 * Data of the transactions of a run that are recorded together with a transaction and before it. It
 * counts as if it were on record already.
 */
export interface Ahead {
  nonce: bigint | null
  charges: readonly Charge[]
  windows: readonly AheadWindows[]
}
export const NOTHING_AHEAD: Ahead = { nonce: null, charges: [], windows: [] }

/**
 * Returns whether a transaction has plain charges only. Transactions with charges of which only the
 * largest counts are evaluated one by one.
 */
function isPlain({ order: { purpose }, ...verdict }: Verdict): boolean {
  const isOfKind =
    purpose.kind === 'pay'
      ? purpose.speed_up === undefined && verdict.charges.length === 0
      : purpose.kind === 'fuel' && verdict.charges.every(({ largest, rule }) => !largest && !rule)
  return (
    isOfKind &&
    !verdict.repeatable &&
    verdict.leftover === null &&
    verdict.fuelled === null &&
    verdict.rule === null &&
    verdict.voids.length === 0
  )
}

/**
 * Checks that transactions may be signed together: payments that their callers requested, or fuel
 * for such payments, of one account and with consecutive nonces. None is a step of another, so that
 * the checks against the record are independent, except for nonces and budgets.
 * @throws Refusal `BAD_ORDER`
 */
export function assertRun(verdicts: readonly Verdict[]): void {
  if (verdicts.length > RUN_MAX)
    throw new Refusal('BAD_ORDER', `At most ${RUN_MAX} transactions can be signed together`)
  const [first] = verdicts
  if (!first || accountOf(first) === null)
    throw new Refusal('BAD_ORDER', 'Only transactions with nonces can be signed together')
  verdicts.forEach((verdict, at) => {
    if (!isPlain(verdict)) {
      throw new Refusal(
        'BAD_ORDER',
        'Only original payments and fuel for them can be signed together',
        { at },
      )
    }
    const follows = verdict.decoded.nonce === first.decoded.nonce! + BigInt(at)
    if (
      accountOf(verdict) !== accountOf(first) ||
      verdict.key.key_id !== first.key.key_id ||
      !follows
    ) {
      throw new Refusal(
        'BAD_ORDER',
        'Transactions that are signed together must belong to one account and have consecutive nonces',
        { at },
      )
    }
  })
  if (new Set(verdicts.flatMap(namesOf)).size !== verdicts.flatMap(namesOf).length) {
    throw new Refusal('BAD_ORDER', 'A batch of transactions contains one payment twice')
  }
}

/** Adds the position in the run to the error of an order. */
export async function each<T, R>(
  list: readonly T[],
  judge: (one: T, at: number) => R,
): Promise<Awaited<R>[]> {
  const answers: Awaited<R>[] = []
  for (const [at, one] of list.entries()) answers.push(await about(list, at, () => judge(one, at)))
  return answers
}

/** Like `each`, but without an await, because the record must not change during the checks. */
export function eachNow<T, R>(list: readonly T[], judge: (one: T, at: number) => R): R[] {
  return list.map((one, at) => {
    try {
      return judge(one, at)
    } catch (error) {
      throw named(list, at, error)
    }
  })
}

async function about<R>(list: readonly unknown[], at: number, judge: () => R): Promise<Awaited<R>> {
  try {
    return await judge()
  } catch (error) {
    throw named(list, at, error)
  }
}

function named(list: readonly unknown[], at: number, error: unknown): unknown {
  if (!(error instanceof Refusal) || list.length === 1) return error
  return new Refusal(error.code, error.message, { ...error.detail, at })
}
