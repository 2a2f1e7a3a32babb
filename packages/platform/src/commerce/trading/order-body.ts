import { z } from 'zod'
import { decimal, oneOf, positiveSchema, text, wholeNumber } from '../../core/http/schemas.ts'

/**
 * Default for how much worse than the current best price a market order may be executed, in basis
 * points.
 */
export const SLIPPAGE_BPS = 100
const SLIPPAGE_BPS_MAX = 5000

/** Body of a request for an order. */
export const orderBody = z.strictObject({
  exchange_account: text(100).meta({ description: 'Id of an exchange account' }),
  market: text(60).meta({
    description: 'Symbol of a market, for example BTC/USD',
    examples: ['BTC/USD'],
  }),
  side: oneOf(['buy', 'sell']),
  type: oneOf(['market', 'limit']),
  amount: decimal
    .meta(positiveSchema('In the base coin, a multiple of the market’s step size'))
    .optional(),
  quote_amount: decimal
    .meta(
      positiveSchema(
        'In the quote coin, instead of `amount`: converted to an amount and rounded down to the market’s step size',
      ),
    )
    .optional(),
  price: decimal
    .meta(positiveSchema('Price of a limit order, a multiple of the market’s step size'))
    .optional(),
  time_in_force: oneOf(
    ['GTC', 'IOC', 'FOK'],
    'By default GTC for a limit order and IOC for a market order',
  ).optional(),
  post_only: z
    .boolean()
    .optional()
    .meta({ description: 'The exchange rejects the order if it would be filled immediately' }),
  max_slippage_bps: wholeNumber(
    1,
    SLIPPAGE_BPS_MAX,
    'Maximum deviation of a market order from the best price, in basis points (hundredths of a percent); ' +
      `by default ${SLIPPAGE_BPS}`,
  ).optional(),
  sequence_id: text(200)
    .optional()
    .meta({ description: 'Idempotency key, unique within the sub-account’s orders' }),
})
export type OrderBody = z.output<typeof orderBody>
