import type { Settings } from '../../../core/settings/settings.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Networks } from '../../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../../core/signing/keys.ts'
import type { Addresses } from '../../../core/engine/interfaces/addresses.ts'
import type { DevnetControl } from '../../../core/devnet.ts'
import { insertTransaction } from '../../../core/engine/insert.ts'
import {
  formatAmount,
  tron as tronBuild,
  type Asset,
  type TronClient,
  type TronResource,
  type Registry,
} from '@custody/chains'
import type { Queryable, Database } from '../../../core/database/pool.ts'
import { ensureGasTank } from '../../../custody/gas-tanks/ensure-tank.ts'
import { lockedBalance, post } from '../../../core/ledger/post.ts'
import { MATURED_FIRST, TOO_MANY, unstakeRefusal } from '../../../custody/staking/chain.ts'
import { stakeAccounts } from '../../../custody/staking/steps.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { OPERATOR, writeAudit } from '../../../console-api/people/audit-log.ts'
import { OperatorError, type Command } from '../command.ts'
import { addressOfTank, waitForFirstFill, workspaceOf } from './lookup.ts'
import { assertOrderApproved } from './order-approvals.ts'
import { stakeTerms, type StakeAction } from './orders.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  devnet: DevnetControl | null
  signers: SignerNodes
}

const DAY_MS = 86_400_000
const KINDS = { stake: 'STAKE', unstake: 'UNSTAKE', release: 'RELEASE' } as const
const CALLS = { stake: 'freeze', unstake: 'unfreeze', release: 'withdraw' } as const

/** A requested change of a tank's stake. Amounts in sun; `amount` of a release is 0. */
interface StakeOperation {
  id: string
  action: StakeAction
  amount: bigint
  resource: TronResource | null
  fee: bigint
  workspaceId: string
  network: string
  native: Asset
  /** Address of the tank. */
  tank: string
}

/** Returns an amount in sun as text, with the name of the asset. */
const amountText = ({ native }: StakeOperation, sun: bigint): string =>
  `${formatAmount(sun, native.decimals)} ${native.asset_name}`

/** Returns the workspace and the asset of the ledger accounts that the operation changes. */
const scopeOf = ({ workspaceId, native }: StakeOperation) => ({
  workspace: workspaceId,
  asset: native.asset_name,
})

/**
 * Checks that the chain would accept another unstake of the tank now.
 * @throws OperatorError if it would refuse
 */
async function assertUnstakable(client: TronClient, tank: string): Promise<void> {
  const refusal = await unstakeRefusal(client, tank, 0)
  if (refusal) {
    throw new OperatorError(
      refusal === 'matured'
        ? MATURED_FIRST.replace('POST /dav/v1/release-unstaked', 'gas-tank release')
        : TOO_MANY,
    )
  }
}

/**
 * Assigns the tank's completed cooldowns to a release.
 * @param headTime time of the latest block in milliseconds since the Unix epoch
 * @returns their sum in sun
 * @throws OperatorError if there are none
 */
async function claimCooldowns(
  tx: Queryable,
  { id, network, tank, workspaceId }: StakeOperation,
  headTime: number,
): Promise<bigint> {
  const matured = await tx.query<{ amount: string }>(
    `update cooldowns set releasing_by = $3
        where workspace_id = $5 and network = $1
        and account = $2 and released_by is null and releasing_by is null and release_at <= $4
        returning amount::text`,
    [network, tank, id, new Date(headTime), workspaceId],
  )
  if (matured.length === 0)
    throw new OperatorError('no unstaked TRX of the tank has completed its cooldown')
  return matured.reduce((sum, each) => sum + BigInt(each.amount), 0n)
}

/**
 * Reserves the stake that an unstake ends.
 * @throws OperatorError if less than the amount is idle
 */
async function reserveStake(
  tx: Queryable,
  operation: StakeOperation,
  resource: TronResource,
): Promise<void> {
  const { id, amount, tank } = operation
  const scope = scopeOf(operation)
  const { staked, reserved } = stakeAccounts(resource)
  const idle = await lockedBalance(tx, { ...scope, kind: staked, address: tank })
  if (idle < amount) {
    throw new OperatorError(
      `--amount: only ${amountText(operation, idle)} of the tank's stake for ${resource} are not lent; lent stake is returned within minutes`,
    )
  }
  await post(tx, 'tank-unstake-reserve', id, [
    { ...scope, kind: staked, address: tank, amount: -amount },
    { ...scope, kind: reserved, address: tank, amount },
  ])
}

