import { z } from 'zod'
import { isExchange } from '../../core/ccxt.ts'
import { UNIQUE_VIOLATION } from '../../core/database/sql-errors.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { credential, isPrintable, PRINTABLE, text } from '../../core/http/schemas.ts'
import {
  accountShape,
  presentAccount,
  sealCredentials,
  tellAccount,
  venueProblem,
  type AccountRow,
} from './account.ts'
import { keepBalances } from './balances.ts'
import { bookOpening } from './books.ts'
import { venueAccountOf } from './identity.ts'
import { RECONCILE_MS } from './reconcile.ts'
import type { Balance, Permissions } from './venue.ts'
import { hashOfKey, type Credentials, type Venues } from './venues.ts'

interface Services {
  environment: Environment
  database: Database
  aml: Aml
  exchanges: Venues
}

const KEY_MAX = 1000
const SECRET_MAX = 4000
const HINT_CHARACTERS = 4
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
// oxlint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\u0000-\u0009\u000b-\u001f\u007f]/

/**
 * The secret of an API key. A private key in PEM has several lines; clients that cannot send line
 * breaks write `\n`.
 */
const secret = z
  .string()
  .min(1, 'must not be empty')
  .max(SECRET_MAX)
  .refine((value) => !CONTROL_CHARACTERS.test(value), 'must not contain control characters')
  .refine((value) => isPrintable(value.replaceAll('\n', '')), PRINTABLE)
  .transform((value) =>
    value.startsWith('-----BEGIN') ? value.replaceAll(String.raw`\n`, '\n') : value.trim(),
  )
  .meta({ minLength: 1, maxLength: SECRET_MAX, pattern: String.raw`^[\n\x20-\x7e]*$` })

export const fields = {
  label: text(100),
  api_key: credential(KEY_MAX),
  api_secret: secret,
  passphrase: credential(200),
  allow_withdrawal: z
    .boolean()
    .meta({ description: 'A key with withdrawal permission is rejected unless this is true' }),
}

