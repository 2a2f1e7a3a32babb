import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { sha256hex, signBytes, TAGS, verifyBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { PEOPLE } from '../store/entries/people.ts'

/**
 * A node's backup: one JSON object. Whoever stores it can change it, so the node signs the whole
 * with its identity key, and a restored node takes from it only what that signature, the
 * certificates of all three nodes or both peers vouch for.
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
  role: z.enum(['full', 'read-only']),
  workspace: z.string(),
  sub_account: z.int(),
  sub_account_name: z.string().nullable().default(null),
  revoked: z.boolean(),
})
const drainSchema = z.strictObject({
  order: z.string(),
  workspace: z.string(),
  network: z.string(),
  to_address: z.string(),
  expires_at: z.int(),
})
export type BackedEnrolment = z.infer<typeof enrolmentSchema>
export type BackedDrain = z.infer<typeof drainSchema>

/** Shares and the home's keys are readable with the recovery key only; the rest is public. */
const backupFileSchema = z.strictObject({
  /** 1: not signed. */
  version: z.union([z.literal(1), z.literal(2)]),
  node: z.int(),
  mode: z.string(),
  made_at: z.int(),
  /** config.json, identity and TLS keys. */
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
        /** Of the run that made it; absent in files of earlier versions. */
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
})
export type BackupFile = z.infer<typeof backupFileSchema>

const signatureSchema = z.string().regex(/^[0-9a-f]{128}$/)
const contentBytes = (content: object): Buffer =>
  Buffer.from(TAGS.backup + JSON.stringify(content), 'utf8')

/** @returns the file's text, signed by the node's identity */
export const signedBackup = (content: BackupFile, identity: KeyObject): string =>
  JSON.stringify({ ...content, signature: signBytes(identity, contentBytes(content)) })

export interface ReadBackup {
  content: BackupFile
  /** SHA-256 of the file, in hex. */
  hash: string
  /**
   * Whether the signature of this identity covers the file. False for version 1 alone, which has no
   * signature.
   */
  isSignedBy(identity: KeyObject): boolean
}

/**
 * @throws Refusal where the file cannot be read or is no backup; the signature is not checked here
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
    throw new Refusal('BAD_REQUEST_FIELD', `file: ${path} is not a backup of a signer node`, {
      why: (error as Error).name,
    })
  }
}

/**
 * The same, authentic: signed by `identity`, or of version 1.
 * @throws Refusal where it was changed after it was made, or another node made it
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
