/**
 * Where a data key belongs: purpose, node, name … It opens under the same words alone. Public, and
 * shown to the service.
 */
export type Binding = Readonly<Record<string, string>>

/** A data key as only the key-encryption key opens it. Every field is public. */
export interface Wrapped {
  /** Which key wrapped it, as its provider names it. */
  kek_id: string
  /** Which version of that key: a number, an id in a token, a check value. */
  kek_version: string
  text: string
}

/** A key-encryption key that is kept somewhere. Asked at starts and rotations only. */
export interface KeyEncryption {
  readonly id: string
  /** @param dataKey 32 bytes. @throws {KekError} */
  wrap(dataKey: Uint8Array, binding: Binding): Promise<Wrapped>
  /** @returns 32 bytes, which the caller should overwrite. @throws {KekError} */
  unwrap(wrapped: Wrapped, binding: Binding): Promise<Uint8Array>
}

/** What a provider finds around it. */
export interface Surroundings {
  /** Paths of settings that are not absolute are below this folder. */
  folder: string
  env: NodeJS.ProcessEnv
  /** Where a passphrase is, if its setting does not say: a file or descriptor. */
  passphraseFile?: string | undefined
  /** Milliseconds since the Unix epoch. */
  now?: () => number
  /** How long one call may take, in milliseconds; 10,000 if left out. */
  timeoutMs?: number
}