/** Links an account at an exchange, after a test of its API key at the exchange. */
export const createAccount = endpoint({
  id: 'createExchangeAccount',
  tag: 'Exchange accounts',
  description:
    'Links an account by an API key of the exchange. The key is verified with the exchange first; its secret is stored encrypted and never returned.',
  errors: [
    'EXCHANGE_ACCOUNT_EXISTS',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  example: { exchange: 'kraken', label: 'Treasury', api_key: 'its key', api_secret: 'its secret' },
  method: 'POST',
  path: '/dac/v1/exchange-accounts',
  summary: 'Link an exchange account',
  access: 'write',
  audit: 'entry',
  body: z.strictObject({
    exchange: text(40).meta({
      description: 'Its name in GET /dac/v1/exchanges',
      examples: ['kraken'],
    }),
    label: fields.label,
    api_key: fields.api_key,
    api_secret: fields.api_secret,
    passphrase: fields.passphrase.optional(),
    allow_withdrawal: fields.allow_withdrawal.optional(),
  }),
  response: accountShape,
  async handler({ caller, body }, services: Services) {
    const exchange = body.exchange.toLowerCase()
    assertExchange(services, exchange)
    const credentials = {
      apiKey: body.api_key,
      apiSecret: body.api_secret,
      passphrase: body.passphrase ?? null,
    }
    const { permissions, balances, accountId } = await tryKey(
      services,
      exchange,
      credentials,
      body.allow_withdrawal ?? false,
    )
    const id = services.environment.uuid()
    const { venueAccount, identity } = venueAccountOf(
      accountId,
      hashOfKey(exchange, credentials.apiKey),
    )
    const row = await services.database
      .transaction(async (tx) => {
        const now = tx.now()
        const made = (await tx.one<AccountRow>(
          `insert into exchange_accounts (id, workspace_id, sub_account_id, exchange, label,
            sealed_credentials, key_hash, key_hint,
           allow_withdrawal, permissions, venue_account, identity, checked_at, balances_at,
             reconcile_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $13, $14, $11, $11, $12, $11, $11)
           returning *`,
          [
            id,
            caller.workspaceId,
            caller.subAccountId,
            exchange,
            body.label,
            sealCredentials(services, id, credentials),
            hashOfKey(exchange, credentials.apiKey),
            hintOf(credentials),
            body.allow_withdrawal ?? false,
            JSON.stringify(permissions),
            now,
            new Date(now.getTime() + RECONCILE_MS),
            venueAccount,
            identity,
          ],
        )) as AccountRow
        await keepBalances(tx, id, balances)
        await bookOpening(tx, made, balances)
        await tellAccount(tx, made, 'exchange_account.created')
        return made
      })
      .catch(async (error: unknown) => {
        throw await existing(services, caller, { exchange, credentials, venueAccount }, error)
      })
    services.environment.checkpoint('exchange-account.created')
    return { body: presentAccount(row) }
  },
})

export const hintOf = ({ apiKey }: Credentials): string => `…${apiKey.slice(-HINT_CHARACTERS)}`

/**
 * Checks that an exchange is supported.
 * @throws ApiError `INVALID_REQUEST` if it is not
 */
export function assertExchange(
  services: Pick<Services, 'exchanges'>,
  exchange: string,
  field = 'exchange',
): void {
  if (services.exchanges.has(exchange)) return
  const { only } = services.exchanges
  const here =
    only === null
      ? 'see GET /dac/v1/exchanges'
      : only.length === 0
        ? 'a rehearsal has none, because an exchange would send real coins to it'
        : `the local network has ${only.join(' and ')}`
  const why =
    only !== null && isExchange(exchange) ? 'is not available here' : 'is not a known exchange'
  throw new ApiError('INVALID_REQUEST', `${field}: ${exchange.slice(0, 100)} ${why}; ${here}`, {
    field,
  })
}

/** What the exchange reports about a key. `accountId`: null if the exchange reports none. */
export interface Tried {
  permissions: Permissions
  balances: Balance[]
  accountId: string | null
}

/**
 * Queries the permissions, the balances and the account of a key at the exchange; stores nothing.
 * @throws ApiError `EXCHANGE_KEY_REFUSED`, `EXCHANGE_UNAVAILABLE`, or `INVALID_REQUEST` if the key
 *   has the withdrawal permission and must not have it
 */
export async function tryKey(
  services: Pick<Services, 'exchanges'>,
  exchange: string,
  credentials: Credentials,
  mayWithdraw: boolean,
): Promise<Tried> {
  let match: Tried
  try {
    const { passphrase, secretIsBase64 = false } = await services.exchanges.traits(exchange)
    if (secretIsBase64 && !BASE64.test(credentials.apiSecret)) {
      throw new ApiError(
        'INVALID_REQUEST',
        `api_secret: must be base64, as ${exchange} displays it`,
        {
          field: 'api_secret',
        },
      )
    }
    if (passphrase && credentials.passphrase === null) {
      throw new ApiError('INVALID_REQUEST', `passphrase: is required by ${exchange}`, {
        field: 'passphrase',
      })
    }
    const venue = await services.exchanges.tried(exchange, credentials)
    match = {
      permissions: await venue.probe(),
      balances: await venue.balances(),
      accountId: await venue.accountId(),
    }
  } catch (error) {
    throw venueProblem(error, 'api_key')
  }
  if (match.permissions.withdraw === true && !mayWithdraw) {
    throw new ApiError(
      'INVALID_REQUEST',
      'allow_withdrawal: the key has withdrawal permission; create a key without it, or send allow_withdrawal: true',
      { field: 'allow_withdrawal' },
    )
  }
  return match
}

/**
 * Returns the error for a key or an account that is linked already; the caller may be repeating a
 * request whose response was lost. The ID of an account of another sub-account is not returned.
 */
export async function existing(
  services: Pick<Services, 'database'>,
  caller: Caller,
  o: { exchange: string; credentials: Credentials; venueAccount: string },
  error: unknown,
): Promise<unknown> {
  if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) return error
  const { exchange, credentials, venueAccount } = o
  type Other = Pick<AccountRow, 'id' | 'workspace_id' | 'sub_account_id'>
  const sameKey = await services.database.one<Other>(
    `select id, workspace_id, sub_account_id from exchange_accounts where workspace_id = $1
      and exchange = $2 and key_hash = $3 and status <> 'deleted'`,
    [caller.workspaceId, exchange, hashOfKey(exchange, credentials.apiKey)],
  )
  const other =
    sameKey ??
    (await services.database.one<Other>(
      `select id, workspace_id, sub_account_id from exchange_accounts where exchange = $1
        and venue_account = $2 and status <> 'deleted' and identity <> 'duplicate'`,
      [exchange, venueAccount],
    ))
  const isOwn = other?.sub_account_id === caller.subAccountId
  const where = isOwn
    ? ` as ${other?.id}`
    : other?.workspace_id === caller.workspaceId
      ? ' in another sub-account'
      : ' in this installation'
  const details = { field: 'api_key', ...(isOwn ? { details: { id: other?.id } } : {}) }
  return sameKey
    ? new ApiError('EXCHANGE_ACCOUNT_EXISTS', `api_key: is already linked${where}`, details)
    : new ApiError(
        'EXCHANGE_ACCOUNT_LINKED',
        `api_key: belongs to an account at ${exchange} that is already linked${where}`,
        details,
      )
}
