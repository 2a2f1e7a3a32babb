import { callPlatform } from '../connect.ts'
import { showSuspense } from '../show-suspense.ts'
import { need, type Run } from './typed.ts'

interface Report {
  ok: boolean
  compared: number
  differences: Record<string, string>[]
  networks: Record<string, { addresses: number; coins: number }>
  exchanges: { accounts: number; balances: number }
  books: { entries: number }
}

export const audit: Run = async ({ home }) => {
  const result = await callPlatform(home, 'audit', {}) as unknown as Report
  const looked = Object.entries(result.networks).map(
    ([code, { addresses, coins }]) => `${code}: ${addresses > 0 ? `${addresses} addresses` : `${coins} coins`}`
  ).join(', ')
  const { accounts, balances } = result.exchanges
  const claims = accounts > 0 ? `; ${balances} balances of ${accounts} exchange accounts` : ''
  const lines = result.differences.map((each) => {
    const where = `${each['network']} ${each['workspace']} ${each['subject']} ${each['asset']}`
    const note = each['note'] ? ` (${each['note']})` : ''
    return `DIFFERENCE ${where}: books ${each['ledger']}, chain ${each['chain']}${note}`
  })
  const agreement = result.compared > 0
    ? `the books agree with the chains${accounts > 0 ? ' and the exchanges' : ''}`
    : 'NOTHING was compared: no address and no coin is known on any configured network, and no balance at an exchange'
  const verdict = lines.length > 0 ? `${lines.length} differences` : agreement
  return {
    result: { ...result }, text: [`${result.books.entries} ledger entries; ${looked}${claims}`, ...lines, verdict],
    exitCode: result.ok ? 0 : 1,
  }
}

export const prepaidAdjust: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'prepaid-fee adjust', { workspace: need(values, 'workspace'), amount: need(values, 'amount') })
  return { result, text: `${String(result['workspace'])}: ${String(result['balance'])} USD` }
}

export const prepaidShow: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'prepaid-fee show', { workspace: need(values, 'workspace') })
  const said = (field: string) => String(result[field])
  const account = `${said('balance')} USD (${said('status')}), ${said('reserved')} USD reserved`
  return { result, text: `${said('workspace')}: ${account}; ${said('tier')}, ${said('volume_30d')} USD in 30 days` }
}

export const suspenseList: Run = async ({ home }) => {
  const result = await callPlatform(home, 'suspense list', {}) as { suspense: Record<string, unknown>[] }
  return { result: { ...result }, text: showSuspense(result.suspense) }
}

export const suspenseAssign: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'suspense assign', { id: need(values, 'id') })
  return { result, text: `${String(result['amount'])} ${String(result['asset'])} credited to wallet ${String(result['wallet_id'])}` }
}
