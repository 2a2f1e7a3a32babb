import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import { ID_MAX, LIST_MAX, MESSAGE_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { EventType } from '../../core/database/event-types.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { emit } from '../../core/ledger/post.ts'
import { showUnits } from './units.ts'
import type { Permissions, Venue } from './venue.ts'
import { VenueError } from './venue.ts'
import type { Credentials, Venues } from './venues.ts'

interface Services {
  aml: Aml
  exchanges: Venues
}

/**
 * One coin whose total at the exchange differs from the ledger. Both amounts in units of 10⁻¹⁸, as
 * decimal strings.
 */
export interface Gap {
  coin: string
  ledger: string
  venue: string
}
/**
 * A difference that was found but is not confirmed until it has lasted long enough. `since`: time
 * of the first finding, in milliseconds since the Unix Epoch.
 */
export interface Suspected extends Gap {
  since: number
}

/**
 * Whether the account is known to differ from every other linked account at its exchange. `unread`:
 * linked before this was determined.
 */
export type Identity = 'unread' | 'proven' | 'unproven' | 'duplicate'

/** A row of `exchange_accounts`. */
export interface AccountRow {
  id: string
  workspace_id: string
  sub_account_id: string
  exchange: string
  label: string
  status: 'active' | 'failing' | 'deleted'
  reason: string | null
  sealed_credentials: Buffer | null
  credentials_version: number
  key_hash: string
  key_hint: string
  /** How the account is recognized at its exchange; null: not read yet. */
  venue_account: string | null
  identity: Identity
  allow_withdrawal: boolean
  permissions: Permissions
  checked_at: Date
  balances_at: Date
  difference: Gap[]
  suspected: Suspected[]
  created_at: Date
  updated_at: Date
}

/** Maximum number of warnings: one for each permission of a key, and one about the identity. */
const WARNINGS_MAX = 4

const reported = z
  .boolean()
  .nullable()
  .meta({ description: 'null: the exchange does not report it' })
const coins = z.number().meta({ description: 'Exact decimal' })

export const accountShape = z
  .object({
    id: z.string().max(ID_MAX),
    exchange: z.string().max(WORD_MAX),
    label: z.string().max(NAME_MAX),
    status: z
      .enum(['active', 'failing'])
      .meta({ description: 'failing: the exchange rejected the key at the last request' }),
    reason: z.string().max(MESSAGE_MAX).nullable(),
    key_hint: z.string().max(NAME_MAX).meta({ description: 'Last characters of the key' }),
    identity: z.enum(['proven', 'unproven', 'duplicate']).meta({
      description:
        'Whether this is the only linked account for its account at the exchange. proven: the exchange’s own account id is linked once in the installation. unproven: not proven distinct, because the exchange reports no account id or was not queried yet; its balances are not part of the audit’s sums. duplicate: another linked account is the same one; this one is not counted and cannot be used, so unlink it',
    }),
    permissions: z.object({ trade: reported, withdraw: reported, ip_restricted: reported }),
    allow_withdrawal: z.boolean(),
    warnings: z.array(z.string().max(MESSAGE_MAX)).max(WARNINGS_MAX),
    checked_at: z.string(),
    difference: z
      .array(
        z.object({
          asset: z.string().max(WORD_MAX),
          ledger: coins,
          venue: coins,
          difference: coins,
        }),
      )
      .max(LIST_MAX)
      .meta({
        description: 'Persistent difference between the total at the exchange and the ledger',
      }),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'ExchangeAccount' })

export const idParam = z.strictObject({ id: pathId })

const warningsOf = ({
  permissions: { trade, withdraw, ip_restricted },
  allow_withdrawal,
  identity,
}: AccountRow): string[] => [
  ...(identity === 'duplicate'
    ? [
        'another linked account is the same account at the exchange: this one is not counted and cannot be used, so unlink it',
      ]
    : []),
  ...(withdraw === true
    ? [
        allow_withdrawal
          ? 'the key has withdrawal permission: if it is stolen from this platform, the account at the exchange can be emptied'
          : 'the key now has withdrawal permission, which was not allowed here: remove that permission',
      ]
    : []),
  ...(withdraw === null
    ? ['the exchange does not report whether the key may withdraw: check it at the exchange']
    : []),
  ...(trade === false ? ['the key may not trade: orders will be rejected'] : []),
  ...(ip_restricted === false
    ? ['the key can be used from every address: restrict it to the addresses of this platform']
    : []),
]

export function presentAccount(row: AccountRow) {
  return {
    id: row.id,
    exchange: row.exchange,
    label: row.label,
    status: row.status === 'failing' ? ('failing' as const) : ('active' as const),
    reason: row.reason,
    key_hint: row.key_hint,
    identity: row.identity === 'unread' ? ('unproven' as const) : row.identity,
    permissions: row.permissions,
    allow_withdrawal: row.allow_withdrawal,
    warnings: warningsOf(row),
    checked_at: row.checked_at.toISOString(),
    difference: row.difference.slice(0, LIST_MAX).map(({ coin, ledger, venue }) => ({
      asset: coin,
      ledger: exact(showUnits(BigInt(ledger))),
      venue: exact(showUnits(BigInt(venue))),
      difference: exact(showUnits(BigInt(venue) - BigInt(ledger))),
    })),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/**
 * Emits an event about an account, whose row is locked. The payload is the API's representation of
 * the account.
 */
export async function tellAccount(
  tx: Queryable,
  row: AccountRow,
  type: Extract<EventType, `exchange_account.${string}`>,
): Promise<void> {
  await emit(tx, row.workspace_id, row.sub_account_id, type, stringifyJson(presentAccount(row)))
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns an exchange account of the caller's sub-account. An account of another sub-account is
 * reported as missing.
 * @param field name of the request field that contains the ID
 * @throws ApiError `NOT_FOUND`
 */
export async function findAccount(
  database: Queryable,
  caller: Caller,
  input: string,
  field = 'id',
  locked = false,
): Promise<AccountRow> {
  const id = input.toLowerCase()
  const row = UUID.test(id)
    ? await database.one<AccountRow>(
        `select * from exchange_accounts where id = $1 and sub_account_id = $2
          and status <> 'deleted'${locked ? ' for update' : ''}`,
        [id, caller.subAccountId],
      )
    : undefined
  if (row) return row
  throw new ApiError(
    'NOT_FOUND',
    `${field}: exchange account ${input.slice(0, 100)} does not exist in this sub-account`,
    { field },
  )
}

/** Returns the context that the account's credentials are encrypted for. */
export const credentialsOwner = (id: string): string => `exchange account ${id}`

export const sealCredentials = (
  services: Pick<Services, 'aml'>,
  id: string,
  credentials: Credentials,
): Buffer => services.aml.secrets.seal(credentialsOwner(id), JSON.stringify(credentials))

/** Returns the API key of an account, as its exchange issued it. The key alone is not a secret. */
export function keyIn(
  services: Pick<Services, 'aml'>,
  { id, sealed_credentials: sealed }: AccountRow,
): string {
  return sealed === null
    ? ''
    : (JSON.parse(services.aml.secrets.open(credentialsOwner(id), sealed)) as Credentials).apiKey
}

/**
 * Returns the connection to the exchange of an account.
 * @throws VenueError if its secrets cannot be decrypted, or its exchange cannot be loaded
 */
export async function venueOf(services: Services, row: AccountRow): Promise<Venue> {
  const { id, exchange, sealed_credentials: sealed, credentials_version: version } = row
  if (sealed === null) throw new VenueError('refused', `the account at ${exchange} is deleted`)
  return services.exchanges.account({
    id,
    exchange,
    key: String(version),
    open: () => JSON.parse(services.aml.secrets.open(credentialsOwner(id), sealed)) as Credentials,
  })
}

/**
 * Converts an error of an exchange into an API error.
 * @param field name of the request field that caused the call
 */
export function venueProblem(error: unknown, field: string): unknown {
  if (!(error instanceof VenueError)) return error
  switch (error.kind) {
    case 'refused':
      return new ApiError(
        'EXCHANGE_KEY_REFUSED',
        `${field}: the exchange rejected the key (${error.message})`,
        { field },
      )
    case 'missing':
      return new ApiError('NOT_FOUND', `${field}: ${error.message}`, { field })
    case 'unsupported':
      return new ApiError('EXCHANGE_UNSUPPORTED', `${field}: ${error.message}`, { field })
    case 'unavailable':
      return new ApiError(
        'EXCHANGE_UNAVAILABLE',
        `${field}: the exchange cannot be queried (${error.message}); nothing was changed, try again`,
        { field },
      )
  }
}
