import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { forge } from './helpers.ts'
import {
  COLUMNS,
  ofScalar,
  otCheck,
  ROW_BYTES,
  toScalar,
  xor,
  type Signing,
} from './opened-share.ts'
import {
  bytes,
  fixed,
  list,
  option,
  parse,
  partOf,
  readVarint,
  rest,
  struct,
  varintOf,
  type Layout,
  type Part,
} from './postcard.ts'

/**
 * A cheating party. The checksum of a frame uses no key, so a frame whose body was changed equals
 * one of a modified engine. Each message has a layout with named fields; a message of another
 * layout is refused. Data that key generation and refresh send to one party alone is encrypted and
 * can only be damaged here: changes of its content are in `native/src/dkls/forged.rs` and its
 * counterpart for FROST.
 */

// ---- what the messages hold: signing.rs, multiplication.rs, ot/extension.rs, dkg.rs, proofs.rs,
// frost.rs ------------------------

const HASH = fixed(32)
const SCALAR = bytes(32)
const POINT = bytes(33)
const NOTHING = struct({})
const PARTIES = { sender: fixed(1), receiver: fixed(1) }
const PROOF = struct({
  point: POINT,
  rand_commitments: list(64, POINT),
  proofs: list(64, struct({ challenge: bytes(4), response: SCALAR })),
})
const ECHO: Body = { public: struct({ echo: HASH }), private: NOTHING }
/** Ciphertext of a part for one party (`native/src/private.rs`). */
const SEALED = struct({ sealed: rest })
/** A version and the cipher suite's number. */
const FROST = fixed(5)

interface Body {
  public: Layout
  private: Layout
}

/**
 * Protocol and round. Key generation and refresh of one curve differ in fields that a refresh does
 * not have.
 */
const MESSAGES = {
  'secp256k1/sign/1': {
    public: NOTHING,
    private: struct({
      ...PARTIES,
      session_binding: HASH,
      commitment: HASH,
      nonce: HASH,
      u: bytes(COLUMNS * ROW_BYTES),
      verify_x: fixed(26),
      verify_t: list(COLUMNS, fixed(26)),
    }),
  },
  'secp256k1/sign/2': {
    public: NOTHING,
    private: struct({
      ...PARTIES,
      session_binding: HASH,
      gamma_u: POINT,
      gamma_v: POINT,
      psi: SCALAR,
      public_share: POINT,
      instance_point: POINT,
      salt: bytes(64),
      tau: list(4, list(416, SCALAR)),
      ote_salt: HASH,
      verify_r: HASH,
      verify_u: list(2, SCALAR),
      gamma: list(2, SCALAR),
    }),
  },
  'secp256k1/sign/3': { public: struct({ u: SCALAR, w: SCALAR }), private: NOTHING },
  'secp256k1/keys/1': { public: struct({ session_key: HASH }), private: NOTHING },
  'secp256k1/keys/2': { ...ECHO, private: SEALED },
  'secp256k1/keys/3': {
    public: struct({
      proof: HASH,
      chain_code: option(struct({ sender: fixed(1), commitment: HASH })),
    }),
    private: SEALED,
  },
  'secp256k1/keys/4': ECHO,
  'secp256k1/keys/5': {
    public: struct({
      proof: PROOF,
      chain_code: option(struct({ sender: fixed(1), part: HASH, salt: bytes(64) })),
    }),
    private: SEALED,
  },
  'secp256k1/keys/6': ECHO,
  'ed25519/sign/1': {
    public: struct({ suite: FROST, hiding: HASH, binding: HASH }),
    private: NOTHING,
  },
  'ed25519/sign/2': { public: struct({ share: HASH }), private: NOTHING },
  'ed25519/keygen/1': {
    public: struct({
      chain_commitment: HASH,
      session_key: HASH,
      suite: FROST,
      commitment: list(2, HASH),
      proof: bytes(64),
    }),
    private: NOTHING,
  },
  'ed25519/refresh/1': {
    public: struct({
      chain_commitment: HASH,
      session_key: HASH,
      suite: FROST,
      commitment: list(1, HASH),
      proof: bytes(64),
    }),
    private: NOTHING,
  },
  'ed25519/keys/2': ECHO,
  'ed25519/keygen/3': { public: struct({ chain_part: HASH }), private: SEALED },
  'ed25519/refresh/3': { public: NOTHING, private: SEALED },
  'ed25519/keys/4': ECHO,
} as const satisfies Record<string, Body>
type MessageName = keyof typeof MESSAGES

