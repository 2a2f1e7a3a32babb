import { API_ROLES } from '@custody/request-auth/roles'
import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { networkMode } from '@custody/request-auth/bodies'
import { sha256hex, signBytes, TAGS, verifyBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { GOVERNANCE } from '../store/entries/governance.ts'
import { PEOPLE } from '../store/entries/people.ts'

/**
 * A node's backup: one JSON object. Anyone who stores it can change it, so the node signs all of it
 * with its identity key, and a restored node only accepts data from it that this signature, the
 * certificates of all three nodes or both peers confirm.
 */
const signaturesSchema = z.array(z.strictObject({ node: z.int(), signature: z.string() }))
const readySchema = z.strictObject({
  curve: z.enum(['secp256k1', 'ed25519']),
  key_id: z.string(),
  public_key: z.string(),
  chain_code: z.string(),
  mode: z.string(),
  epoch: z.int(),
})
const sealedSchema = z.strictObject({
  ephemeral: z.string(),
  nonce: z.string(),
  text: z.string(),
  tag: z.string(),
})

const enrolmentSchema = z.strictObject({
  api_key: z.string(),
  public_key_pem: z.string(),
  role: z.enum(API_ROLES),
  workspace: z.string(),
  sub_account: z.int(),
  sub_account_name: z.string().nullable().default(null),
  /** Absent if the enrolment requires no approvals, and in files of earlier versions. */
  approval_policy: z.int().min(1).optional(),
  /** Absent if the enrolment names no person, and in files of earlier versions. */
  person: z.string().optional(),
  revoked: z.boolean(),
})
const drainSchema = z.strictObject({
  order: z.string(),
  workspace: z.string(),
  network: z.string(),
  to_address: z.string(),
  expires_at: z.int(),
})
/**
 * Policy of a workspace that was in force when the backup was made: its number and hash, and the
 * hashes of the documents before it. Documents are not in backups; a restored node reads them from
 * its peers.
 */
const policySchema = GOVERNANCE['policy-known']
  .extend({ number: z.int().min(1) })
  .refine(({ number, first, hash }) => (number === 1) === (hash === first), {
    path: ['hash'],
    error: 'must be equal to `first` if `number` is 1, and only then',
  })
  .refine(
    ({ number, first, hash, chain }) =>
      chain === undefined ||
      (chain.length === number &&
        new Set(chain).size === number &&
        chain[0] === first &&
        chain.at(-1) === hash),
    { path: ['chain'], error: 'must contain `number` different hashes, from `first` to `hash`' },
  )
const policiesSchema = z
  .array(policySchema)
  .refine((each) => new Set(each.map(({ workspace }) => workspace)).size === each.length, {
    error: 'must contain each workspace at most once',
  })
export type BackedPolicy = z.infer<typeof policySchema>
export type BackedEnrolment = z.infer<typeof enrolmentSchema>
export type BackedDrain = z.infer<typeof drainSchema>

/**
 * Shares and the data folder's keys can be decrypted with the recovery key only; the rest is
 * public.
 */
const contentSchema = z.strictObject({
  /** Version of the format. Version 1 is not signed. */
  version: z.union([z.literal(1), z.literal(2)]),
  node: z.int(),
  mode: networkMode,
  made_at: z.int(),
  /** Encrypted files of the data folder: config.json, identity and TLS keys. */
  home: sealedSchema,
  keys: z.array(
    z.strictObject({
      ready: readySchema,
      signatures: signaturesSchema,
      share: z.strictObject({
        engine: z.enum(['dkls23-secp256k1', 'frost-ed25519']),
        engine_version: z.string(),
        epoch: z.int(),
        party: z.int(),
        sealed: z.string(),
        /** Session of the run that generated it; absent in files of earlier versions. */
        session: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .optional(),
      }),
    }),
  ),
  sets: z.array(
    z.strictObject({
      workspace: z.string(),
      curve: z.enum(['secp256k1', 'ed25519']),
      key_id: z.string(),
      epoch: z.int(),
      certificates: signaturesSchema,
    }),
  ),
  /** Names and indexes of sub-accounts, each certified by all three nodes; absent in version 1. */
  sub_accounts: z
    .array(
      z.strictObject({
        workspace: z.string(),
        name: z.string(),
        index: z.int().min(1),
        certificates: signaturesSchema,
      }),
    )
    .default([]),
  enrolments: z.array(enrolmentSchema),
  drains: z.array(drainSchema),
  /** The node's own bans; absent in files of earlier versions. */
  bans: z.array(PEOPLE.ban.required()).default([]),
  /** Absent if no workspace has a policy, and in files of earlier versions. */
  policies: policiesSchema.default([]),
})
const backupFileSchema = contentSchema.refine(
  ({ version, policies }) => version !== 1 || policies.length === 0,
  { path: ['policies'], error: 'must be absent in version 1, which is not signed' },
)
export type BackupFile = z.infer<typeof backupFileSchema>
/** The content of a backup as it is written. */
export type NewBackupFile = z.input<typeof backupFileSchema>

const signatureSchema = z.string().regex(/^[0-9a-f]{128}$/)
const contentBytes = (content: object): Buffer =>
  Buffer.from(TAGS.backup + JSON.stringify(content), 'utf8')

/** Returns the file's text, signed by the node's identity key. */
export const signedBackup = (content: NewBackupFile, identity: KeyObject): string =>
  JSON.stringify({ ...content, signature: signBytes(identity, contentBytes(content)) })

export interface ReadBackup {
  content: BackupFile
  /** SHA-256 of the file, in hex. */
  hash: string
  /**
   * Returns whether the signature of this identity covers the file. A version 1 file has no
   * signature, so the result is false.
   */
  isSignedBy(identity: KeyObject): boolean
}

/**
 * Reads a backup without checking its signature.
 * @throws Refusal if the file cannot be read or is not a backup; the message names the first field
 *   that is not valid
 */
export function readBackup(path: string): ReadBackup {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Refusal(
      'BAD_REQUEST_FIELD',
      `file: ${path} cannot be read (${String((error as NodeJS.ErrnoException).code)})`,
    )
  }
  try {
    const { signature, ...signed } = JSON.parse(text) as Record<string, unknown>
    const content = backupFileSchema.parse(signed)
    if ((signature === undefined) !== (content.version === 1))
      throw new Error('version 1 has no signature, version 2 has one')
    return {
      content,
      hash: sha256hex(text),
      isSignedBy: (identity) =>
        signature !== undefined &&
        verifyBytes(identity, contentBytes(signed), signatureSchema.parse(signature)),
    }
  } catch (error) {
    throw new Refusal(
      'BAD_REQUEST_FIELD',
      `file: ${path} is not a backup of a signer node${fieldOf(error)}`,
      { why: (error as Error).name },
    )
  }
}

/**
 * Returns the first invalid field and its rule, for a message; empty if the file is not valid JSON.
 * The message does not contain values, because the file may be another one, with secrets.
 */
function fieldOf(error: unknown): string {
  const issue = error instanceof z.ZodError ? error.issues[0] : undefined
  if (issue === undefined) return ''
  const field = issue.path.length === 0 ? '' : `${issue.path.join('.')}: `
  return `: ${field}${issue.message}`.slice(0, 300)
}

/**
 * Reads a backup that is signed by `identity`, or of version 1.
 * @throws Refusal if it was changed after it was created, or if another node created it
 */
export function readAuthentic(path: string, identity: KeyObject): ReadBackup {
  const backup = readBackup(path)
  if (backup.content.version === 2 && !backup.isSignedBy(identity)) {
    throw new Refusal(
      'NOT_AUTHENTIC',
      `file: ${path} is not signed by this node: it was changed after it was made, or it belongs to another node. Use another copy`,
    )
  }
  return backup
}
