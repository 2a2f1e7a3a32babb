import { Transaction } from 'bitcoinjs-lib'
import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { paramsOf, scriptOf } from './address.ts'
import { dustLimit, virtualSize } from './size.ts'

export { scriptOf, addressOf } from './address.ts'
export { dustLimit, virtualSize } from './size.ts'

/** An unspent output that the wallet may spend. */
export interface Utxo { txid: string; vout: number; value: bigint; path: number[]; address: string }

export interface Selection { utxos: Utxo[]; fee: bigint; change: bigint; vsize: number }

/** BIP125: below 0xfffffffe, so that the fee can be raised. */
const SEQUENCE_RBF = 0xfffffffd
const SEQUENCE_FINAL = 0xffffffff
/** More inputs make a transaction that nodes do not relay (100,000 vbytes). */
const INPUTS_MAX = 400

/**
 * Chooses coins: an exact match without change where one is found (branch and bound, bounded), else the
 * largest first. Change below its dust limit goes to the fee.
 *
 * @param o.feeRate satoshi per 1000 vbytes
 * @param o.required outpoints that must be among the inputs (a replacement shares them)
 * @throws ChainError `INSUFFICIENT` with `missing` satoshi in the message, `DUST`
 */
export function selectCoins(network: Network, o: { utxos: readonly Utxo[]; to: string; amount: bigint; changeAddress: string; feeRate: bigint; required?: readonly Utxo[] }): Selection {
  const params = paramsOf(network)
  const target = scriptOf(network, o.to)
  const changeScript = scriptOf(network, o.changeAddress)
  if (o.amount < dustLimit(params, target)) throw new ChainError('DUST', `is below the dust limit of ${dustLimit(params, target)} satoshi`)
  const feeAt = (inputs: number, withChange: boolean) => {
    const vsize = virtualSize(params, inputs, withChange ? [target.length, changeScript.length] : [target.length])
    return { vsize, fee: (BigInt(vsize) * o.feeRate) / 1000n }
  }
  const required = o.required ?? []
  const taken = new Set(required.map(outpointOf))
  const free = o.utxos.filter((utxo) => !taken.has(outpointOf(utxo))).sort((a, b) => (a.value === b.value ? (outpointOf(a) < outpointOf(b) ? -1 : 1) : a.value > b.value ? -1 : 1))
  const dust = dustLimit(params, changeScript)
  const finish = (chosen: Utxo[]): Selection | null => {
    const sum = chosen.reduce((total, utxo) => total + utxo.value, 0n)
    const withChange = feeAt(chosen.length, true)
    const rest = sum - o.amount - withChange.fee
    if (rest >= dust) return { utxos: chosen, fee: withChange.fee, change: rest, vsize: withChange.vsize }
    const plain = feeAt(chosen.length, false)
    if (sum >= o.amount + plain.fee) return { utxos: chosen, fee: sum - o.amount, change: 0n, vsize: plain.vsize }
    return null
  }
  if (required.length === 0) {
    const exact = branchAndBound(free, (inputs) => o.amount + feeAt(inputs, false).fee, dust)
    if (exact) {
      const selection = finish(exact)
      if (selection && selection.change === 0n) return selection
    }
  }
  const chosen = [...required]
  for (let next = 0; ; next++) {
    const selection = chosen.length > 0 ? finish([...chosen]) : null
    if (selection) return selection
    const utxo = free[next]
    if (!utxo) break
    if (chosen.length >= INPUTS_MAX) throw new ChainError('TOO_MANY_INPUTS', `needs more than ${INPUTS_MAX} inputs; send a smaller amount first`)
    chosen.push(utxo)
  }
  const sum = chosen.reduce((total, utxo) => total + utxo.value, 0n)
  const fee = feeAt(Math.max(1, chosen.length), false).fee
  throw new ChainError('INSUFFICIENT', `amount and network fee exceed the coins by ${o.amount + fee - sum} satoshi`)
}

/**
 * All that the coins hold, less the fee, back to the wallet: what takes the place of a cancelled payment.
 * @param o.feeRate satoshi per 1000 vbytes
 * @param o.above fee of what it replaces: it pays that and its own relaying (BIP125)
 * @throws ChainError `INSUFFICIENT` where less than dust would come back
 */
