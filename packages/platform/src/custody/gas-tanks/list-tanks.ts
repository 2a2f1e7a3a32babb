import { formatAmount, traitsOf, type Registry } from '@custody/chains'
import { z } from 'zod'
import { ADDRESS_MAX, ASSETS_MAX, ID_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { firstFill, hasTank, IS_FILLED } from './ensure-tank.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
  registry: Registry
  networks: Networks
}

export const tankShape = z
  .object({
    id: z.string().max(ID_MAX).nullable(),
    network: z.string().max(WORD_MAX),
    asset: z.string().max(WORD_MAX),
    address: z.string().max(ADDRESS_MAX).nullable(),
    balance: z.number(),
    threshold: z.number().min(0),
    status: z.enum(['ok', 'low', 'empty']),
    float: z.number().meta({
      description: 'Fuel of the tank that transactions left at addresses; it is used first',
    }),
    fee_cap: z.number().nullable(),
    max_gas_price: z.number().nullable(),
  })
  .meta({ id: 'GasTank' })

/** A gas tank as stored, with its balances in the smallest unit. `deposits`: whether it was filled. */
interface TankBalances {
  id: string
  network: string
  address: string
  threshold: string
  first_fill_hash: string | null
  first_fill: string
  balance: string
  float: string
  deposits: boolean
  fee_cap: string | null
  max_gas_price: string | null
}

/**
 * Returns the balance to show. Until the first funding has arrived, it is the amount that the tank
 * will receive.
 */
const balanceOf = (row: TankBalances): bigint =>
  BigInt(row.first_fill) > 0n && !row.deposits ? BigInt(row.first_fill) : BigInt(row.balance)

/**
 * Returns the gas tanks of a workspace, one per configured network that has them. Unused tanks show
 * the amount that they will receive.
 */
export async function gasTanksOf(services: Services, workspaceId: string) {
  const rows = await services.database.query<TankBalances>(
    `select g.id, g.network, g.address, g.threshold::text, g.first_fill::text, g.first_fill_hash,
       g.fee_cap::text, g.max_gas_price::text,
       coalesce(
         (
           select sum(balance) from ledger_accounts a
           where a.workspace_id = g.workspace_id and a.kind in ('tank')
             and a.asset = ($2::jsonb)->>g.network
         ), 0
       )::text balance,
       coalesce(
         (
           select sum(balance) from ledger_accounts a
           where a.workspace_id = g.workspace_id and a.kind in ('float', 'float_reserved')
             and a.asset = ($2::jsonb)->>g.network
         ), 0
       )::text float,
       ${IS_FILLED} deposits
     from gas_tanks g where g.workspace_id = $1`,
    [
      workspaceId,
      JSON.stringify(
        Object.fromEntries(
          services.registry.networks.map((network) => [network.code, network.native_asset]),
        ),
      ),
    ],
  )
  return services.networks
    .all()
    .filter(hasTank)
    .map((chain) => {
      const { network, fuelled } = chain
      const decimals = services.registry.asset(network.native_asset)?.decimals ?? 18
      const row = rows.find((each) => each.network === network.code)
      const balance = row ? balanceOf(row) : firstFill(services, chain)
      const threshold = row ? BigInt(row.threshold) : fuelled.threshold
      return {
        id: row?.id ?? null,
        network: network.code,
        asset: network.native_asset,
        address: row?.address ?? null,
        balance: exact(formatAmount(balance, decimals)),
        threshold: exact(formatAmount(threshold, decimals)),
        float: exact(formatAmount(BigInt(row?.float ?? '0'), decimals)),
        fee_cap: row?.fee_cap ? exact(formatAmount(BigInt(row.fee_cap), decimals)) : null,
        max_gas_price: row?.max_gas_price
          ? exact(formatAmount(BigInt(row.max_gas_price), traitsOf(network).feeRateDecimals))
          : null,
        status: balance <= 0n ? 'empty' : balance < threshold ? 'low' : 'ok',
      }
    })
}

export const listGasTanks = endpoint({
  id: 'listGasTanks',
  tag: 'Gas tanks',
  description:
    'Returns the workspace’s gas tanks, which pay network fees in the native coin: one for each network, with the address to top it up.',
  errors: ['SIGNERS_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/gas-tanks',
  summary: 'List gas tanks',
  access: 'read',
  query: z.strictObject({}),
  response: z.array(tankShape).max(ASSETS_MAX),
  handler: async ({ caller }, services: Services) => ({
    body: await gasTanksOf(services, caller.workspaceId),
  }),
})
