import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { sha256hex, signBytes, TAGS, verifyBytes } from './canonical.ts'

/**
 * What one node says to another, signed by its identity key. The header binds the payload to protocol, version,
 * call, session, round, sender, receiver, key, path, digest and participants; a response also to its request.
 */
export const PROTOCOL = 'custody/peer'
export const VERSION = 1

export interface Binding { session: string; round: number; key: string; path: string; digest: string; participants: number[] }
export const NO_BINDING: Binding = { session: '', round: 0, key: '', path: '', digest: '', participants: [] }

const headerSchema = z.strictObject({
  protocol: z.literal(PROTOCOL),
  version: z.literal(VERSION),
  call: z.string().max(64),
  /** Fresh text of the request; a response repeats it. */
  request: z.string().regex(/^[0-9a-f]{32}$/),
  response: z.boolean(),
  status: z.int(),
  session: z.string().max(128),
  round: z.int(),
  from: z.int(),
  to: z.int(),
  key: z.string().max(128),
  path: z.string().max(65_536),
  digest: z.string().max(128),
  participants: z.array(z.int()).max(3),
  /** The sender's record: height, hash, how often it was restored, and a text that changes with every start. */
  height: z.int().min(0),
  head: z.string().max(64),
  generation: z.int().min(0),
  boot: z.string().max(64),
})
export type Header = z.infer<typeof headerSchema>
const envelopeSchema = z.strictObject({ header: headerSchema, payload: z.string(), signature: z.string() })

const ORDER = Object.keys(headerSchema.shape) as (keyof Header)[]

function bytesToSign(header: Header, payloadHash: string): Buffer {
  const ordered = Object.fromEntries(ORDER.map((name) => [name, header[name]]))
  return Buffer.from(`${TAGS.envelope}${JSON.stringify(ordered)}\n${payloadHash}`, 'utf8')
}

/** What a node once said of its own head, in its own signature: a third node can check it. */
export const proofSchema = z.strictObject({ header: headerSchema, payload_hash: z.string().regex(/^[0-9a-f]{64}$/), signature: z.string() })
export type Proof = z.infer<typeof proofSchema>

export const isProof = (proof: Proof, from: number, identity: KeyObject): boolean =>
  proof.header.from === from && verifyBytes(identity, bytesToSign(proof.header, proof.payload_hash), proof.signature)

export function seal(identity: KeyObject, header: Header, body: unknown): string {
  const payload = JSON.stringify(body)
  return JSON.stringify({ header, payload, signature: signBytes(identity, bytesToSign(header, sha256hex(payload))) })
}

export class EnvelopeError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EnvelopeError'
  }
}

export function open(text: string, expect: {
  from: number
  to: number
  call: string
  response: boolean
  request?: string
  identity: KeyObject
}): { header: Header; body: unknown; proof: Proof } {
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    throw new EnvelopeError('is not JSON')
  }
  const parsed = envelopeSchema.safeParse(raw)
  if (!parsed.success) throw new EnvelopeError('has another shape')
  const { header, payload, signature } = parsed.data
  if (header.from !== expect.from || header.to !== expect.to) throw new EnvelopeError('names another sender or receiver')
  if (header.call !== expect.call || header.response !== expect.response) throw new EnvelopeError('belongs to another call')
  if (expect.request !== undefined && header.request !== expect.request) throw new EnvelopeError('answers another request')
  const payload_hash = sha256hex(payload)
  if (!verifyBytes(expect.identity, bytesToSign(header, payload_hash), signature)) throw new EnvelopeError('is not signed by its sender')
  try {
    return { header, body: JSON.parse(payload) as unknown, proof: { header, payload_hash, signature } }
  } catch {
    throw new EnvelopeError('carries a payload that is not JSON')
  }
}
