import { existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { makeRecoveryPair, readRecoveryHalf } from '../../backup/sealed.ts'
import { restoreBackup, verifyBackup } from '../../backup/restore.ts'
import { takeBackup } from '../../backup/take.ts'
import { readVariable } from '../../settings/settings.ts'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'
import { need, type Run, type Values } from './typed.ts'

/** Progress goes beside the answer, which may be JSON. */
const tell = (line: string): void => { process.stderr.write(`${line}\n`) }

const surroundings = () => ({
  network: readVariable('CUSTODY_NETWORK'), databaseUrl: readVariable('DATABASE_URL') ?? null,
  secretsKey: readVariable('CUSTODY_SECRETS_KEY') ?? null, askNode: callSigner, tell,
})

/** Half of the platform's recovery key; null where secrets are left out on purpose. */
function recovery(values: Values, half: 'secret' | 'public', option: string): string | null {
  if (values['without-secrets'] === true) return null
  if (typeof values[option] !== 'string') throw new OperatorError(`--${option} is needed, or --without-secrets`)
  return readRecoveryHalf(resolve(values[option]), half, option)
}

export const recoveryKey: Run = ({ values }) => {
  const file = resolve(need(values, 'out'))
  for (const path of [file, `${file}.pub`]) if (existsSync(path)) throw new OperatorError(`${path} exists already; name another file`)
  const pair = makeRecoveryPair()
  writeFileSync(file, `${pair.secret}\n`, { mode: 0o600, flag: 'wx' })
  writeFileSync(`${file}.pub`, `${pair.public}\n`, { mode: 0o644, flag: 'wx' })
  return {
    result: { secret: file, public: `${file}.pub` },
    text: `recovery secret: ${file} (take it offline, in other hands than the backups)\nrecovery key:    ${file}.pub`,
  }
}

export const backup: Run = async ({ home, values }) => {
  const out = resolve(need(values, 'out'))
  const { manifest, bytes } = await takeBackup({
    ...surroundings(), home, out, walArchive: readVariable('CUSTODY_WAL_ARCHIVE') ?? null,
    recoveryKey: recovery(values, 'public', 'recovery-key'), withNodes: values['without-nodes'] !== true, clock: () => new Date(),
  })
  const { files, folders: _, ...told } = manifest
  return { result: { out, ...told, files: files.length, bytes }, text: `backup: ${out}` }
}

const NODE_SECRET = /^([123])=(.+)$/

function nodeSecretsOf(values: Values): Map<number, string> {
  const given = values['node-secrets']
  if (typeof given !== 'string') return new Map()
  return new Map(given.split(',').map((part) => {
    const [, node, file] = NODE_SECRET.exec(part) ?? []
    if (!node || !file) throw new OperatorError(`--node-secrets: "${part}" is not NODE=FILE`)
    if (!existsSync(file)) throw new OperatorError(`--node-secrets: there is no file ${file}`)
    return [Number(node), resolve(file)] as const
  }))
}

export const restore: Run = async ({ home, values }) => {
  const from = resolve(need(values, 'in'))
  if (values['verify'] === true) {
    const { files, folders: _, ...told } = await verifyBackup(from)
    return { result: { ok: true, ...told, files: files.length }, text: `${from}: whole, ${files.length} files, made ${told.made_at}` }
  }
  const until = typeof values['until'] === 'string' ? values['until'] : null
  const wal = typeof values['wal'] === 'string' ? resolve(values['wal']) : null
  if (until !== null && wal === null) throw new OperatorError('--until needs --wal: the archived log')
  if (until !== null && !/^\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:\d{2})$/.test(until)) {
    throw new OperatorError('--until: must be a time such as 2026-01-31T12:00:00Z')
  }
  const nodeSecrets = nodeSecretsOf(values)
  const { files, folders: _, ...told } = await restoreBackup({
    ...surroundings(), home, from, recoverySecret: recovery(values, 'secret', 'recovery-secret'), nodeSecrets, wal, until,
    archive: readVariable('CUSTODY_WAL_ARCHIVE') ?? null,
  })
  const next = [
    ...(nodeSecrets.size > 0 ? [] : [
      'signer nodes that were lost are restored by their operators, each on its own host: npx custody signer restore',
    ]),
    'start the platform: npm start', 'adopt what the nodes know and the database lacks: npx custody reconcile',
    'compare with the chains: npx custody audit',
  ]
  return {
    result: { home, restored: true, ...told, files: files.length, next },
    text: ['restored. Next:', ...next.map((line, at) => `${at + 1}. ${line}`)].join('\n'),
  }
}
