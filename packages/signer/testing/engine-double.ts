import {
  engines,
  ThresholdError,
  type Curve,
  type InMessage,
  type KeyMaterial,
  type Session,
  type SignResult,
  type Step,
} from '@custody/threshold'
import { createHash } from 'node:crypto'
import { SIGN_ROUNDS } from '../src/sessions/batch.ts'
import type { Engine } from '../src/sessions/engine.ts'
import { WholeKeys } from './whole-keys.ts'

/**
 * An engine for tests of what nodes permit, record and send. Its runs have the rounds of the real
 * engine and reject messages of other sessions. Its shares contain the whole key, with which each
 * side signs at the end. The real engine is tested in `threshold`, `sessions`, `keys`, the attacks
 * and the end-to-end tests.
 */
export const engineDouble: Engine = {
  startKeygen: ({ curve, keyId, sessionId, party }) => {
    const secret = digest('key', sessionId)
    const { publicKey, chainCode } = wholeKeys(secret).keys[curve]
    return new Run(KEY_ROUNDS[curve], others(party, [1, 2, 3]), digest(curve, keyId, sessionId), {
      engine: engines[curve].id,
      engineVersion: engines[curve].version,
      curve,
      keyId,
      epoch: 0,
      party,
      publicKey,
      chainCode,
      sealedShare: secret,
    })
  },
  startRefresh: ({ key, sessionId }) => {
    const subject = digest(key.keyId, String(key.epoch), sessionId)
    const rounds = KEY_ROUNDS[key.curve]
    return new Run<KeyMaterial>(rounds, others(key.party, [1, 2, 3]), subject, {
      ...key,
      epoch: key.epoch + 1,
    })
  },
  startSign: ({ key, sessionId, participants, path, message }) => {
    const subject = digest(
      JSON.stringify([key.keyId, key.epoch, participants, path]),
      sessionId,
      message,
    )
    const sign = (): SignResult => wholeKeys(key.sealedShare).sign(key.curve, message, path)
    return new Run(SIGN_ROUNDS[key.curve], others(key.party, participants), subject, sign)
  },
}

/** Rounds of the real engine's runs. */
const KEY_ROUNDS: Record<Curve, number> = { secp256k1: 6, ed25519: 4 }

const digest = (...parts: (string | Uint8Array)[]): Uint8Array => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}:`).update(part)
  return new Uint8Array(hash.digest())
}
const others = (party: number, participants: readonly number[]): number[] =>
  participants.filter((each) => each !== party)

const cache = new Map<string, WholeKeys>()
function wholeKeys(secret: Uint8Array): WholeKeys {
  const name = Buffer.from(secret).toString('hex')
  const keys = cache.get(name) ?? new WholeKeys(secret)
  cache.set(name, keys)
  return keys
}

/** One party's side: it sends a hash of the session in each round and expects those of the others. */
class Run<R extends object> implements Session<R> {
  readonly #rounds: number
  readonly #from: readonly number[]
  readonly #subject: Uint8Array
  readonly #result: R | (() => R)
  #round = 0
  #isEnded = false

  constructor(rounds: number, from: readonly number[], subject: Uint8Array, result: R | (() => R)) {
    this.#rounds = rounds
    this.#from = from
    this.#subject = subject
    this.#result = result
  }

  async step(inbox: InMessage[]): Promise<Step<R>> {
    try {
      if (this.#isEnded) throw new ThresholdError('BAD_ARGUMENT', 'the session has ended')
      if (this.#round > 0) this.#check(inbox)
      this.#round++
      if (this.#round <= this.#rounds) {
        const payload = this.#payload(this.#round)
        return { kind: 'send', round: this.#round, messages: [{ to: 0, payload }] }
      }
      this.#isEnded = true
      const result = typeof this.#result === 'function' ? this.#result() : this.#result
      return { kind: 'done', result, messages: [] }
    } catch (error) {
      this.abort()
      throw error
    }
  }

  abort(): void {
    this.#isEnded = true
  }

  #payload = (round: number): Uint8Array => digest(this.#subject, String(round))

  #check(inbox: readonly InMessage[]): void {
    const expected = Buffer.from(this.#payload(this.#round))
    for (const from of this.#from) {
      const messages = inbox.filter((message) => message.from === from)
      if (messages.length !== 1 || !expected.equals(messages[0]!.payload))
        throw new ThresholdError('MALFORMED', 'message of another session, key or digest', from)
    }
    if (inbox.length !== this.#from.length)
      throw new ThresholdError('MALFORMED', 'message of a party that does not take part')
  }
}
