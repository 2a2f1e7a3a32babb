import { CHANGE_INDEX, OMNIBUS_INDEX, traitsOf, type Network } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Order } from './order.ts'

const same = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((element, at) => element === b[at])

/** Rule 8, before anything is decoded: inputs and change use paths of the payer's own wallet. */
export function assertWalletPaths(order: Order, network: Network, subAccount: number): void {
  const { inputs, change } = order.unsigned
  for (const { path } of inputs) {
    if (path.length !== 3 || path[0] !== subAccount || path[1] !== network.chain_index) {
      throw new Refusal('FOREIGN_PATH', `The path ${path.join('/')} is not in the payer's wallet`)
    }
    if (traitsOf(network).deposits !== 'spendable' && path[2] !== OMNIBUS_INDEX) {
      throw new Refusal(
        'FOREIGN_PATH',
        'A payment of an account-based chain must be sent from the omnibus address',
      )
    }
  }
  if (change && !same(change.path, [subAccount, network.chain_index, CHANGE_INDEX])) {
    throw new Refusal('CHANGE_MISMATCH', "Change must go to the wallet's fixed change path")
  }
}

/**
 * Checks the paths of a sweep: only the deposit address; if the transaction has a fee payer, then
 * also the omnibus address, which pays the fee of a token's sweep. The decoder allows a second
 * signer to pay only what it receives itself.
 */
export function assertSweepPaths(
  order: Order,
  network: Network,
  subAccount: number,
  addressIndex: number,
): void {
  const { inputs } = order.unsigned
  const deposit = [subAccount, network.chain_index, addressIndex]
  if (!traitsOf(network).feePayer || inputs.length !== 2) return assertOnlyPath(order, deposit)
  if (
    order.unsigned.change ||
    !same(inputs[0]!.path, [subAccount, network.chain_index, OMNIBUS_INDEX]) ||
    !same(inputs[1]!.path, deposit)
  ) {
    throw new Refusal(
      'FOREIGN_PATH',
      `Only the omnibus path and the path ${deposit.join('/')} may be used here`,
    )
  }
}

/** Checks that an account-based transaction is signed with exactly this path. */
export function assertOnlyPath(order: Order, path: readonly number[]): void {
  const [input, more] = order.unsigned.inputs
  if (!input || more || order.unsigned.change || !same(input.path, path)) {
    throw new Refusal('FOREIGN_PATH', `Only the path ${path.join('/')} may be used here`)
  }
}
