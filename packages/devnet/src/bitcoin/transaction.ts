import type { UtxoNetwork } from './networks.ts'
import { compact, data, display, hash256, internal, Reader, uint32, uint64 } from './encoding.ts'

export type TxIn = {
  txid: string
  vout: number
  script: Buffer
  sequence: number
  witness: Buffer[]
}
export type TxOut = { value: bigint; script: Buffer }
export type Tx = {
  version: number
  ins: TxIn[]
  outs: TxOut[]
  locktime: number
  /** Dash: payload of a special transaction (DIP-2), after its lock time. */
  payload?: Buffer | undefined
  /** Litecoin: the last transaction of a block with extension blocks, which needs no signature. */
  isHogEx?: boolean | undefined
  raw: Buffer
  txid: string
  wtxid: string
  /** Size in bytes without the witness. */
  baseSize: number
  weight: number
  vsize: number
}

export function outpoint(txid: string, vout: number): string {
  return `${txid}:${vout}`
}

const NULL_TXID = '0'.repeat(64)

export function isCoinbase(tx: Tx): boolean {
  const first = tx.ins[0]
  return (
    tx.ins.length === 1 &&
    first !== undefined &&
    first.txid === NULL_TXID &&
    first.vout === 0xffffffff
  )
}

/** Transaction formats that only some chains have. */
export type Forms = Pick<UtxoNetwork, 'specialTransactions' | 'extensionBlocks'>
type Parts = Pick<Tx, 'version' | 'ins' | 'outs' | 'locktime' | 'payload' | 'isHogEx'>

const WITNESS_FLAG = 1
const EXTENSION_FLAG = 8
const SPECIAL_VERSION = 3

/** Returns the type of a special transaction (DIP-2), or 0. */
export const typeOf = ({ version }: Pick<Tx, 'version'>): number =>
  (version & 0xffff) >= SPECIAL_VERSION ? version >>> 16 : 0

/**
 * Parses exactly one transaction.
 * @throws Error for anything else
 */
export function parseTx(raw: Buffer, forms: Forms): Tx {
  const reader = new Reader(raw)
  const tx = readTx(reader, forms)
  if (reader.left > 0) throw new Error('extra data after the transaction')
  return tx
}

export function readTx(reader: Reader, forms: Forms): Tx {
  const start = reader.at
  const version = reader.uint32()
  const isSpecial = forms.specialTransactions && typeOf({ version }) !== 0
  let count = reader.compact()
  let flag = 0
  // A withdrawal from Dash's credit pool spends nothing, so its zero is the number of inputs.
  if (count === 0 && !isSpecial) {
    flag = reader.uint8()
    if (flag === WITNESS_FLAG || (flag === EXTENSION_FLAG && forms.extensionBlocks))
      count = reader.compact()
    else if (flag !== 0) throw new Error('unknown transaction optional data')
  }
  const ins: TxIn[] = []
  for (let index = 0; index < count; index += 1) {
    const txid = display(reader.bytes(32))
    const vout = reader.uint32()
    const script = reader.data()
    ins.push({ txid, vout, script, sequence: reader.uint32(), witness: [] })
  }
  const outs: TxOut[] = []
  // Two zero bytes mean no inputs and no outputs.
  const outCount = count === 0 && flag === 0 && !isSpecial ? 0 : reader.compact()
  for (let index = 0; index < outCount; index += 1)
    outs.push({ value: reader.uint64(), script: reader.data() })
  if (flag === WITNESS_FLAG) readWitnesses(reader, ins)
  if (flag === EXTENSION_FLAG && reader.uint8() !== 0)
    throw new Error('a part of the extension blocks')
  const locktime = reader.uint32()
  const payload = isSpecial ? reader.data() : undefined
  const parts = {
    version,
    ins,
    outs,
    locktime,
    payload,
    isHogEx: flag === EXTENSION_FLAG ? true : undefined,
  }
  return finish(parts, reader.buffer.subarray(start, reader.at))
}

/**
 * Reads the witnesses of all inputs.
 * @throws Error if all of them are empty
 */
function readWitnesses(reader: Reader, ins: readonly TxIn[]): void {
  for (const input of ins)
    for (let left = reader.compact(); left > 0; left -= 1) input.witness.push(reader.data())
  if (ins.every((input) => input.witness.length === 0))
    throw new Error('superfluous witness record')
}

export function makeTx(parts: Parts): Tx {
  const hasWitness = parts.ins.some((input) => input.witness.length > 0)
  return finish(
    parts,
    serialise(parts, parts.isHogEx ? EXTENSION_FLAG : hasWitness ? WITNESS_FLAG : 0),
  )
}

function finish(parts: Parts, raw: Buffer): Tx {
  const base = serialise(parts, 0)
  // Ids and weights do not cover the extension-block part.
  const whole = parts.isHogEx ? base : raw
  const weight = base.length * 3 + whole.length
  return {
    ...parts,
    raw: Buffer.from(raw),
    txid: display(hash256(base)),
    wtxid: display(hash256(whole)),
    baseSize: base.length,
    weight,
    vsize: Math.ceil(weight / 4),
  }
}

function serialise(tx: Parts, flag: number): Buffer {
  const parts = [uint32(tx.version)]
  if (flag !== 0) parts.push(Buffer.from([0, flag]))
  parts.push(compact(tx.ins.length))
  for (const input of tx.ins)
    parts.push(internal(input.txid), uint32(input.vout), data(input.script), uint32(input.sequence))
  parts.push(compact(tx.outs.length))
  for (const output of tx.outs) parts.push(uint64(output.value), data(output.script))
  if (flag === WITNESS_FLAG)
    for (const input of tx.ins)
      parts.push(compact(input.witness.length), ...input.witness.map(data))
  if (flag === EXTENSION_FLAG) parts.push(Buffer.from([0]))
  parts.push(uint32(tx.locktime))
  if (tx.payload) parts.push(data(tx.payload))
  return Buffer.concat(parts)
}

export type Spent = { value: bigint; script: Buffer }
