import { loadRegistry, policyRegistry } from '@custody/chains'
import {
  compile,
  countQuorum,
  PolicyError,
  readSigned,
  statementBytes,
  verifyStatement,
  type Approvals,
  type Policy,
  type PolicyDocument,
  type SignedStatement,
  type Statement,
} from '@custody/policy'
import { sign } from 'node:crypto'
import { OperatorError } from '../command.ts'
import { need, type Values } from '../cli/typed.ts'
import { judged, readSigningKey, type SigningKey } from './files.ts'

/** Validity of an approval after its signature, in seconds: one day. */
export const APPROVAL_S = 86_400

export const nowS = (): number => Math.floor(Date.now() / 1000)

/** Returns the assets, networks and addresses that documents of a mode may name. */
export const registryOf = (mode: PolicyDocument['mode']) => policyRegistry(loadRegistry(mode))

/**
 * Compiles a document.
 * @param where option or argument that the error names
 * @throws OperatorError
 */
export const compiled = (document: PolicyDocument, where: string): Policy =>
  judged(where, () => compile(document, registryOf(document.mode)))

/** A person of a document, and the key with which they sign. */
export interface Signer extends SigningKey {
  person: string
  /** ID of the key in the document. */
  id: string
}

/**
 * Reads `--as` and `--key`.
 * @throws OperatorError if the document does not contain the person with this key
 */
export function signerOf({ people }: PolicyDocument, values: Values): Signer {
  const as = need(values, 'as')
  const key = readSigningKey(need(values, 'key'))
  const person = people.find(({ id }) => id === as)
  if (!person)
    throw new OperatorError(
      `--as: the document has no person ${as}; it has ${people.map(({ id }) => id).join(', ')}`,
    )
  const own = person.keys.find(({ kind, spki }) => kind === 'key' && spki === key.spki)
  if (!own)
    throw new OperatorError(
      `--key: the key in ${key.file} is not a key of ${as} in the document; its spki is ${key.spki}`,
    )
  return { ...key, person: as, id: own.id }
}

type Fields<T> = T extends unknown
  ? Omit<T, 'v' | 'mode' | 'workspace' | 'nodes' | 'by' | 'key'>
  : never

/**
 * Signs a statement for the place of a document.
 * @returns its JSON text
 */
export function signStatement(
  { mode, workspace, nodes }: PolicyDocument,
  { person, id, privateKey }: Signer,
  fields: Fields<Statement>,
): string {
  const common = { v: 1, mode, workspace, nodes, by: person, key: id }
  const statement = { ...common, ...fields } as Statement
  const bytes = statementBytes(statement)
  const signature =
    privateKey.asymmetricKeyType === 'ec'
      ? sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
      : sign(null, bytes, privateKey)
  return JSON.stringify({ statement, signature: signature.toString('base64') })
}

/** Returns the statements without those of a person's key. */
export const without = (texts: readonly string[], { person, id }: Signer): string[] =>
  texts.filter((text) => {
    const { by, key } = readSigned(text).statement
    return by !== person || key !== id
  })

/** Returns the fault of a signed statement, or null. */
export function faultOf(
  policy: Policy,
  signed: SignedStatement,
  suspended: ReadonlySet<string> = new Set(),
): string | null {
  try {
    verifyStatement(policy, signed, { now_s: nowS(), suspended })
    return null
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return error.message
  }
}

/** A key without a valid proof of possession; `why`: the fault of the proof in the file. */
export interface MissingProof {
  person: string
  key: string
  why: string
}

/** Returns the keys of a document whose proof of possession is missing or not valid. */
export function missingProofs(policy: Policy, possessions: readonly string[]): MissingProof[] {
  const proofs = possessions.map(readSigned)
  return policy.document.people.flatMap(({ id: person, keys }) =>
    keys.flatMap(({ id: key }) => {
      const proof = proofs.find(
        ({ statement: { kind, by, key: of } }) =>
          kind === 'possession' && by === person && of === key,
      )
      const why = proof ? faultOf(policy, proof) : 'there is none'
      return why === null ? [] : [{ person, key, why }]
    }),
  )
}

export const missingLine = ({ person, key, why }: MissingProof): string =>
  `missing: the proof of possession of ${person} for the key ${key} (${why})`

/**
 * Counts collected approvals. Those that do not hold any more are left out.
 * @param blocked suspended and revoked keys, as `keyName` names them
 */
export function countCollected(
  policy: Policy,
  approvals: Approvals,
  collected: readonly string[],
  blocked: ReadonlySet<string>,
): {
  valid: string[]
  faults: string[]
  needs: { group: string; k: number; have: number }[]
  isMet: boolean
} {
  const judgedTexts = collected.map((text) => {
    const signed = readSigned(text)
    return { text, signed, fault: faultOf(policy, signed, blocked) }
  })
  const held = judgedTexts.filter(({ fault }) => fault === null)
  const signers = held.map(({ signed: { statement } }) => ({
    person: statement.by,
    key: statement.key,
  }))
  return {
    valid: held.map(({ text }) => text),
    faults: judgedTexts.flatMap(({ signed: { statement }, fault }) =>
      fault === null ? [] : [`the approval of ${statement.by} does not hold any more: ${fault}`],
    ),
    ...countQuorum(policy, approvals, signers, blocked),
  }
}
