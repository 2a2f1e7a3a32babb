/**
 * Context of a data key: purpose, node, name … It can only be unwrapped with the same context.
 * Public, and sent to the service.
 */
export type Binding = Readonly<Record<string, string>>

/** A wrapped data key. Every field is public. */
export interface Wrapped {
  /** Key that wrapped it, as named by its provider. */
  kek_id: string
  /** Version of that key: a number, an ID in a token, or a check value. */
  kek_version: string
  text: string
}

/** A key-encryption key of a provider. Used at starts and rotations only. */
export interface KeyEncryption {
  readonly id: string
  /**
   * Wraps a data key.
   * @param dataKey 32 bytes
   * @throws {KekError}
   */
  wrap(dataKey: Uint8Array, binding: Binding): Promise<Wrapped>
  /**
   * Unwraps a data key.
   * @returns 32 bytes, which the caller should overwrite
   * @throws {KekError}
   */
  unwrap(wrapped: Wrapped, binding: Binding): Promise<Uint8Array>
}

/** Environment of a provider. */
export interface Surroundings {
  /** Folder to which relative paths of settings refer. */
  folder: string
  env: NodeJS.ProcessEnv
  /** File or descriptor of the passphrase, if its setting does not name one. */
  passphraseFile?: string | undefined
  /** Returns milliseconds since the Unix epoch. */
  now?: () => number
  /** Time limit of one call, in milliseconds; 10,000 if left out. */
  timeoutMs?: number
}
