import { insertTransaction } from '../engine/insert.ts'
import { formatAmount, tron as tronBuild, type Asset } from '@custody/chains'
import { ensureGasTank, isFilling } from '../gas-tanks/ensure-tank.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import { MATURED_FIRST, TOO_MANY, unstakeRefusal } from '../staking/chain.ts'
import { stakeAccounts } from '../staking/steps.ts'
import { OperatorError, type Command } from './command.ts'
import { stakeTerms, type StakeAction } from './tank-orders.ts'

const DAY_MS = 86_400_000
const KINDS = { stake: 'STAKE', unstake: 'UNSTAKE', release: 'RELEASE' } as const
const CALLS = { stake: 'freeze', unstake: 'unfreeze', release: 'withdraw' } as const
const FILL_CHECKS = 60
const FILL_CHECK_MS = 500

/**
 * Stakes, unstakes or releases TRX of a gas tank. The operator has already recorded the order at
 * the signer nodes.
 */
export const stakeTank: Command = async (services, input) => {
  const action = String(input['action']) as StakeAction
  const terms = stakeTerms(services.registry, {
    network: String(input['network'] ?? ''),
    action,
    amount: input['amount'],
    resource: input['resource'],
  })
  const [amount, resource] = [BigInt(terms.amount), terms.resource]
  const workspace = await services.database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [String(input['workspace'] ?? '')],
  )
  if (!workspace)
    throw new OperatorError(
      `--workspace: workspace ${String(input['workspace'] ?? '')} does not exist`,
    )
  const { network } = services.networks.get(String(input['network']))
  const native = services.registry.asset(network.native_asset) as Asset
  const show = (sun: bigint) => `${formatAmount(sun, native.decimals)} ${native.asset_name}`
  await ensureGasTank(services, workspace.id, network)
  for (
    let count = 0;
    count < FILL_CHECKS && (await isFilling(services.database, workspace.id, network.code));
    count++
  ) {
    await services.environment.sleep(FILL_CHECK_MS)
  }
  const tank = (
    await services.database.one<{ address: string }>(
      'select address from gas_tanks where workspace_id = $1 and network = $2',
      [workspace.id, network.code],
    )
  )?.address as string
  const client = services.networks.stakes(network.code).client
  const { bandwidthSun, unfreezeDelayDays } = await services.networks
    .stakes(network.code)
    .parameters()
  const fee = tronBuild.actionBandwidth(CALLS[action]) * bandwidthSun
  const headTime = await client.headTime()
  if (action === 'unstake') {
    const refusal = await unstakeRefusal(client, tank, 0)
    if (refusal) {
      throw new OperatorError(
        refusal === 'matured'
          ? MATURED_FIRST.replace('POST /dav/v1/release-unstaked', 'gas-tank release')
          : TOO_MANY,
      )
    }
  }
  const scope = { workspace: workspace.id, asset: native.asset_name }
  const id = services.environment.uuid()
  return services.database.transaction(async (tx) => {
    let moved = amount
    await insertTransaction(tx, {
      id,
      kind: KINDS[action],
      state: 'QUEUED',
      workspace_id: workspace.id,
      asset: native.asset_name,
      network: network.code,
      amount,
      fee,
      fee_asset: native.asset_name,
      source_type: 'GAS_TANK',
      source_id: tank,
      destination_type: 'STAKING',
      destination_id: tank,
      plan: {
        order: String(input['order']),
        reserved_fee: fee.toString(),
        fee_limit: '0',
        step: '0',
        delay_days: String(unfreezeDelayDays),
        expected_at: new Date(headTime + unfreezeDelayDays * DAY_MS).toISOString(),
        ...(resource === null ? {} : { resource }),
      },
    })
    if (action === 'release') {
      const matured = await tx.query<{ amount: string }>(
        `update cooldowns set releasing_by = $3
        where workspace_id = $5 and network = $1
        and account = $2 and released_by is null and releasing_by is null and release_at <= $4
        returning amount::text`,
        [network.code, tank, id, new Date(headTime), workspace.id],
      )
      if (matured.length === 0)
        throw new OperatorError('no unstaked TRX of the tank has completed its cooldown')
      moved = matured.reduce((sum, each) => sum + BigInt(each.amount), 0n)
    }
    if (action === 'unstake' && resource) {
      const { staked, reserved } = stakeAccounts(resource)
      const held = await lockedBalance(tx, { ...scope, kind: staked, address: tank })
      if (held < amount) {
        throw new OperatorError(
          `--amount: ${show(held)} of the tank's stake for ${resource} are idle; lent stake is returned within minutes`,
        )
      }
      await post(tx, 'tank-unstake-reserve', id, [
        { ...scope, kind: staked, address: tank, amount: -amount },
        { ...scope, kind: reserved, address: tank, amount },
      ])
    }
    const taken = fee + (action === 'stake' ? amount : 0n)
    const balance = await lockedBalance(tx, { ...scope, kind: 'tank' })
    if (balance < taken) {
      throw new OperatorError(
        `the tank has ${show(balance)}, less than the ${show(taken)} that this operation requires with its network fee`,
      )
    }
    await post(tx, 'tank-stake-reserve', id, [
      { ...scope, kind: 'tank', amount: -taken },
      { ...scope, kind: 'tank_reserved', amount: taken },
    ])
    return {
      id,
      action,
      amount: formatAmount(moved, native.decimals),
      asset: native.asset_name,
      resource,
      address: tank,
    }
  })
}
