import { formatAmount, type Asset, type TronResource, type Registry } from '@custody/chains'
import { stakeBody } from '@custody/request-auth/bodies'
import { ApiError } from '../../core/errors.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import { endpoint, type Caller, type Reply } from '../../core/http/endpoint.ts'
import { lockedBalance, post } from '../../core/ledger/post.ts'
import { checkedAddress, checkedAmount, stakingShape, type StakeRequest } from './body.ts'
import { callChain, MATURED_FIRST, TOO_MANY, unstakeRefusal, worthOf } from './chain.ts'
import { create, earlierStaking, once, type StakingContext } from './create.ts'
import { feeOf, stakeAccounts, stepsOf } from './steps.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
}

/** SQL that counts unstakes which the chain has not seen. */
const PENDING_UNSTAKES = `select count(*)::text count from transactions t
  where t.workspace_id = $2 and t.wallet_id = $1 and t.kind = 'UNSTAKE' and t.status = 'pending'
  and not exists (
    select 1 from chain_transactions c
    where c.workspace_id = $2 and c.transaction_id = t.id and c.step = 'unfreeze'
      and c.state in ('INCLUDED', 'CONFIRMED')
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
  audit: { not: 'the unstake stores the request and its key' },
  body: stakeBody,
  response: stakingShape,
  earlier: earlierStaking('UNSTAKE'),
  async handler({ caller, body, signed }, services: Services) {
    const address = checkedAddress(services, body.address)
    return once(services, caller, 'UNSTAKE', body, (context) =>
      createUnstake(services, { caller, body, signed, address }, context),
    )
  },
})

/**
 * Checks the stake of the address and the chain's limits, and creates the unstake.
 * @throws ApiError if the stake is too small or the chain would refuse the unstake
 */
async function createUnstake(
  services: Services,
  { caller, body, signed, address }: StakeRequest,
  context: StakingContext,
): Promise<Reply> {
  const { asset, network, wallet, account } = context
  const { resource } = body
  const amount = checkedAmount(body.amount, asset)
  const scope = {
    workspace: caller.workspaceId,
    wallet: wallet.id,
    asset: asset.asset_name,
    address,
  }
  const { staked, reserved } = stakeAccounts(resource)
  await checkStaked(services, scope, asset, resource, amount)
  const client = services.networks.stakes(network.code).client
  await checkUnstakeLimits(services, caller, context)
  const own = address === account
  const { bandwidthSun, unfreezeDelayDays } = await callChain(network, () =>
    services.networks.stakes(network.code).parameters(),
  )
  const [worth, headTime] = await callChain(network, () =>
    Promise.all([worthOf(client, account, resource, amount), client.headTime()]),
  )
  return create(services, {
    ...context,
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
      const balance = await lockedBalance(tx, { ...scope, kind: staked })
      if (balance < amount) throw tooMuch(amount, balance, asset, resource, null)
      await post(tx, 'unstake-reserve', id, [
        { ...scope, kind: staked, amount: -amount },
        { ...scope, kind: reserved, amount },
      ])
    },
  })
}

/**
 * Checks that this much is staked for the address and the resource.
 * @throws ApiError `INSUFFICIENT_STAKE` or `RESOURCE_MISMATCH`
 */
async function checkStaked(
  services: Services,
  { workspace, wallet, address }: { workspace: string; wallet: string; address: string },
  asset: Asset,
  resource: TronResource,
  amount: bigint,
): Promise<void> {
  const rows = await services.database.query<{ kind: string; balance: string }>(
    `select kind, balance::text from ledger_accounts where workspace_id = $4 and wallet_id = $1
          and asset = $2 and address = $3
          and kind in ('staked_energy', 'staked_bandwidth')`,
    [wallet, asset.asset_name, address, workspace],
  )
  const balanceOf = (of: TronResource) =>
    BigInt(rows.find((row) => row.kind === stakeAccounts(of).staked)?.balance ?? '0')
  const staked = balanceOf(resource)
  if (staked >= amount) return
  const otherResource: TronResource = resource === 'ENERGY' ? 'BANDWIDTH' : 'ENERGY'
  throw tooMuch(
    amount,
    staked,
    asset,
    resource,
    balanceOf(otherResource) > 0n ? otherResource : null,
  )
}

/**
 * Checks that the chain allows another unstake of the wallet's account.
 * @throws ApiError `RELEASE_FIRST` or `UNSTAKE_LIMIT`
 */
async function checkUnstakeLimits(
  services: Services,
  caller: Caller,
  { network, wallet, account }: StakingContext,
): Promise<void> {
  const { client } = services.networks.stakes(network.code)
  const pending = await services.database.one<{ count: string }>(PENDING_UNSTAKES, [
    wallet.id,
    caller.workspaceId,
  ])
  const refusal = await callChain(network, () =>
    unstakeRefusal(client, account, Number(pending?.count ?? 0)),
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
}

/** Returns the error of an unstake of more than is staked. */
function tooMuch(
  amount: bigint,
  staked: bigint,
  asset: Asset,
  resource: TronResource,
  otherResource: TronResource | null,
): ApiError {
  const show = (value: bigint) => `${formatAmount(value, asset.decimals)} ${asset.asset_name}`
  if (staked === 0n && otherResource) {
    return new ApiError(
      'RESOURCE_MISMATCH',
      `resource: the stake for this address is for ${otherResource}; nothing is staked for ${resource}`,
      { field: 'resource' },
    )
  }
  return new ApiError(
    'INSUFFICIENT_STAKE',
    `amount: ${show(amount)} is more than the ${show(staked)} staked for ${resource} on this address`,
    { field: 'amount' },
  )
}
