import {
  KekError,
  makeEntry,
  openKeys,
  parseKeyFile,
  readKeyFile,
  readSecret,
  writeKeyFile,
  type Binding,
  type KekSettings,
  type KeyFile,
  type Surroundings,
} from '@custody/key-encryption'
import { Vault } from '@custody/threshold'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHex } from '../canonical.ts'
import { ConfigError, type ConfigFile } from '../config.ts'

/**
 * The home's keys, each wrapped by a key that is kept elsewhere. Its presence counts, whatever
 * config.json says.
 */
export const keyFileOf = (home: string): string => join(home, 'keys.json')

/** A wrapped key opens for its own node, network and name alone. */
export const bindingOf =
  ({ node, mode }: Pick<ConfigFile, 'node' | 'mode'>) =>
  (name: string): Binding => ({
    purpose: 'custody/signer/home-key',
    node: String(node),
    mode,
    name,
  })

export const kekContextOf = (home: string, env: NodeJS.ProcessEnv): Surroundings => ({
  folder: home,
  env,
  passphraseFile: env['CUSTODY_SIGNER_PASSPHRASE_FILE'],
})

/** @throws ConfigError where real coins would hang on a file beside them */
export function assertAllowed(mode: string, { kind }: { kind: string }): void {
  if (mode !== 'local' && kind === 'file') {
    throw new ConfigError(
      'A plain-file key-encryption key is allowed with mode local only; use a passphrase, pkcs11, vault, aws-kms or gcp-kms',
    )
  }
}

/**
 * A new home's key, under the given provider. One that is there already stays.
 * @throws ConfigError where it is another provider's
 */
export async function createDataDirKey(
  home: string,
  node: Pick<ConfigFile, 'node' | 'mode'>,
  settings: KekSettings,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  assertAllowed(node.mode, settings)
  const path = keyFileOf(home)
  if (existsSync(path)) {
    const { kek } = readKeyFile(path).keys[0]!
    if (kek.kind === settings.kind) return
    throw new ConfigError(
      `--kek: the keys of ${home} are already wrapped by ${kek.kind}; kek.ts rotate moves them to ${settings.kind}`,
    )
  }
  writeKeyFile(path, {
    version: 1,
    keys: [await makeEntry(settings, kekContextOf(home, env), bindingOf(node))],
  })
}

/** The vault of a home without keys of its own: the key-encryption key seals the shares itself. */
async function openEarlier(
  home: string,
  { kek }: Pick<ConfigFile, 'kek'>,
  env: NodeJS.ProcessEnv,
): Promise<Vault | null> {
  if (kek.kind === 'wrapped') return null
  if (kek.kind === 'file') return Vault.open({ kind: 'file', path: join(home, kek.path) })
  const file = env['CUSTODY_SIGNER_PASSPHRASE_FILE']
  if (!file) {
    throw new ConfigError(
      'This node requires its passphrase: set CUSTODY_SIGNER_PASSPHRASE_FILE to a file or descriptor (such as /dev/fd/3)',
    )
  }
  const passphrase = readSecret(file)
    .toString('utf8')
    .replace(/\r?\n$/, '')
  return Vault.open({ kind: 'passphrase', passphrase, salt: fromHex(kek.salt) })
}

/**
 * What config.json and keys.json say, as text: whoever opened a home by it compares it before he
 * relies on it.
 */
export const keysAsWritten = (home: string): string | null =>
  existsSync(keyFileOf(home)) ? readFileSync(keyFileOf(home), 'utf8') : null

/**
 * The vault of a home. Its keys are unwrapped now, and never again while the vault is there:
 * whoever wraps them may be away from then on.
 * @throws KekError, ConfigError, ThresholdError
 */
export async function openDataDir(
  home: string,
  config: Pick<ConfigFile, 'kek' | 'node' | 'mode'>,
  env: NodeJS.ProcessEnv,
): Promise<Vault> {
  const text = keysAsWritten(home)
  if (text === null) {
    const vault = await openEarlier(home, config, env)
    if (!vault)
      throw new KekError(
        'SETTING',
        `${keyFileOf(home)} is missing: without it, the keys in this home cannot be decrypted`,
      )
    return vault
  }
  const file: KeyFile = parseKeyFile(text, keyFileOf(home))
  for (const { kek } of file.keys) assertAllowed(config.mode, kek)
  const earlier = await openEarlier(home, config, env)
  const keys = await openKeys(file, kekContextOf(home, env), bindingOf(config))
  try {
    return await Vault.open({ kind: 'keys', keys, ...(earlier ? { earlier } : {}) })
  } finally {
    for (const { key } of keys) key.fill(0)
  }
}