// ---- what a cheat does
// ----------------------------------------------------------------------------------------------------------

type Group = 'scalar' | 'point' | 'ed-scalar' | 'ed-point'
export type Cheat = { message: MessageName } &
  /**
   * Flips one bit of a row of the OT extension's matrix, with verification values that are valid if
   * the honest node's bit is `passesIf`.
   */
  (
    | { kind: 'ot-column'; column: number; passesIf?: 0 | 1; signing: Signing }
    | { kind: 'flip'; field: string; bit?: number }
    /** Adds one, or the generator. */
    | { kind: 'add'; field: string; as: Group }
    /** Replaces a field's content and, if the field has a length, adjusts the length. */
    | { kind: 'set'; field: string; to: Uint8Array }
    /** Removes or repeats the last element of a vector. */
    | { kind: 'resize'; field: string; by: 1 | -1 }
    /** Sets the length of a vector to more elements than there are. */
    | { kind: 'promise'; field: string; count: number }
    /** Replaces fields by those of this party's message of another session. */
    | { kind: 'mix'; fields: readonly string[]; other: Uint8Array }
    /** Replaces the whole body by another message's, under this header. */
    | { kind: 'rebind'; other: Uint8Array }
  )

const HEADER = 39
const BODY = 55

interface OpenedFrame {
  halves: Record<'public' | 'private', { data: Buffer; parts: ReadonlyMap<string, Part> }>
  header: Buffer
}

/** @throws Error if the message is of another type */
function openFrame(message: MessageName, payload: Uint8Array): OpenedFrame {
  const frame = Buffer.from(payload)
  if (frame.toString('latin1', 0, 4) !== 'TSH1' || frame[4] !== Number(message.split('/')[2]))
    throw new Error(`not a frame of ${message}`)
  const length = frame.readUInt32BE(BODY)
  const open = (data: Buffer, layout: Layout) => ({ data, parts: parse(data, layout) })
  const layout: Body = MESSAGES[message]
  return {
    header: frame.subarray(0, HEADER),
    halves: {
      public: open(frame.subarray(BODY + 4, BODY + 4 + length), layout.public),
      private: open(frame.subarray(BODY + 4 + length), layout.private),
    },
  }
}

function halfOf({ halves }: OpenedFrame, field: string): 'public' | 'private' {
  const half = (['public', 'private'] as const).find((each) => halves[each].parts.has(field))
  if (!half) throw new Error(`no field ${field}`)
  return half
}

function fieldIn(
  message: MessageName,
  payload: Uint8Array,
  field: string,
  begin: 'at' | 'from',
): Buffer {
  const opened = openFrame(message, payload)
  const { data, parts } = opened.halves[halfOf(opened, field)]
  const part = partOf(parts, field)
  return Buffer.from(data.subarray(part[begin], part.end))
}

/** Returns the content of a field of a message. */
const fieldOf = (message: MessageName, payload: Uint8Array, field: string): Buffer =>
  fieldIn(message, payload, field, 'from')
/** Returns the content of a field including its length. */
const wholeOf = (message: MessageName, payload: Uint8Array, field: string): Buffer =>
  fieldIn(message, payload, field, 'at')

function framed(payload: Uint8Array, opened: OpenedFrame): Uint8Array {
  return forge(payload, () => {
    const { public: said, private: messages } = opened.halves
    const length = Buffer.alloc(4)
    length.writeUInt32BE(said.data.length)
    return Buffer.concat([length, said.data, messages.data])
  })
}

