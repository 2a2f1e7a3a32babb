/**
 * Keys in three shares: generate, sign, refresh. Two of three parties sign, and no process ever has
 * the whole key. The README names the engines and the parts that were not audited.
 */
import { addon } from './native.ts'
import type { Curve, EngineId } from './types.ts'

export { derivePublicKey } from './derive.ts'
export { ThresholdError } from './errors.ts'
export type { ThresholdErrorCode } from './errors.ts'
export { hardenProcess } from './harden.ts'
export type { Hardening } from './harden.ts'
export { startKeygen, startRefresh, startSign } from './sessions.ts'
export type { KeygenOptions, RefreshOptions, SignOptions } from './sessions.ts'
export type {
  Curve,
  EngineId,
  InMessage,
  KeyMaterial,
  OutMessage,
  Session,
  ShareMeta,
  SignResult,
  Step,
  StepOptions,
} from './types.ts'
export { sealedUnder, Vault } from './vault.ts'
export type { VaultOptions } from './vault.ts'

/**
 * The engine of each curve. `version`: version of its library, and of the shares that it creates.
 * `versions`: versions whose shares can be opened.
 */
export const engines = Object.fromEntries(
  addon
    .engines()
    .map(([curve, id, ...versions]) => [curve, { id, version: versions[0], versions }]),
) as Record<Curve, { id: EngineId; version: string; versions: string[] }>
