import { blake2b } from '@noble/hashes/blake2.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { assertShape } from '../assertions.ts'
import { ChainError } from '../types.ts'
import {
  array,
  bytesOf,
  byteString,
  field,
  itemsOf,
  map,
  read,
  spanOfField,
  spansOf,
  tagged,
  uint,
  uintOf,
  type Item,
  type Span,
} from './cbor.ts'

/**
 * Quantities of native tokens by unit. A unit is the policy's 28 bytes and the name, in hex, as
 * Blockfrost writes it.
 */
export type Assets = ReadonlyMap<string, bigint>
export interface Output {
  address: Uint8Array
  coin: bigint
  assets: Assets
}
export interface Input {
  txid: string
  index: number
}
/** Content of an allowed transaction body. The body's bytes follow from these fields alone. */
export interface Body {
  inputs: Input[]
  outputs: Output[]
  fee: bigint
  /** First slot that can no longer include the transaction. */
  ttl: bigint
}

export const NO_ASSETS: Assets = new Map()
/** CBOR tag of a set in Conway's encoding. */
const SET = 258n
const ENCODED_CBOR = 24n
const POLICY_DIGITS = 56
const FIELDS = [
  'inputs',
  'outputs',
  'a fee',
  'a time to live',
  'certificates',
  'withdrawals',
  'an update',
  'auxiliary data',
  'a beginning of its validity',
  'a mint',
  '',
  'script data',
  '',
  'collateral',
  'required signers',
  'a network id',
  'a collateral return',
  'a total collateral',
  'reference inputs',
  'votes',
  'proposals',
  'a treasury value',
  'a donation',
]

/** Returns the BLAKE2b-256 hash of a body, which is the transaction's id and the signed message. */
export const hashOf = (body: Uint8Array): Uint8Array => blake2b(body, { dkLen: 32 })

/** Compares in RFC 7049's canonical order: shorter texts first. */
const canonical = (a: string, b: string): number =>
  a.length === b.length ? (a < b ? -1 : a > b ? 1 : 0) : a.length - b.length

export function encodeValue(coin: bigint, assets: Assets): Uint8Array {
  if (assets.size === 0) return uint(coin)
  const policies = new Map<string, [string, bigint][]>()
  for (const [unit, quantity] of assets) {
    const policy = unit.slice(0, POLICY_DIGITS)
    policies.set(policy, [...(policies.get(policy) ?? []), [unit.slice(POLICY_DIGITS), quantity]])
  }
  return array([
    uint(coin),
    map(
      [...policies]
        .sort(([a], [b]) => canonical(a, b))
        .map(([policy, names]) => [
          byteString(hexToBytes(policy)),
          map(
            names
              .sort(([a], [b]) => canonical(a, b))
              .map(([name, quantity]) => [byteString(hexToBytes(name)), uint(quantity)]),
          ),
        ]),
    ),
  ])
}

/** Encodes an output in the format that precedes datums and cannot contain one. */
export function encodeOutput({ address, coin, assets }: Output): Uint8Array {
  return array([byteString(address), encodeValue(coin, assets)])
}

export function encodeBody({ inputs, outputs, fee, ttl }: Body): Uint8Array {
  return map([
    [
      uint(0n),
      tagged(
        SET,
        array(
          inputs.map(({ txid, index }) =>
            array([byteString(hexToBytes(txid)), uint(BigInt(index))]),
          ),
        ),
      ),
    ],
    [uint(1n), array(outputs.map(encodeOutput))],
    [uint(2n), uint(fee)],
    [uint(3n), uint(ttl)],
  ])
}

function readValue(item: Item | undefined): Pick<Output, 'coin' | 'assets'> {
  if (item?.kind !== 'array') return { coin: uintOf(item), assets: NO_ASSETS }
  const [coin, bundle, more] = item.items
  if (bundle?.kind !== 'map' || more)
    throw new ChainError('TRANSACTION', 'has an amount that cannot be read')
  const assets = new Map<string, bigint>()
  for (const [policy, names] of bundle.entries) {
    if (names.kind !== 'map')
      throw new ChainError('TRANSACTION', 'has an amount that cannot be read')
    for (const [name, quantity] of names.entries) {
      const unit = bytesToHex(bytesOf(policy)) + bytesToHex(bytesOf(name))
      if (bytesOf(policy).length * 2 !== POLICY_DIGITS || assets.has(unit)) {
        throw new ChainError('TRANSACTION', 'has an amount that cannot be read')
      }
      if (uintOf(quantity) > 0n) assets.set(unit, uintOf(quantity))
    }
  }
  return { coin: uintOf(coin), assets }
}

