import { compact, data, display, hash256, internal, Reader, uint32, uint64 } from './encoding.ts'

export type TxIn = { txid: string; vout: number; script: Buffer; sequence: number; witness: Buffer[] }
export type TxOut = { value: bigint; script: Buffer }
export type Tx = {
  version: number
  ins: TxIn[]
  outs: TxOut[]
  locktime: number
  raw: Buffer
  txid: string
  wtxid: string
  /** Without witness. */
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
  return tx.ins.length === 1 && first !== undefined && first.txid === NULL_TXID && first.vout === 0xffffffff
}

/** Throws on anything that is not exactly one transaction. */
export function parseTx(raw: Buffer): Tx {
  const reader = new Reader(raw)
  const tx = readTx(reader)
  if (reader.left > 0) throw new Error('extra data after the transaction')
  return tx
}

export function readTx(reader: Reader): Tx {
  const start = reader.at
  const version = reader.uint32()
  let count = reader.compact()
  let flag = 0
  if (count === 0) {
    flag = reader.uint8()
    if (flag === 1) count = reader.compact()
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
  // Two zero bytes: no inputs and no outputs.
  const outCount = count === 0 && flag === 0 ? 0 : reader.compact()
  for (let index = 0; index < outCount; index += 1) outs.push({ value: reader.uint64(), script: reader.data() })
  if (flag === 1) {
    for (const input of ins) for (let left = reader.compact(); left > 0; left -= 1) input.witness.push(reader.data())
    if (ins.every((input) => input.witness.length === 0)) throw new Error('superfluous witness record')
  }
  const locktime = reader.uint32()
  return finish({ version, ins, outs, locktime }, reader.buffer.subarray(start, reader.at))
}

export function makeTx(parts: Pick<Tx, 'version' | 'ins' | 'outs' | 'locktime'>): Tx {
  const hasWitness = parts.ins.some((input) => input.witness.length > 0)
  return finish(parts, serialise(parts, hasWitness))
}

function finish(parts: Pick<Tx, 'version' | 'ins' | 'outs' | 'locktime'>, raw: Buffer): Tx {
  const base = serialise(parts, false)
  const weight = base.length * 3 + raw.length
  return {
    ...parts,
    raw: Buffer.from(raw),
    txid: display(hash256(base)),
    wtxid: display(hash256(raw)),
    baseSize: base.length,
    weight,
    vsize: Math.ceil(weight / 4),
  }
}

function serialise(tx: Pick<Tx, 'version' | 'ins' | 'outs' | 'locktime'>, witness: boolean): Buffer {
  const parts = [uint32(tx.version)]
  if (witness) parts.push(Buffer.from([0, 1]))
  parts.push(compact(tx.ins.length))
  for (const input of tx.ins) parts.push(internal(input.txid), uint32(input.vout), data(input.script), uint32(input.sequence))
  parts.push(compact(tx.outs.length))
  for (const output of tx.outs) parts.push(uint64(output.value), data(output.script))
  if (witness) for (const input of tx.ins) parts.push(compact(input.witness.length), ...input.witness.map(data))
  parts.push(uint32(tx.locktime))
  return Buffer.concat(parts)
}

export type Spent = { value: bigint; script: Buffer }
