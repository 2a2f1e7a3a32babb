import { hasLocalChains } from '@custody/chains/mode'
import { asInstalled, printNotice } from '@custody/chains/terminal'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeRecoveryFiles, readSignatureKey, readSigningKey } from '../../backup/key-files.ts'
import type { Manifest, Trust } from '../../backup/manifest.ts'
import { restoreBackup, trustOf, verifyBackup } from '../../backup/restore.ts'
import { readRecoveryHalf } from '../../backup/sealed.ts'
import { takeBackup } from '../../backup/take.ts'
import { ownerUrl, readVariable } from '../../../core/settings/settings.ts'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'
import { need, type Outcome, type Run, type Values } from './typed.ts'

/** Progress is printed to standard error, because the result on standard output may be JSON. */
const print = (line: string): void => printNotice(line)

const surroundings = () => ({
  network: readVariable('CUSTODY_NETWORK'),
  databaseUrl: readVariable('DATABASE_URL') ?? null,
  secretsKey: readVariable('CUSTODY_SECRETS_KEY') ?? null,
  askNode: callSigner,
  report: print,
})

/** Returns one half of the platform's recovery key; null if secrets are deliberately left out. */
function recovery(values: Values, half: 'secret' | 'public', option: string): string | null {
  if (values['without-secrets'] === true) return null
  if (typeof values[option] !== 'string')
    throw new OperatorError(`--${option} is required, or --without-secrets`)
  return readRecoveryHalf(resolve(values[option]), half, option)
}

const optional = (values: Values, option: string): string | null =>
  typeof values[option] === 'string' ? resolve(values[option]) : null

export const recoveryKey: Run = ({ values }) => {
  const file = resolve(need(values, 'out'))
  const from = optional(values, 'from')
  const existing = from === null ? null : readRecoveryHalf(from, 'secret', 'from')
  const paths = { secret: file, public: `${file}.pub`, signing: `${file}.sign` }
  for (const [name, path] of Object.entries(paths)) {
    if (existing !== null && name === 'secret') continue
    if (existsSync(path)) throw new OperatorError(`${path} already exists; choose another file`)
  }
  const made = makeRecoveryFiles(existing)
  if (existing === null) writeFileSync(paths.secret, made.secret, { mode: 0o600, flag: 'wx' })
  writeFileSync(paths.public, made.public, { flag: 'wx' })
  chmodSync(paths.public, 0o644)
  writeFileSync(paths.signing, made.signing, { mode: 0o600, flag: 'wx' })
  const secret = from ?? paths.secret
  return {
    result: { ...paths, secret },
    text: [
      `recovery secret: ${secret} (keep it offline; people with access to the backups must not have it)`,
      `recovery key:    ${paths.public}`,
      `signing key:     ${paths.signing} (secret: keep it on the platform's host, unreadable for anyone who can write to the backups)`,
    ],
  }
}

export const backup: Run = async ({ home, values }) => {
  const out = resolve(need(values, 'out'))
  const { manifest, manifestSha256, bytes } = await takeBackup({
    ...surroundings(),
    home,
    out,
    walArchive: readVariable('CUSTODY_WAL_ARCHIVE') ?? null,
    recoveryKey: recovery(values, 'public', 'recovery-key'),
    signingKey: readSigningKey(optional(values, 'signing-key'), optional(values, 'recovery-key')),
    withNodes: values['without-nodes'] !== true,
    clock: () => new Date(),
  })
  const { files, folders: _, ...reported } = manifest
  return {
    result: { out, ...reported, files: files.length, bytes, manifest_sha256: manifestSha256 },
    text: [
      `backup: ${out}`,
      `manifest SHA-256: ${manifestSha256}`,
      ...(hasLocalChains(manifest.network) && readVariable('CUSTODY_LOCAL_CHAINS') === undefined
        ? [
            `the backup does not contain the local chains: copy ${join(home, 'devnet')} while the platform is stopped`,
          ]
        : []),
    ],
  }
}

/**
 * Returns the values that the operator passed to verify a backup: the public half of the recovery
 * key, or the hash of the manifest.
 */