function replace(
  opened: OpenedFrame,
  field: string,
  change: (part: Part, data: Buffer) => Uint8Array,
): void {
  const half = opened.halves[halfOf(opened, field)]
  const part = partOf(half.parts, field)
  half.data = Buffer.concat([
    half.data.subarray(0, part.at),
    change(part, half.data),
    half.data.subarray(part.end),
  ])
}

const withLength = ({ layout }: Part, content: Uint8Array): Buffer =>
  Buffer.concat([layout.kind === 'bytes' ? varintOf(content.length) : Buffer.alloc(0), content])

const littleEndian = (value: bigint): Buffer =>
  Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
function oneMore(content: Buffer, as: Group): Buffer {
  if (as === 'scalar') return toScalar(ofScalar(content) + 1n)
  if (as === 'point')
    return Buffer.from(secp256k1.Point.fromBytes(content).add(secp256k1.Point.BASE).toBytes(true))
  if (as === 'ed-point')
    return Buffer.from(ed25519.Point.fromBytes(content).add(ed25519.Point.BASE).toBytes())
  return littleEndian((ofScalar(Buffer.from(content).reverse()) + 1n) % ed25519.Point.Fn.ORDER)
}

/** Returns a vector with its last element removed or repeated, and its length adjusted. */
function resized({ at, from, end, layout }: Part, data: Buffer, by: 1 | -1): Buffer {
  if (layout.kind !== 'list' && layout.kind !== 'bytes')
    throw new Error('only a vector has a length')
  const { value: count } = readVarint(data, at)
  const size = (end - from) / count
  if (!Number.isInteger(size)) throw new Error('the parts of this vector differ in size')
  const content = by === 1 ? data.subarray(from, end) : data.subarray(from, end - size)
  return Buffer.concat([
    varintOf(count + by),
    content,
    by === 1 ? data.subarray(end - size, end) : Buffer.alloc(0),
  ])
}

/** @returns the flipped bit of the row with its verification values, changed in place */
function flipColumn(
  opened: OpenedFrame,
  { column, passesIf = 0, signing }: Extract<Cheat, { kind: 'ot-column' }>,
): void {
  const { data, parts } = opened.halves.private
  const content = (name: string): Buffer => {
    const { from, end } = partOf(parts, name)
    return data.subarray(from, end)
  }
  const sent = {
    nonce: content('nonce'),
    binding: opened.header.subarray(7),
    from: content('sender')[0]!,
    to: content('receiver')[0]!,
    u: Buffer.from(content('u')),
  }
  const honest = otCheck(signing, sent, sent.u, [column])
  // A caller that passes another share, path or digest than the session's fails here, instead of
  // with a cheat that is always detected.
  if (
    !honest.x.equals(content('verify_x')) ||
    !honest.t[0]!.equals(content(`verify_t.${column}`))
  ) {
    throw new Error('these are not the share, path and digest of this message')
  }
  const u = Buffer.from(sent.u)
  // Changes a bit of the third block, which the check adds unchanged: the difference does not
  // depend on the challenge.
  u[column * ROW_BYTES + 2 * 26]! ^= 1
  const cheated = otCheck(signing, sent, u)
  // The term that the flipped bit adds if the honest node's bit is 1.
  if (passesIf === 1)
    cheated.t[column] = xor(cheated.t[column]!, Buffer.from([1, ...Array<number>(25).fill(0)]))
  u.copy(content('u'))
  cheated.x.copy(content('verify_x'))
  cheated.t.forEach((row, index) => row.copy(content(`verify_t.${index}`)))
}

/** Returns the message as the cheating party sends it. */
export function tamper(payload: Uint8Array, cheat: Cheat): Uint8Array {
  const opened = openFrame(cheat.message, Uint8Array.from(payload))
  if (cheat.kind === 'rebind') return forge(payload, () => Buffer.from(cheat.other).subarray(BODY))
  if (cheat.kind === 'ot-column') flipColumn(opened, cheat)
  else if (cheat.kind === 'mix') {
    for (const field of cheat.fields)
      replace(opened, field, () => wholeOf(cheat.message, cheat.other, field))
  } else {
    replace(opened, cheat.field, (part, data) => {
      const content = Buffer.from(data.subarray(part.from, part.end))
      if (cheat.kind === 'resize') return resized(part, data, cheat.by)
      if (cheat.kind === 'promise') return Buffer.concat([varintOf(cheat.count), content])
      if (cheat.kind === 'set') return withLength(part, cheat.to)
      if (cheat.kind === 'add') return withLength(part, oneMore(content, cheat.as))
      content[Math.floor((cheat.bit ?? 0) / 8)]! ^= 1 << ((cheat.bit ?? 0) % 8)
      return withLength(part, content)
    })
  }
  return framed(payload, opened)
}

