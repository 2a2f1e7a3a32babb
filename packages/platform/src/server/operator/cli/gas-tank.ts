import { loadRegistry } from '@custody/chains'
import { printNotice } from '@custody/chains/terminal'
import { readVariable } from '../../../core/settings/settings.ts'
import { OperatorError } from '../command.ts'
import { callPlatform, localSigners } from '../connect.ts'
import { newOrder } from '../nodes.ts'
import {
  orderApprovalLines,
  orderDrain,
  orderLine,
  orderStake,
  type StakeAction,
  type TankOrder,
} from '../gas-tanks/orders.ts'
import { need, warn, type Outcome, type Run, type Values } from './typed.ts'

const CHECKS_MAX = 240
const CHECK_MS = 500

/** Loads the registry of the networks that CUSTODY_NETWORK selects, as for the platform. */
const registryHere = () => loadRegistry(readVariable('CUSTODY_NETWORK'))
const tankOf = (values: Values) => ({
  workspace: need(values, 'workspace'),
  network: need(values, 'network'),
})

export const list: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'gas-tank list', { workspace: need(values, 'workspace') })
  const lines = (result['gas_tanks'] as Record<string, unknown>[]).map((tank) => {
    const balance = `${String(tank['balance'])} ${String(tank['asset'])}`
    return [tank['network'], balance, tank['status'], tank['address'] ?? 'no address yet']
      .map(String)
      .join('  ')
  })
  return { result, text: lines }
}

export const address: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'gas-tank address', tankOf(values))
  return { result, text: String(result['address']) }
}

export const set: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'gas-tank set', {
    ...tankOf(values),
    threshold: values['threshold'],
    fee_cap: values['fee-cap'],
    max_gas_price: values['max-gas-price'],
  })
  const said = (field: string) => String(result[field] ?? 'none')
  const limits = `fee cap ${said('fee_cap')}, maximum gas price ${said('max_gas_price')}`
  return { result, text: `${said('network')}: threshold ${said('threshold')}, ${limits}` }
}

/**
 * Returns the ID of the order as entered. It is required if no signer node is on this machine,
 * because then the nodes have the order already.
 */
const orderOf = (signers: number, values: Values): string =>
  signers === 0 || values['order'] !== undefined ? need(values, 'order') : newOrder()

export const drain: Run = async ({ home, values }) => {
  const signers = localSigners(home)
  const typed = {
    order: orderOf(signers.length, values),
    ...tankOf(values),
    to: need(values, 'to'),
  }
  // Checks that the tank exists; the response is not used.
  await callPlatform(home, 'gas-tank address', typed)
  const entered = signers.length > 0 ? await orderDrain(signers, registryHere(), typed) : null
  const waiting = entered && tellOrder(entered)
  if (waiting) return waiting
  const started = await callPlatform(home, 'gas-tank drain', typed)
  return ended(
    home,
    'drain',
    started,
    (hash) =>
      `${String(started['amount'])} ${String(started['asset'])} sent to ${typed.to}: ${hash}`,
  )
}

/** Returns a command that stakes for a tank, by an order that each signer node receives too. */
const byOrder =
  (action: StakeAction): Run =>
  async ({ home, values }) => {
    const signers = localSigners(home)
    const typed = {
      order: orderOf(signers.length, values),
      ...tankOf(values),
      action,
      amount: values['amount'],
      resource: values['resource'] ?? 'ENERGY',
    }
    const entered = signers.length > 0 ? await orderStake(signers, registryHere(), typed) : null
    const waiting = entered && tellOrder(entered)
    if (waiting) return waiting
    const started = await callPlatform(home, 'gas-tank stake', typed)
    const what = `${action} of ${String(started['amount'])} ${String(started['asset'])}`
    const resource = started['resource'] ? ` for ${String(started['resource'])}` : ''
    return ended(
      home,
      action,
      started,
      (hash) => `${what}${resource} by the tank ${String(started['address'])}: ${hash}`,
    )
  }

export const stake = byOrder('stake')
export const unstake = byOrder('unstake')
export const release = byOrder('release')

/** Prints what the nodes have stored. Returns the result of the command if people must approve it first. */
function tellOrder(entered: TankOrder): Outcome | null {
  const { answers, problems, order, workspace } = entered
  for (const answer of answers) printNotice(orderLine(answer))
  warn(problems, 'the order was not stored')
  const lines = orderApprovalLines(entered)
  if (lines.length === 0) return null
  return {
    result: { order, workspace, state: 'unapproved' },
    text: [...lines, `then repeat this command with --order ${order}`],
    exitCode: 2,
  }
}

/** Waits until the operation that the operator started has ended. */
async function ended(
  home: string,
  what: string,
  started: Record<string, unknown>,
  done: (hash: string) => string,
): Promise<Outcome> {
  for (let count = 0; count < CHECKS_MAX; count++) {
    const state = await callPlatform(home, 'transaction', { id: started['id'] })
    if (state['status'] === 'failed')
      throw new OperatorError(`the ${what} failed: ${String(state['failure_reason'])}`)
    if (state['status'] === 'confirmed') {
      return {
        result: { ...started, hash: state['hash'], status: 'confirmed' },
        text: done(String(state['hash'])),
      }
    }
    await new Promise((resolved) => setTimeout(resolved, CHECK_MS))
  }
  return {
    result: { ...started, status: 'pending' },
    text: `the ${what} ${String(started['id'])} is still pending`,
  }
}
