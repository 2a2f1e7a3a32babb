import type { SignedRequest } from '@custody/request-auth'
import type { Services } from './services.ts'
import type { Purpose } from '../signing/sign.ts'
import { actionOf, stakingOf, type Staking } from '../staking/steps.ts'
import type { TransactionRow } from './transaction.ts'
import { replacementsOf, type Replacement } from './replacements.ts'

/** A caller's request as the nodes take it, with the newest receipts: they arrive after the row was made. */
async function signedOf(services: Services, request: TransactionRow['request'], table: 'transactions' | 'replacements', id: string): Promise<{ request: SignedRequest; receipts: unknown[] }> {
  if (!request) throw new Error('an order without the request that it is for')
  const { api_key: _, ...signed } = request
  const fresh = await services.database.one<{ receipts: unknown[] }>(`select receipts from ${table} where id = $1`, [id])
  return { request: signed, receipts: fresh?.receipts ?? [] }
}

/** Under whose authority a transaction, or what replaces it, asks the nodes to sign. */
export async function purposeOf(services: Services, row: TransactionRow, replacement?: Replacement): Promise<Purpose> {
  switch (row.kind) {
    case 'WITHDRAWAL': {
      const forward = row.plan['rule_id'] === undefined ? null : await forwardPurpose(services, row.id, row.plan['rule_id'])
      if (forward && replacement?.kind !== 'CANCEL') return forward
      const pay = forward ?? { kind: 'pay' as const, ...await signedOf(services, row.request, 'transactions', row.id) }
      if (replacement?.kind === 'CANCEL') return { kind: 'cancel', of: pay, ...await signedOf(services, replacement.request, 'replacements', replacement.id) }
      // A bump of our own stays within the newest limit that the caller has signed.
      const faster = replacement?.kind === 'AUTO' ? (await replacementsOf(services.database, row.id)).findLast(({ kind, state }) => kind === 'SPEED_UP' && state === 'DONE') : replacement
      return faster && pay.kind === 'pay' ? { ...pay, speed_up: await signedOf(services, faster.request, 'replacements', faster.id) } : pay
    }
    case 'STAKE':
    case 'UNSTAKE':
    case 'RELEASE':
      if (row.plan['order'] !== undefined) return { kind: 'tank-stake', order: row.plan['order'] }
      return { kind: 'stake', step: actionOf(stakingOf(row) as Staking).kind, ...await signedOf(services, row.request, 'transactions', row.id) }
    case 'SWEEP': {
      const address = await services.database.one<{ path_index: number; sub: number }>(
        `select c.path_index, s.path_index sub from chain_addresses c join sub_accounts s on s.id = c.sub_account_id where c.network = $1 and c.address = $2`, [row.network, row.source_id])
      if (!address) throw new Error('a sweep of an unknown address')
      return { kind: 'sweep', sub_account: address.sub, asset: row.asset, address_index: address.path_index }
    }
    case 'FUEL': {
      const parent = await services.database.one<TransactionRow>('select * from transactions where id = $1', [row.parent_id])
      if (!parent) throw new Error('fuel without the transfer it is for')
      const replacement = row.plan['replacement'] ? (await replacementsOf(services.database, parent.id)).find(({ id }) => id === row.plan['replacement']) : undefined
      return { kind: 'fuel', for: await purposeOf(services, parent, replacement), gas: String(row.plan['for_gas']), max_fee_per_gas: String(row.plan['for_max_fee_per_gas']), l1_fee: String(row.plan['for_l1_fee'] ?? '0') }
    }
    case 'LEND':
    case 'LEND_BACK': {
      const parent = await services.database.one<TransactionRow>('select * from transactions where id = $1', [row.parent_id])
      if (!parent) throw new Error('energy that is lent for no transfer')
      return { kind: 'lend', step: row.kind === 'LEND' ? 'delegate' : 'undelegate', for: await purposeOf(services, parent) }
    }
    case 'DRAIN':
      return { kind: 'drain', order: String(row.plan['order']) }
    default:
      throw new Error(`${row.kind} is never signed`)
  }
}

/** A forward has the request that made its rule. */
async function forwardPurpose(services: Services, id: string, ruleId: string): Promise<Purpose> {
  const rule = await services.database.one<{ request: SignedRequest; receipts: unknown[] }>('select request, receipts from forward_rules where id = $1', [ruleId])
  if (!rule) throw new Error('a forward without its rule')
  return { kind: 'forward', id, rule: rule.request, receipts: rule.receipts }
}
