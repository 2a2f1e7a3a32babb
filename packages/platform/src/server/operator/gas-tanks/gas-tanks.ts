import {
  formatAmount,
  parseAmount,
  traitsOf,
  validateAddress,
  type Asset,
  type Registry,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../../core/database/pool.ts'
import { ensureGasTank, hasTank } from '../../../custody/gas-tanks/ensure-tank.ts'
import { gasTanksOf } from '../../../custody/gas-tanks/list-tanks.ts'
import { lockedBalance, post } from '../../../core/ledger/post.ts'
import type { Chain, Fuelled } from '../../../core/engine/chain.ts'
import { insertTransaction } from '../../../core/engine/insert.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Networks } from '../../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../../core/signing/keys.ts'
import type { Addresses } from '../../../core/engine/interfaces/addresses.ts'
import type { DevnetControl } from '../../../core/devnet.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { OPERATOR, writeAudit } from '../../../console-api/people/audit-log.ts'
import { OperatorError, type Command } from '../command.ts'
import { addressOfTank, waitForFirstFill, workspaceOf } from './lookup.ts'
import { assertOrderApproved } from './order-approvals.ts'

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

function chainOf(services: Services, input: Record<string, unknown>): Chain & { fuelled: Fuelled } {
  const code = String(input['network'] ?? '')
  const chains = services.networks.all().filter(hasTank)
  const match = chains.find(({ network }) => network.code === code)
  if (!match)
    throw new OperatorError(
      `--network: must be one of ${chains.map(({ network }) => network.code).join(', ')}`,
    )
  return match
}

export const listTanks: Command<Services> = async (services, input) =>
  JSON.parse(
    stringifyJson({
      gas_tanks: await gasTanksOf(services, await workspaceOf(services, input)),
    }),
  ) as Record<string, unknown>

export const tankAddress: Command<Services> = async (services, input) => {
  const workspaceId = await workspaceOf(services, input)
  const { network } = chainOf(services, input)
  await ensureGasTank(services, workspaceId, network)
  return {
    network: network.code,
    address: await addressOfTank(services, workspaceId, network.code),
  }
}

/** Reads a decimal of an option; `none` removes the limit. */
function limit(
  input: Record<string, unknown>,
  name: string,
  decimals: number,
): string | null | undefined {
  const value = input[name]
  if (value === undefined || value === null) return undefined
  if (value === 'none') return null
  try {
    return parseAmount(String(value), decimals).toString()
  } catch (error) {
    throw new OperatorError(`--${name.replaceAll('_', '-')}: ${reasonOf(error)}`)
  }
}

/** Changes a tank's threshold and limits. Options that are missing stay unchanged. */
export const setTank: Command<Services> = async (services, input) => {
  const workspaceId = await workspaceOf(services, input)
  const { network } = chainOf(services, input)
  const { decimals } = services.registry.asset(network.native_asset) as Asset
  const changes = {
    threshold: limit(input, 'threshold', decimals),
    fee_cap: limit(input, 'fee_cap', decimals),
    max_gas_price: limit(input, 'max_gas_price', traitsOf(network).feeRateDecimals),
  }
  if (changes.threshold === null)
    throw new OperatorError('--threshold: must be an amount; 0 turns the warning off')
  const named = Object.entries(changes).filter(([, value]) => value !== undefined)
  if (named.length === 0)
    throw new OperatorError(
      'at least one of --threshold, --fee-cap and --max-gas-price is required',
    )
  for (const [name, value] of named) {
    if (name !== 'threshold' && value === '0') {
      throw new OperatorError(
        `--${name.replaceAll('_', '-')}: must be greater than zero; "none" removes the limit`,
      )
    }
  }
  await ensureGasTank(services, workspaceId, network)
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update gas_tanks set ${named.map(([name], at) => `${name} = $${at + 3}`).join(', ')}
        where workspace_id = $1 and network = $2`,
      [workspaceId, network.code, ...named.map(([, value]) => value)],
    )
    await writeAudit(tx, workspaceId, OPERATOR, {
      action: 'gas_tank.changed',
      object: network.code,
      details: Object.fromEntries(named.map(([name, value]) => [name, value ?? 'none'])),
    })
  })
  const tank = (await gasTanksOf(services, workspaceId)).find(
    (each) => each.network === network.code,
  )
  return JSON.parse(stringifyJson(tank)) as Record<string, unknown>
}

/**
 * Returns whether no unfinished operation will use the tank, because fuel would use the free
 * bandwidth before a drain.
 */
async function isIdle(services: Services, workspaceId: string, native: Asset): Promise<boolean> {
  return !(await services.database.one(
    `select 1 from ledger_accounts where workspace_id = $1 and asset = $2 and kind = 'tank_reserved'
      and balance <> 0`,
    [workspaceId, native.asset_name],
  ))
}

/**
 * Locks the tank's account and returns its balance in the smallest unit.
 * @param fee network fee of the drain in the smallest unit
 * @throws OperatorError if the balance does not exceed the fee
 */
async function lockedTankBalance(
  tx: Queryable,
  workspaceId: string,
  { native, fee }: { native: Asset; fee: bigint },
): Promise<bigint> {
  const balance = await lockedBalance(tx, {
    workspace: workspaceId,
    asset: native.asset_name,
    kind: 'tank',
  })
  if (balance <= fee) {
    const [present, needed] = [balance, fee].map((value) => formatAmount(value, native.decimals))
    throw new OperatorError(
      `the gas tank has ${present} ${native.asset_name}, which does not exceed the network fee of ${needed}`,
    )
  }
  return balance
}

/**
 * Sends a tank's full balance to an address; on Tron an amount for the fee is only deducted if
 * there is not enough free bandwidth. The operator has already recorded the order at the signer
 * nodes.
 */
export const drainTank: Command<Services> = async (services, input) => {
  const workspaceId = await workspaceOf(services, input)
  const { network, fuelled } = chainOf(services, input)
  const native = services.registry.asset(network.native_asset) as Asset
  const to = validateAddress(services.registry, native.asset_name, String(input['to'] ?? ''))
  if (!to.valid) throw new OperatorError(`--to: ${to.reason}`)
  if (to.address_tag !== null) throw new OperatorError('--to: must not contain a tag')
  await assertOrderApproved(services, String(input['workspace']), String(input['order']))
  await waitForFirstFill(services, workspaceId, network.code)
  const tank = await addressOfTank(services, workspaceId, network.code)
  if (tank === undefined)
    throw new OperatorError(`the workspace has no gas tank on ${network.code} yet`)
  if (to.address === tank)
    throw new OperatorError('--to: must not be the address of the tank itself')
  const drained = await fuelled.drain({
    from: tank,
    to: to.address,
    idle: await isIdle(services, workspaceId, native),
  })
  if (drained.kind === 'fail') throw new OperatorError(`--to: ${drained.reason}`)
  const { worst: fee, plan } = drained
  return services.database.transaction(async (tx) => {
    const balance = await lockedTankBalance(tx, workspaceId, { native, fee })
    const amount = balance - fee
    const id = services.environment.uuid()
    const scope = { workspace: workspaceId, asset: native.asset_name }
    await post(tx, 'drain-reserve', id, [
      { ...scope, kind: 'tank', amount: -balance },
      { ...scope, kind: 'tank_reserved', amount: balance },
    ])
    await insertTransaction(tx, {
      id,
      kind: 'DRAIN',
      state: 'QUEUED',
      workspace_id: workspaceId,
      network: network.code,
      asset: native.asset_name,
      amount,
      fee,
      fee_asset: native.asset_name,
      source_type: 'GAS_TANK',
      source_id: tank,
      destination_type: 'EXTERNAL',
      destination_id: to.address,
      plan: { order: String(input['order']), reserved_fee: fee.toString(), ...plan },
    })
    await writeAudit(tx, workspaceId, OPERATOR, {
      action: 'gas_tank.drained',
      object: id,
      details: {
        network: network.code,
        amount: formatAmount(amount, native.decimals),
        to: to.address,
      },
    })
    return {
      id,
      amount: formatAmount(amount, native.decimals),
      fee: formatAmount(fee, native.decimals),
      asset: native.asset_name,
      to: to.address,
    }
  })
}

/** Returns the state of a drain, for the command that waits for it. */
export const transactionState: Command<Pick<Services, 'database'>> = async (services, input) => {
  const row = await services.database.one<Record<string, unknown>>(
    `select id, state, status, hash, failure_reason, last_error from transactions
      where id::text = $1`,
    [String(input['id'] ?? '')],
  )
  if (!row) throw new OperatorError('this transaction does not exist')
  return row
}