// ---- all that a party can do wrong
// ----------------------------------------------------------------------------------------------

/** Data that a cheating party has when it sends. */
interface Situation {
  /** The honest party's message of this round, for which a cheating party may wait. */
  received: Uint8Array
  /** This party's message of the same round in another session. */
  other: Uint8Array
}

/** A cheat without the fields that depend on a situation. */
type Bare = Cheat extends infer Each ? (Each extends Cheat ? Omit<Each, 'message'> : never) : never
export interface Switch {
  name: string
  message: MessageName
  /** Result of the honest side's session. Only CHEAT leads to a ban. */
  expected: 'CHEAT' | 'ABORT' | 'MALFORMED'
  cheat: (situation: Situation) => Cheat
}

const on = (
  message: MessageName,
  expected: Switch['expected'],
  name: string,
  cheat: Bare | ((situation: Situation) => Bare),
): Switch => ({
  name: `${message}: ${name}`,
  message,
  expected,
  cheat: (situation) =>
    ({ ...(typeof cheat === 'function' ? cheat(situation) : cheat), message }) as Cheat,
})
const flip = (field: string): Bare => ({ kind: 'flip', field })
const add = (field: string, as: Group): Bare => ({ kind: 'add', field, as })
const set = (field: string, to: Uint8Array): Bare => ({ kind: 'set', field, to })
const resize = (field: string, by: 1 | -1): Bare => ({ kind: 'resize', field, by })
const promise = (field: string, count = 0xffff_ffff): Bare => ({ kind: 'promise', field, count })
const mix =
  (...fields: string[]) =>
  ({ other }: Situation): Bare => ({ kind: 'mix', fields, other })

const IDENTITY = Buffer.from([0])
const ORDER = Buffer.from(secp256k1.Point.Fn.ORDER.toString(16), 'hex')
/** No point has this x. */
const OFF_CURVE = Buffer.concat([Buffer.from([2]), Buffer.alloc(31), Buffer.from([5])])
/** Negative of the honest side's value: the sums become zero. */
const minusHeard =
  (message: MessageName, field: string) =>
  ({ received }: Situation): Bare =>
    set(field, toScalar(-ofScalar(fieldOf(message, received, field))))

const ED_IDENTITY = Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])
/** y = 1 as p + 1, and the point of order 2 (y = -1). */
const ED_NOT_CANONICAL = Buffer.concat([
  Buffer.from([0xee]),
  Buffer.alloc(30, 0xff),
  Buffer.from([0x7f]),
])
const ED_TORSION = Buffer.concat([Buffer.from([0xec]), Buffer.alloc(30, 0xff), Buffer.from([0x7f])])
const ED_ORDER = littleEndian(ed25519.Point.Fn.ORDER)

const ONE = 'secp256k1/sign/1'
const TWO = 'secp256k1/sign/2'
const THREE = 'secp256k1/sign/3'
const OT_FIELDS = ['nonce', 'u', 'verify_x', 'verify_t']
const MUL_FIELDS = ['tau', 'ote_salt', 'verify_r', 'verify_u', 'gamma']

