import type { Queryable } from '../../core/database/pool.ts'
import { releaseOtherWallet } from '../../core/engine/other-wallet.ts'
import type { Environment } from '../../core/environment.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { releaseFloat } from './float.ts'
import { reclaimEnergy } from './energy-loan.ts'

interface Services {
  environment: Environment
}

/**
 * Releases the reservations of a failed payment's network fee outside its own wallet: in another
 * wallet, as delegated energy, or as float.
 */
export async function releaseNetworkFee(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
): Promise<void> {
  await releaseOtherWallet(tx, row)
  await reclaimEnergy(services, tx, row)
  await releaseFloat(tx, row)
}
