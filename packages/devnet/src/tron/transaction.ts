import { sha256, toBase58 } from './address.ts'
import { allBytesOf, bytesOf, numberOf, readFields, writeBytes, writeNumber } from './protobuf.ts'

type Kind = 'address' | 'bytes' | 'number' | 'flag' | 'resource'
type Shape = { name: string; fields: Record<number, [name: string, kind: Kind]> }

/** The contract types that this chain executes. */
const SHAPES: Record<number, Shape> = {
  1: {
    name: 'TransferContract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['to_address', 'address'],
      3: ['amount', 'number'],
    },
  },
  31: {
    name: 'TriggerSmartContract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['contract_address', 'address'],
      3: ['call_value', 'number'],
      4: ['data', 'bytes'],
      5: ['call_token_value', 'number'],
      6: ['token_id', 'number'],
    },
  },
  54: {
    name: 'FreezeBalanceV2Contract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['frozen_balance', 'number'],
      3: ['resource', 'resource'],
    },
  },
  55: {
    name: 'UnfreezeBalanceV2Contract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['unfreeze_balance', 'number'],
      3: ['resource', 'resource'],
    },
  },
  56: { name: 'WithdrawExpireUnfreezeContract', fields: { 1: ['owner_address', 'address'] } },
  57: {
    name: 'DelegateResourceContract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['resource', 'resource'],
      3: ['balance', 'number'],
      4: ['receiver_address', 'address'],
      5: ['lock', 'flag'],
      6: ['lock_period', 'number'],
    },
  },
  58: {
    name: 'UnDelegateResourceContract',
    fields: {
      1: ['owner_address', 'address'],
      2: ['resource', 'resource'],
      3: ['balance', 'number'],
      4: ['receiver_address', 'address'],
    },
  },
}
export const RESOURCE_NAMES = ['BANDWIDTH', 'ENERGY'] as const
const TYPE_URL = 'type.googleapis.com/protocol.'
const ADDRESS_KEYS = /(?:^|_)address$|^(?:from|to)$/

export type Value = Record<string, string | bigint | boolean>

export type Tx = {
  /** The signed transaction in hex. */
  hex: string
  raw: Buffer
  id: string
  signatures: Buffer[]
  size: number
  refBlockBytes: string
  refBlockHash: string
  expiration: number
  timestamp: bigint
  feeLimit: bigint
  memo: Buffer
  contracts: number
  permission: bigint
  type: string
  typeUrl: string
  value: Value
}

/**
 * Parses a transaction, signed or unsigned.
 * @throws Error if it cannot be parsed or its type is unknown
 */
export function readTransaction(hex: string): Tx {
  if (!/^(?:[0-9a-f]{2})+$/.test(hex)) throw new Error('is not hexadecimal')
  const outer = readFields(Buffer.from(hex, 'hex'))
  const raw = bytesOf(outer, 1)
  const fields = readFields(raw)
  const contracts = allBytesOf(fields, 11)
  const contract = readFields(contracts[0] ?? Buffer.alloc(0))
  const shape = SHAPES[Number(numberOf(contract, 1))]
  if (!shape) throw new Error(`contract type ${numberOf(contract, 1)} is not known here`)
  const parameter = readFields(bytesOf(contract, 2))
  const content = readFields(bytesOf(parameter, 2))
  const value: Value = {}
  for (const [field, [name, kind]] of Object.entries(shape.fields)) {
    const at = Number(field)
    if (kind === 'address' || kind === 'bytes') value[name] = bytesOf(content, at).toString('hex')
    else if (kind === 'flag') value[name] = numberOf(content, at) !== 0n
    else if (kind === 'resource')
      value[name] = RESOURCE_NAMES[Number(numberOf(content, at))] ?? String(numberOf(content, at))
    else value[name] = numberOf(content, at)
  }
  return {
    hex,
    raw,
    id: sha256(raw).toString('hex'),
    signatures: allBytesOf(outer, 2),
    // Size as bandwidth counts it, without the result that a block adds.
    size:
      writeBytes(1, raw).length +
      allBytesOf(outer, 2).reduce((sum, signature) => sum + writeBytes(2, signature).length, 0),
    refBlockBytes: bytesOf(fields, 1).toString('hex'),
    refBlockHash: bytesOf(fields, 4).toString('hex'),
    expiration: Number(numberOf(fields, 8)),
    timestamp: numberOf(fields, 14),
    feeLimit: numberOf(fields, 18),
    memo: bytesOf(fields, 10),
    contracts: contracts.length,
    permission: numberOf(contract, 5),
    type: shape.name,
    typeUrl: bytesOf(parameter, 1).toString('utf8'),
    value,
  }
}

