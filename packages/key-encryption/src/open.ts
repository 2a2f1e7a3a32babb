import { KekError } from './errors.ts'
import type { KekSettings } from './settings.ts'
import type { KeyEncryption, Surroundings } from './types.ts'

/**
 * Opens the provider that the settings name. Its code is loaded on demand, so that a node loads
 * only the provider that it uses.
 * @throws {KekError}
 */
export async function openKek(
  settings: KekSettings,
  surroundings: Surroundings,
): Promise<KeyEncryption> {
  switch (settings.kind) {
    case 'file':
      return (await import('./providers/file.ts')).openFile(settings, surroundings)
    case 'passphrase':
      return (await import('./providers/passphrase.ts')).openPassphrase(settings, surroundings)
    case 'pkcs11':
      return (await import('./providers/pkcs11.ts')).openToken(settings, surroundings)
    case 'vault':
      return (await import('./providers/vault.ts')).openVault(settings, surroundings)
    case 'aws-kms':
      return (await import('./providers/aws-kms.ts')).openAws(settings, surroundings)
    case 'gcp-kms':
      return (await import('./providers/gcp-kms.ts')).openGcp(settings, surroundings)
    default:
      throw new KekError('SETTING', 'this provider does not exist')
  }
}
