import type { ApiKey, Venue } from '../venue.ts'
import type { Arguments } from './answer.ts'
import type { TradingRateLimit } from './trading-rate-limit.ts'

/** One private request. */
export interface Call {
  venue: Venue
  key: ApiKey
  args: Arguments
  pace: TradingRateLimit
}
