/**
 * Data keys wrapped by a key that is kept elsewhere. docs/production/keys.md says how each provider
 * is set up.
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
/** A new key within a token, for the command that sets one up. Loaded only there. */
export const makeTokenKey: typeof import('./providers/pkcs11.ts').makeTokenKey = async (...given) =>
  (await import('./providers/pkcs11.ts')).makeTokenKey(...given)