/** Signing on secp256k1. `ot-column` is omitted: it needs the share, and its result is a secret. */
const SECP256K1_SIGN: Switch[] = [
  on(ONE, 'MALFORMED', 'another sender within', set('sender', Buffer.from([3]))),
  on(ONE, 'MALFORMED', 'party 0 within', set('receiver', Buffer.from([0]))),
  on(ONE, 'ABORT', 'another binding within', flip('session_binding')),
  on(ONE, 'ABORT', 'another commitment', flip('commitment')),
  on(ONE, 'ABORT', "another session's commitment", mix('commitment')),
  on(ONE, 'CHEAT', 'another nonce', flip('nonce')),
  on(ONE, 'CHEAT', 'a flipped bit of u, the check as it was', flip('u')),
  on(ONE, 'CHEAT', 'a wrong verify_x', flip('verify_x')),
  on(ONE, 'CHEAT', 'a wrong verify_t', flip('verify_t.17')),
  on(ONE, 'CHEAT', "another session's OT extension", mix(...OT_FIELDS)),
  on(ONE, 'MALFORMED', 'a short u', resize('u', -1)),
  on(ONE, 'MALFORMED', 'a long u', resize('u', 1)),
  on(ONE, 'CHEAT', 'a short verify_t', resize('verify_t', -1)),
  on(ONE, 'CHEAT', 'a long verify_t', resize('verify_t', 1)),
  on(ONE, 'MALFORMED', 'a verify_t that is said to be huge', promise('verify_t')),
  on(ONE, 'MALFORMED', 'a u that is said to be huge', promise('u')),
  on(ONE, 'ABORT', "another session's message", ({ other }) => ({ kind: 'rebind', other })),
  on(TWO, 'MALFORMED', 'another sender within', set('sender', Buffer.from([3]))),
  on(TWO, 'ABORT', 'another binding within', flip('session_binding')),
  on(TWO, 'CHEAT', 'a wrong gamma_u', add('gamma_u', 'point')),
  on(TWO, 'CHEAT', 'a wrong gamma_v', add('gamma_v', 'point')),
  on(TWO, 'CHEAT', 'the identity as gamma_u', set('gamma_u', IDENTITY)),
  on(TWO, 'CHEAT', 'the identity as gamma_v', set('gamma_v', IDENTITY)),
  on(TWO, 'MALFORMED', 'no point as gamma_u', set('gamma_u', OFF_CURVE)),
  on(TWO, 'ABORT', 'a wrong psi', add('psi', 'scalar')),
  on(TWO, 'MALFORMED', 'a psi that is not reduced', set('psi', ORDER)),
  on(TWO, 'CHEAT', 'a wrong public share', add('public_share', 'point')),
  on(TWO, 'CHEAT', 'the identity as public share', set('public_share', IDENTITY)),
  on(TWO, 'ABORT', 'a wrong instance point', add('instance_point', 'point')),
  on(TWO, 'ABORT', 'the identity as instance point', set('instance_point', IDENTITY)),
  on(
    TWO,
    'ABORT',
    "another session's instance point, psi and salt",
    mix('instance_point', 'psi', 'salt'),
  ),
  on(TWO, 'ABORT', 'a wrong salt', flip('salt')),
  on(TWO, 'ABORT', 'a short salt', resize('salt', -1)),
  on(TWO, 'ABORT', 'a long salt', resize('salt', 1)),
  on(TWO, 'CHEAT', 'a wrong tau', add('tau.0.0', 'scalar')),
  on(TWO, 'CHEAT', 'a wrong last tau', add('tau.3.415', 'scalar')),
  on(TWO, 'CHEAT', 'a short tau', resize('tau', -1)),
  on(TWO, 'CHEAT', 'a long tau', resize('tau', 1)),
  on(TWO, 'CHEAT', 'a short row of tau', resize('tau.2', -1)),
  on(TWO, 'CHEAT', 'a long row of tau', resize('tau.0', 1)),
  on(TWO, 'MALFORMED', 'a tau that is said to be huge', promise('tau')),
  on(TWO, 'MALFORMED', 'a row of tau that is said to be huge', promise('tau.3')),
  on(TWO, 'MALFORMED', 'a salt that is said to be huge', promise('salt')),
  on(TWO, 'CHEAT', 'another salt of the OT extension', flip('ote_salt')),
  on(TWO, 'CHEAT', 'a wrong verify_r', flip('verify_r')),
  on(TWO, 'CHEAT', 'a wrong verify_u', add('verify_u.0', 'scalar')),
  on(TWO, 'CHEAT', 'a short verify_u', resize('verify_u', -1)),
  on(TWO, 'CHEAT', 'a long verify_u', resize('verify_u', 1)),
  on(TWO, 'CHEAT', 'another input for the instance key', add('gamma.0', 'scalar')),
  on(TWO, 'CHEAT', 'another input for the key share', add('gamma.1', 'scalar')),
  on(TWO, 'CHEAT', 'a short gamma', resize('gamma', -1)),
  on(TWO, 'CHEAT', 'a long gamma', resize('gamma', 1)),
  on(TWO, 'CHEAT', "another session's multiplication", mix(...MUL_FIELDS)),
  on(TWO, 'ABORT', "another session's message", ({ other }) => ({ kind: 'rebind', other })),
  on(THREE, 'ABORT', 'a wrong u', add('u', 'scalar')),
  on(THREE, 'ABORT', 'a wrong w', add('w', 'scalar')),
  on(THREE, 'ABORT', 'a u that makes the denominator zero', minusHeard(THREE, 'u')),
  on(THREE, 'ABORT', 'a w that makes the signature zero', minusHeard(THREE, 'w')),
  on(THREE, 'ABORT', "another session's message", ({ other }) => ({ kind: 'rebind', other })),
  on(THREE, 'MALFORMED', 'a u that is not reduced', set('u', ORDER)),
]

