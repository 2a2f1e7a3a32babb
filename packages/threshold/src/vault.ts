import { fromNative, ThresholdError } from './errors.ts'
import { addon } from './native.ts'
import type { NativeVault } from './native.ts'
import type { ShareMeta } from './types.ts'

export type VaultOptions =
  | { kind: 'file'; path: string }
  | { kind: 'passphrase'; passphrase: string; salt: Uint8Array }
  | { kind: 'keys'; keys: readonly { name: string; key: Uint8Array }[]; earlier?: Vault }

const natives = new WeakMap<Vault, NativeVault>()

/**
 * Stores a key-encryption key in native memory. It opens shares for sessions and seals the
 * resulting ones: AES-256-GCM with a random data key per share, which is encrypted with the
 * key-encryption key and bound to {@link ShareMeta}.
 */
export class Vault {
  private constructor() {}

  /**
   * Opens a vault.
   *
   * - `file`: 32 random bytes, readable only by the owner (mode 600 is checked).
   * - `passphrase`: argon2id, 64 MiB, three passes (RFC 9106). At least 12 bytes, salt at least 16.
   *   Takes about 0.2 s. A wrong passphrase is detected when the first share cannot be opened.
   * - `keys`: 32 bytes each, with names of 16 hex digits, which sealed shares contain. The first
   *   key seals, all of them open. `earlier`: a vault of the other kinds, for shares that were
   *   sealed before keys had names. The caller should overwrite the keys afterwards.
   *
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  static async open(options: VaultOptions): Promise<Vault> {
    try {
      const native = await openNative(options)
      const vault = new Vault()
      natives.set(vault, native)
      return vault
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Writes a new key file with mode 600. Never replaces an existing one.
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
   * Returns the same share, sealed under the vault's current key. It is opened temporarily in
   * native memory.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  async rewrap(sealedShare: Uint8Array, meta: ShareMeta): Promise<Uint8Array> {
    try {
      return await nativeVault(this).rewrap(sealedShare, meta)
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Encrypts a share to an offline recovery key (X25519, 32 bytes). The backup contains the whole
   * share: together with the backup or the live node of a second party it can sign. This vault
   * cannot decrypt it.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  async sealBackup(
    sealedShare: Uint8Array,
    meta: ShareMeta,
    recoveryPublicKey: Uint8Array,
  ): Promise<Uint8Array> {
    try {
      return await nativeVault(this).sealBackup(sealedShare, meta, recoveryPublicKey)
    } catch (error) {
      throw fromNative(error)
    }
  }

  /**
   * Decrypts a backup with the recovery secret key and seals the share under this vault. `meta`
   * must be that of the backup. The caller should overwrite `recoverySecretKey` afterwards.
   * @throws {ThresholdError} SEALED, BAD_ARGUMENT
   */
  async restoreBackup(
    backup: Uint8Array,
    recoverySecretKey: Uint8Array,
    meta: ShareMeta,
  ): Promise<Uint8Array> {
    try {
      return await nativeVault(this).restoreBackup(backup, recoverySecretKey, meta)
    } catch (error) {
      throw fromNative(error)
    }
  }
}

async function openNative(options: VaultOptions): Promise<NativeVault> {
  if (options.kind === 'file') return addon.openVaultFile(options.path)
  if (options.kind === 'passphrase')
    return addon.openVaultPassphrase(options.passphrase, options.salt)
  const keys = options.keys.map(({ name, key }) => ({
    name: new Uint8Array(Buffer.from(name, 'hex')),
    key,
  }))
  return addon.openVaultKeys(keys, options.earlier && nativeVault(options.earlier))
}

/**
 * Returns the name of the key that a share is sealed under; null if it was sealed before keys had
 * names; undefined if it is not a sealed share.
 */
export function sealedUnder(sealedShare: Uint8Array): string | null | undefined {
  const bytes = Buffer.from(sealedShare)
  const magic = bytes.toString('latin1', 0, 4)
  if (magic === 'TSS1') return null
  return magic === 'TSS2' && bytes.length > 12 ? bytes.toString('hex', 4, 12) : undefined
}

export function nativeVault(vault: Vault): NativeVault {
  const native = natives.get(vault)
  if (!native) throw new ThresholdError('BAD_ARGUMENT', 'not an open vault')
  return native
}
