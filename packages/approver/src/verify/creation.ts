import { parseSpki, PolicyError, type KeyAlgorithm } from '@custody/policy'
import { createHash } from 'node:crypto'
import { ApproverError } from '../errors.ts'
import { fingerprintOf } from './document.ts'
import type { CreatedView } from '../views.ts'

/** What the browser returns of a new passkey. Binary fields are base64url without padding. */
export interface Creation {
  /** ID of the key in the document, which the person has chosen. */
  id: string
  credential: string
  /** DER SubjectPublicKeyInfo. */
  spki: string
  /** COSE identifier. */
  algorithm: number
  client_data: string
  authenticator_data: string
}

const ALGORITHMS: ReadonlyMap<number, KeyAlgorithm> = new Map([
  [-7, 'ES256'],
  [-8, 'Ed25519'],
])
/** COSE identifier of RSASSA-PKCS1-v1_5 with SHA-256, the only one of some Windows Hello devices. */
const RS256 = -257
const FLAGS_AT = 32
const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const BACKUP_ELIGIBLE = 0x08

const bad = (message: string): never => {
  throw new ApproverError('PASSKEY', message)
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')

function assertClientData(text: string, challenge: string, origin: string): void {
  let data: { type?: unknown; challenge?: unknown; origin?: unknown }
  try {
    data = JSON.parse(bytesOf(text).toString('utf8')) as typeof data
  } catch {
    return bad('the browser returned client data that is not JSON')
  }
  if (data?.type !== 'webauthn.create' || data.challenge !== challenge || data.origin !== origin)
    bad('the passkey was created for another page or challenge')
}

/**
 * Checks a new passkey, and returns it as the list `keys` of a person in a policy document contains
 * it. It is not attested: the authenticator's statement about synchronization is its own.
 * @throws ApproverError `PASSKEY`
 */
export function keyOfCreation(
  creation: Creation,
  { challenge, origin, rpId }: { challenge: string; origin: string; rpId: string },
): CreatedView {
  const { id, credential, algorithm } = creation
  if (!/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(id))
    bad('the ID of the key must be 1 to 64 of a-z, 0-9, ".", "_", "-"')
  assertClientData(creation.client_data, challenge, origin)
  const data = bytesOf(creation.authenticator_data)
  const flags = data[FLAGS_AT] ?? 0
  if (!data.subarray(0, FLAGS_AT).equals(createHash('sha256').update(rpId).digest()))
    bad(`the passkey is for another domain than ${rpId}`)
  if ((flags & USER_PRESENT) === 0 || (flags & USER_VERIFIED) === 0)
    bad('the authenticator did not verify the person by PIN or biometrics: choose another one')
  const alg =
    ALGORITHMS.get(algorithm) ??
    bad(
      algorithm === RS256
        ? 'the passkey has RS256, and approvals need ES256 or Ed25519: delete it on the device, and use a phone, a security key or another computer'
        : `the passkey has the COSE algorithm ${algorithm}, and approvals need ES256 (-7) or Ed25519 (-8): use another authenticator`,
    )
  const spki = bytesOf(creation.spki).toString('base64')
  try {
    parseSpki(alg, spki, 'spki')
  } catch (error) {
    if (error instanceof PolicyError) bad(error.message)
    throw error
  }
  const key = {
    id,
    kind: 'passkey',
    alg,
    spki,
    credential,
    rp_id: rpId,
    origins: [origin],
    device_bound: (flags & BACKUP_ELIGIBLE) === 0,
  }
  return { key: JSON.stringify(key, null, 2), fingerprint: fingerprintOf(spki) }
}
