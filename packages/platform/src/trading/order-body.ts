import { z } from 'zod'
import { decimal, oneOf, positiveSchema, text, wholeNumber } from '../http/schemas.ts'

/**
 * Default for how much worse than the current best price a market order may be executed, in basis
 * points.
 */
export const SLIPPAGE_BPS = 100
const SLIPPAGE_BPS_MAX = 5000

/** Body of a request for an order. */
export const orderBody = z.strictObject({
  exchange_account: text(100).meta({ description: 'Id of an exchange account' }),
  market: text(60).meta({ description: 'Such as BTC/USD', examples: ['BTC/USD'] }),
  side: oneOf(['buy', 'sell']),
  type: oneOf(['market', 'limit']),
  amount: decimal.meta(positiveSchema('In the base coin, on the market’s grid')).optional(),
  quote_amount: decimal
    .meta(
      positiveSchema(
        'In the quote coin, in place of amount: the amount is what it comes to, rounded down to the grid',
      ),
    )
    .optional(),
  price: decimal.meta(positiveSchema('Of a limit order, on the market’s grid')).optional(),
  time_in_force: oneOf(
    ['GTC', 'IOC', 'FOK'],
    'GTC for a limit order, IOC for a market order, where it is absent',
  ).optional(),
  post_only: z
    .boolean()
    .optional()
    .meta({ description: 'Refused by the exchange rather than filled at once' }),
  max_slippage_bps: wholeNumber(
    1,
    SLIPPAGE_BPS_MAX,
    'Of a market order: how much worse than the best price it may be, in hundredths of a percent; ' +
      `${SLIPPAGE_BPS} where it is absent`,
  ).optional(),
  sequence_id: text(200)
    .optional()
    .meta({ description: 'Idempotency key, unique within the sub-account’s orders' }),
})
export type OrderBody = z.output<typeof orderBody>
