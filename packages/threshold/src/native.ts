import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import type { InMessage, OutMessage, ShareMeta } from './types.ts'

/** The addon's interface, as declared in Rust (`native/src/lib.rs`). */
export interface NativeVault {
  sealBackup(
    sealed: Uint8Array,
    meta: ShareMeta,
    recoveryPublicKey: Uint8Array,
  ): Promise<Uint8Array>
  restoreBackup(
    backup: Uint8Array,
    recoverySecretKey: Uint8Array,
    meta: ShareMeta,
  ): Promise<Uint8Array>
  rewrap(sealed: Uint8Array, meta: ShareMeta): Promise<Uint8Array>
}

interface NativeKey {
  engine: string
  engineVersion: string
  curve: string
  keyId: string
  epoch: number
  party: number
  publicKey: Uint8Array
  chainCode: Uint8Array
  sealedShare: Uint8Array
}

export interface NativeStep {
  round: number
  messages: OutMessage[]
  key?: NativeKey
  signature?: { signature: Uint8Array; recoveryId?: number }
}

export interface NativeSession {
  step(inbox: InMessage[], background: boolean): Promise<NativeStep>
  abort(): void
}

interface Addon {
  hardenProcess(): { attaching: string; coreDumps: string }
  openVaultFile(path: string): Promise<NativeVault>
  openVaultPassphrase(passphrase: string, salt: Uint8Array): Promise<NativeVault>
  openVaultKeys(keys: { name: Uint8Array; key: Uint8Array }[], earlier?: NativeVault): NativeVault
  createKeyFile(path: string): Promise<void>
  startKeygen(
    vault: NativeVault,
    curve: string,
    keyId: string,
    sessionId: Uint8Array,
    party: number,
  ): NativeSession
  startSign(
    vault: NativeVault,
    key: NativeKey,
    sessionId: Uint8Array,
    participants: number[],
    path: number[],
    message: Uint8Array,
  ): NativeSession
  startRefresh(vault: NativeVault, key: NativeKey, sessionId: Uint8Array): NativeSession
  derivePublicKey(
    curve: string,
    publicKey: Uint8Array,
    chainCode: Uint8Array,
    path: number[],
  ): Uint8Array
  /** Returns curve, name and versions of each engine. */
  engines(): [curve: string, engine: string, ...versions: string[]][]
}

function load(): Addon {
  const path = fileURLToPath(new URL('../native/threshold.node', import.meta.url))
  if (!existsSync(path)) {
    throw new Error(
      'The signing engines are not built: run `npm run compile` (needs Rust, https://rustup.rs)',
    )
  }
  return createRequire(import.meta.url)(path) as Addon
}

export const addon = load()