export function selectReturn(network: Network, o: { utxos: readonly Utxo[]; changeAddress: string; feeRate: bigint; above: bigint }): Selection {
  const params = paramsOf(network)
  const script = scriptOf(network, o.changeAddress)
  const vsize = virtualSize(params, o.utxos.length, [script.length])
  const sum = o.utxos.reduce((total, utxo) => total + utxo.value, 0n)
  const least = o.above + BigInt(vsize) * BigInt(params.min_fee_rate)
  const wanted = (BigInt(vsize) * o.feeRate) / 1000n
  const fee = wanted > least ? wanted : least
  if (sum - fee < dustLimit(params, script)) throw new ChainError('INSUFFICIENT', `a fee of ${fee} satoshi leaves nothing of the coins' ${sum}`)
  return { utxos: [...o.utxos], fee, change: sum - fee, vsize }
}

/** Depth-first search for a set whose surplus over amount and fee is smaller than a change output is worth. */
function branchAndBound(sorted: readonly Utxo[], cost: (inputs: number) => bigint, tolerance: bigint): Utxo[] | null {
  let tries = 20_000
  const suffix: bigint[] = Array.from({ length: sorted.length + 1 }, () => 0n)
  for (let at = sorted.length - 1; at >= 0; at--) suffix[at] = (suffix[at + 1] as bigint) + (sorted[at] as Utxo).value
  // Leaving a coin out goes on in the loop, taking it goes one call deeper: a wallet may have more coins than the stack has frames.
  const search = (from: number, chosen: Utxo[], sum: bigint): Utxo[] | null => {
    for (let at = from; tries-- > 0; at++) {
      if (chosen.length > 0) {
        const surplus = sum - cost(chosen.length)
        if (surplus >= 0n) return surplus < tolerance ? chosen : null
      }
      if (at >= sorted.length || chosen.length >= 20 || sum + (suffix[at] as bigint) < cost(chosen.length + 1)) return null
      const utxo = sorted[at] as Utxo
      const found = search(at + 1, [...chosen, utxo], sum + utxo.value)
      if (found) return found
    }
    return null
  }
  return search(0, [], 0n)
}

/** `txid:vout` */
export function outpointOf(utxo: { txid: string; vout: number }): string {
  return `${utxo.txid}:${utxo.vout}`
}

/**
 * Builds the unsigned transaction of a selection: version 2, locktime 0, replaceable where the network replaces (BIP125), payment first.
 * @param o.previous full previous transactions by txid
 */
export function buildTransfer(network: Network, o: { selection: Selection; to: string; amount: bigint; changeAddress: string; changePath: number[]; previous: ReadonlyMap<string, string> }): UnsignedTransaction {
  const transaction = new Transaction()
  transaction.version = 2
  const sequence = paramsOf(network).replaceable ? SEQUENCE_RBF : SEQUENCE_FINAL
  const inputs = o.selection.utxos.map((utxo) => {
    transaction.addInput(Buffer.from(utxo.txid, 'hex').reverse(), utxo.vout, sequence)
    const previous = o.previous.get(utxo.txid)
    if (previous === undefined) throw new ChainError('PREVIOUS_TRANSACTION', `previous transaction ${utxo.txid} is missing`)
    return { path: utxo.path, previous }
  })
  transaction.addOutput(scriptOf(network, o.to), o.amount)
  const unsigned: UnsignedTransaction = { network: network.code, bytes: '', inputs }
  if (o.selection.change > 0n) {
    transaction.addOutput(scriptOf(network, o.changeAddress), o.selection.change)
    unsigned.change = { output: 1, path: o.changePath }
  }
  unsigned.bytes = transaction.toHex()
  return unsigned
}

/** The transaction of {@link selectReturn}: one output, to the wallet's own change address. */
export function buildReturn(network: Network, o: { selection: Selection; changeAddress: string; previous: ReadonlyMap<string, string> }): UnsignedTransaction {
  return buildTransfer(network, { selection: { ...o.selection, change: 0n }, to: o.changeAddress, amount: o.selection.change, changeAddress: o.changeAddress, changePath: [], previous: o.previous })
}
