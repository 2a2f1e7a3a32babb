import type { Services } from '../../services.ts'
import type { TransactionRow } from '../present.ts'
import { buildEvm } from './build-evm.ts'
import { buildUtxo } from './build-utxo.ts'

/** QUEUED → SIGNING (or FUELING): fixes inputs or nonce, and the unsigned bytes, in one commit. */
export async function build(services: Services, row: TransactionRow): Promise<void> {
  const network = services.networks.get(row.network).network
  if (network.family === 'utxo') await buildUtxo(services, row, network)
  else await buildEvm(services, row, network)
}
