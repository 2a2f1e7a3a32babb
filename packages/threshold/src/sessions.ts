import { checkedPath, derivePublicKey } from './derive.ts'
import { fromNative, ThresholdError } from './errors.ts'
import { addon } from './native.ts'
import type { NativeSession, NativeStep } from './native.ts'
import type {
  Curve,
  InMessage,
  KeyMaterial,
  Session,
  SignResult,
  Step,
  StepOptions,
} from './types.ts'
import { nativeVault } from './vault.ts'
import type { Vault } from './vault.ts'
import { verifySignature } from './verify.ts'

function checkParties(parties: readonly number[]): void {
  if (!parties.every((party) => [1, 2, 3].includes(party))) {
    throw new ThresholdError('BAD_ARGUMENT', 'a party must be 1, 2 or 3')
  }
}

/**
 * Checks party and epoch. The addon converts numbers modulo 2^32, so invalid ones are rejected
 * before the call.
 */
function checkKey({ party, epoch }: KeyMaterial): void {
  checkParties([party])
  if (!Number.isInteger(epoch) || epoch < 0 || epoch > 0xffffffff) {
    throw new ThresholdError('BAD_ARGUMENT', 'an epoch must be an integer of at least 0')
  }
}

class NativeBackedSession<R> implements Session<R> {
  readonly #native: NativeSession
  readonly #finish: (step: NativeStep) => R | undefined
  #aborted = false
  #busy = false

  constructor(start: () => NativeSession, finish: (step: NativeStep) => R | undefined) {
    this.#finish = finish
    try {
      this.#native = start()
    } catch (error) {
      throw fromNative(error)
    }
  }

  async step(inbox: InMessage[], { isBackground = false }: StepOptions = {}): Promise<Step<R>> {
    const overlaps = this.#busy
    this.#busy = true
    try {
      if (overlaps) throw new ThresholdError('BAD_ARGUMENT', 'steps must not overlap')
      for (const { from } of inbox) {
        if (![1, 2, 3].includes(from))
          throw new ThresholdError('MALFORMED', `party ${from} does not take part`)
      }
      const step = await this.#native.step(inbox, isBackground)
      // The native half may have finished the step just before the abort. Its result is then
      // discarded.
      if (this.#aborted) throw new ThresholdError('ABORT', 'the session was aborted')
      const result = this.#finish(step)
      if (result === undefined) return { kind: 'send', round: step.round, messages: step.messages }
      return { kind: 'done', result, messages: step.messages }
    } catch (error) {
      // Also for errors that did not reach the addon, such as an argument of a wrong type.
      this.abort()
      throw fromNative(error)
    } finally {
      if (!overlaps) this.#busy = false
    }
  }

  abort(): void {
    this.#aborted = true
    this.#native.abort()
  }
}

export interface KeygenOptions {
  vault: Vault
  curve: Curve
  /** 1 to 256 bytes in UTF-8, equal at all parties. */
  keyId: string
  /** 32 bytes, derived from random bytes of all three parties, never used before. */
  sessionId: Uint8Array
  party: 1 | 2 | 3
}

/**
 * Generates a two-of-three key with epoch 0. All three parties participate. secp256k1: six rounds.
 * Ed25519: four. Every broadcast is echoed; messages to a single party are encrypted to it.
 * @throws {ThresholdError} BAD_ARGUMENT
 */
export function startKeygen(o: KeygenOptions): Session<KeyMaterial> {
  checkParties([o.party])
  const vault = nativeVault(o.vault)
  return new NativeBackedSession(
    () => addon.startKeygen(vault, o.curve, o.keyId, o.sessionId, o.party),
    (step) => step.key as KeyMaterial | undefined,
  )
}

export interface SignOptions {
  vault: Vault
  key: KeyMaterial
  /** 32 bytes, derived from random bytes of both participants, never used before. */
  sessionId: Uint8Array
  /** The two parties that sign, in any order; `key.party` is one of them. */
  participants: [number, number]
  /** Derivation indices 0..2^31-1, at most 32; empty for the key itself. */
  path: number[]
  /** secp256k1: the 32-byte digest. Ed25519: the whole message, at most 1 MiB. */
  message: Uint8Array
  /**
   * The caller verifies the signature before using it, with code that shares nothing with the
   * engine. The verification here is then skipped.
   */
  isVerifiedByCaller?: boolean
}

/**
 * Signs with two of three parties. secp256k1: three rounds. Ed25519: two. Both parties get the
 * signature. Before it is returned it is verified with a second implementation, unless the caller
 * declares that it does this itself.
 * @throws {ThresholdError} BAD_ARGUMENT
 */
export function startSign(o: SignOptions): Session<SignResult> {
  checkParties(o.participants)
  checkKey(o.key)
  const vault = nativeVault(o.vault)
  const message = Uint8Array.from(o.message)
  // Needed for the verification; it also rejects a path that the addon would read as another one.
  const publicKey =
    o.isVerifiedByCaller === true
      ? null
      : derivePublicKey(o.key.curve, o.key.publicKey, o.key.chainCode, o.path)
  if (!publicKey) checkedPath(o.path)
  return new NativeBackedSession(
    () => addon.startSign(vault, o.key, o.sessionId, o.participants, o.path, message),
    (step) => {
      if (!step.signature) return undefined
      const result: SignResult = {
        signature: step.signature.signature,
        recoveryId: step.signature.recoveryId ?? null,
      }
      if (publicKey && !verifySignature(o.key.curve, publicKey, message, result)) {
        throw new ThresholdError('ABORT', 'the finished signature does not verify')
      }
      return result
    },
  )
}

export interface RefreshOptions {
  vault: Vault
  key: KeyMaterial
  /** 32 bytes, derived from random bytes of all three parties, never used before. */
  sessionId: Uint8Array
}

/**
 * Creates new shares of the same key: same public key and chain code, epoch + 1. All three parties
 * participate. Old and new shares cannot be combined. The old ones remain valid among themselves:
 * keep them until all three have certified the new epoch, then delete them.
 * @throws {ThresholdError} BAD_ARGUMENT
 */
export function startRefresh(o: RefreshOptions): Session<KeyMaterial> {
  checkKey(o.key)
  const vault = nativeVault(o.vault)
  return new NativeBackedSession(
    () => addon.startRefresh(vault, o.key, o.sessionId),
    (step) => step.key as KeyMaterial | undefined,
  )
}
