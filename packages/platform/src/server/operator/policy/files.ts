import {
  policyFileValue,
  PolicyError,
  readPolicyFile as parsePolicyFile,
  type PolicyDocument,
} from '@custody/policy'
import { parseJson } from '@custody/request-auth/web'
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { OperatorError } from '../command.ts'

/** A policy document with the signed statements that belong to it, as its file contains them. */
export interface PolicyFile {
  path: string
  document: PolicyDocument
  /** Signed proofs of possession, as JSON texts. */
  possessions: string[]
  /** Signed approvals of the change, as JSON texts. */
  approvals: string[]
}

/**
 * Returns the result of a call that judges a document or a statement.
 * @param where option or file that the error names
 * @throws OperatorError with the message of a `PolicyError`
 */
export function judged<T>(where: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw new OperatorError(`${where}: ${error.message}`)
  }
}

/**
 * Reads a file as text.
 * @param where option or argument that the error names
 * @throws OperatorError
 */
function readText(path: string, where: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new OperatorError(`${where}: the file ${path} does not exist`)
    if (code === 'EISDIR') throw new OperatorError(`${where}: ${path} is a folder`)
    throw new OperatorError(`${where}: ${path} cannot be read (${String(code)})`)
  }
}

/** Reads a file as a JSON object in which no key appears twice. @throws OperatorError */
export function readJsonObject(path: string, where: string): Record<string, unknown> {
  const text = readText(path, where)
  let value: unknown
  try {
    // JSON.parse accepts repeated keys, of which a reader of the file may see the other one.
    parseJson(text)
    value = JSON.parse(text)
  } catch (error) {
    throw new OperatorError(`${where}: ${path} is not valid JSON (${reasonOf(error)})`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new OperatorError(`${where}: ${path} must contain a JSON object`)
  return value as Record<string, unknown>
}

/**
 * Reads a policy file: `{"document": …, "possessions": […], "approvals": […]}`, or a document alone.
 * @param where option or argument that errors name
 * @throws OperatorError that names the field; `PolicyError` if the document itself is not valid
 */
export function readPolicyFile(path: string, where: string): PolicyFile {
  const text = readText(path, where)
  try {
    const { document, possessions, approvals } = parsePolicyFile(text)
    const texts = (statements: readonly object[]) => statements.map((each) => JSON.stringify(each))
    return { path, document, possessions: texts(possessions), approvals: texts(approvals) }
  } catch (error) {
    if (!(error instanceof PolicyError) || error.code !== 'FILE') throw error
    const file = error.path === '' ? `${path} ` : ''
    throw new OperatorError(`${where}: ${file}${error.message}`)
  }
}

/** Writes a policy file. */
export function writePolicyFile({ path, document, possessions, approvals }: PolicyFile): void {
  const parsed = (texts: readonly string[]) => texts.map((text) => JSON.parse(text) as never)
  const file = { document, possessions: parsed(possessions), approvals: parsed(approvals) }
  writeAtomically(path, policyFileValue(file))
}

/** Replaces a file by the JSON of a value. An existing file keeps its mode; a new one has 0600. */
export function writeAtomically(path: string, value: unknown): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  // A link keeps pointing to the file that is replaced.
  const target = stats ? realpathSync(path) : path
  const temporary = `${target}.${process.pid}.tmp`
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  if (stats) chmodSync(temporary, stats.mode & 0o777)
  renameSync(temporary, target)
}

/** A person's key pair. */
export interface SigningKey {
  file: string
  privateKey: KeyObject
  /** Base64 of the DER SubjectPublicKeyInfo, as documents contain it. */
  spki: string
}

/**
 * Reads an unencrypted private key of a type that can sign statements.
 * @throws OperatorError that names `--key`
 */
export function readSigningKey(file: string): SigningKey {
  const pem = readText(file, '--key')
  if (pem.includes('ENCRYPTED'))
    throw new OperatorError(`--key: ${file} is encrypted: decrypt it with "openssl pkey" first`)
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    throw new OperatorError(
      pem.includes('PUBLIC KEY')
        ? `--key: ${file} is a public key: statements are signed with the private key`
        : `--key: ${file} is not a PEM file with a private key`,
    )
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey
  if (type !== 'ed25519' && !(type === 'ec' && details?.namedCurve === 'prime256v1'))
    throw new OperatorError(
      `--key: ${file} is a key of ${String(details?.namedCurve ?? type)}: an Ed25519 or P-256 key is required (npx custody keygen --type ed25519 --out FILE)`,
    )
  const spki = createPublicKey(privateKey)
    .export({ type: 'spki', format: 'der' })
    .toString('base64')
  return { file, privateKey, spki }
}
