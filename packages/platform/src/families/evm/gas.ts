import { evm as evmBuild, RpcReverted, type Asset } from '@custody/chains'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Evm } from './context.ts'

/** What a gas limit is asked for. `amount` in the asset's smallest unit. */
interface Transfer {
  asset: Asset
  from: string
  to: string
  amount: bigint
}

/** Code of JSON-RPC for an execution that failed, as geth answers it. */
const EXECUTION_REVERTED = 3

/**
 * Gas limit of a transfer, as the endpoint estimates it. A limit that the signer nodes would refuse
 * is treated as a revert: the estimate is asked for again, and the transfer fails where it stays.
 * @throws RpcReverted where the transfer would revert, or takes more gas than the nodes sign
 */
export async function gasLimitOf({ client, network }: Evm, transfer: Transfer): Promise<bigint> {
  const gas = await client.gasLimit(transfer)
  const most = evmBuild.gasMost(network)
  if (gas > most)
    throw new RpcReverted(
      EXECUTION_REVERTED,
      `its gas limit would be ${gas}, and the signer nodes' maximum is ${most}`,
    )
  return gas
}

/**
 * Gas limit of a payment of native coin whose amount is not known yet. One wei is asked for: the
 * amount does not matter, but the first payment to an account may cost more than one of nothing
 * (EIP-8037).
 * @throws as {@link gasLimitOf}
 */
export async function paymentGasOf(evm: Evm, from: string, to: string): Promise<bigint> {
  const transfer = { asset: evm.native, from, to }
  try {
    return await gasLimitOf(evm, { ...transfer, amount: 1n })
  } catch (error) {
    if (!(error instanceof RpcReverted)) throw error
    // An address that is empty on chain cannot pay one wei either.
    return gasLimitOf(evm, { ...transfer, amount: 0n })
  }
}

/**
 * Fuel of a sweep that was mined and failed. Signer nodes ask no chain: for them it lies at the
 * address, and they refuse the next fuel as too large unless the sweep may cost as much more.
 */
export async function lostFuel(
  evm: Evm,
  {
    workspace_id: workspace,
    sub_account_id: subAccount,
    network,
    source_id: address,
  }: TransactionRow,
): Promise<bigint> {
  const lost = await evm.database.one<{ amount: string }>(
    `select coalesce(sum(amount), 0)::text amount from transactions
     where workspace_id = $1 and sub_account_id = $2 and lower(destination_id) = lower($3) and destination_id = $3
       and network = $4 and kind = 'FUEL' and state = 'REVERTED'`,
    [workspace, subAccount, address, network],
  )
  return BigInt(lost?.amount ?? '0')
}

/**
 * Gas limit of a fuel: native coin from the gas tank to an address of the workspace. @throws as
 * {@link gasLimitOf}
 */
export async function fuelGasOf(
  evm: Evm,
  { workspace_id: workspace, network }: TransactionRow,
  to: string,
): Promise<bigint> {
  const tank = await evm.database.one<{ address: string }>(
    'select address from gas_tanks where workspace_id = $1 and network = $2',
    [workspace, network],
  )
  // Without a tank the transfer is refused for that.
  return tank ? paymentGasOf(evm, tank.address, to) : evmBuild.NATIVE_GAS
}
