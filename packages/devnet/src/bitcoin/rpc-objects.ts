import { addressOf, scriptType, witnessProgram } from './address.ts'
import { descriptorChecksum } from './descriptor.ts'
import { btc, Literal } from './json.ts'
import { sum, type Block, type Coin, type Ledger } from './ledger.ts'
import type { Entry, Mempool } from './mempool.ts'
import type { UtxoNetwork } from './networks.ts'
import { splitToken, tokenData } from './cash-tokens.ts'
import { specialFields } from './dash-transactions.ts'
import { isCoinbase, typeOf, type Tx } from './transaction.ts'

/** Objects of Core's responses. */

const OPCODES: Record<number, string> = {
  0x00: '0',
  0x4f: '-1',
  0x61: 'OP_NOP',
  0x63: 'OP_IF',
  0x64: 'OP_NOTIF',
  0x67: 'OP_ELSE',
  0x68: 'OP_ENDIF',
  0x69: 'OP_VERIFY',
  0x6a: 'OP_RETURN',
  0x75: 'OP_DROP',
  0x76: 'OP_DUP',
  0x7c: 'OP_SWAP',
  0x87: 'OP_EQUAL',
  0x88: 'OP_EQUALVERIFY',
  0xa8: 'OP_SHA256',
  0xa9: 'OP_HASH160',
  0xaa: 'OP_HASH256',
  0xac: 'OP_CHECKSIG',
  0xad: 'OP_CHECKSIGVERIFY',
  0xae: 'OP_CHECKMULTISIG',
  0xaf: 'OP_CHECKMULTISIGVERIFY',
  0xb1: 'OP_CHECKLOCKTIMEVERIFY',
  0xb2: 'OP_CHECKSEQUENCEVERIFY',
}
const HASH_TYPES: Record<number, string> = {
  0x01: 'ALL',
  0x02: 'NONE',
  0x03: 'SINGLE',
  0x81: 'ALL|ANYONECANPAY',
  0x82: 'NONE|ANYONECANPAY',
  0x83: 'SINGLE|ANYONECANPAY',
}

function asm(script: Buffer, signatures: boolean): string {
  const words: string[] = []
  let at = 0
  while (at < script.length) {
    const op = script[at]!
    at += 1
    if (op === 0 || op > 0x4e) {
      words.push(OPCODES[op] ?? (op >= 0x51 && op <= 0x60 ? String(op - 0x50) : 'OP_UNKNOWN'))
      continue
    }
    const lengthBytes = op < 0x4c ? 0 : 1 << (op - 0x4c)
    if (at + lengthBytes > script.length) return [...words, '[error]'].join(' ')
    const length = lengthBytes === 0 ? op : script.readUIntLE(at, lengthBytes)
    at += lengthBytes
    if (at + length > script.length) return [...words, '[error]'].join(' ')
    words.push(pushed(script.subarray(at, at + length), signatures))
    at += length
  }
  return words.join(' ')
}

function pushed(item: Buffer, signatures: boolean): string {
  if (item.length <= 4) {
    let value = 0
    for (const [index, byte] of item.entries()) value += byte * 2 ** (8 * index)
    const negative = (item.at(-1) ?? 0) & 0x80
    return String(negative ? -(value - 2 ** (8 * item.length - 1)) : value)
  }
  const type = HASH_TYPES[item.at(-1)!]
  if (signatures && type && item[0] === 0x30 && item.length > 8 && item.length < 74) {
    return `${item.subarray(0, -1).toString('hex')}[${type}]`
  }
  return item.toString('hex')
}

function scriptPubKey(script: Buffer, network: UtxoNetwork): Record<string, unknown> {
  const address = addressOf(script, network)
  const body = address === undefined ? `raw(${script.toString('hex')})` : `addr(${address})`
  return {
    asm: asm(script, false),
    desc: `${body}#${descriptorChecksum(body)}`,
    hex: script.toString('hex'),
    address,
    type: scriptType(script, network.segwit),
  }
}

/** Returns the script of an output, and the token that it carries. */
export function outputFields(script: Buffer, network: UtxoNetwork): Record<string, unknown> {
  const { token, locking } = network.cashTokens
    ? splitToken(script)
    : { token: undefined, locking: script }
  return { scriptPubKey: scriptPubKey(locking, network), tokenData: tokenData(token) }
}

/**
 * `coins` (the spent outputs) are used for the fee, and with `prevouts` are also included with each
 * input.
 */
