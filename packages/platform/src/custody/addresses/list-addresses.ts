import { z } from 'zod'
import { WORD_MAX } from '../../core/bounds.ts'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, integer, LIMIT_MAX } from '../../core/http/schemas.ts'
import { addressShape, presentAddress, type AddressRow } from './present.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/** Maximum number of addresses in a response that is a single array. */
const ALL_MAX = 10_000
const PAGE_USUAL = 100

const pageShape = z
  .object({
    data: z.array(addressShape).max(LIMIT_MAX),
    next: z
      .string()
      .max(WORD_MAX)
      .nullable()
      .meta({ description: 'Cursor of the next page: pass it as `after`; null on the last page' }),
    has_more: z.boolean().meta({ description: 'Whether there are more records' }),
  })
  .meta({ id: 'AddressPage' })

/** Lists the deposit addresses of an asset, oldest first. */
export const listAddresses = endpoint({
  id: 'listAddresses',
  tag: 'Addresses',
  description: `Returns the addresses of the wallet, starting with the omnibus address. With \`limit\` or \`after\`, the response is an object with one page; otherwise it is an array of at most ${ALL_MAX} addresses.`,
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/addresses',
  summary: 'List deposit addresses of an asset',
  access: 'read',
  query: z.strictObject({
    asset: assetName,
    after: z.uuid('must be `next` of an earlier response').meta({ maxLength: 36 }).optional().meta({
      description: '`next` of an earlier response: returns the addresses that follow',
    }),
    limit: integer(
      1,
      LIMIT_MAX,
      `Addresses per page; by default ${PAGE_USUAL} if only \`after\` is present`,
    ).optional(),
  }),
  response: z.union([z.array(addressShape).max(ALL_MAX), pageShape]),
  async handler({ caller, query: { asset, after, limit } }, services: Services) {
    const match = findAsset(services, asset)
    const isPaged = after !== undefined || limit !== undefined
    const most = isPaged ? (limit ?? PAGE_USUAL) : ALL_MAX
    const scope = [caller.subAccountId, match.asset.asset_name, caller.workspaceId]
    const ofWallet = 'w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2'
    const isKnown = async (id: string) =>
      (await services.database.one(
        `select 1 from wallet_addresses a join wallets w on w.workspace_id = a.workspace_id
          and w.id = a.wallet_id
       where ${ofWallet} and a.id = $4 and a.workspace_id = $3`,
        [...scope, id],
      )) !== undefined
    if (after !== undefined && !(await isKnown(after))) {
      throw new ApiError(
        'INVALID_REQUEST',
        `after: must be \`next\` of an earlier response for ${asset}`,
        { field: 'after' },
      )
    }
    const rows = await services.database.query<AddressRow>(
      `select a.id, w.asset, a.address, a.address_tag, a.label, c.path_index, a.created_at
       from wallet_addresses a join wallets w on w.workspace_id = a.workspace_id
         and w.id = a.wallet_id
       join chain_addresses c on c.workspace_id = a.workspace_id and c.network = a.network
         and c.address = a.address
       where ${ofWallet} and a.workspace_id = $3 and ($4::uuid is null or (a.created_at, a.id) > (
         select p.created_at, p.id from wallet_addresses p where p.workspace_id = $3 and p.id = $4))
       order by a.created_at, a.id limit $5`,
      [...scope, after ?? null, most + 1],
    )
    const data = rows
      .slice(0, most)
      .map((row) => presentAddress(row, match, caller.subAccountIndex))
    if (!isPaged) return { body: data }
    const next = rows.length > most ? (data.at(-1)?.id ?? null) : null
    return { body: { data, next, has_more: next !== null } }
  },
})
