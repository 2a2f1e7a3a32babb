import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'
import {
  canonicalText,
  checkDocument,
  documentHash,
  statementBytes,
  type PolicyDocument,
  type Statement,
} from '@custody/policy'

/** People of the simulated workspace. Frank owns the API key that requests its transfers. */
export const ADMINS = ['alice', 'bob', 'carol'] as const
export const TREASURY = ['dan', 'erin', 'frank', 'gina'] as const
export const REQUESTER = 'frank'

/** Returns the private key of a name. It is the same for each seed. */
function privateKeyOf(name: string): KeyObject {
  const secret = createHash('sha256').update(`policy key of ${name}`).digest()
  return createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret]),
    format: 'der',
    type: 'pkcs8',
  })
}

const keys = new Map<string, { privateKey: KeyObject; spki: string }>()
/** Returns the key pair of a name, such as `dan/k1`. */
function keyPairOf(name: string): { privateKey: KeyObject; spki: string } {
  const existing = keys.get(name)
  if (existing) return existing
  const privateKey = privateKeyOf(name)
  const spki = createPublicKey(privateKey)
    .export({ type: 'spki', format: 'der' })
    .toString('base64')
  keys.set(name, { privateKey, spki })
  return { privateKey, spki }
}

/** Returns a person's entry in a document. */
export const personOf = (id: string, key: string, apiKeys: readonly string[] = []) => ({
  id,
  name: id,
  api_keys: [...apiKeys],
  keys: [{ id: key, kind: 'key', alg: 'Ed25519', spki: keyPairOf(`${id}/${key}`).spki }],
})

/**
 * Returns the signature of a statement in base64.
 * @param signer name of the key that signs, such as `dan/k1`
 */
export function signatureOf(signer: string, statement: Statement): string {
  const bytes = statementBytes(statement)
  return sign(null, bytes, keyPairOf(signer).privateKey).toString('base64')
}

/** Returns a signed statement as JSON text. */
export const signedBy = (signer: string, statement: Statement): string =>
  JSON.stringify({ statement, signature: signatureOf(signer, statement) })

/** A document with its hash and texts. */
export interface WrittenDocument {
  document: PolicyDocument
  hash: string
  text: string
}

/** Checks and writes a document. */
export function written(value: unknown): WrittenDocument {
  const document = checkDocument(value)
  return { document, hash: documentHash(document), text: canonicalText(document) }
}

/** Returns the fields that each statement of a workspace has. */
export const placeOf = ({ mode, workspace, nodes }: PolicyDocument) => ({
  v: 1 as const,
  mode,
  workspace,
  nodes,
})

/** Returns a proof of possession of each key of a document. */
export const possessionsOf = ({ document, hash }: WrittenDocument): string[] =>
  document.people.flatMap(({ id: by, keys: held }) =>
    held.map(({ id: key }) =>
      signedBy(`${by}/${key}`, {
        kind: 'possession',
        ...placeOf(document),
        by,
        key,
        policy: { number: document.number, hash },
      }),
    ),
  )
