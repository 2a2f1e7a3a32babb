import { compact, data, display, hash256, internal, Reader, uint32 } from './encoding.ts'
import { coinbasePayload, COINBASE_VERSION } from './dash-transactions.ts'
import { isCoinbase, makeTx, readTx, type Forms, type Tx } from './transaction.ts'

type Header = {
  version: number
  previous: string
  merkleRoot: string
  time: number
  bits: number
  nonce: number
}
export type ParsedBlock = {
  header: Header
  hash: string
  headerBytes: Buffer
  raw: Buffer
  txs: Tx[]
  strippedSize: number
  weight: number
}

const REGTEST_BITS = 0x207fffff
const TARGET = 0x7fffffn << (8n * (0x20n - 3n))
const NULL_HASH = '0'.repeat(64)

export function parseBlock(raw: Buffer, forms: Forms): ParsedBlock {
  const reader = new Reader(raw)
  const headerBytes = reader.bytes(80)
  const header: Header = {
    version: headerBytes.readInt32LE(0),
    previous: display(headerBytes.subarray(4, 36)),
    merkleRoot: display(headerBytes.subarray(36, 68)),
    time: headerBytes.readUInt32LE(68),
    bits: headerBytes.readUInt32LE(72),
    nonce: headerBytes.readUInt32LE(76),
  }
  const txs: Tx[] = []
  for (let left = reader.compact(); left > 0; left -= 1) txs.push(readTx(reader, forms))
  // The extension blocks themselves are left out.
  if (txs.at(-1)?.isHogEx && reader.uint8() !== 0) throw new Error('extension blocks')
  if (reader.left > 0) throw new Error('extra data after the block')
  const strippedSize =
    80 + compact(txs.length).length + txs.reduce((sum, tx) => sum + tx.baseSize, 0)
  return {
    header,
    hash: display(hash256(headerBytes)),
    headerBytes,
    raw,
    txs,
    strippedSize,
    weight: strippedSize * 3 + raw.length,
  }
}

function meetsTarget(hash: string): boolean {
  return BigInt(`0x${hash}`) <= TARGET
}

function merkleRoot(hashes: string[]): string {
  let level = hashes.map(internal)
  while (level.length > 1) {
    const next: Buffer[] = []
    for (let index = 0; index < level.length; index += 2) {
      next.push(hash256(Buffer.concat([level[index]!, level[index + 1] ?? level[index]!])))
    }
    level = next
  }
  return display(level[0]!)
}

const COMMITMENT = Buffer.from('6a24aa21a9ed', 'hex')

function commitment(txs: readonly Tx[], reserved: Buffer): Buffer {
  const root = merkleRoot([NULL_HASH, ...txs.slice(1).map((tx) => tx.wtxid)])
  return hash256(Buffer.concat([internal(root), reserved]))
}

/**
 * Checks the witness commitment (BIP141): the last output that looks like one counts. Also true if
 * there is no witness to commit to.
 */
function commitmentHolds(txs: readonly Tx[]): boolean {
  const coinbase = txs[0]!
  const output = coinbase.outs.findLast(
    ({ script }) => script.length >= 38 && script.subarray(0, 6).equals(COMMITMENT),
  )
  if (!output) return txs.every((tx) => tx.ins.every((input) => input.witness.length === 0))
  const reserved = coinbase.ins[0]!.witness[0]
  return (
    coinbase.ins[0]!.witness.length === 1 &&
    reserved?.length === 32 &&
    output.script.subarray(6, 38).equals(commitment(txs, reserved))
  )
}

/** Returns a script that starts with the height as a number (BIP34). */
export function heightScript(height: number): Buffer {
  if (height <= 16) return Buffer.from([height === 0 ? 0 : 0x50 + height])
  const bytes: number[] = []
  for (let left = height; left > 0; left >>>= 8) bytes.push(left & 0xff)
  if (bytes.at(-1)! & 0x80) bytes.push(0)
  return Buffer.from([bytes.length, ...bytes])
}

export function makeBlock(options: {
  previous: string
  height: number
  time: number
  reward: bigint
  payTo: Buffer
  extraNonce: Buffer
  segwit: boolean
  forms: Forms
  txs: readonly Tx[]
}): ParsedBlock {
  const reserved = Buffer.alloc(32)
  const input = {
    txid: NULL_HASH,
    vout: 0xffffffff,
    script: Buffer.concat([heightScript(options.height), data(options.extraNonce)]),
    sequence: 0xffffffff,
    witness: options.segwit ? [reserved] : [],
  }
  const reward = { value: options.reward, script: options.payTo }
  const coinbaseWith = (script: Buffer): Tx =>
    makeTx({ version: 2, ins: [input], outs: [reward, { value: 0n, script }], locktime: 0 })
  const draft = [coinbaseWith(COMMITMENT), ...options.txs]
  const coinbase = options.segwit
    ? coinbaseWith(Buffer.concat([COMMITMENT, commitment(draft, reserved)]))
    : makeTx({
        ins: [input],
        outs: [reward],
        locktime: 0,
        ...(options.forms.specialTransactions
          ? { version: COINBASE_VERSION, payload: coinbasePayload(options.height) }
          : { version: 2 }),
      })
  const txs = [coinbase, ...options.txs]
  const header = Buffer.concat([
    uint32(0x20000000),
    internal(options.previous),
    internal(merkleRoot(txs.map((tx) => tx.txid))),
    uint32(options.time),
    uint32(REGTEST_BITS),
    uint32(0),
  ])
  while (!meetsTarget(display(hash256(header))))
    header.writeUInt32LE(header.readUInt32LE(76) + 1, 76)
  const extension = txs.at(-1)?.isHogEx ? Buffer.from([0]) : Buffer.alloc(0)
  return parseBlock(
    Buffer.concat([header, compact(txs.length), ...txs.map((tx) => tx.raw), extension]),
    options.forms,
  )
}

/**
 * Checks the rules that a block must satisfy regardless of its inputs. Returns Core's name of the
 * violated rule.
 */
export function checkBlock(block: ParsedBlock): string | undefined {
  const { txs, header } = block
  if (header.bits !== REGTEST_BITS) return 'bad-diffbits'
  if (!meetsTarget(block.hash)) return 'high-hash'
  if (txs.length === 0 || !isCoinbase(txs[0]!)) return 'bad-cb-missing'
  if (txs.slice(1).some(isCoinbase)) return 'bad-cb-multiple'
  if (new Set(txs.map((tx) => tx.txid)).size !== txs.length) return 'bad-txns-duplicate'
  if (merkleRoot(txs.map((tx) => tx.txid)) !== header.merkleRoot) return 'bad-txnmrklroot'
  if (block.weight > 4_000_000) return 'bad-blk-weight'
  if (!commitmentHolds(txs)) return 'bad-witness-merkle-match'
  return undefined
}
