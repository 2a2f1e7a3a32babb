/** The two signature schemes. */
export type Curve = 'secp256k1' | 'ed25519'

/** The protocol library of a key. It is stored in every share. */
export type EngineId = 'dkls23-secp256k1' | 'frost-ed25519'

/** `to`: party number 1..3, or 0 for the same payload to every other participant. */
export interface OutMessage {
  to: number
  /**
   * At most 1 MiB. It is not signed, which is the transport's task. Only messages of key generation
   * and refresh to a single party are encrypted.
   */
  payload: Uint8Array
}

/** `from`: the party number that the transport has authenticated. */
export interface InMessage {
  from: number
  payload: Uint8Array
}

export type Step<R> =
  | { kind: 'send'; round: number; messages: OutMessage[] }
  | { kind: 'done'; result: R; messages: OutMessage[] }

export interface StepOptions {
  /**
   * Whether the step runs below the priority of other steps (Linux only), so that it does not delay
   * signatures. Default: no.
   */
  isBackground?: boolean
}

/**
 * One party's side of one protocol run. Its state exists only in native memory, is used once and is
 * never serialized: a crash ends the session, and a new one needs a new session id.
 *
 * The first call is `step([])`. Each further call takes all messages of one round, exactly one from
 * each other participant, in any order. The work runs outside of the event loop.
 *
 * Any rejection ends the session; a further `step` is rejected with BAD_ARGUMENT.
 */
export interface Session<R> {
  /**
   * Runs one round with the received messages.
   * @throws {ThresholdError}
   */
  step(inbox: InMessage[], options?: StepOptions): Promise<Step<R>>
  /** Erases the secrets of the run. A step in progress is rejected with ABORT when it ends. */
  abort(): void
}

/** Values that a sealed share is bound to. Opening it with other values fails. */
export interface ShareMeta {
  engine: EngineId
  curve: Curve
  /** 1 to 256 bytes in UTF-8. */
  keyId: string
  /** 0 after key generation, incremented by each refresh. */
  epoch: number
  /** Party number: 1, 2 or 3. */
  party: number
}

/** One party's part of a key. Everything except `sealedShare` is public. */
export interface KeyMaterial extends ShareMeta {
  engineVersion: string
  /** secp256k1: 33 bytes, compressed. Ed25519: 32 bytes. */
  publicKey: Uint8Array
  /** 32 bytes, equal at all parties; no party can choose it alone. */
  chainCode: Uint8Array
  /** Opaque; about 105 kB on secp256k1, under 1 kB on Ed25519. */
  sealedShare: Uint8Array
}

export interface SignResult {
  /** 64 bytes. secp256k1: r ‖ s, big-endian, s in the lower half. Ed25519: R ‖ S (RFC 8032). */
  signature: Uint8Array
  /** secp256k1: 0..3, determined by trial recovery. Ed25519: null. */
  recoveryId: number | null
}
