import { readKek } from '@custody/key-encryption'
import { join } from 'node:path'
import { secretsFile, secretsKeyStatus, wrapSecretsKey } from '../secrets.ts'
import { OperatorError } from './command.ts'
import { need, type Run } from './cli/typed.ts'

const fileOf = (home: string): string => secretsFile(process.env['CUSTODY_SECRETS_KEY'] ?? null) ?? join(home, 'secrets.key')

/** The file of the secrets key under another key-encryption key, or for the first time under one; the platform may run. */
export const wrap: Run = async ({ home, values }) => {
  const setting = process.env['CUSTODY_SECRETS_KEY']
  if (setting && secretsFile(setting) === null) {
    throw new OperatorError(
      'CUSTODY_SECRETS_KEY holds the key itself: write its 32 bytes into secrets.key of the home and unset it, then wrap that'
    )
  }
  const { provider, kek_id, kek_version } = await wrapSecretsKey(fileOf(home), readKek('--kek', need(values, 'kek')), process.env)
  return { result: { provider, kek_id, kek_version }, text: `${fileOf(home)}: wrapped by ${kek_id}, version ${kek_version}` }
}

export const status: Run = ({ home }) => {
  const found = secretsKeyStatus(fileOf(home))
  const text = found.provider === 'none' ? 'in the clear: secrets-key wrap puts it under a provider'
    : `wrapped by ${found.kek_id}, version ${found.kek_version}`
  return { result: { ...found }, text }
}