const ED25519_SIGN: Switch[] = [
  ...(['hiding', 'binding'] as const).flatMap((field) => [
    on('ed25519/sign/1', 'ABORT', `a wrong ${field} commitment`, add(field, 'ed-point')),
    on(
      'ed25519/sign/1',
      'MALFORMED',
      `the identity as ${field} commitment`,
      set(field, ED_IDENTITY),
    ),
    on(
      'ed25519/sign/1',
      'MALFORMED',
      `a ${field} commitment that is not canonical`,
      set(field, ED_NOT_CANONICAL),
    ),
    on(
      'ed25519/sign/1',
      'MALFORMED',
      `a ${field} commitment of small order`,
      set(field, ED_TORSION),
    ),
  ]),
  on('ed25519/sign/1', 'MALFORMED', 'another cipher suite', flip('suite')),
  on('ed25519/sign/1', 'ABORT', "another session's commitments", ({ other }) => ({
    kind: 'rebind',
    other,
  })),
  on('ed25519/sign/2', 'ABORT', 'a wrong share', add('share', 'ed-scalar')),
  on('ed25519/sign/2', 'ABORT', 'a share of zero', set('share', Buffer.alloc(32))),
  on('ed25519/sign/2', 'ABORT', "another session's share", ({ other }) => ({
    kind: 'rebind',
    other,
  })),
  on('ed25519/sign/2', 'MALFORMED', 'a share that is not reduced', set('share', ED_ORDER)),
]

/**
 * Cheats of key generation and refresh. They are sent to only one of the two other parties, which
 * then receive different public data.
 */
