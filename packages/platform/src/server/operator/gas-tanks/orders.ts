import type { NetworkMode } from '@custody/chains/mode'
import {
  loadRegistry,
  parseAmount,
  traitsOf,
  validateAddress,
  type Asset,
  type Registry,
} from '@custody/chains'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { OperatorError } from '../command.ts'
import { orderNodes, type NodeAnswer } from '../nodes.ts'

const LEAST_SUN = 1_000_000n

export type StakeAction = 'stake' | 'unstake' | 'release'
/**
 * Parameters of an order about a tank's stake. Amount in sun; a release has no resource, and takes
 * all unstaked TRX whose waiting period is over.
 */
export interface StakeTerms {
  amount: string
  resource: 'ENERGY' | 'BANDWIDTH' | null
}

/**
 * Reads the parameters of an order about a tank's stake from the entered values alone.
 * @throws OperatorError that names the option
 */
export function stakeTerms(
  registry: Registry,
  input: {
    network: string
    action: StakeAction
    amount: unknown
    resource: unknown
  },
): StakeTerms {
  const network = registry.network(input.network)
  if (!network || !traitsOf(network).staking)
    throw new OperatorError('--network: must be TRX, the only network with staking')
  if (input.action === 'release') return { amount: '0', resource: null }
  const resource = String(input.resource ?? 'ENERGY')
  if (resource !== 'ENERGY' && resource !== 'BANDWIDTH')
    throw new OperatorError('--resource: must be ENERGY or BANDWIDTH')
  let amount: bigint
  try {
    amount = parseAmount(
      String(input.amount ?? ''),
      (registry.asset(network.native_asset) as Asset).decimals,
    )
  } catch (error) {
    throw new OperatorError(`--amount: ${reasonOf(error)}`)
  }
  if (amount < LEAST_SUN) throw new OperatorError('--amount: must be at least 1 TRX')
  return { amount: amount.toString(), resource }
}

/**
 * Returns the networks that a signer node signs for, by the mode in the configuration of its data
 * folder.
 */
export function registryAt(home: string): Registry {
  return loadRegistry(
    (JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')) as { mode: NetworkMode }).mode,
  )
}

export interface TankOrder {
  order: string
  workspace: string
  network: string
  answers: NodeAnswer[]
  problems: string[]
}

/** Sends these nodes the order to transfer a tank's full balance to an address. */
export async function orderDrain(
  signers: readonly NodePeer[],
  registry: Registry,
  typed: {
    order: string
    workspace: string
    network: string
    to: string
  },
): Promise<TankOrder> {
  const network = registry.network(typed.network)
  if (!network) throw new OperatorError(`--network: network ${typed.network} does not exist`)
  const to = validateAddress(registry, network.native_asset, typed.to)
  if (!to.valid) throw new OperatorError(`--to: ${to.reason}`)
  if (to.address_tag !== null) throw new OperatorError('--to: must not contain a tag')
  const { order, workspace } = typed
  const expect = { order, workspace, network: network.code, to_address: to.address }
  return {
    order,
    workspace,
    network: network.code,
    ...(await orderNodes(signers, 'drain', expect, { expect })),
  }
}

/** Sends these nodes the order about a tank's stake. */
export async function orderStake(
  signers: readonly NodePeer[],
  registry: Registry,
  typed: {
    order: string
    workspace: string
    network: string
    action: StakeAction
    amount: unknown
    resource: unknown
  },
): Promise<TankOrder> {
  const { order, workspace, network, action } = typed
  const expect = { order, workspace, network, action, ...stakeTerms(registry, typed) }
  return {
    order,
    workspace,
    network,
    ...(await orderNodes(signers, 'tank-stake', expect, { expect })),
  }
}

/** Returns a line about the values that a node has stored. */
export function orderLine(answer: NodeAnswer): string {
  const { action = 'drain', amount, resource, to_address: to, workspace, network, order } = answer
  const words = [
    action,
    amount === undefined || action === 'release' ? null : `${String(amount)} sun`,
    resource,
    to === undefined ? null : `to ${String(to)}`,
    `${String(workspace)} ${String(network)}`,
  ].filter((word) => word !== null && word !== undefined)
  const pending = answer['needs_approval'] === true ? ', NOT APPROVED' : ''
  return `signer ${answer.node}: ${words.map(String).join(' ')}, order ${String(order)}${pending}`
}

/** Returns the command by which people approve an order, if too few nodes would sign it without. */
export function orderApprovalLines({ answers, order, workspace }: TankOrder): string[] {
  const ready = answers.filter((each) => each['needs_approval'] !== true)
  if (ready.length >= Math.min(2, answers.length)) return []
  return [
    `the order ${order} signs nothing until people of the policy approve it, each of them with:`,
    `npx custody policy approve-order --workspace ${workspace} --order ${order} --as PERSON --key KEYFILE`,
  ]
}
