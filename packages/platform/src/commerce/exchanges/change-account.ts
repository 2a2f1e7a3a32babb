import { z } from 'zod'
import type { Environment } from '../../core/environment.ts'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { CHANGES_NOTHING, changesSomething } from '../../core/http/schemas.ts'
import {
  accountShape,
  findAccount,
  idParam,
  presentAccount,
  sealCredentials,
  tellAccount,
  type AccountRow,
} from './account.ts'
import { keepBalances } from './balances.ts'
import { bookCorrection } from './books.ts'
import { existing, fields, hintOf, tryKey, type Tried } from './create-account.ts'
import { venueAccountOf, type VenueAccount } from './identity.ts'
import { hashOfKey, type Credentials, type Venues } from './venues.ts'

interface Services {
  environment: Environment
  database: Database
  aml: Aml
  exchanges: Venues
}

/**
 * Renames an account, replaces its API key (which is tested first), or accepts the balances of the
 * exchange.
 */
export const changeAccount = endpoint({
  id: 'changeExchangeAccount',
  tag: 'Exchange accounts',
  description: 'Changes the label, the key, or whether coins may be withdrawn to your wallets.',
  errors: [
    'NOT_FOUND',
    'EXCHANGE_ACCOUNT_EXISTS',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  example: { label: 'Treasury' },
  method: 'PATCH',
  path: '/dac/v1/exchange-accounts/{id}',
  summary: 'Change an exchange account',
  access: 'write',
  audit: 'entry',
  params: idParam,
  body: z
    .strictObject({
      label: fields.label.optional(),
      api_key: fields.api_key.optional(),
      api_secret: fields.api_secret.optional(),
      passphrase: fields.passphrase.optional(),
      allow_withdrawal: fields.allow_withdrawal.optional(),
      accept_difference: z.literal(true, 'must be true').optional().meta({
        description:
          'Books the reported difference: trades, deposits or withdrawals that were made at the exchange by hand',
      }),
    })
    .refine(changesSomething, CHANGES_NOTHING)
    .meta({ minProperties: 1 }),
  response: accountShape,
  async handler({ caller, params, body }, services: Services) {
    const row = await findAccount(services.database, caller, params.id)
    const credentials = newCredentials(body)
    const allow = body.allow_withdrawal ?? row.allow_withdrawal
    if (
      body.allow_withdrawal === false &&
      credentials === null &&
      row.permissions.withdraw === true
    ) {
      throw new ApiError(
        'INVALID_REQUEST',
        'allow_withdrawal: the key has withdrawal permission; send a new key in the same request',
        { field: 'allow_withdrawal' },
      )
    }
    const replacement = credentials && {
      credentials,
      tried: await tryKey(services, row.exchange, credentials, allow),
    }
    const after = await services.database
      .transaction(async (tx) => {
        const before = await findAccount(tx, caller, params.id, 'id', true)
        const now = tx.now()
        if (body.accept_difference && before.difference.length > 0) {
          const changes = new Map(
            before.difference.map(({ coin, ledger, venue }) => [
              coin,
              BigInt(venue) - BigInt(ledger),
            ]),
          )
          await bookCorrection(tx, before, `${before.id}:${services.environment.uuid()}`, changes)
        }
        if (replacement) await keepBalances(tx, before.id, replacement.tried.balances)
        const changed = (await tx.one<AccountRow>(
          `update exchange_accounts set label = $2, allow_withdrawal = $3, updated_at = $4,
           difference = case when $5 then '[]' else difference end, suspected = case
             when $5 then '[]' else suspected end
         where id = $1 returning *`,
          [before.id, body.label ?? before.label, allow, now, body.accept_difference === true],
        )) as AccountRow
        const final = replacement ? await replaceKey(services, tx, changed, replacement) : changed
        await tellAccount(tx, final, 'exchange_account.updated')
        return final
      })
      .catch(async (error: unknown) => {
        throw replacement
          ? await existing(
              services,
              caller,
              { exchange: row.exchange, ...named(row, replacement) },
              error,
            )
          : error
      })
    if (credentials) await wakeOrders(services, row)
    return { body: presentAccount(after) }
  },
})

/** A new key, and what the exchange reports about it. */
interface Replacement {
  credentials: Credentials
  tried: Tried
}

/** Returns the new key, and how its account is recognized. */
const named = (
  { exchange }: Pick<AccountRow, 'exchange'>,
  { credentials, tried }: Replacement,
): VenueAccount & { credentials: Credentials } => ({
  credentials,
  ...venueAccountOf(tried.accountId, hashOfKey(exchange, credentials.apiKey)),
})

/**
 * Stores the new key of an account, whose row is locked.
 * @throws ApiError `INVALID_REQUEST` if the key belongs to another account at the exchange: the
 *   account's orders and balances would be looked for where they are not
 */
async function replaceKey(
  services: Services,
  tx: Queryable,
  row: AccountRow,
  replacement: Replacement,
): Promise<AccountRow> {
  const { credentials, venueAccount, identity } = named(row, replacement)
  const isKnown = row.venue_account?.startsWith('id ') === true
  if (isKnown && identity === 'proven' && venueAccount !== row.venue_account) {
    throw new ApiError(
      'INVALID_REQUEST',
      `api_key: belongs to another account at ${row.exchange} than the linked one; link it as an account of its own`,
      { field: 'api_key' },
    )
  }
  const isSame = venueAccount === row.venue_account
  return (await tx.one<AccountRow>(
    `update exchange_accounts set sealed_credentials = $2,
       credentials_version = credentials_version + 1, key_hash = $3, key_hint = $4,
       permissions = $5, checked_at = $6, status = 'active', reason = null,
       venue_account = $7, identity = $8
     where id = $1 returning *`,
    [
      row.id,
      sealCredentials(services, row.id, credentials),
      hashOfKey(row.exchange, credentials.apiKey),
      hintOf(credentials),
      JSON.stringify(replacement.tried.permissions),
      tx.now(),
      venueAccount,
      isSame ? row.identity : identity,
    ],
  )) as AccountRow
}

/** Schedules the account's waiting orders for immediate execution with the new key. */
async function wakeOrders(
  { database }: Services,
  { id, workspace_id: workspace }: AccountRow,
): Promise<void> {
  // Only few of an account's orders are unfinished, and an index finds them.
  await database.query(
    `update orders set next_run_at = $2
     where workspace_id = $3 and account_id = $1 and state <> 'ENDED' and next_run_at is not null
       and lease_token is null`,
    [id, database.now(), workspace],
  )
}

/**
 * Returns the new credentials, if the request has any.
 * @throws ApiError `INVALID_REQUEST` if only a part of them is given
 */
function newCredentials({
  api_key: apiKey,
  api_secret: apiSecret,
  passphrase = undefined,
}: {
  api_key?: string
  api_secret?: string
  passphrase?: string
}): Credentials | null {
  if (apiKey === undefined && apiSecret === undefined && passphrase === undefined) return null
  const missing = apiKey === undefined ? 'api_key' : apiSecret === undefined ? 'api_secret' : null
  if (missing !== null)
    throw new ApiError(
      'INVALID_REQUEST',
      `${missing}: is required together with the other fields of a new key`,
      {
        field: missing,
      },
    )
  return {
    apiKey: apiKey as string,
    apiSecret: apiSecret as string,
    passphrase: passphrase ?? null,
  }
}