const SECP256K1_KEYS: Switch[] = [
  on('secp256k1/keys/1', 'ABORT', 'another session key', flip('session_key')),
  on(
    'secp256k1/keys/1',
    'MALFORMED',
    'a session key that gives no secret',
    set('session_key', Buffer.alloc(32)),
  ),
  on('secp256k1/keys/2', 'ABORT', 'another echo', flip('echo')),
  on('secp256k1/keys/2', 'MALFORMED', 'a damaged private part', flip('sealed')),
  on('secp256k1/keys/3', 'ABORT', 'another commitment to the proof', flip('proof')),
  on('secp256k1/keys/3', 'MALFORMED', 'a damaged private part', flip('sealed')),
  on('secp256k1/keys/4', 'ABORT', 'another echo', flip('echo')),
  on('secp256k1/keys/5', 'ABORT', 'another point of the proof', add('proof.point', 'point')),
  on(
    'secp256k1/keys/5',
    'ABORT',
    'the identity as point of the proof',
    set('proof.point', IDENTITY),
  ),
  on(
    'secp256k1/keys/5',
    'ABORT',
    'a wrong response of the proof',
    add('proof.proofs.0.response', 'scalar'),
  ),
  on(
    'secp256k1/keys/5',
    'ABORT',
    'a long challenge',
    set('proof.proofs.5.challenge', Buffer.alloc(40, 1)),
  ),
  on(
    'secp256k1/keys/5',
    'ABORT',
    'an empty challenge',
    set('proof.proofs.5.challenge', Buffer.alloc(0)),
  ),
  on('secp256k1/keys/5', 'ABORT', 'a short proof', resize('proof.rand_commitments', -1)),
  on('secp256k1/keys/5', 'ABORT', 'a long proof', resize('proof.proofs', 1)),
  on(
    'secp256k1/keys/5',
    'MALFORMED',
    'a challenge that is said to be huge',
    promise('proof.proofs.5.challenge'),
  ),
  on('secp256k1/keys/5', 'MALFORMED', 'a damaged private part', flip('sealed')),
  on('secp256k1/keys/6', 'ABORT', 'another echo', flip('echo')),
]
const SECP256K1_KEYGEN: Switch[] = [
  on('secp256k1/keys/3', 'ABORT', 'another chain code commitment', flip('chain_code.commitment')),
  on(
    'secp256k1/keys/3',
    'MALFORMED',
    "another's chain code commitment",
    set('chain_code.sender', Buffer.from([9])),
  ),
  on('secp256k1/keys/5', 'ABORT', 'another part of the chain code', flip('chain_code.part')),
  on('secp256k1/keys/5', 'ABORT', 'another salt of the chain code', flip('chain_code.salt')),
]

const ed25519Keys = (protocol: 'keygen' | 'refresh'): Switch[] => [
  on(`ed25519/${protocol}/1`, 'ABORT', 'another session key', flip('session_key')),
  on(
    `ed25519/${protocol}/1`,
    'MALFORMED',
    'a session key that gives no secret',
    set('session_key', Buffer.alloc(32)),
  ),
  on(
    `ed25519/${protocol}/1`,
    'ABORT',
    'another commitment to the polynomial',
    add('commitment.0', 'ed-point'),
  ),
  on(
    `ed25519/${protocol}/1`,
    'MALFORMED',
    'a commitment that is not canonical',
    set('commitment.0', ED_NOT_CANONICAL),
  ),
  on(
    `ed25519/${protocol}/1`,
    'MALFORMED',
    'a commitment of small order',
    set('commitment.0', ED_TORSION),
  ),
  on(`ed25519/${protocol}/1`, 'ABORT', 'another proof', { kind: 'flip', field: 'proof', bit: 256 }),
  on('ed25519/keys/2', 'ABORT', 'another echo', flip('echo')),
  on(`ed25519/${protocol}/3`, 'MALFORMED', 'a damaged private part', flip('sealed')),
  on('ed25519/keys/4', 'ABORT', 'another echo', flip('echo')),
]

/** Cheats by protocol; each names its message, and thereby its round. */
export const CHEATS = {
  'secp256k1/sign': SECP256K1_SIGN,
  'secp256k1/keygen': [...SECP256K1_KEYS, ...SECP256K1_KEYGEN],
  'secp256k1/refresh': SECP256K1_KEYS,
  'ed25519/sign': ED25519_SIGN,
  'ed25519/keygen': [
    ...ed25519Keys('keygen'),
    on('ed25519/keygen/1', 'ABORT', 'another chain code commitment', flip('chain_commitment')),
    on('ed25519/keygen/3', 'ABORT', 'another part of the chain code', flip('chain_part')),
  ],
  'ed25519/refresh': [
    ...ed25519Keys('refresh'),
    on(
      'ed25519/refresh/1',
      'MALFORMED',
      'a chain code commitment in a refresh',
      flip('chain_commitment'),
    ),
  ],
} as const satisfies Record<string, readonly Switch[]>

export const roundOf = ({ message }: Pick<Switch, 'message'>): number =>
  Number(message.split('/')[2])