/**
 * Reads a body of the one allowed shape: inputs in canonical order, outputs without datum or
 * script, a fee and a time to live.
 * @throws ChainError `TRANSACTION`, `SHAPE`; `ENCODING` if it does not encode to the same bytes
 */
export function parseBody(bytes: Uint8Array): Body {
  const root = read(bytes)
  if (root.kind !== 'map')
    throw new ChainError('TRANSACTION', 'is not the body of a Cardano transaction')
  for (const [key] of root.entries) {
    const number = key.kind === 'uint' ? Number(key.value) : -1
    assertShape(
      number >= 0 && number <= 3,
      `${FIELDS[number] || 'an unknown field'} is not allowed`,
    )
  }
  for (const key of [0, 1, 2, 3])
    assertShape(field(root, key) !== undefined, `lacks ${String(FIELDS[key])}`)
  const body: Body = {
    inputs: itemsOf(field(root, 0)).map((input) => {
      const [txid, index, more] = itemsOf(input)
      const at = uintOf(index)
      assertShape(
        !more && bytesOf(txid).length === 32 && at < 65_536n,
        'has an input that cannot be read',
      )
      return { txid: bytesToHex(bytesOf(txid)), index: Number(at) }
    }),
    outputs: itemsOf(field(root, 1)).map((output) => {
      assertShape(
        output.kind === 'array' && output.items.length === 2,
        'only plain outputs, without datum and script, are allowed',
      )
      return { address: bytesOf(output.items[0]), ...readValue(output.items[1]) }
    }),
    fee: uintOf(field(root, 2)),
    ttl: uintOf(field(root, 3)),
  }
  assertShape(body.inputs.length > 0 && body.outputs.length > 0, 'has no inputs or no outputs')
  assertShape(
    body.inputs.every(
      (input, at) => at === 0 || compareInputs(body.inputs[at - 1] as Input, input) < 0,
    ),
    'inputs must be sorted, without duplicates',
  )
  const again = encodeBody(body)
  if (again.length !== bytes.length || again.some((byte, at) => byte !== bytes[at])) {
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  }
  return body
}

/** Compares inputs in the order that the ledger uses for sets of inputs. */
export function compareInputs(a: Input, b: Input): number {
  return a.txid === b.txid ? a.index - b.index : a.txid < b.txid ? -1 : 1
}

export interface FoundOutput extends Output {
  /** Size of the reference script in bytes. The transaction that spends the output pays for it. */
  scriptBytes: number
}

/** Reads an output of any transaction, in the encoding of any era. */
function readOutput(item: Item): FoundOutput {
  if (item.kind === 'array')
    return { address: bytesOf(item.items[0]), ...readValue(item.items[1]), scriptBytes: 0 }
  const script = field(item, 3)
  const scriptBytes =
    script?.kind === 'tag' && script.tag === ENCODED_CBOR ? bytesOf(script.item).length : 0
  return { address: bytesOf(field(item, 0)), ...readValue(field(item, 1)), scriptBytes }
}

/**
 * Reads the output in a span of a body's bytes.
 * @throws ChainError `TRANSACTION` if the output has an unknown format
 */
const readOutputAt = (body: Uint8Array, { start, end }: Span): FoundOutput =>
  readOutput(read(body.subarray(start, end)))

function outputSpans(body: Uint8Array): Span[] {
  const outputs = spanOfField(body, 0, 1)
  if (!outputs) throw new ChainError('TRANSACTION', 'must contain a list')
  return spansOf(body, outputs.start, 'array')
}

/**
 * Returns output `index` of a body, or null. If a transaction's script failed, its collateral
 * return follows the outputs that the body lists.
 */
export function outputOf(body: Uint8Array, index: number): FoundOutput | null {
  const outputs = outputSpans(body)
  const result = outputs[index] ?? (index === outputs.length ? spanOfField(body, 0, 16) : undefined)
  return result ? readOutputAt(body, result) : null
}

/**
 * Reads a transaction as it is on the chain: its body's exact bytes, whether its scripts succeeded,
 * and the outputs that it created. `unreadable` lists outputs of an unknown format, which are left
 * out. The rest of the transaction is not parsed, so script data, metadata and future fields cannot
 * hide its payments.
 */
