/**
 * Data keys that are wrapped by a key-encryption key, which is stored elsewhere.
 * docs/production/keys.md describes the set-up of each provider.
 */
export { readSecret } from './credential.ts'
export { KekError, type KekErrorCode } from './errors.ts'
export {
  makeEntry,
  openKeys,
  parseKeyFile,
  readKeyFile,
  writeDurably,
  writeKeyFile,
  type DataKey,
  type KeyEntry,
  type KeyFile,
} from './key-file.ts'
export { openKek } from './open.ts'
export { readKek, type KekSettings } from './settings.ts'
export type { Binding, KeyEncryption, Surroundings, Wrapped } from './types.ts'
/** Creates a key in a token, for the command that sets one up. The module is loaded only then. */
export const makeTokenKey: typeof import('./providers/pkcs11.ts').makeTokenKey = async (...input) =>
  (await import('./providers/pkcs11.ts')).makeTokenKey(...input)
