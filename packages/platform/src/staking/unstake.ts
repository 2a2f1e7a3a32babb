import { formatAmount, type Asset, type TronResource } from '@custody/chains'
import { stakeBody } from '@custody/request-auth/bodies'
import { ApiError } from '../errors.ts'
import { endpoint } from '../http/endpoint.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import { checkedAddress, checkedAmount, stakingShape } from './body.ts'
import { asked, MATURED_FIRST, TOO_MANY, unstakeRefusal, worthOf } from './chain.ts'
import { create, earlierStaking, once } from './create.ts'
import { feeOf, stakeAccounts, stepsOf } from './steps.ts'

/** SQL that counts unstakes which the chain has not seen. */
const UNDER_WAY = `select count(*)::text count from transactions t
  where t.workspace_id = $2 and t.wallet_id = $1 and t.kind = 'UNSTAKE' and t.status = 'pending'
  and not exists (
    select 1 from chain_transactions c
    where c.workspace_id = $2 and c.transaction_id = t.id and c.step = 'unfreeze' and c.state in ('INCLUDED', 'CONFIRMED')
  )`

/**
 * Starts to unstake: the resource is lost immediately, and the TRX cools down for the time that the
 * chain defines.
 */
export const unstake = endpoint({
  id: 'unstake',
  tag: 'Staking',
  description:
    'Unstakes TRX. The resource ends immediately; the TRX can be released after a cooldown of about 14 days.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'RESOURCE_MISMATCH',
    'INSUFFICIENT_STAKE',
    'RELEASE_FIRST',
    'UNSTAKE_LIMIT',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  example: {
    asset: 'TRX',
    address: 'TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW',
    resource: 'ENERGY',
    amount: 100,
    sequence_id: 'unstake-3',
  },
  method: 'POST',
  path: '/dav/v1/unstake',
  summary: 'Unstake TRX',
  access: 'write',
  body: stakeBody,
  response: stakingShape,
  earlier: earlierStaking('UNSTAKE'),
  async handler({ services, caller, body, signed }) {
    const address = checkedAddress(services, body.address)
    return once(services, caller, 'UNSTAKE', body, async (opened) => {
      const { asset, network, wallet, account } = opened
      const { resource } = body
      const amount = checkedAmount(body.amount, asset)
      const scope = {
        workspace: caller.workspaceId,
        wallet: wallet.id,
        asset: asset.asset_name,
        address,
      }
      const { staked, reserved } = stakeAccounts(resource)
      const rows = await services.database.query<{ kind: string; balance: string }>(
        `select kind, balance::text from ledger_accounts where workspace_id = $4 and wallet_id = $1 and asset = $2 and address = $3
          and kind in ('staked_energy', 'staked_bandwidth')`,
        [wallet.id, asset.asset_name, address, caller.workspaceId],
      )
      const holds = (kind: string) => BigInt(rows.find((row) => row.kind === kind)?.balance ?? '0')
      const other: TronResource = resource === 'ENERGY' ? 'BANDWIDTH' : 'ENERGY'
      if (holds(staked) < amount) {
        throw tooMuch(
          amount,
          holds(staked),
          asset,
          resource,
          holds(stakeAccounts(other).staked) > 0n ? other : null,
        )
      }
      const client = services.networks.stakes(network.code).client
      const under = await services.database.one<{ count: string }>(UNDER_WAY, [
        wallet.id,
        caller.workspaceId,
      ])
      const refusal = await asked(network, () =>
        unstakeRefusal(client, account, Number(under?.count ?? 0)),
      )
      if (refusal === 'matured')
        throw new ApiError('RELEASE_FIRST', `address: ${MATURED_FIRST}`, { field: 'address' })
      if (refusal === 'limit') {
        throw new ApiError(
          'UNSTAKE_LIMIT',
          `amount: ${TOO_MANY}; wait until one has completed, and release it`,
          { field: 'amount' },
        )
      }
      const own = address === account
      const { bandwidthSun, unfreezeDelayDays } = await asked(network, () =>
        services.networks.stakes(network.code).parameters(),
      )
      const [worth, headTime] = await asked(network, () =>
        Promise.all([worthOf(client, account, resource, amount), client.headTime()]),
      )
      return create(services, {
        ...opened,
        kind: 'UNSTAKE',
        caller,
        signed,
        address,
        resource,
        amount,
        sequenceId: body.sequence_id,
        fee: feeOf(stepsOf('UNSTAKE', own), bandwidthSun),
        plan: {
          delay_days: String(unfreezeDelayDays),
          expected_at: new Date(headTime + unfreezeDelayDays * 86_400_000).toISOString(),
          // From now on no transfer counts on the resource that is being removed.
          [`${resource.toLowerCase()}_counted`]: worth.toString(),
        },
        async reserve(tx, id) {
          const left = await lockedBalance(tx, { ...scope, kind: staked })
          if (left < amount) throw tooMuch(amount, left, asset, resource, null)
          await post(tx, 'unstake-reserve', id, [
            { ...scope, kind: staked, amount: -amount },
            { ...scope, kind: reserved, amount },
          ])
        },
      })
    })
  },
})

function tooMuch(
  amount: bigint,
  staked: bigint,
  asset: Asset,
  resource: TronResource,
  other: TronResource | null,
): ApiError {
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  if (staked === 0n && other) {
    return new ApiError(
      'RESOURCE_MISMATCH',
      `resource: the stake for this address is for ${other}; nothing is staked for ${resource}`,
      { field: 'resource' },
    )
  }
  return new ApiError(
    'INSUFFICIENT_STAKE',
    `amount: ${show(amount)} is more than the ${show(staked)} staked for ${resource} on this address`,
    { field: 'amount' },
  )
}
