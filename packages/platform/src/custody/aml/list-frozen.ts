import { z } from 'zod'
import { ADDRESS_MAX, ID_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import { spaceOf } from './address-key.ts'
import { presentFrozen, type FrozenRow } from './frozen.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const ROWS_MAX = 10_000

const frozenShape = z
  .object({
    asset: z.string().max(WORD_MAX),
    network: z.string().max(WORD_MAX),
    address: z.string().max(ADDRESS_MAX),
    address_tag: z.string().max(NAME_MAX).nullable(),
    source: z.string().max(WORD_MAX),
    risk_level: z.string().max(WORD_MAX),
    transaction_id: z.string().max(ID_MAX),
    frozen_at: z.string(),
    held: z
      .int()
      .min(0)
      .meta({ description: 'Transactions that are on hold because of this address' }),
  })
  .meta({ id: 'FrozenAddress' })

/**
 * Lists the addresses that are frozen now, newest first. `asset`: only addresses that concern the
 * asset's network.
 */
export const listFrozen = endpoint({
  id: 'listFrozenAddresses',
  tag: 'AML screening',
  description:
    'Returns the addresses that screening has frozen for the sub-account, with the reason.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/frozen-addresses',
  summary: 'List frozen addresses',
  access: 'read',
  query: z.strictObject({ asset: assetName.optional() }),
  response: z.array(frozenShape).max(ROWS_MAX),
  async handler({ caller, query }, services: Services) {
    const space =
      query.asset === undefined ? null : spaceOf(findAsset(services, query.asset).network)
    const rows = await services.database.query<FrozenRow & { held: number }>(
      `select f.*, (
         select count(*)::int from aml_holds h
           join transactions t on t.workspace_id = h.workspace_id and t.id = h.transaction_id
         where h.workspace_id = f.workspace_id and h.freeze_id = f.id and h.released_at is null
           and t.status = 'pending'
       ) held
       from frozen_addresses f
       where f.workspace_id = $3 and f.sub_account_id = $1 and f.unfrozen_at is null
         and ($2::text is null or f.space = $2)
       order by f.frozen_at desc, f.id limit ${ROWS_MAX}`,
      [caller.subAccountId, space, caller.workspaceId],
    )
    return {
      body: rows.map((row) => ({ ...presentFrozen(row, services.registry), held: row.held })),
    }
  },
})
