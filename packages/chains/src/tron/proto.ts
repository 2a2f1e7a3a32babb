import { readFileSync } from 'node:fs'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import type protobuf from 'protobufjs'
import { ChainError } from '../types.ts'
import { library } from './library.ts'

let root: protobuf.Root | undefined
const INT64_MAX = 2n ** 63n - 1n
const TYPE_URL = 'type.googleapis.com/protocol.'

/** Numbers of the contract types that may be signed, with their messages. */
const CONTRACTS = {
  1: 'TransferContract',
  31: 'TriggerSmartContract',
  54: 'FreezeBalanceV2Contract',
  55: 'UnfreezeBalanceV2Contract',
  56: 'WithdrawExpireUnfreezeContract',
  57: 'DelegateResourceContract',
  58: 'UnDelegateResourceContract',
} as const
export type ContractType = keyof typeof CONTRACTS

/** Fields of a message. Zero and empty fields are omitted, as in canonical protobuf. */
export interface Fields {
  [name: string]: bigint | number | boolean | string | Uint8Array | Fields[] | Fields | undefined
}

/**
 * Content that a transaction commits to. `value`: the fields of its one contract, under the
 * protocol's names.
 */
export interface RawData {
  refBlockBytes: Uint8Array
  refBlockHash: Uint8Array
  expiration: bigint
  timestamp: bigint
  feeLimit: bigint
  type: ContractType
  value: Fields
}

function messageType(name: string): protobuf.Type {
  root ??= library().parse(readFileSync(new URL('./tron.proto', import.meta.url), 'utf8'), {
    keepCase: true,
  }).root
  return root.lookupType(`protocol.${name}`)
}

function clean(fields: Fields): Record<string, unknown> {
  const stored: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (
      value === undefined ||
      value === 0n ||
      value === 0 ||
      value === false ||
      value === '' ||
      (value instanceof Uint8Array && value.length === 0)
    ) {
      continue
    }
    if (typeof value === 'bigint') {
      if (value < 0n || value > INT64_MAX)
        throw new ChainError('AMOUNT', `${name} does not fit into 63 bits`)
      stored[name] = value.toString()
    } else if (Array.isArray(value)) stored[name] = value.map(clean)
    else
      stored[name] =
        typeof value === 'object' && !(value instanceof Uint8Array) ? clean(value) : value
  }
  return stored
}

function encode(name: string, fields: Fields): Uint8Array {
  const type = messageType(name)
  return Uint8Array.from(type.encode(type.fromObject(clean(fields))).finish())
}

function decode(name: string, bytes: Uint8Array): Record<string, unknown> {
  const type = messageType(name)
  try {
    return type.toObject(type.decode(bytes), { longs: String, arrays: true, defaults: true })
  } catch {
    throw new ChainError('TRANSACTION', `is not a Tron ${name}`)
  }
}

/** Encodes raw_data: all fields in ascending order, without empty ones. */
export function encodeRaw(raw: RawData): Uint8Array {
  const name = CONTRACTS[raw.type]
  return encode('Raw', {
    ref_block_bytes: raw.refBlockBytes,
    ref_block_hash: raw.refBlockHash,
    expiration: raw.expiration,
    contract: [
      {
        type: raw.type,
        parameter: { type_url: `${TYPE_URL}${name}`, value: encode(name, raw.value) },
      },
    ],
    timestamp: raw.timestamp,
    fee_limit: raw.feeLimit,
  })
}

/**
 * Reads raw_data with one contract of a known type.
 * @throws ChainError `TRANSACTION`, `SHAPE`, `ENCODING` (unknown or repeated fields, or another
 *   encoding of the same content)
 */
export function decodeRaw(bytes: Uint8Array): RawData {
  const raw = decode('Raw', bytes) as {
    ref_block_bytes: Uint8Array
    ref_block_hash: Uint8Array
    expiration: string
    timestamp: string
    fee_limit: string
    data: Uint8Array
    contract: {
      type: number
      Permission_id: number
      parameter: { type_url: string; value: Uint8Array } | null
    }[]
  }
  const [contract, more] = raw.contract
  if (!contract || more) throw new ChainError('SHAPE', 'a transaction has exactly one contract')
  if (raw.data.length > 0) throw new ChainError('SHAPE', 'memo data is not allowed')
  if (contract.Permission_id !== 0) throw new ChainError('SHAPE', 'a permission id is not allowed')
  const type = contract.type as ContractType
  const name = Object.hasOwn(CONTRACTS, type) ? CONTRACTS[type] : undefined
  if (name === undefined) throw new ChainError('SHAPE', `contract type ${type} is not allowed`)
  if (contract.parameter?.type_url !== `${TYPE_URL}${name}`)
    throw new ChainError('SHAPE', 'type and content of the contract differ')
  const existing = decode(name, contract.parameter.value)
  const value: Fields = {}
  for (const [field, content] of Object.entries(existing)) {
    value[field] =
      typeof content === 'string' ? BigInt(content) : (content as Uint8Array | number | boolean)
  }
  const result: RawData = {
    refBlockBytes: raw.ref_block_bytes,
    refBlockHash: raw.ref_block_hash,
    expiration: BigInt(raw.expiration),
    timestamp: BigInt(raw.timestamp),
    feeLimit: BigInt(raw.fee_limit),
    type,
    value,
  }
  // The encoder rejects negative numbers and drops everything unknown.
  if (bytesToHex(encodeRaw(result)) !== bytesToHex(bytes))
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  return result
}

/** Encodes a signed transaction with raw_data exactly as it was signed. */
export function encodeSigned(rawData: string, signature: Uint8Array): string {
  const type = messageType('Transaction')
  return bytesToHex(
    Uint8Array.from(
      type
        .encode({
          raw_data: hexToBytes(rawData),
          signature: [signature],
        } as unknown as protobuf.Message)
        .finish(),
    ),
  )
}
