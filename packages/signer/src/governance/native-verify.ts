import {
  isSignedByKey,
  parseSpki,
  statementBytes,
  type PersonKey,
  type Proof,
  type Statement,
} from '@custody/policy'
import { createPublicKey, verify, type KeyObject } from 'node:crypto'

/** Maximum number of keys that are stored after they were parsed, the oldest first. */
const KEYS_MAX = 4_096
const keys = new Map<string, KeyObject>()

/**
 * Returns the parsed key. `parseSpki` accepts only points whose signatures have one meaning for every
 * implementation, which `createPublicKey` does not check.
 * @throws PolicyError `KEY`
 */
function keyObjectOf({ alg, spki }: Pick<PersonKey, 'alg' | 'spki'>): KeyObject {
  const name = `${alg} ${spki}`
  const existing = keys.get(name)
  if (existing) return existing
  parseSpki(alg, spki, 'key')
  const key = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' })
  const [oldest] = keys.keys()
  if (keys.size >= KEYS_MAX && oldest !== undefined) keys.delete(oldest)
  keys.set(name, key)
  return key
}

/**
 * Returns whether a person's key has signed a statement. This accepts exactly what `isSignedByKey`
 * accepts, and verifies with OpenSSL first, which needs a fraction of the time. What OpenSSL refuses
 * is verified by `isSignedByKey`, because OpenSSL is stricter: it refuses an Ed25519 signature whose
 * R is the neutral element. `isSignedByKey` verifies passkeys too.
 * @throws PolicyError `KEY` if the key is not valid
 */
export const isSignedNatively = (key: PersonKey, statement: Statement, proof: Proof): boolean =>
  isAcceptedByOpenSsl(key, statement, proof) || isSignedByKey(key, statement, proof)

function isAcceptedByOpenSsl(key: PersonKey, statement: Statement, { signature }: Proof): boolean {
  if (key.kind !== 'key' || signature === undefined) return false
  const keyObject = keyObjectOf(key)
  const raw = Buffer.from(signature, 'base64')
  if (raw.length !== 64 || raw.toString('base64') !== signature) return false
  const bytes = statementBytes(statement)
  return key.alg === 'Ed25519'
    ? verify(null, bytes, keyObject, raw)
    : verify('sha256', bytes, { key: keyObject, dsaEncoding: 'ieee-p1363' }, raw)
}
