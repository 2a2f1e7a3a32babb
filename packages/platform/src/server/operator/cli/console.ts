import { createReadStream, existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { verifyLog } from '../../../console-api/people/audit-chain.ts'
import { OperatorError } from '../command.ts'
import { callPlatform } from '../connect.ts'
import { linesOr, need, type Run } from './typed.ts'

export const invite: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'console invite', {
    workspace: need(values, 'workspace'),
    role: need(values, 'role'),
    email: values['email'],
  })
  return {
    result,
    text: [String(result['link']), `(works once, until ${String(result['expires_at'])})`],
  }
}

export const reset: Run = async ({ home, values }) => {
  const result = await callPlatform(home, 'console reset', { email: need(values, 'email') })
  return {
    result,
    text: [
      String(result['link']),
      `(works once, until ${String(result['expires_at'])}; using it ends every session and removes the old sign-in factors)`,
    ],
  }
}

export const people: Run = async ({ home, values }) => {
  const result = (await callPlatform(home, 'console people', {
    workspace: values['workspace'],
  })) as { people: Record<string, unknown>[] }
  const lines = result.people.map((each) =>
    ['workspace', 'role', 'email', 'name'].map((name) => String(each[name])).join('  '),
  )
  return { result: { ...result }, text: linesOr(lines, 'nobody') }
}

export const exportLog: Run = async ({ home, values }) => {
  const { workspace, text } = (await callPlatform(home, 'audit-log export', {
    workspace: need(values, 'workspace'),
  })) as {
    workspace: string
    text: string
  }
  const file = resolve(need(values, 'out'))
  if (existsSync(file))
    throw new OperatorError(`--out: ${file} already exists; choose another file`)
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
  const { lines, hash } = await verifyLog(text.split('\n'))
  return {
    result: { workspace, file, lines, hash },
    text: [`${lines} lines written to ${file}`, `newest hash ${hash}`],
  }
}

/** Verifies an export offline, from the file alone. */
export const verifyExport: Run = async ({ words, values }) => {
  const file = resolve(words[0] as string)
  if (!existsSync(file)) throw new OperatorError(`FILE: the file ${file} does not exist`)
  const head = values['head']
  if (head !== undefined && (typeof head !== 'string' || !/^[0-9a-f]{64}$/.test(head))) {
    throw new OperatorError(
      '--head: must be the newest hash that an earlier export printed: 64 hexadecimal digits',
    )
  }
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Infinity })
  const result = await verifyLog(lines, head ?? null)
  return {
    result: { ...result },
    text: [
      `${result.lines} lines: no line was changed, removed or moved`,
      `newest hash ${result.hash}`,
    ],
  }
}
