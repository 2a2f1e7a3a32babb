import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'

import { derivePublicKey, startKeygen, startRefresh, startSign, Vault } from '../src/index.ts'
import type { Curve, InMessage, KeyMaterial, Session, SignResult } from '../src/index.ts'

export const PAIRS: readonly [number, number][] = [
  [1, 2],
  [1, 3],
  [2, 3],
]
export const PARTIES = [1, 2, 3] as const

/** One message in transit. A tamperer may return any number of messages in its place. */
export interface Envelope {
  from: number
  to: number
  /** Rounds count from 1. */
  round: number
  payload: Uint8Array
}
export type Tamper = (envelope: Envelope) => InMessage[]

export interface Outcome<R> {
  results: Map<number, R>
  errors: Map<number, unknown>
}

/** Carries messages between the parties until all are done or one has failed. */
export async function carry<R>(
  sessions: Map<number, Session<R>>,
  tamper?: Tamper,
): Promise<Outcome<R>> {
  const outcome: Outcome<R> = { results: new Map(), errors: new Map() }
  let inboxes = new Map<number, InMessage[]>([...sessions.keys()].map((party) => [party, []]))
  for (let round = 1; ; round += 1) {
    const next = new Map<number, InMessage[]>([...sessions.keys()].map((party) => [party, []]))
    await Promise.all(
      [...sessions].map(async ([from, session]) => {
        try {
          const step = await session.step(inboxes.get(from) ?? [])
          if (step.kind === 'done') outcome.results.set(from, step.result)
          for (const message of step.messages) {
            for (const [to, inbox] of next) {
              if (to === from || (message.to !== 0 && message.to !== to)) continue
              const envelope = { from, to, round, payload: message.payload }
              inbox.push(...(tamper ? tamper(envelope) : [{ from, payload: message.payload }]))
            }
          }
        } catch (error) {
          outcome.errors.set(from, error)
        }
      }),
    )
    if (outcome.errors.size > 0 || outcome.results.size === sessions.size) {
      for (const session of sessions.values()) session.abort()
      return outcome
    }
    inboxes = next
  }
}

export async function complete<R>(sessions: Map<number, Session<R>>): Promise<Map<number, R>> {
  const { results, errors } = await carry(sessions)
  for (const error of errors.values()) throw error
  return results
}

export type Keys = Map<number, KeyMaterial>
export type Vaults = Map<number, Vault>

export function sessionId(): Uint8Array {
  return new Uint8Array(randomBytes(32))
}

/** Creates three vaults with a key file each; the folder is removed when the process ends. */
export async function openVaults(): Promise<Vaults> {
  const folder = mkdtempSync(join(tmpdir(), 'threshold-test-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const vaults: Vaults = new Map()
  for (const party of PARTIES) {
    const path = join(folder, `party-${party}`)
    await Vault.createKeyFile(path)
    vaults.set(party, await Vault.open({ kind: 'file', path }))
  }
  return vaults
}

function of<T>(map: Map<number, T>, party: number): T {
  const value = map.get(party)
  if (value === undefined) throw new Error(`nothing for party ${party}`)
  return value
}

export function keygenSessions(
  vaults: Vaults,
  curve: Curve,
  keyId = 'key',
): Map<number, Session<KeyMaterial>> {
  const id = sessionId()
  return new Map(
    PARTIES.map((party) => [
      party,
      startKeygen({ vault: of(vaults, party), curve, keyId, sessionId: id, party }),
    ]),
  )
}

export function refreshSessions(vaults: Vaults, keys: Keys): Map<number, Session<KeyMaterial>> {
  const id = sessionId()
  return new Map(
    PARTIES.map((party) => [
      party,
      startRefresh({ vault: of(vaults, party), key: of(keys, party), sessionId: id }),
    ]),
  )
}

export function signSessions(
  vaults: Vaults,
  keys: Keys,
  pair: readonly [number, number],
  path: number[],
  message: Uint8Array,
): Map<number, Session<SignResult>> {
  const id = sessionId()
  return new Map(
    pair.map((party) => [
      party,
      startSign({
        vault: of(vaults, party),
        key: of(keys, party),
        sessionId: id,
        participants: [pair[0], pair[1]],
        path,
        message,
      }),
    ]),
  )
}

/** Returns the verdict of noble, which shares no code with the engines. */
export function isValid(
  curve: Curve,
  key: KeyMaterial,
  path: number[],
  message: Uint8Array,
  result: SignResult,
): boolean {
  const child = derivePublicKey(curve, key.publicKey, key.chainCode, path)
  if (curve === 'ed25519')
    return result.recoveryId === null && ed25519.verify(result.signature, message, child)
  if (!secp256k1.verify(result.signature, message, child, { prehash: false, lowS: true }))
    return false
  const signature = secp256k1.Signature.fromBytes(result.signature, 'compact').addRecoveryBit(
    result.recoveryId ?? -1,
  )
  return Buffer.from(signature.recoverPublicKey(message).toBytes(true)).equals(child)
}

/** Signs with a pair; both parties must return the same signature, and noble must accept it. */
export async function signAndCheck(
  vaults: Vaults,
  keys: Keys,
  pair: readonly [number, number],
  path: number[],
  message: Uint8Array,
): Promise<SignResult> {
  const results = await complete(signSessions(vaults, keys, pair, path, message))
  const [first, second] = [of(results, pair[0]), of(results, pair[1])]
  if (
    !Buffer.from(first.signature).equals(second.signature) ||
    first.recoveryId !== second.recoveryId
  ) {
    throw new Error('the two signers hold different signatures')
  }
  const key = of(keys, pair[0])
  if (!isValid(key.curve, key, path, message, first)) throw new Error('noble refuses the signature')
  return first
}

// The layout of a frame in native/src/frame.rs: header 39 bytes, checksum 16, body.
const HEADER = 39
const BODY = 55

/**
 * Returns a hash of parts of any length, as `frame.rs` and the crate's `tagged_hash` compute it.
 */
export function hash(tag: string, ...parts: Uint8Array[]): Buffer {
  const digest = createHash('sha256')
  for (const part of [Buffer.from(tag), ...parts]) {
    const length = Buffer.alloc(8)
    length.writeBigUInt64BE(BigInt(part.length))
    digest.update(length).update(part)
  }
  return digest.digest()
}

/**
 * Returns a message that a cheating party could send: any header and body, with a valid checksum.
 */
export function forge(
  payload: Uint8Array,
  change: (header: Buffer, body: Buffer) => Uint8Array | void,
): Uint8Array {
  const header = Buffer.from(payload.subarray(0, HEADER))
  const body = Buffer.from(payload.subarray(BODY))
  const changed = change(header, body) ?? body
  const check = hash('custody/threshold/frame/v1', header, changed).subarray(0, BODY - HEADER)
  return new Uint8Array(Buffer.concat([header, check, changed]))
}