function trustIn(values: Values): Trust {
  const hash =
    typeof values['manifest-sha256'] === 'string' ? values['manifest-sha256'].toLowerCase() : null
  if (hash !== null && !/^[0-9a-f]{64}$/.test(hash)) {
    throw new OperatorError(
      '--manifest-sha256: must be 64 hexadecimal digits, as "backup" printed it',
    )
  }
  const file = optional(values, 'recovery-key')
  return {
    manifestSha256: hash,
    signatureKey: file === null ? null : readSignatureKey(file, 'recovery-key'),
  }
}

/**
 * Exit code of `restore --verify` for an undamaged backup that was not proved to come from this
 * platform.
 */
const UNPROVED = 2

async function verify(from: string, values: Values): Promise<Outcome> {
  const secret = optional(values, 'recovery-secret')
  const trust = trustOf(
    trustIn(values),
    secret === null ? null : readRecoveryHalf(secret, 'secret', 'recovery-secret'),
  )
  const { manifest, proof } = await verifyBackup(from, trust)
  const { files, folders: _, ...reported }: Manifest = manifest
  const what = `${files.length} files, made ${reported.made_at}`
  const text =
    proof === null
      ? `${from}: undamaged, but its authenticity is not proved: ${what}. Anyone who can write to the folder can have changed it. ` +
        'Give --recovery-key, --recovery-secret or --manifest-sha256 to prove it'
      : `${from}: authentic, ${proof === 'hash' ? 'the manifest has the given hash' : 'signed by the recovery key'}; undamaged, ${what}`
  return {
    result: {
      ok: true,
      authentic: proof !== null,
      proof: proof ?? 'none',
      ...reported,
      files: files.length,
    },
    text,
    exitCode: proof === null ? UNPROVED : 0,
  }
}

const NODE_SECRET = /^([123])=(.+)$/

function nodeSecretsOf(values: Values): Map<number, string> {
  const input = values['node-secrets']
  if (typeof input !== 'string') return new Map()
  return new Map(
    input.split(',').map((part) => {
      const [, node, file] = NODE_SECRET.exec(part) ?? []
      if (!node || !file)
        throw new OperatorError(
          `--node-secrets: "${part}" must be NODE=FILE with NODE 1, 2 or 3, such as 1=recovery-1`,
        )
      if (!existsSync(file))
        throw new OperatorError(`--node-secrets: the file ${file} does not exist`)
      return [Number(node), resolve(file)] as const
    }),
  )
}

export const restore: Run = async ({ home, values }) => {
  const from = resolve(need(values, 'in'))
  if (values['verify'] === true) return verify(from, values)
  const until = typeof values['until'] === 'string' ? values['until'] : null
  const wal = typeof values['wal'] === 'string' ? resolve(values['wal']) : null
  if (until !== null && wal === null)
    throw new OperatorError('--until: requires --wal, the folder of the archived WAL')
  if (until !== null && !/^\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:\d{2})$/.test(until)) {
    throw new OperatorError('--until: must be a time such as 2026-01-31T12:00:00Z')
  }
  const nodeSecrets = nodeSecretsOf(values)
  const {
    files,
    folders: _,
    ...reported
  } = await restoreBackup({
    ...surroundings(),
    // The role that restores the tables becomes their owner.
    databaseUrl: ownerUrl(),
    home,
    from,
    recoverySecret: recovery(values, 'secret', 'recovery-secret'),
    trust: trustIn(values),
    nodeSecrets,
    wal,
    until,
    archive: readVariable('CUSTODY_WAL_ARCHIVE') ?? null,
  })
  const next = [
    ...(hasLocalChains(reported.network) && readVariable('CUSTODY_LOCAL_CHAINS') === undefined
      ? [
          `restore the local chains: the backup does not contain them, so copy the folder devnet of the lost home to ${join(home, 'devnet')}. ` +
            'Without it the platform starts on new, empty chains, and the audit shows every balance as a deficit',
        ]
      : []),
    ...(nodeSecrets.size > 0
      ? []
      : [
          'signer nodes that were lost are restored by their operators, each on its own host: npx custody signer restore',
        ]),
    'start the platform: npm start',
    'add the transactions that the signer nodes recorded and the database lacks: npx custody reconcile',
    'compare the ledger with the chains: npx custody audit',
  ].map(asInstalled)
  return {
    result: { home, restored: true, ...reported, files: files.length, next },
    text: ['restored. Next:', ...next.map((line, at) => `${at + 1}. ${line}`)],
  }
}
