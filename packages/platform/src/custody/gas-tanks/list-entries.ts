import { formatAmount, type Asset, type Registry } from '@custody/chains'
import { z } from 'zod'
import { ID_MAX, WORD_MAX } from '../../core/bounds.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { pageOf, pageQuery, text } from '../../core/http/schemas.ts'
import { hasTank } from './ensure-tank.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const TYPES: Record<string, string> = {
  deposit: 'deposit',
  'deposit-reverted': 'deposit_reverted',
  'fuel-reserve': 'fuel_reservation',
  'fuel-bump': 'fuel_reservation',
  fuel: 'fuel',
  'fuel-fee': 'fuel',
  release: 'release',
  'float-reserve': 'float_reservation',
  'float-release': 'float_release',
  'fuel-unused': 'float_release',
  settle: 'use',
  'drain-reserve': 'drain_reservation',
  'loan-reserve': 'energy_loan_reservation',
  loan: 'energy_loan',
  'loan-return': 'energy_return',
  'loan-release': 'release',
  'tank-stake-reserve': 'stake_reservation',
  'staking-freeze': 'stake',
  'staking-unfreeze': 'unstake',
  'staking-withdraw': 'stake_release',
  'staking-release': 'stake_release',
  'tank-fee-release': 'release',
}

/**
 * Lists every movement of a gas tank and of the fuel that it sent to addresses, newest first. The
 * changes add up to its balance.
 */
export const listTankEntries = endpoint({
  id: 'listGasTankEntries',
  tag: 'Gas tanks',
  description: 'Returns all movements of the network’s gas tank, newest first.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/gas-tanks/{network}/entries',
  summary: 'List the movements of a gas tank',
  access: 'read',
  params: z.strictObject({ network: text(50) }),
  query: z.strictObject(pageQuery),
  response: pageOf(
    z.object({
      id: z.string().max(ID_MAX),
      type: z.string().max(WORD_MAX),
      balance_change: z
        .number()
        .meta({ description: 'Change of the amount that the tank can spend' }),
      reserved_change: z
        .number()
        .meta({ description: 'Change of the amount reserved for transactions in progress' }),
      float_change: z.number().meta({ description: 'Change of the tank’s fuel at addresses' }),
      transaction_id: z.string().max(ID_MAX).nullable(),
      for_transaction_id: z.string().max(ID_MAX).nullable(),
      created_at: z.string(),
    }),
  ),
  async handler({ caller, params, query: { page, limit } }, services: Services) {
    const match = services.networks.all().find(({ network }) => network.code === params.network)
    if (!match || !hasTank(match)) {
      throw new ApiError(
        'NOT_FOUND',
        `network: there is no gas tank for ${params.network.slice(0, 50)}`,
        {
          field: 'network',
        },
      )
    }
    const native = services.registry.asset(match.network.native_asset) as Asset
    const from = `from ledger_entries e join ledger_postings p on p.workspace_id = e.workspace_id and p.entry_id = e.id
        join ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id
      where a.workspace_id = $1 and a.asset = $2 and a.kind in ('tank', 'tank_reserved', 'float', 'float_reserved')`
    const [rows, count] = await Promise.all([
      services.database.query<{
        id: string
        kind: string
        tank: string
        reserved: string
        float: string
        transaction_id: string | null
        parent_id: string | null
        created_at: Date
      }>(
        `select m.*, t.id transaction_id, t.parent_id from (
           select e.id, e.kind, e.reference, e.created_at,
             coalesce(sum(p.amount) filter (where a.kind = 'tank'), 0)::text tank,
             coalesce(sum(p.amount) filter (where a.kind = 'tank_reserved'), 0)::text reserved,
               coalesce(
               sum(p.amount) filter (where a.kind in ('float', 'float_reserved')), 0
             )::text float
           ${from} group by e.workspace_id, e.id order by e.id desc limit $3 offset $4) m
         left join transactions t on t.workspace_id = $1 and t.id = case
           when m.reference ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:|$)' then left(m.reference, 36)::uuid end
         order by m.id desc`,
        [caller.workspaceId, native.asset_name, limit, (page - 1) * limit],
      ),
      services.database.one<{ total: string }>(`select count(distinct e.id)::text total ${from}`, [
        caller.workspaceId,
        native.asset_name,
      ]),
    ])
    const show = (text: string) => exact(formatAmount(BigInt(text), native.decimals))
    return {
      body: {
        data: rows.map((row) => ({
          id: row.id,
          type: TYPES[row.kind] ?? (row.kind.endsWith('-reverted') ? 'reverted' : row.kind),
          balance_change: show(row.tank),
          reserved_change: show(row.reserved),
          float_change: show(row.float),
          transaction_id: row.transaction_id,
          for_transaction_id: row.parent_id,
          created_at: row.created_at.toISOString(),
        })),
        page,
        limit,
        total: Number(count?.total ?? 0),
      },
    }
  },
})
