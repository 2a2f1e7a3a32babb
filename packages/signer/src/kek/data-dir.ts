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
import { type NetworkMode, hasRealCoins } from '@custody/chains/mode'
import { Vault } from '@custody/threshold'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHex } from '../canonical.ts'
import { ConfigError, type ConfigFile } from '../config.ts'

/**
 * Returns the file with the data folder's keys, each wrapped by a key that is stored elsewhere. If
 * the file exists it takes precedence over config.json.
 */
export const keyFileOf = (home: string): string => join(home, 'keys.json')

/**
 * Returns the context of a wrapped key: it can only be unwrapped for its own node, network and
 * name.
 */
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

/**
 * Checks that the provider is allowed in this mode.
 * @throws ConfigError if real coins would depend on a key file in the same place
 */
export function assertAllowed(mode: NetworkMode, { kind }: { kind: string }): void {
  if (kind === 'file' && hasRealCoins(mode)) {
    throw new ConfigError(
      'A plain-file key-encryption key is not allowed with mode mainnet; use a passphrase, pkcs11, vault, aws-kms or gcp-kms',
    )
  }
}

/**
 * Creates the key of a new data folder with the given provider. An existing key is not replaced.
 * @throws ConfigError if the existing key is of another provider
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

/**
 * Opens the vault of a data folder from an earlier version without keys of its own, in which the
 * key-encryption key encrypts the shares itself.
 */
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
 * Returns the text of config.json and keys.json, by which a caller can check that they have not
 * changed since it opened the data folder.
 */
export const keysAsWritten = (home: string): string | null =>
  existsSync(keyFileOf(home)) ? readFileSync(keyFileOf(home), 'utf8') : null

/**
 * Opens the vault of a data folder. Its keys are unwrapped once, now, so the provider may be
 * unavailable afterwards.
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
