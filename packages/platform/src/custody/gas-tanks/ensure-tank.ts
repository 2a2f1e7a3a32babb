import { byMode } from '@custody/chains/mode'
import type { Network, Registry } from '@custody/chains'
import type { Chain, Fuelled } from '../../core/engine/chain.ts'
import { ensureTank } from '../addresses/derive.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  devnet: DevnetControl | null
}

/** Whether network fees are paid by the workspace's gas tank. */
export const hasTank = (chain: Chain): chain is Chain & { fuelled: Fuelled } =>
  chain.fuelled !== null

const oneCoin = (services: Services, { native_asset: name }: Network): bigint =>
  10n ** BigInt(services.registry.asset(name)?.decimals ?? 18)

/** Returns the amount that a tank on local chains receives on first use; otherwise 0. */
export const firstFill = (services: Pick<Services, 'settings'>, { fuelled }: Chain): bigint =>
  byMode(services.settings.network, { local: fuelled?.firstFill ?? 0n, regtest: 0n, mainnet: 0n })

/** Returns the threshold and first funding of a gas tank, in the smallest unit. */
export const tankTerms = (
  services: Pick<Services, 'settings'>,
  chain: Chain & { fuelled: Fuelled },
): { threshold: string; first_fill: string } => ({
  threshold: chain.fuelled.threshold.toString(),
  first_fill: firstFill(services, chain).toString(),
})

/**
 * Creates the workspace's gas tank of a network if it does not exist. A local tank is then filled
 * in the background.
 */
export async function ensureGasTank(
  services: Services,
  workspaceId: string,
  network: Network,
): Promise<void> {
  const chain = services.networks.get(network.code)
  if (!hasTank(chain)) return
  const address = await ensureTank(services, services.database, network, workspaceId)
  const terms = tankTerms(services, chain)
  await services.database.query(
    `insert into gas_tanks (workspace_id, network, address, threshold, first_fill)
      values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [workspaceId, network.code, address, terms.threshold, terms.first_fill],
  )
}

/** SQL condition on `gas_tanks g`: a payment into the tank was credited before. */
export const IS_FILLED = `exists (
  select 1 from transactions t
  where t.kind = 'TANK_DEPOSIT' and t.workspace_id = g.workspace_id and t.network = g.network and t.status = 'confirmed'
)`

/**
 * Whether a local tank is waiting for its first funding. It will soon hold enough, so no
 * transaction fails because of it.
 */
export async function isFilling(
  database: Queryable,
  workspaceId: string,
  network: string,
): Promise<boolean> {
  const row = await database.one(
    `select 1 from gas_tanks g where g.workspace_id = $1 and g.network = $2 and g.first_fill > 0
      and not ${IS_FILLED}`,
    [workspaceId, network],
  )
  return row !== undefined
}

const IS_UNFILLED = '(first_fill > 0 and first_fill_hash is null)'

/** Creates the loop that pays new gas tanks their first funding. Local chains only. */
export function fillTanksLoop(services: Services): Loop {
  return {
    name: 'fill tanks',
    everyMs: 500,
    due: `exists (select 1 from gas_tanks where ${IS_UNFILLED})`,
    async run() {
      const { devnet } = services
      if (!devnet) return false
      // The row stays locked while the tank is funded; another worker fills another tank.
      return services.database.transaction(async (tx) => {
        const tank = await tx.one<{
          id: string
          network: string
          address: string
          first_fill: string
        }>(
          `select id, network, address, first_fill::text from gas_tanks where ${IS_UNFILLED}
            limit 1 for no key update skip locked`,
        )
        if (!tank) return false
        const network = services.networks.get(tank.network).network
        const { hash } = await devnet({
          command: 'fund',
          asset: network.native_asset,
          address: tank.address,
          amount: (BigInt(tank.first_fill) / oneCoin(services, network)).toString(),
        })
        await tx.query('update gas_tanks set first_fill_hash = $2 where id = $1', [
          tank.id,
          String(hash),
        ])
        return true
      })
    },
  }
}
