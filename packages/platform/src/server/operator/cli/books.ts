import type { AuditReport } from '../../audit/report.ts'
import { callPlatform } from '../connect.ts'
import { showAudit } from '../show-audit.ts'
import { showSuspense } from '../books/show-suspense.ts'
import { waitingLines } from '../show-waiting.ts'
import { need, type Run } from './typed.ts'

export const audit: Run = async ({ home }) => {
  const result = (await callPlatform(home, 'audit', {})) as unknown as AuditReport
  return { result: { ...result }, text: showAudit(result), exitCode: result.ok ? 0 : 1 }
}

export const prepaidAdjust: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'prepaid-fee adjust', {
    workspace: need(values, 'workspace'),
    amount: need(values, 'amount'),
  })
  return { result, text: `${String(result['workspace'])}: ${String(result['balance'])} USD` }
}

export const prepaidShow: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'prepaid-fee show', {
    workspace: need(values, 'workspace'),
  })
  const said = (field: string) => String(result[field])
  const account = `${said('balance')} USD (${said('status')}), ${said('reserved')} USD reserved`
  return {
    result,
    text: `${said('workspace')}: ${account}; ${said('tier')}, ${said('volume_30d')} USD in 30 days`,
  }
}

/** Lists unfinished operations, with the reason why each is waiting. */
export const waiting: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'waiting', {
    state: values['state'],
    network: values['network'],
    workspace: values['workspace'],
  })
  return { result, text: waitingLines(result) }
}

export const suspenseList: Run = async ({ home }) => {
  const result = (await callPlatform(home, 'suspense list', {})) as {
    suspense: Record<string, unknown>[]
  }
  return { result: { ...result }, text: showSuspense(result.suspense) }
}

export const suspenseAssign: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'suspense assign', { id: need(values, 'id') })
  return {
    result,
    text: `${String(result['amount'])} ${String(result['asset'])} credited to wallet ${String(result['wallet_id'])}`,
  }
}

export const suspenseAdopt: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'suspense adopt', {
    asset: need(values, 'asset'),
    address: need(values, 'address'),
    amount: need(values, 'amount'),
    txid: values['txid'],
  })
  const [id, amount, asset, workspace] = ['id', 'amount', 'asset', 'workspace'].map((name) =>
    String(result[name]),
  )
  return {
    result,
    text: `${amount} ${asset} was recorded as the deposit ${id} of ${workspace}; it is credited when it is final and screened`,
  }
}
