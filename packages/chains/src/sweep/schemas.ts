import { z } from 'zod'
import { ChainError } from '../types.ts'
import type { Found, Plan, PlanOf, Sweeper } from './types.ts'

/** An amount in the smallest unit, a rate or a number of an account. */
export const digits = z.string().regex(/^[0-9]{1,78}$/, 'is not a decimal number')
const path = z.array(z.int().min(0).max(0x7fff_ffff)).length(3)
export const placed = { path, address: z.string().min(1) }
/** `balances`: by asset, the native one too. */
export const holder = z.strictObject({ ...placed, balances: z.record(z.string(), digits) })
export const coin = z.strictObject({
  ...placed,
  txid: z.string().regex(/^[0-9a-f]{64}$/),
  vout: z.int().min(0),
  value: digits,
})
/** Whole transactions in hex, by their id. */
export const previous = z.record(z.string(), z.string().regex(/^([0-9a-f]{2})+$/))
/** Why the endpoint did not show a transaction, by its id. */
export const unread = z.record(z.string(), z.string()).optional()

type SweeperOf<F> = Omit<Sweeper, 'look' | 'plan'> & {
  look(...ask: Parameters<Sweeper['look']>): Promise<F>
  plan(o: Omit<PlanOf, 'found'> & { found: F }): Plan
}

/**
 * A family's sweeper. What was found is carried as a file from the machine that asked to the one
 * that plans, so it is held to its shape before anything is planned.
 * @throws ChainError `FOUND` (by `plan`): names what is wrong in it
 */
export function sweeper<F>(shape: z.ZodType<F>, of: SweeperOf<F>): Sweeper {
  return {
    ...of,
    look: async (ask) => (await of.look(ask)) as Found,
    plan: ({ found, ...o }) => {
      const { data, error } = shape.safeParse(found)
      const [wrong] = error?.issues ?? []
      if (wrong)
        throw new ChainError(
          'FOUND',
          `${['found', ...wrong.path].join('.')}: ${wrong.message}; gather anew`,
        )
      return of.plan({ ...o, found: data as F })
    },
  }
}