/**
 * Reserves the network fee, and the amount of a stake, in the tank's balance.
 * @throws OperatorError if the balance is too small
 */
async function reserveBalance(tx: Queryable, operation: StakeOperation): Promise<void> {
  const { id, action, amount, fee } = operation
  const scope = scopeOf(operation)
  const required = fee + (action === 'stake' ? amount : 0n)
  const balance = await lockedBalance(tx, { ...scope, kind: 'tank' })
  if (balance < required) {
    throw new OperatorError(
      `the tank has ${amountText(operation, balance)}, less than the ${amountText(operation, required)} that this operation requires with its network fee`,
    )
  }
  await post(tx, 'tank-stake-reserve', id, [
    { ...scope, kind: 'tank', amount: -required },
    { ...scope, kind: 'tank_reserved', amount: required },
  ])
}

/**
 * Inserts the transaction of an operation.
 * @param order the order that the operator has recorded at the signer nodes
 * @param delay `days`: cooldown of an unstake; `headTime`: time of the latest block in milliseconds
 *   since the Unix epoch
 */
async function insertStake(
  tx: Queryable,
  { id, action, amount, resource, fee, workspaceId, network, native, tank }: StakeOperation,
  order: string,
  { days, headTime }: { days: number; headTime: number },
): Promise<void> {
  await insertTransaction(tx, {
    id,
    kind: KINDS[action],
    state: 'QUEUED',
    workspace_id: workspaceId,
    asset: native.asset_name,
    network,
    amount,
    fee,
    fee_asset: native.asset_name,
    source_type: 'GAS_TANK',
    source_id: tank,
    destination_type: 'STAKING',
    destination_id: tank,
    plan: {
      order,
      reserved_fee: fee.toString(),
      fee_limit: '0',
      step: '0',
      delay_days: String(days),
      expected_at: new Date(headTime + days * DAY_MS).toISOString(),
      ...(resource === null ? {} : { resource }),
    },
  })
}

/**
 * Stakes, unstakes or releases TRX of a gas tank. The operator has already recorded the order at
 * the signer nodes.
 */
export const stakeTank: Command<Services> = async (services, input) => {
  const action = String(input['action']) as StakeAction
  const terms = stakeTerms(services.registry, {
    network: String(input['network'] ?? ''),
    action,
    amount: input['amount'],
    resource: input['resource'],
  })
  const [amount, resource] = [BigInt(terms.amount), terms.resource]
  const workspaceId = await workspaceOf(services, input)
  await assertOrderApproved(services, String(input['workspace']), String(input['order']))
  const { network } = services.networks.get(String(input['network']))
  const native = services.registry.asset(network.native_asset) as Asset
  await ensureGasTank(services, workspaceId, network)
  await waitForFirstFill(services, workspaceId, network.code)
  const tank = (await addressOfTank(services, workspaceId, network.code)) as string
  const client = services.networks.stakes(network.code).client
  const { bandwidthSun, unfreezeDelayDays } = await services.networks
    .stakes(network.code)
    .parameters()
  const fee = tronBuild.actionBandwidth(CALLS[action]) * bandwidthSun
  const headTime = await client.headTime()
  if (action === 'unstake') await assertUnstakable(client, tank)
  const id = services.environment.uuid()
  const operation: StakeOperation = {
    id,
    action,
    amount,
    resource,
    fee,
    workspaceId,
    network: network.code,
    native,
    tank,
  }
  return services.database.transaction(async (tx) => {
    await insertStake(tx, operation, String(input['order']), { days: unfreezeDelayDays, headTime })
    const moved = action === 'release' ? await claimCooldowns(tx, operation, headTime) : amount
    if (action === 'unstake' && resource) await reserveStake(tx, operation, resource)
    await reserveBalance(tx, operation)
    await writeAudit(tx, workspaceId, OPERATOR, {
      action: `gas_tank.${action}`,
      object: id,
      details: { network: network.code, amount: formatAmount(moved, native.decimals), resource },
    })
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