export function txObject(
  network: UtxoNetwork,
  tx: Tx,
  coins?: readonly Coin[],
  prevouts = false,
): Record<string, unknown> {
  const coinbase = isCoinbase(tx)
  return {
    txid: tx.txid,
    hash: tx.wtxid,
    version: typeOf(tx) === 0 ? tx.version : tx.version & 0xffff,
    size: tx.raw.length,
    vsize: tx.vsize,
    weight: tx.weight,
    locktime: tx.locktime,
    vin: tx.ins.map((input, index) => ({
      ...(coinbase
        ? { coinbase: input.script.toString('hex') }
        : {
            txid: input.txid,
            vout: input.vout,
            scriptSig: { asm: asm(input.script, true), hex: input.script.toString('hex') },
          }),
      txinwitness:
        input.witness.length > 0 ? input.witness.map((item) => item.toString('hex')) : undefined,
      prevout: prevouts && coins?.[index] ? prevout(network, coins[index]) : undefined,
      sequence: input.sequence,
    })),
    vout: tx.outs.map(({ value, script }, n) => ({
      value: btc(value),
      n,
      ...outputFields(script, network),
    })),
    ...specialFields(tx),
    fee: coins && !coinbase ? btc(sum(coins) - sum(tx.outs)) : undefined,
    hex: tx.raw.toString('hex'),
  }
}

function prevout(
  network: UtxoNetwork,
  { coinbase, height, value, script }: Coin,
): Record<string, unknown> {
  return { generated: coinbase, height, value: btc(value), ...outputFields(script, network) }
}

export function headerObject(ledger: Ledger, block: Block): Record<string, unknown> {
  const active = ledger.isActive(block)
  return {
    hash: block.hash,
    confirmations: active ? ledger.tip.height - block.height + 1 : -1,
    height: block.height,
    version: block.header.version,
    versionHex: (block.header.version >>> 0).toString(16).padStart(8, '0'),
    merkleroot: block.header.merkleRoot,
    time: block.header.time,
    mediantime: block.medianTime,
    nonce: block.header.nonce,
    bits: block.header.bits.toString(16).padStart(8, '0'),
    target: '7fffff'.padEnd(64, '0'),
    difficulty: DIFFICULTY,
    chainwork: chainWork(block.height),
    nTx: block.txs.length,
    previousblockhash: block.height > 0 ? block.header.previous : undefined,
    nextblockhash: active ? ledger.blocks[block.height + 1]?.hash : undefined,
  }
}

export const DIFFICULTY = new Literal('4.656542373906925e-10')

/** Returns the chain work, which is two hashes per block. */
export function chainWork(height: number): string {
  return (BigInt(height + 1) * 2n).toString(16).padStart(64, '0')
}

/**
 * Dash: returns whether the masternodes have locked a block, which they do once another one follows
 * it.
 */
export function isLocked(ledger: Ledger, block: Block): boolean {
  return ledger.isActive(block) && block.height < ledger.tip.height
}

export function blockObject(
  ledger: Ledger,
  block: Block,
  verbosity: number,
): Record<string, unknown> {
  const { nTx, previousblockhash, nextblockhash, ...header } = headerObject(ledger, block)
  return {
    ...header,
    nTx,
    previousblockhash,
    nextblockhash,
    strippedsize: block.strippedSize,
    size: block.raw.length,
    weight: block.weight,
    chainlock: ledger.network.chainLocks ? isLocked(ledger, block) : undefined,
    tx: block.txs.map((tx, index) =>
      verbosity === 1
        ? tx.txid
        : txObject(
            ledger.network,
            tx,
            index === 0 ? undefined : block.spent[index - 1],
            verbosity >= 3,
          ),
    ),
  }
}

export function mempoolEntry(mempool: Mempool, entry: Entry): Record<string, unknown> {
  const ancestors = [entry, ...mempool.ancestors(entry.tx)]
  const descendants = [entry, ...mempool.descendants(entry.tx)]
  const fees = (entries: Entry[]) => btc(entries.reduce((total, { fee }) => total + fee, 0n))
  const size = (entries: Entry[]) => entries.reduce((total, { tx }) => total + tx.vsize, 0)
  return {
    vsize: entry.tx.vsize,
    weight: entry.tx.weight,
    time: entry.time,
    height: entry.height,
    descendantcount: descendants.length,
    descendantsize: size(descendants),
    ancestorcount: ancestors.length,
    ancestorsize: size(ancestors),
    wtxid: entry.tx.wtxid,
    fees: {
      base: btc(entry.fee),
      modified: btc(entry.fee),
      ancestor: fees(ancestors),
      descendant: fees(descendants),
    },
    depends: [...new Set(entry.tx.ins.map(({ txid }) => txid))].filter((txid) =>
      mempool.entries.has(txid),
    ),
    spentby: mempool.children(entry.tx).map(({ tx }) => tx.txid),
    'bip125-replaceable': mempool.isReplaceable(entry),
    unbroadcast: false,
  }
}

export function addressObject(
  network: UtxoNetwork,
  address: string,
  script: Buffer,
): Record<string, unknown> {
  const witness = network.segwit ? witnessProgram(script) : undefined
  return {
    isvalid: true,
    address,
    scriptPubKey: script.toString('hex'),
    isscript:
      scriptType(script) === 'scripthash' ||
      scriptType(script) === 'witness_v0_scripthash' ||
      undefined,
    iswitness: witness !== undefined,
    witness_version: witness?.version,
    witness_program: witness?.program.toString('hex'),
  }
}
