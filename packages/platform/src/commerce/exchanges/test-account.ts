import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { MESSAGE_MAX } from '../../core/bounds.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from './venues.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import {
  accountShape,
  findAccount,
  idParam,
  presentAccount,
  tellAccount,
  venueOf,
  type AccountRow,
} from './account.ts'
import { keepBalances } from './balances.ts'
import { noteRefused } from './reconcile.ts'
import { VenueError, type Balance, type Permissions } from './venue.ts'

interface Services {
  database: Database
  aml: Aml
  exchanges: Venues
}

/**
 * Queries at the exchange whether the key works and which permissions it has, and stores the
 * result.
 */
export const testAccount = endpoint({
  id: 'testExchangeAccount',
  tag: 'Exchange accounts',
  description: 'Queries the exchange with the linked key and returns the result.',
  errors: ['NOT_FOUND', 'EXCHANGE_KEY_REFUSED', 'EXCHANGE_UNAVAILABLE', 'EXCHANGE_UNSUPPORTED'],
  method: 'POST',
  path: '/dac/v1/exchange-accounts/{id}/test',
  summary: 'Test an exchange account',
  access: 'write',
  audit: { not: 'it changes nothing' },
  heavy: { kind: 'exchange query', weight: 5, waiting: 0 },
  params: idParam,
  body: z.strictObject({}),
  response: accountShape
    .extend({
      ok: z.boolean(),
      error: z
        .string()
        .max(MESSAGE_MAX)
        .nullable()
        .meta({ description: 'Why the exchange did not respond, or why it rejected the key' }),
    })
    .meta({ id: 'ExchangeAccountTest' }),
  async handler({ caller, params }, services: Services) {
    const row = await findAccount(services.database, caller, params.id)
    let answer: { permissions: Permissions; balances: Balance[] }
    try {
      const venue = await venueOf(services, row)
      answer = { permissions: await venue.probe(), balances: await venue.balances() }
    } catch (error) {
      if (error instanceof VenueError && error.kind === 'refused')
        await noteRefused(services, row.id, error)
      const existing = await findAccount(services.database, caller, params.id)
      return { body: { ...presentAccount(existing), ok: false, error: reasonOf(error) } }
    }
    return {
      body: {
        ...presentAccount((await keep(services, row, answer)) ?? row),
        ok: true,
        error: null,
      },
    }
  },
})

async function keep(
  services: Services,
  { id }: AccountRow,
  { permissions, balances }: { permissions: Permissions; balances: Balance[] },
): Promise<AccountRow | undefined> {
  return services.database.transaction(async (tx) => {
    const before = await tx.one<AccountRow>(
      `select * from exchange_accounts where id = $1 and status <> 'deleted' for update`,
      [id],
    )
    if (!before) return undefined
    await keepBalances(tx, id, balances)
    const isChanged =
      before.status === 'failing' ||
      JSON.stringify(sorted(before.permissions)) !== JSON.stringify(sorted(permissions))
    const after = (await tx.one<AccountRow>(
      `update exchange_accounts set status = 'active', reason = null, permissions = $2,
         checked_at = $3,
         updated_at = case when $4 then $3 else updated_at end
       where id = $1 returning *`,
      [id, JSON.stringify(permissions), tx.now(), isChanged],
    )) as AccountRow
    if (isChanged) await tellAccount(tx, after, 'exchange_account.updated')
    return after
  })
}

const sorted = ({ trade, withdraw, ip_restricted }: Permissions) => [trade, withdraw, ip_restricted]