export function openTransaction(raw: Uint8Array): {
  id: string
  body: Uint8Array
  isValid: boolean
  outputs: (FoundOutput & { index: number })[]
  unreadable: { index: number; reason: string }[]
} {
  const [first, , third, fourth] = spansOf(raw, 0, 'array')
  if (!first) throw new ChainError('TRANSACTION', 'is not a Cardano transaction')
  const body = raw.subarray(first.start, first.end)
  // Transactions before Alonzo have no validity flag.
  const mark = third && raw[third.start]
  const isValid =
    fourth === undefined || mark === undefined || mark >> 5 !== SIMPLE || mark === TRUE
  const named = outputSpans(body)
  const back = spanOfField(body, 0, 16)
  const made = isValid
    ? named.map((span, index) => ({ span, index }))
    : back
      ? [{ span: back, index: named.length }]
      : []
  const outputs: (FoundOutput & { index: number })[] = []
  const unreadable: { index: number; reason: string }[] = []
  for (const { span, index } of made) {
    try {
      outputs.push({ ...readOutputAt(body, span), index })
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      unreadable.push({ index, reason: error.message })
    }
  }
  return { id: bytesToHex(hashOf(body)), body, isValid, outputs, unreadable }
}

/** Certificates that refund a stake key's deposit: the types before Conway and since. */
const DEREGISTRATIONS = new Set([1n, 8n])
/**
 * Certificate of a representative's retirement. It refunds a deposit that belongs to no address.
 */
const REPRESENTATIVE_RETIREMENT = 17n
const STAKE_KEY = 0xe0
const STAKE_SCRIPT = 0xf0

/**
 * Returns the reward accounts whose lovelace a body spends in addition to its inputs, as bytes
 * without a network. Null stands for a source that has no address.
 */
export function fundingOf(body: Uint8Array): (Uint8Array | null)[] {
  const part = (key: number): Item | undefined => {
    const span = spanOfField(body, 0, key)
    return span && read(body.subarray(span.start, span.end))
  }
  const withdrawals = part(5)
  const certificates = spanOfField(body, 0, 4)
  return [
    ...(withdrawals?.kind === 'map'
      ? withdrawals.entries.map(([account]) => bytesOf(account))
      : []),
    ...(certificates ? spansOf(body, certificates.start, 'array') : []).flatMap(
      ({ start, end }): (Uint8Array | null)[] => {
        try {
          return fundingOfCertificate(read(body.subarray(start, end)))
        } catch (error) {
          // A certificate of an unknown type may refund a deposit to an unknown party.
          if (error instanceof ChainError) return [null]
          throw error
        }
      },
    ),
  ]
}

function fundingOfCertificate(certificate: Item): (Uint8Array | null)[] {
  const [kind, credential] = itemsOf(certificate)
  if (uintOf(kind) === REPRESENTATIVE_RETIREMENT) return [null]
  if (!DEREGISTRATIONS.has(uintOf(kind))) return []
  const [holder, hash] = itemsOf(credential)
  return [
    concatBytes(Uint8Array.of(uintOf(holder) === 0n ? STAKE_KEY : STAKE_SCRIPT), bytesOf(hash)),
  ]
}

const TRUE = 0xf5
/** CBOR major type of booleans. */
const SIMPLE = 7
const NULL = 0xf6
const WITNESS_BYTES = 101

/** Encodes a transaction with one witness for each key, without scripts and auxiliary data. */
export function encodeSigned(
  body: Uint8Array,
  witnesses: readonly { publicKey: Uint8Array; signature: Uint8Array }[],
): Uint8Array {
  const keys = tagged(
    SET,
    array(
      witnesses.map(({ publicKey, signature }) =>
        array([byteString(publicKey), byteString(signature)]),
      ),
    ),
  )
  return concatBytes(Uint8Array.of(0x84), body, map([[uint(0n), keys]]), Uint8Array.of(TRUE, NULL))
}

/** Returns the size in bytes of the signed transaction of a body. */
export function signedBytes(bodyBytes: number, keys: number): number {
  const count = keys < 24 ? 1 : keys < 256 ? 2 : 3
  return 1 + bodyBytes + 2 + 3 + count + keys * WITNESS_BYTES + 2
}
