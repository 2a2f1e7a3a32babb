import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { secp256k1 } from '@noble/curves/secp256k1.js'

// The transcript vectors, which native/src/transcripts.rs makes, and their verifier in Python. Each
// test of a tampered copy names the check that must find the change.

const VECTORS = fileURLToPath(new URL('../testing/vectors', import.meta.url))
const VERIFIER = fileURLToPath(new URL('../../../docs/protocol/verify/verify.py', import.meta.url))
const skip =
  spawnSync('python3', ['--version']).status === 0
    ? false
    : 'python3 is not installed, which runs the verifier of the transcripts'
const folder = mkdtempSync(join(tmpdir(), 'custody-transcripts-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

function verify(...args: string[]): { status: number | null; lines: string[] } {
  const { status, stdout, stderr } = spawnSync('python3', [VERIFIER, ...args], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return { status, lines: stdout.trim().split('\n') }
}

test(
  'the verifier accepts the stored transcripts, and prints one line for each check',
  { skip },
  () => {
    const { status, lines } = verify()
    assert.equal(status, 0, lines.at(-1))
    const checks = lines.filter((line) => line.startsWith('ok    '))
    assert.equal(lines.at(-1), `${checks.length} checks hold`)
    assert.equal(lines.length, checks.length + 1)
    assert.ok(checks.length >= 287, `${checks.length} checks`)
  },
)

interface Message {
  round: number
  from: number
  to: number
  frame?: string
  public?: string
  private?: { whole?: string; slices?: Record<string, string> }
}
interface Vectors {
  context: Record<string, unknown> & { message: string }
  messages: Message[]
  secrets: Record<string, Record<string, string>>
  result: Record<string, string | number> & { shares: Record<string, string> }
}

const flipped = (digits: string, at: number): string =>
  digits.slice(0, at) + (parseInt(digits[at]!, 16) ^ 1).toString(16) + digits.slice(at + 1)

function messageOf(vectors: Vectors, round: number, from: number, to: number): Message {
  const found = vectors.messages.find(
    (each) => each.round === round && each.from === from && each.to === to,
  )
  assert.ok(found)
  return found
}

/** Changes a byte of a stored part of a message, counted from the part's start or its end. */
function change(part: Record<string, string> | Message, name: string, byte: number): void {
  const parts = part as Record<string, string>
  const digits = parts[name]
  assert.ok(digits)
  parts[name] = flipped(digits, byte < 0 ? digits.length + 2 * byte : 2 * byte)
}

interface Tampering {
  title: string
  file: string
  /** The check that fails. */
  check: RegExp
  tamper: (vectors: Vectors) => void
}

const TAMPERINGS: Tampering[] = [
  {
    title: 'another session id',
    file: 'dkls23-keygen',
    check: /the binding is the hash of the context/,
    tamper: ({ context }) => {
      context['session_id'] = flipped(context['session_id'] as string, 0)
    },
  },
  {
    title: 'a message that is missing',
    file: 'dkls23-keygen',
    check: /each party sent exactly its messages/,
    tamper: ({ messages }) => {
      messages.pop()
    },
  },
  {
    title: 'a frame with a changed byte',
    file: 'dkls23-keygen',
    check: /all stored frames have the header, checksum and hash/,
    tamper: (vectors) => {
      change(messageOf(vectors, 4, 2, 0), 'frame', -1)
    },
  },
  {
    title: 'another fragment than the encrypted one',
    file: 'dkls23-keygen',
    check: /round 2, 1 to 3: the private part opens to the stored one/,
    tamper: (vectors) => {
      change(messageOf(vectors, 2, 1, 3).private as Record<string, string>, 'whole', -1)
    },
  },
  {
    title: 'a share that is not the sum of the fragments',
    file: 'dkls23-keygen',
    check: /party 2: the fragments are on one line/,
    tamper: ({ result }) => {
      result.shares['2'] = flipped(result.shares['2']!, 63)
    },
  },
  {
    title: 'another salt of a zero-share seed',
    file: 'dkls23-keygen',
    check: /3 to 1: the zero-share seed fits its commitment/,
    tamper: (vectors) => {
      change(messageOf(vectors, 5, 3, 1).private!.slices!, '0', 40)
    },
  },
  {
    title: 'a wrong response in the proof of a base transfer',
    file: 'dkls23-keygen',
    check: /1 to 2: Fischlin proof of the base transfer/,
    tamper: (vectors) => {
      // The set-up ends with a nonce of 33 bytes and the number of encryption proofs.
      change(messageOf(vectors, 5, 1, 2).private!.slices!, '0', -36)
    },
  },
  {
    title: 'a wrong challenge in an encryption proof',
    file: 'dkls23-keygen',
    check: /2 to 3: encryption proof 255/,
    tamper: (vectors) => {
      const { slices } = messageOf(vectors, 5, 2, 3).private!
      change(slices!, Object.keys(slices!).at(-2)!, -1)
    },
  },
  {
    title: 'the public key of another secret',
    file: 'dkls23-keygen',
    check: /the points of 1 and 2 interpolate to the key/,
    tamper: ({ result }) => {
      result['public_key'] = secp256k1.Point.BASE.toHex(true)
    },
  },
  {
    title: 'another digest',
    file: 'dkls23-sign',
    check: /the binding is the hash of the context/,
    tamper: ({ context }) => {
      context.message = flipped(context.message, 0)
    },
  },
  {
    title: 'a changed row of the extension',
    file: 'dkls23-sign',
    check: /round 1, 1 to 2: the message and its frame are reproduced/,
    tamper: (vectors) => {
      change(messageOf(vectors, 1, 1, 2).private!.slices!, '0', -1)
    },
  },
  {
    title: 'another nonce than the committed one',
    file: 'dkls23-sign',
    check: /the inputs are nonce and key share of the sender/,
    tamper: ({ secrets }) => {
      change(secrets['2']!, 'instance_key', -1)
    },
  },
  {
    title: 'a signature with the high s',
    file: 'dkls23-sign',
    check: /r is the x coordinate of the sum of the nonce points, s the quotient/,
    tamper: ({ result }) => {
      const signature = result['signature'] as string
      const s = secp256k1.Point.Fn.ORDER - BigInt(`0x${signature.slice(64)}`)
      result['signature'] = signature.slice(0, 64) + s.toString(16).padStart(64, '0')
    },
  },
  {
    title: 'another recovery id',
    file: 'dkls23-sign',
    check: /the recovery id belongs to the point of the signature/,
    tamper: ({ result }) => {
      result['recovery_id'] = 1 - (result['recovery_id'] as number)
    },
  },
  {
    title: 'a refresh of other shares',
    file: 'dkls23-refresh',
    check: /the binding is the hash of the context/,
    tamper: ({ context }) => {
      context['share_set'] = flipped(context['share_set'] as string, 0)
    },
  },
  {
    title: 'a refresh that changes the public key',
    file: 'dkls23-refresh',
    check: /public key and chain code are the old ones/,
    tamper: ({ result }) => {
      result['public_key'] = secp256k1.Point.BASE.toHex(true)
    },
  },
  {
    title: 'a wrong proof of a correction',
    file: 'dkls23-refresh',
    check: /party 3: the proof fits its commitment/,
    tamper: (vectors) => {
      change(messageOf(vectors, 5, 3, 1), 'public', 40)
    },
  },
  {
    title: 'a share of Ed25519 that is not the sum of the fragments',
    file: 'frost-keygen',
    check: /party 1: the share is the sum of the fragments/,
    tamper: ({ result }) => {
      result.shares['1'] = flipped(result.shares['1']!, 1)
    },
  },
  {
    title: 'another chain code',
    file: 'frost-keygen',
    check: /the chain code is the hash of the parts/,
    tamper: ({ result }) => {
      result['chain_code'] = flipped(result['chain_code'] as string, 1)
    },
  },
  {
    title: 'another nonce than the committed one of Ed25519',
    file: 'frost-sign',
    check: /party 2: the commitments are the points of the nonces/,
    tamper: ({ secrets }) => {
      change(secrets['2']!, 'binding_nonce', 0)
    },
  },
  {
    title: 'a changed signature of Ed25519',
    file: 'frost-sign',
    check: /the signature is the group commitment and the sum of the shares/,
    tamper: ({ result }) => {
      result['signature'] = flipped(result['signature'] as string, 65)
    },
  },
  {
    title: 'a refresh on Ed25519 that keeps a share',
    file: 'frost-refresh',
    check: /party 3: the share is the sum of the fragments/,
    tamper: ({ result }) => {
      const old = JSON.parse(readFileSync(join(VECTORS, 'frost-keygen.json'), 'utf8')) as Vectors
      result.shares['3'] = old.result.shares['3']!
    },
  },
]

for (const [index, { title, file, check, tamper }] of TAMPERINGS.entries()) {
  test(`the verifier refuses ${title} (${file})`, { skip }, () => {
    const copy = join(folder, String(index))
    cpSync(VECTORS, copy, { recursive: true })
    const path = join(copy, `${file}.json`)
    const vectors = JSON.parse(readFileSync(path, 'utf8')) as Vectors
    tamper(vectors)
    writeFileSync(path, JSON.stringify(vectors))
    const { status, lines } = verify(copy)
    assert.equal(status, 1)
    const last = lines.at(-1)!
    assert.ok(last.startsWith(`FAILED ${file}: `), last)
    assert.match(last, check)
  })
}

test('the verifier refuses a folder without vectors', { skip }, () => {
  const { status, lines } = verify(join(folder, 'missing'))
  assert.equal(status, 1)
  assert.match(lines.at(-1)!, /^FAILED dkls23-keygen: the file is malformed: FileNotFoundError/)
})

test('the addon contains nothing of the fixed randomness with which the transcripts are made', () => {
  const source = new URL('../native/src/transcripts/randomness.rs', import.meta.url)
  const tags = [...readFileSync(source, 'utf8').matchAll(/"(custody\/[^"]+)"/g)].map(
    ([, tag]) => tag!,
  )
  assert.ok(tags.length > 0)
  const path = new URL('../native/threshold.node', import.meta.url)
  assert.ok(existsSync(path))
  const addon = readFileSync(path)
  // A tag of the addon's own code is found, so the search works.
  assert.ok(addon.includes('custody/threshold/session/v1'))
  for (const tag of [...tags, 'custody/threshold/vectors/']) assert.ok(!addon.includes(tag), tag)
})
