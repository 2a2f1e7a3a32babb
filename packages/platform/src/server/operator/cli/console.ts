import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { verifyLog } from '../../../console-api/people/audit-chain.ts'
import type { AuditLogsReport } from '../../../console-api/people/verify-audit-logs.ts'
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

/** Returns the ends of the logs that an earlier verification printed as JSON. */
function earlierHeads(file: string): unknown {
  if (!existsSync(file)) throw new OperatorError(`--heads: the file ${file} does not exist`)
  const last = readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? ''
  try {
    return (JSON.parse(last) as { heads?: unknown }).heads ?? null
  } catch {
    throw new OperatorError(`--heads: ${file} is not the JSON output of an earlier verification`)
  }
}

/** Verifies the logs of all workspaces, in the database of the running platform. */
const verifyDatabase: Run = async ({ home, values }) => {
  if (values['head'] !== undefined)
    throw new OperatorError('--head: is only for an exported FILE; use --heads for the database')
  const file = values['heads']
  const report = (await callPlatform(
    home,
    'audit-log verify',
    typeof file === 'string' ? { heads: earlierHeads(resolve(file)) } : {},
  )) as unknown as AuditLogsReport
  const { entries, heads, broken } = report
  return {
    result: { ...report },
    text: [
      ...broken.map(({ workspace, seq, reason }) => `BROKEN ${workspace}, entry ${seq}: ${reason}`),
      broken.length === 0
        ? `${entries} entries of ${heads.length} workspaces: no entry was changed, removed or moved`
        : `the audit logs of ${broken.length} of ${heads.length + broken.length} workspaces are broken: export them, and compare the entries with the log lines that have their hashes`,
    ],
    exitCode: broken.length === 0 ? 0 : 1,
  }
}

export const verify: Run = (input) =>
  input.words[0] === undefined ? verifyDatabase(input) : verifyExport(input)

/** Verifies an export offline, from the file alone. */
const verifyExport: Run = async ({ words, values }) => {
  if (values['heads'] !== undefined)
    throw new OperatorError('--heads: is only for the logs in the database; use --head with a FILE')
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
