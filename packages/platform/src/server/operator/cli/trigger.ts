import { callPlatform } from '../connect.ts'
import type { Run } from './typed.ts'

interface Sent {
  webhook: string
  workspace: string
  sub_account: string
  url: string
  status: number | null
  error: string | null
  duration_ms: number
}

export const triggerRun: Run = async ({ home, words, values }) => {
  const result = await callPlatform(home, 'trigger', {
    event: words[0],
    webhooks: values['webhook'] ?? null,
    workspace: values['workspace'] ?? null,
  })
  const sent = result['sent'] as Sent[]
  const lines = sent.map(
    ({ webhook, workspace, sub_account: subAccount, url, status, error, duration_ms: ms }) =>
      `${webhook}  ${workspace}/${subAccount}  ${url}  → ${error ?? status} (${ms} ms)`,
  )
  return {
    result,
    text: [
      `${String(result['event'])} ${String(result['id'])} was sent, marked as a test`,
      ...lines,
      ...(result['listened'] === true ? ['the running listener receives it'] : []),
    ],
    exitCode: sent.every(({ error }) => error === null) ? 0 : 1,
  }
}
