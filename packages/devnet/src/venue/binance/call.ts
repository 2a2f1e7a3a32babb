import type { ApiKey, Venue } from '../venue.ts'
import type { Arguments } from './answer.ts'
import type { BinanceGuard } from './auth.ts'

/** One signed request. */
export interface Call {
  venue: Venue
  key: ApiKey
  args: Arguments
  guard: BinanceGuard
}
