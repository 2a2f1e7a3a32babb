import { formatAmount, type Registry } from '@custody/chains'
import { STAKED_ASSET } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { text } from '../../core/http/schemas.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { checkedAddress } from './body.ts'
import { callChain } from './chain.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/** Maximum number of entries of each kind; the chain allows 32 pending unstakes per account. */
const COOLING_MAX = 500

/**
 * Returns the wallet's stake for an address, the amounts that are cooling down, and the amount that
 * can be released.
 */
export const readStaking = endpoint({
  id: 'readStaking',
  tag: 'Staking',
  description:
    'Returns the TRX of one of your addresses that is staked, in cooldown, or releasable.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'INVALID_ADDRESS',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  method: 'GET',
  path: '/dav/v1/staking',
  summary: 'Read staked and unstaked TRX of an address',
  access: 'read',
  query: z.strictObject({
    address: text(500).meta({ description: 'Address that has the resource' }),
  }),
  response: z.object({
    staked: z.object({ ENERGY: z.number().min(0), BANDWIDTH: z.number().min(0) }),
    cooling: z
      .array(
        z.object({
          amount: z.number(),
          release_at: z.string().meta({
            description: 'In chain time; an estimate until the unstake is confirmed',
          }),
          confirmed: z.boolean(),
        }),
      )
      .max(2 * COOLING_MAX),
    releasable: z.number(),
  }),
  async handler({ caller, query }, services: Services) {
    const address = checkedAddress(services, query.address)
    const { asset, network } = findAsset(services, STAKED_ASSET)
    const wallet = await findWallet(services.database, caller, asset.asset_name)
    const headTime = await callChain(network, () =>
      services.networks.stakes(network.code).client.headTime(),
    )
    const [accounts, cooling, under] = await Promise.all([
      services.database.query<{ kind: string; balance: string }>(
        `select kind, balance::text from ledger_accounts
         where workspace_id = $3 and wallet_id = $1 and address = $2
           and kind in ('staked_energy', 'staked_bandwidth')`,
        [wallet.id, address, caller.workspaceId],
      ),
      services.database.query<{ amount: string; release_at: Date; releasing_by: string | null }>(
        `select amount::text, release_at, releasing_by from cooldowns
         where workspace_id = $3 and wallet_id = $1 and address = $2 and released_by is null
           order by release_at limit ${COOLING_MAX}`,
        [wallet.id, address, caller.workspaceId],
      ),
      services.database.query<{ amount: string; expected_at: string }>(
        `select amount::text, plan->>'expected_at' expected_at from transactions
         where workspace_id = $3 and wallet_id = $1 and destination_id = $2 and kind = 'UNSTAKE'
           and status = 'pending'
         order by created_at limit ${COOLING_MAX}`,
        [wallet.id, address, caller.workspaceId],
      ),
    ])
    const show = (amount: bigint | string) => exact(formatAmount(BigInt(amount), asset.decimals))
    const matured = cooling.filter(
      ({ release_at, releasing_by }) => releasing_by === null && release_at.getTime() <= headTime,
    )
    const held = (kind: string) => show(accounts.find((row) => row.kind === kind)?.balance ?? '0')
    return {
      body: {
        staked: { ENERGY: held('staked_energy'), BANDWIDTH: held('staked_bandwidth') },
        cooling: [
          ...cooling.map(({ amount, release_at }) => ({
            amount: show(amount),
            release_at: release_at.toISOString(),
            confirmed: true,
          })),
          ...under.map(({ amount, expected_at }) => ({
            amount: show(amount),
            release_at: expected_at,
            confirmed: false,
          })),
        ],
        releasable: show(matured.reduce((sum, { amount }) => sum + BigInt(amount), 0n)),
      },
    }
  },
})