export function signedHex(raw: Uint8Array, signatures: readonly Uint8Array[]): string {
  return Buffer.concat([
    writeBytes(1, raw),
    ...signatures.map((signature) => writeBytes(2, signature)),
  ]).toString('hex')
}

/**
 * Encodes raw_data of a transaction with one contract, for callers that request it and for the
 * payments of the rich account.
 */
export function writeRaw(o: {
  type: string
  value: Value
  refBlockBytes: string
  refBlockHash: string
  expiration: number
  timestamp: number
  feeLimit: bigint
}): Buffer {
  const [number, shape] = Object.entries(SHAPES).find(([, { name }]) => name === o.type) as [
    string,
    Shape,
  ]
  const content = Object.entries(shape.fields).map(([field, [name, kind]]) => {
    const value = o.value[name]
    if (value === undefined || value === false || value === '') return Buffer.alloc(0)
    if (kind === 'address' || kind === 'bytes')
      return writeBytes(Number(field), Buffer.from(String(value), 'hex'))
    if (kind === 'resource') return writeNumber(Number(field), value === 'ENERGY' ? 1 : 0)
    return writeNumber(Number(field), BigInt(value))
  })
  const parameter = writeBytes(
    2,
    writeBytes(1, Buffer.from(TYPE_URL + o.type)),
    writeBytes(2, ...content),
  )
  return Buffer.concat([
    writeBytes(1, Buffer.from(o.refBlockBytes, 'hex')),
    writeBytes(4, Buffer.from(o.refBlockHash, 'hex')),
    writeNumber(8, o.expiration),
    writeBytes(11, writeNumber(1, Number(number)), parameter),
    writeNumber(14, o.timestamp),
    writeNumber(18, o.feeLimit),
  ])
}

/**
 * Returns a transaction as nodes do: zero fields omitted, addresses in hex or, if `visible`, in
 * base58.
 */
export function transactionJson(tx: Tx, visible: boolean): Record<string, unknown> {
  const value = Object.fromEntries(
    Object.entries(tx.value).filter(
      ([name, content]) =>
        content !== 0n &&
        content !== false &&
        content !== '' &&
        !(name === 'resource' && content === 'BANDWIDTH'),
    ),
  )
  const contract = {
    parameter: { value, type_url: tx.typeUrl },
    type: tx.type,
    ...(tx.permission === 0n ? {} : { Permission_id: tx.permission }),
  }
  const json = {
    visible,
    txID: tx.id,
    raw_data: {
      contract: [contract],
      ref_block_bytes: tx.refBlockBytes,
      ref_block_hash: tx.refBlockHash,
      expiration: tx.expiration,
      ...(tx.memo.length === 0 ? {} : { data: tx.memo.toString('hex') }),
      ...(tx.feeLimit === 0n ? {} : { fee_limit: tx.feeLimit }),
      ...(tx.timestamp === 0n ? {} : { timestamp: tx.timestamp }),
    },
    raw_data_hex: tx.raw.toString('hex'),
    ...(tx.signatures.length === 0
      ? {}
      : { signature: tx.signatures.map((signature) => signature.toString('hex')) }),
  }
  return visible ? (withBase58(json) as Record<string, unknown>) : json
}

/** Converts every address in a value to base58. */
export function withBase58(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(withBase58)
  if (typeof json !== 'object' || json === null) return json
  return Object.fromEntries(
    Object.entries(json).map(([key, value]) => [
      key,
      typeof value === 'string' && ADDRESS_KEYS.test(key) && /^41[0-9a-f]{40}$/.test(value)
        ? toBase58(value)
        : withBase58(value),
    ]),
  )
}

/** Serializes to JSON with exact integers, including those beyond 2^53. */
export function toJson(value: unknown): string {
  const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'bigint' ? rawJSON(each.toString()) : each,
  )
}
