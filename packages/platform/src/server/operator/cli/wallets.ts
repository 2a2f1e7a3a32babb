import { existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { OperatorError } from '../command.ts'
import { callPlatform } from '../connect.ts'
import { linesOr, need, type Run } from './typed.ts'

function walletLine(wallet: Record<string, unknown>): string {
  const owner = `${String(wallet['workspace'])} / ${String(wallet['sub_account'])}`
  return [wallet['id'], owner, wallet['asset'], wallet['status']].map(String).join('  ')
}

export const walletSet: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'wallet set', {
    id: values['id'],
    workspace: values['workspace'],
    sub_account: values['sub-account'],
    asset: values['asset'],
    status: need(values, 'status'),
    reason: values['reason'],
  })
  return { result, text: `${walletLine(result)}${result['changed'] ? '' : ' already'}` }
}

export const writeOff: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'write-off', {
    id: values['id'],
    workspace: values['workspace'],
    sub_account: values['sub-account'],
    asset: values['asset'],
    comment: need(values, 'comment'),
  })
  return {
    result,
    text: `${String(result['written_off'])} ${String(result['asset'])} of ${String(result['workspace'])} / ${String(result['sub_account'])} are written off. The coins are missing: pay them in`,
  }
}

export const walletList: Run = async ({ home, values }) => {
  const result = (await callPlatform(home, 'wallet list', { workspace: values['workspace'] })) as {
    wallets: Record<string, unknown>[]
  }
  return { result: { ...result }, text: linesOr(result.wallets.map(walletLine), 'no wallets') }
}

const sweep =
  (action: 'set' | 'show'): Run =>
  async ({ home, values }) => {
    const result = await callPlatform(home, `sweep ${action}`, {
      network: values['network'],
      asset: values['asset'],
      cost_multiple: values['cost-multiple'],
      min_amount: values['min-amount'],
    })
    const { assets, waiting } = result as {
      assets: Record<string, string>[]
      waiting: Record<string, string>[]
    }
    return {
      result,
      text: [
        ...assets.map(
          (each) =>
            `${each['asset']}: more than ${each['cost_multiple']} times the network fee, at least ${each['min_amount']}`,
        ),
        ...waiting.map(
          (each) => `${each['asset']} ${each['address']}: ${each['amount']} ${each['reason']}`,
        ),
      ],
    }
  }
export const sweepSet = sweep('set')
export const sweepShow = sweep('show')

export const amlRelease: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'aml release', {
    transaction: need(values, 'transaction'),
  })
  const done = result['again'] ? 'was already released' : 'is released'
  return {
    result,
    text: `${String(result['transaction'])} ${done}; its known senders are still screened`,
  }
}

export const statement: Run = async ({ home, values }) => {
  const file = resolve(need(values, 'out'))
  if (existsSync(file))
    throw new OperatorError(`--out: ${file} already exists; choose another file`)
  const { text, ...result } = (await callPlatform(home, 'statement', {
    workspace: need(values, 'workspace'),
    sub_account: values['sub-account'],
    asset: values['asset'],
    account: values['account'],
    from: values['from'],
    to: values['to'],
  })) as { text: string; asset: string | null; account: string; accounts: number }
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
  // The header and the opening and closing balance of each account are no movements.
  const movements = text.trimEnd().split('\r\n').length - 1 - 2 * result.accounts
  const kind = result.account.replace('_', ' ')
  const owners =
    result.asset === null ? `${result.accounts} ${kind}s` : `the ${result.asset} ${kind}`
  return {
    result: { ...result, file, movements },
    text: `${movements} movements of ${owners} written to ${file}`,
  }
}
