import { randomBytes, timingSafeEqual } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { DATA_KEY_BYTES } from './binding.ts'
import { KekError } from './errors.ts'
import { openKek } from './open.ts'
import { kekSchema, type KekSettings } from './settings.ts'
import type { Binding, KeyEncryption, Surroundings } from './types.ts'

/** Maximum number of keys in a file, which interrupted rotations do not reach. */
const KEYS_MAX = 16
const NAME_BYTES = 8

const entrySchema = z.strictObject({
  /** 16 hex digits, by which encrypted data names its key. */
  name: z.string().regex(/^[0-9a-f]{16}$/),
  made_at: z.string(),
  /**
   * Settings of the provider that unwraps the key. They may be edited if only the access to the
   * provider changes (its address, a file of credentials).
   */
  kek: kekSchema,
  kek_id: z.string(),
  kek_version: z.string(),
  wrapped: z.string().max(8192),
})
const fileSchema = z.strictObject({
  version: z.literal(1),
  keys: z.array(entrySchema).min(1).max(KEYS_MAX),
})

/** One wrapped data key of a data folder. */
export type KeyEntry = z.infer<typeof entrySchema>
/**
 * The wrapped data keys of a data folder: the first one encrypts, all of them decrypt. Nothing in
 * the file is secret.
 */
export type KeyFile = z.infer<typeof fileSchema>
/** An unwrapped data key. Overwrite it after use. */
export interface DataKey {
  name: string
  key: Uint8Array
}

/**
 * Parses a key file.
 * @throws {KekError} SETTING if the text is not a key file
 */
export function parseKeyFile(text: string, path: string): KeyFile {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new KekError('SETTING', `${path} is not JSON`)
  }
  const parsed = fileSchema.safeParse(value)
  if (!parsed.success) {
    throw new KekError(
      'SETTING',
      `${path} is not a file of wrapped keys: ${z.prettifyError(parsed.error).split('\n', 1)[0]}`,
    )
  }
  return parsed.data
}

export const readKeyFile = (path: string): KeyFile => parseKeyFile(readFileSync(path, 'utf8'), path)

/** Replaces a file atomically; durable when it returns. */
export function writeDurably(path: string, bytes: string | Uint8Array): void {
  const draft = `${path}.draft`
  writeFileSync(draft, bytes, { mode: 0o600, flush: true })
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

export function writeKeyFile(path: string, file: KeyFile): void {
  writeDurably(path, `${JSON.stringify(fileSchema.parse(file), null, 2)}\n`)
}

/**
 * Returns the settings with the generated values that a new key needs: the salt of a passphrase.
 */
function completed(settings: KekSettings): KekSettings {
  return settings.kind === 'passphrase' && !settings.salt
    ? { ...settings, salt: randomBytes(16).toString('hex') }
    : settings
}

/**
 * Wraps a data key, and unwraps it again as a test, because otherwise a service that permits only
 * encryption would be noticed at the next start.
 * @param key the data key; a new one if left out
 * @throws {KekError}
 */
export async function makeEntry(
  settings: KekSettings,
  surroundings: Surroundings,
  bindingOf: (name: string) => Binding,
  key: Uint8Array = randomBytes(DATA_KEY_BYTES),
): Promise<KeyEntry> {
  const kek = completed(settings)
  if (kek.kind === 'file') (await import('./providers/file.ts')).makeKeyFile(kek, surroundings)
  const provider = await openKek(kek, surroundings)
  const name = randomBytes(NAME_BYTES).toString('hex')
  const wrapped = await provider.wrap(key, bindingOf(name))
  const opened = await provider.unwrap(wrapped, bindingOf(name))
  const isSame = timingSafeEqual(opened, key)
  opened.fill(0)
  if (!isSame)
    throw new KekError('REFUSED', `${provider.id}: decrypts to another key than it wrapped`)
  const at = new Date((surroundings.now ?? Date.now)()).toISOString()
  return {
    name,
    made_at: at,
    kek,
    kek_id: wrapped.kek_id,
    kek_version: wrapped.kek_version,
    wrapped: wrapped.text,
  }
}

/**
 * Unwraps all data keys of a file, the one that encrypts first.
 * @throws {KekError}
 */
export async function openKeys(
  file: KeyFile,
  surroundings: Surroundings,
  bindingOf: (name: string) => Binding,
): Promise<DataKey[]> {
  const providers = new Map<string, KeyEncryption>()
  const opened: DataKey[] = []
  for (const { name, kek, kek_id: id, kek_version: version, wrapped } of file.keys) {
    const settings = JSON.stringify(kek)
    const provider = providers.get(settings) ?? (await openKek(kek, surroundings))
    providers.set(settings, provider)
    opened.push({
      name,
      key: await provider.unwrap(
        { kek_id: id, kek_version: version, text: wrapped },
        bindingOf(name),
      ),
    })
  }
  return opened
}
