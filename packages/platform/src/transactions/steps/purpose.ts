import type { Services } from '../../services.ts'
import type { Purpose } from '../../signing/sign.ts'
import type { TransactionRow } from '../present.ts'

/** Under whose authority a transaction asks the nodes to sign. */
export async function purposeOf(services: Services, row: TransactionRow): Promise<Purpose> {
  switch (row.kind) {
    case 'WITHDRAWAL': {
      if (!row.request) throw new Error('a withdrawal without its signed request')
      const { api_key: _, ...request } = row.request
      // Receipts arrive after the row was made: the newest are read.
      const fresh = await services.database.one<{ receipts: unknown[] }>('select receipts from transactions where id = $1', [row.id])
      return { kind: 'pay', request, receipts: fresh?.receipts ?? [] }
    }
    case 'SWEEP': {
      const address = await services.database.one<{ path_index: number; sub: number }>(
        `select c.path_index, s.path_index sub from chain_addresses c join sub_accounts s on s.id = c.sub_account_id where c.network = $1 and c.address = $2`, [row.network, row.source_id])
      if (!address) throw new Error('a sweep of an unknown address')
      return { kind: 'sweep', sub_account: address.sub, asset: row.asset, address_index: address.path_index }
    }
    case 'FUEL': {
      const parent = await services.database.one<TransactionRow>('select * from transactions where id = $1', [row.parent_id])
      if (!parent) throw new Error('fuel without the transfer it is for')
      return { kind: 'fuel', for: await purposeOf(services, parent), gas: String(row.plan['for_gas']), max_fee_per_gas: String(row.plan['for_max_fee_per_gas']), l1_fee: String(row.plan['for_l1_fee'] ?? '0') }
    }
    case 'DRAIN':
      return { kind: 'drain', order: String(row.plan['order']) }
    default:
      throw new Error(`${row.kind} is never signed`)
  }
}
