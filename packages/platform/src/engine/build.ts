import type { FamilyName, Network } from '@custody/chains'
import { screenAgain } from '../aml/withdrawals.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'
import { buildCardano } from '../families/cardano/build.ts'
import { buildEvm } from '../families/evm/build.ts'
import { buildSolana } from '../families/solana/build.ts'
import { buildTagged } from '../families/tagged/build.ts'
import { buildTron } from '../families/tron/build.ts'
import { buildUtxo } from '../families/utxo/build.ts'

const BUILDERS: Partial<Record<FamilyName, (services: Services, row: TransactionRow, network: Network) => Promise<void>>> = {
  utxo: buildUtxo, evm: buildEvm, xrp: buildTagged, stellar: buildTagged, solana: buildSolana, cardano: buildCardano, tron: buildTron,
}

/** QUEUED → SIGNING (or FUELING): fixes inputs or nonce, and the unsigned bytes, in one commit. */
export async function build(services: Services, row: TransactionRow): Promise<void> {
  if (await screenAgain(services, row)) return
  const network = services.networks.get(row.network).network
  const build = BUILDERS[network.family]
  if (!build) throw new Error(`${network.code}: nothing builds transactions of the family ${network.family}`)
  await build(services, row, network)
}
