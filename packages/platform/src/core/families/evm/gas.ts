import { evm as evmBuild, RpcReverted, type Asset } from '@custody/chains'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Evm } from './context.ts'

/** A transfer whose gas limit is estimated. `amount` is in the asset's smallest unit. */
interface Transfer {
  asset: Asset
  from: string
  to: string
  amount: bigint
}

/** JSON-RPC error code of geth for a reverted execution. */
const EXECUTION_REVERTED = 3

/**
 * Returns the gas limit of a transfer as estimated by the endpoint. A limit that the signer nodes
 * would refuse is treated as a revert: the estimate is repeated, and the transfer fails if it stays
 * too high.
 * @throws RpcReverted if the transfer would revert or needs more gas than the nodes sign
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
 * Returns the gas limit of a native payment whose amount is not known yet. The estimate uses one
 * wei: the amount does not matter, but the first payment to an account may cost more than a payment
 * of 0 (EIP-8037).
 * @throws RpcReverted like {@link gasLimitOf}
 */
export async function paymentGasOf(evm: Evm, from: string, to: string): Promise<bigint> {
  const transfer = { asset: evm.native, from, to }
  try {
    return await gasLimitOf(evm, { ...transfer, amount: 1n })
  } catch (error) {
    if (!(error instanceof RpcReverted)) throw error
    // An address without a balance cannot pay one wei.
    return gasLimitOf(evm, { ...transfer, amount: 0n })
  }
}

/**
 * Returns the amount of fuel that sweeps of an address never received because the fuel transaction
 * reverted, in wei. Signer nodes do not query chains: they count this fuel as present, and refuse
 * the next fuel as too large unless the sweep may cost that much more.
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
     where workspace_id = $1 and sub_account_id = $2 and lower(destination_id) = lower($3)
       and destination_id = $3
       and network = $4 and kind = 'FUEL' and state = 'REVERTED'`,
    [workspace, subAccount, address, network],
  )
  return BigInt(lost?.amount ?? '0')
}

/**
 * Returns the gas limit of a fuel transaction: native coin from the gas tank to a workspace
 * address.
 * @throws RpcReverted like {@link gasLimitOf}
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
  // Without a gas tank the transfer is refused for that reason later.
  return tank ? paymentGasOf(evm, tank.address, to) : evmBuild.NATIVE_GAS
}
