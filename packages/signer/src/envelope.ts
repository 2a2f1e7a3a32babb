import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { sha256hex, signBytes, TAGS, verifyBytes } from './canonical.ts'

/**
 * Message from one node to another, signed by its identity key. The header binds the payload to
 * protocol, version, call, session, round, sender, receiver, key, path, digest and participants; a
 * response also to its request.
 *
 * Encoded as one line of JSON, optionally followed by a line feed and bytes that belong to the
 * payload: the messages of a signature are large, and as nested text they would be encoded and
 * parsed several times.
 */
export const PROTOCOL = 'custody/peer'
export const VERSION = 1

export interface Binding {
  session: string
  round: number
  key: string
  path: string
  digest: string
  participants: number[]
}
export const NO_BINDING: Binding = {
  session: '',
  round: 0,
  key: '',
  path: '',
  digest: '',
  participants: [],
}

const headerSchema = z.strictObject({
  protocol: z.literal(PROTOCOL),
  version: z.literal(VERSION),
  call: z.string().max(64),
  /** Random text of the request; the response repeats it. */
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
  /**
   * State of the sender's record: height, hash, number of restorations, and a text that changes
   * with every start.
   */
  height: z.int().min(0),
  head: z.string().max(64),
  generation: z.int().min(0),
  boot: z.string().max(64),
})
export type Header = z.infer<typeof headerSchema>
const envelopeSchema = z.strictObject({
  header: headerSchema,
  payload: z.string(),
  signature: z.string(),
})

const ORDER = Object.keys(headerSchema.shape) as (keyof Header)[]

function bytesToSign(header: Header, payloadHash: string): Buffer {
  return Buffer.from(`${TAGS.envelope}${JSON.stringify(header, ORDER)}\n${payloadHash}`, 'utf8')
}

/** A node's signed statement about its own head, which other nodes can verify. */
export const proofSchema = z.strictObject({
  header: headerSchema,
  payload_hash: z.string().regex(/^[0-9a-f]{64}$/),
  signature: z.string(),
})
export type Proof = z.infer<typeof proofSchema>

export const isProof = (proof: Proof, from: number, identity: KeyObject): boolean =>
  proof.header.from === from &&
  verifyBytes(identity, bytesToSign(proof.header, proof.payload_hash), proof.signature)

/** A body with additional bytes that are sent unchanged. */
export class Attached {
  readonly body: unknown
  readonly bytes: Uint8Array

  constructor(body: unknown, bytes: Uint8Array) {
    this.body = body
    this.bytes = bytes
  }
}

/**
 * No payload contains a line feed, so two different pairs of payload and bytes are never hashed as
 * the same text.
 */
const hashOf = (payload: string, bytes: Uint8Array): string =>
  bytes.length === 0 ? sha256hex(payload) : sha256hex(payload, '\n', bytes)

export function seal(identity: KeyObject, header: Header, said: unknown): Buffer {
  const { body, bytes } = said instanceof Attached ? said : new Attached(said, Buffer.alloc(0))
  const payload = JSON.stringify(body)
  const text = JSON.stringify({
    header,
    payload,
    signature: signBytes(identity, bytesToSign(header, hashOf(payload, bytes))),
  })
  return bytes.length === 0 ? Buffer.from(text) : Buffer.concat([Buffer.from(`${text}\n`), bytes])
}

/** A message whose signature was verified, with its sender. */
export interface Opened {
  header: Header
  body: unknown
  bytes: Buffer
  proof: Proof
}

export class EnvelopeError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EnvelopeError'
  }
}

export function open(
  sealed: Buffer,
  expect: {
    from: number
    to: number
    call: string
    response: boolean
    request?: string
    identity: KeyObject
  },
): Opened {
  const end = sealed.indexOf(0x0a)
  const bytes = end === -1 ? Buffer.alloc(0) : sealed.subarray(end + 1)
  let raw: unknown
  try {
    raw = JSON.parse(sealed.toString('utf8', 0, end === -1 ? sealed.length : end))
  } catch {
    throw new EnvelopeError('is not JSON')
  }
  const parsed = envelopeSchema.safeParse(raw)
  if (!parsed.success) throw new EnvelopeError('has an unknown format')
  const { header, payload, signature } = parsed.data
  if (header.from !== expect.from || header.to !== expect.to)
    throw new EnvelopeError('has another sender or receiver')
  if (header.call !== expect.call || header.response !== expect.response)
    throw new EnvelopeError('belongs to another call')
  if (expect.request !== undefined && header.request !== expect.request)
    throw new EnvelopeError('responds to another request')
  if (payload.includes('\n')) throw new EnvelopeError('has a payload of several lines')
  const payload_hash = hashOf(payload, bytes)
  if (!verifyBytes(expect.identity, bytesToSign(header, payload_hash), signature))
    throw new EnvelopeError('is not signed by its sender')
  try {
    return {
      header,
      body: JSON.parse(payload) as unknown,
      bytes,
      proof: { header, payload_hash, signature },
    }
  } catch {
    throw new EnvelopeError('has a payload that is not JSON')
  }
}
