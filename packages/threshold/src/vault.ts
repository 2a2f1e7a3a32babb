import { fromNative, ThresholdError } from './errors.ts'
import { addon } from './native.ts'
import type { NativeVault } from './native.ts'
import type { ShareMeta } from './types.ts'

export type VaultOptions =
  | { kind: 'file'; path: string }
  | { kind: 'passphrase'; passphrase: string; salt: Uint8Array }

const natives = new WeakMap<Vault, NativeVault>()

/**
 * Holds a key-encryption key inside native memory. It opens shares for sessions and seals what they
 * give back: AES-256-GCM with a fresh data key per share, itself encrypted under the key-encryption
 * key, bound to {@link ShareMeta}.
 */
export class Vault {
  private constructor() {}

  /**
   * - `file`: 32 random bytes, readable by their owner alone (mode 600 is checked).
   * - `passphrase`: argon2id, 64 MiB, three passes (RFC 9106). At least 12 bytes, salt at least 16.
   *   Takes about 0.2 s. A wrong passphrase is noticed when the first share does not open.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  static async open(options: VaultOptions): Promise<Vault> {
    try {
      const native =
        options.kind === 'file'
          ? await addon.openVaultFile(options.path)
          : await addon.openVaultPassphrase(options.passphrase, options.salt)
      const vault = new Vault()
      natives.set(vault, native)
      return vault
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Writes a new key file with mode 600. Never replaces one.
   * @throws {ThresholdError} SEALED
   */
  static async createKeyFile(path: string): Promise<void> {
    try {
      await addon.createKeyFile(path)
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Encrypts a share to an offline recovery key (X25519, 32 bytes). It is the whole share: with the
   * backup of a second party or its live node it signs. This vault cannot read it back.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  async sealBackup(sealedShare: Uint8Array, meta: ShareMeta, recoveryPublicKey: Uint8Array): Promise<Uint8Array> {
    try {
      return await nativeVault(this).sealBackup(sealedShare, meta, recoveryPublicKey)
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Opens a backup with the recovery secret key and seals the share under this vault. `meta` must be
   * that of the backup. The caller should overwrite `recoverySecretKey` afterwards.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  async restoreBackup(backup: Uint8Array, recoverySecretKey: Uint8Array, meta: ShareMeta): Promise<Uint8Array> {
    try {
      return await nativeVault(this).restoreBackup(backup, recoverySecretKey, meta)
    } catch (error) {
      throw fromNative(error)
    }
  }
}

export function nativeVault(vault: Vault): NativeVault {
  const native = natives.get(vault)
  if (!native) throw new ThresholdError('BAD_ARGUMENT', 'not an open vault')
  return native
}
