import { z } from 'zod'
import { ChainError } from '../types.ts'
import type { Found, Plan, PlanOf, Sweeper } from './types.ts'

/**
 * A non-negative integer as decimal text: an amount in the smallest unit, a rate or an account's
 * sequence.
 */
export const digits = z.string().regex(/^[0-9]{1,78}$/, 'is not a decimal number')
const path = z.array(z.int().min(0).max(0x7fff_ffff)).length(3)
export const placed = { path, address: z.string().min(1) }
/** `balances`: by asset, including the native one. */
export const holder = z.strictObject({ ...placed, balances: z.record(z.string(), digits) })
export const coin = z.strictObject({
  ...placed,
  txid: z.string().regex(/^[0-9a-f]{64}$/),
  vout: z.int().min(0),
  value: digits,
})
/** Whole transactions in hex, by id. */
export const previous = z.record(z.string(), z.string().regex(/^([0-9a-f]{2})+$/))
/** Why the endpoint did not return a transaction, by id. */
export const unread = z.record(z.string(), z.string()).optional()

type SweeperOf<F> = Omit<Sweeper, 'look' | 'plan'> & {
  look(...ask: Parameters<Sweeper['look']>): Promise<F>
  plan(o: Omit<PlanOf, 'scan'> & { scan: F }): Plan
}

/**
 * Creates a family's sweeper. The results are carried as a file from the machine that queries the
 * chain to the one that plans, so their shape is validated before planning.
 * @throws ChainError `FOUND` (from `plan`), naming the invalid field of the file
 */
export function sweeper<F>(shape: z.ZodType<F>, of: SweeperOf<F>): Sweeper {
  return {
    ...of,
    look: async (ask) => (await of.look(ask)) as Found,
    plan: ({ scan, ...o }) => {
      const { data, error } = shape.safeParse(scan)
      const [wrong] = error?.issues ?? []
      if (wrong)
        throw new ChainError(
          'FOUND',
          `${['found', ...wrong.path].join('.')}: ${wrong.message}; gather again`,
        )
      return of.plan({ ...o, scan: data as F })
    },
  }
}
