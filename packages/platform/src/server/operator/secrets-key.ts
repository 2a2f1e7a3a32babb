import { reasonOf } from '@custody/chains/reason'
import { readKek } from '@custody/key-encryption'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { reseal } from '../app/reseal.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../core/database/embedded.ts'
import { openDatabase } from '../../core/database/pool.ts'
import { ownerUrl } from '../../core/settings/settings.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { assertRestored } from '../../core/data-dir.ts'
import { Secrets, secretsFile, secretsKeyStatus, wrapSecretsKey } from '../../core/secrets.ts'
import { OperatorError } from './command.ts'
import { need, type Run } from './cli/typed.ts'

const fileOf = (home: string): string =>
  secretsFile(process.env['CUSTODY_SECRETS_KEY'] ?? null) ?? join(home, 'secrets.key')

/**
 * Encrypts the file of the secrets key with another key-encryption key, or for the first time with
 * one; the platform may be running.
 */
export const wrap: Run = async ({ home, values }) => {
  const setting = process.env['CUSTODY_SECRETS_KEY']
  if (setting && secretsFile(setting) === null) {
    throw new OperatorError(
      'CUSTODY_SECRETS_KEY contains the key itself: write its 32 bytes into secrets.key in the home, unset the variable, then wrap the key',
    )
  }
  const { provider, kek_id, kek_version } = await wrapSecretsKey(
    fileOf(home),
    readKek('--kek', need(values, 'kek')),
    process.env,
  )
  return {
    result: { provider, kek_id, kek_version },
    text: `${fileOf(home)}: wrapped by ${kek_id}, version ${kek_version}`,
  }
}

export const status: Run = ({ home }) => {
  const match = secretsKeyStatus(fileOf(home))
  const text =
    match.provider === 'none'
      ? 'the secrets key is not wrapped; "secrets-key wrap" encrypts it with the key of a provider'
      : `wrapped by ${match.kek_id}, version ${match.kek_version}`
  return { result: { ...match }, text }
}

/**
 * Returns the new key from a file: 32 bytes, their base64 (as in CUSTODY_SECRETS_KEY), or wrapped
 * by a key-encryption provider.
 */
async function newKeyOf(file: string, home: string): Promise<Secrets> {
  if (!existsSync(file)) throw new OperatorError(`--new-key: the file ${file} does not exist`)
  const text = readFileSync(file, 'utf8').trim()
  const setting = /^[A-Za-z0-9+/]{43}=$/.test(text) ? text : `@${file}`
  try {
    return await Secrets.open(home, setting, systemEnvironment())
  } catch (error) {
    throw new OperatorError(`--new-key: ${file}: ${reasonOf(error)}`)
  }
}

/**
 * Encrypts all secrets in the database with another key. No process of the platform may be running.
 * The key files are not changed.
 */
export const change: Run = async ({ home, values }) => {
  const file = resolve(need(values, 'new-key'))
  const current = process.env['CUSTODY_SECRETS_KEY'] ?? null
  if (current === null && !existsSync(join(home, 'secrets.key'))) {
    throw new OperatorError(
      'the current key is required: set CUSTODY_SECRETS_KEY, or CUSTODY_HOME to the home that contains secrets.key',
    )
  }
  const [from, to] = [
    await Secrets.open(home, current, systemEnvironment()),
    await newKeyOf(file, home),
  ]
  // Only the owner of the tables may change sealed secrets in tables whose rows are only added.
  const url = ownerUrl()
  if (url === null) assertRestored(home)
  const server = url !== null ? null : await startEmbeddedPostgres(home)
  const database = openDatabase(url ?? (server as EmbeddedPostgres).ownerUrl, { max: 1 })
  try {
    const sealed = await reseal(database, from, to)
    const count = Object.values(sealed).reduce((sum, each) => sum + each, 0)
    const place =
      current === null
        ? `replace ${join(home, 'secrets.key')} by this file`
        : 'set CUSTODY_SECRETS_KEY to this key on every host'
    return {
      result: { changed: true, sealed },
      text: `${count} secrets are encrypted with the key in ${file}: ${place}, then start the platform`,
    }
  } finally {
    await database.close()
    if (server && !server.adopted) await server.stop()
  }
}
