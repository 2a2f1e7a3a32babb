import { RequestError } from '../errors.ts'
import type { VenueEmulators as Faces } from './api-emulators.ts'
import { EXCHANGES, type ExchangeName } from './faults.ts'
import { PERMISSIONS, type KeyParams, type Permission, type Venue } from './venue.ts'

type Command = Record<string, unknown>

const ACTIONS: Record<string, (venues: Faces, command: Command) => unknown> = {
  key,
  revoke,
  address,
}
/** Maximum nonce window in milliseconds, which is the unit of clients' nonces. */
const NONCE_WINDOW_MAX = 600_000
const NAME_LENGTH_MAX = 60
const ADDRESS_LENGTH_MAX = 200
/** Number of characters of an address in a default name. */
const SHOWN_OF_ADDRESS = 16

/**
 * Executes the actions of an account's holder on an exchange's website.
 * @throws RequestError, naming the invalid parameter
 */
export function venueCommands(venues: Faces, url: string, command: Command): unknown {
  const { action } = command
  const handler =
    typeof action === 'string' && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
  if (action === 'urls') {
    return Object.fromEntries(
      EXCHANGES.map((exchange) => [
        exchange.toLowerCase(),
        `${url}/exchanges/${exchange.toLowerCase()}`,
      ]),
    )
  }
  if (!handler)
    throw new RequestError(
      `action ${JSON.stringify(action)} is unknown; must be one of ${Object.keys(ACTIONS).join(', ')}, urls`,
    )
  return handler(venues, command)
}

/** Creates an account with play money and a key for it. */
function key(venues: Faces, command: Command): unknown {
  const venue = venues.venue(exchangeIn(command))
  const made = venue.createKey(wishIn(command))
  return { api_key: made.key, api_secret: made.secret }
}

function wishIn(command: Command): KeyParams {
  const {
    permissions,
    no_withdraw: noWithdraw,
    balances,
    account_of: accountOf,
    nonce_window: nonceWindow,
    unlimited,
  } = command
  const list = String(permissions ?? PERMISSIONS.join(','))
    .split(',')
    .map((each) => each.trim())
  const unknown = list.find((each) => !PERMISSIONS.includes(each as Permission))
  if (unknown !== undefined)
    throw new RequestError(
      `permission ${JSON.stringify(unknown)} is unknown; must be of ${PERMISSIONS.join(', ')}`,
    )
  const window = nonceWindow === undefined || nonceWindow === null ? 0 : Number(nonceWindow)
  if (!Number.isInteger(window) || window < 0 || window > NONCE_WINDOW_MAX) {
    throw new RequestError(
      `nonce_window ${JSON.stringify(nonceWindow)} is not a whole number up to ${NONCE_WINDOW_MAX}`,
    )
  }
  return {
    permissions: (list as Permission[]).filter(
      (each) => noWithdraw !== true || each !== 'withdraw',
    ),
    balances: balancesIn(balances),
    accountOf: typeof accountOf === 'string' ? accountOf : null,
    nonceWindow: window,
    isUnlimited: unlimited === true,
  }
}

/** Parses "BTC=1,USD=5000". */
function balancesIn(text: unknown): Record<string, string> | null {
  if (text === undefined || text === null) return null
  return Object.fromEntries(
    String(text)
      .split(',')
      .filter((each) => each !== '')
      .map((each) => {
        const [, coin, amount] = /^\s*([A-Z0-9]+)=(\d+(?:\.\d+)?)\s*$/.exec(each) ?? []
        if (coin !== undefined && amount !== undefined) return [coin, amount]
        throw new RequestError(
          `balances ${JSON.stringify(text)} are not of the form BTC=1,USD=5000`,
        )
      }),
  )
}

function revoke(venues: Faces, command: Command): unknown {
  const { venue, apiKey } = holderIn(venues, command)
  venue.revoke(apiKey)
  return { api_key: apiKey.key, revoked: true }
}

/** Registers a withdrawal address of an account under a name. */
function address(venues: Faces, command: Command): unknown {
  const { venue, apiKey } = holderIn(venues, command)
  const { asset, address: text, tag, name } = command
  const wanted = tag === undefined || tag === null ? null : String(tag)
  const { routes } = venue.funding
  const route = routes.find((each) => each.asset === asset)
  if (!route)
    throw new RequestError(
      `asset ${JSON.stringify(asset)} is unknown; must be one of ${routes.map((each) => each.asset).join(', ')}`,
    )
  if (typeof text !== 'string' || text === '' || text.length > ADDRESS_LENGTH_MAX) {
    throw new RequestError(`address ${JSON.stringify(text)} is not an address`)
  }
  const label =
    name ??
    `${route.asset} ${text.slice(-SHOWN_OF_ADDRESS)} ${wanted ?? ''}`
      .trim()
      .slice(0, NAME_LENGTH_MAX)
  if (typeof label !== 'string' || label === '' || label.length > NAME_LENGTH_MAX) {
    throw new RequestError(`name must have 1 to ${NAME_LENGTH_MAX} characters`)
  }
  venue.register({
    account: apiKey.account,
    name: label,
    coin: route.coin,
    network: route.network,
    address: text,
    tag: wanted,
  })
  return { api_key: apiKey.key, name: label, asset, address: text, tag: wanted }
}

function exchangeIn({ exchange }: Command): ExchangeName {
  const exchangeName = EXCHANGES.find((each) => each === String(exchange).toUpperCase())
  if (exchangeName) return exchangeName
  throw new RequestError(
    `exchange ${JSON.stringify(exchange)} is unknown; must be one of ${EXCHANGES.join(', ').toLowerCase()}`,
  )
}

/** Returns the holder of a key at any exchange. */
function holderIn(
  venues: Faces,
  { api_key: name }: Command,
): { venue: Venue; apiKey: ReturnType<Venue['keyOf']> } {
  const venue = EXCHANGES.map((exchange) => venues.venue(exchange)).find(({ keys }) =>
    keys.has(String(name)),
  )
  if (!venue)
    throw new RequestError(`api_key ${JSON.stringify(name)} is not a key of a local exchange`)
  return { venue, apiKey: venue.keyOf(name) }
}
