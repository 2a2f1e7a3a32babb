import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { addressOf, paramsOf, scriptOf } from './address.ts'
import { library } from './library.ts'
import { readParent, strippedParent } from './parent.ts'
import type { Selection, Utxo } from './select.ts'

export { scriptOf, addressOf } from './address.ts'
export {
  INPUTS_MAX,
  mostPayable,
  outpointOf,
  selectCoins,
  selectReturn,
  wasteOf,
  type Selection,
  type Utxo,
} from './select.ts'
export { leastWorthMerging, selectConsolidation, type Consolidated } from './consolidate.ts'
export { dustLimit, virtualSize } from './size.ts'
export { CONSOLIDATION } from './traits.ts'
export { coinsOf } from './transaction.ts'

/** BIP125: below 0xfffffffe, so that the fee can be raised. */
const SEQUENCE_RBF = 0xfffffffd
const SEQUENCE_FINAL = 0xffffffff
/**
 * Builds the unsigned transaction of a selection: version 2, locktime 0, replaceable if the network
 * supports it (BIP125), payment first.
 * @param o.previous full previous transactions by txid
 */
export function buildTransfer(
  network: Network,
  o: {
    selection: Selection
    to: string
    amount: bigint
    changeAddress: string
    changePath: number[]
    previous: ReadonlyMap<string, string>
  },
): UnsignedTransaction {
  const transaction = new (library().Transaction)()
  transaction.version = 2
  const sequence = paramsOf(network).replaceable ? SEQUENCE_RBF : SEQUENCE_FINAL
  const shown = new Set<string>()
  const inputs = o.selection.utxos.map((utxo) => {
    transaction.addInput(Buffer.from(utxo.txid, 'hex').reverse(), utxo.vout, sequence)
    const previous = o.previous.get(utxo.txid)
    if (previous === undefined)
      throw new ChainError('PREVIOUS_TRANSACTION', `previous transaction ${utxo.txid} is missing`)
    // Each parent is included once, and only the part that its id covers, because it may be
    // megabytes.
    if (shown.has(utxo.txid)) return { path: utxo.path }
    shown.add(utxo.txid)
    return { path: utxo.path, previous: strippedParent(network, previous) }
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

/**
 * Returns why signer nodes would refuse to sign for a coin: its transaction cannot be read, or its
 * output does not match the coin. Returns null if they would sign.
 * @param previous the coin's transaction in hex
 */
export function unspendable(
  network: Network,
  coin: Pick<Utxo, 'txid' | 'vout' | 'value' | 'address'>,
  previous: string,
): string | null {
  let output: { value: bigint; script: Uint8Array } | null
  try {
    const parent = readParent(network, previous, 'its transaction')
    if (Buffer.from(parent.hash).reverse().toString('hex') !== coin.txid)
      return 'its transaction has another id'
    output = parent.output(coin.vout)
  } catch (error) {
    if (error instanceof ChainError) return error.message
    throw error
  }
  if (output === null) return 'its transaction has no such output'
  if (output.value !== coin.value || addressOf(network, output.script) !== coin.address) {
    return 'its output carries tokens, or has another address or amount than recorded'
  }
  return null
}

/**
 * Builds the transaction of {@link selectReturn}, with one output to the wallet's own change
 * address.
 */
export function buildReturn(
  network: Network,
  o: { selection: Selection; changeAddress: string; previous: ReadonlyMap<string, string> },
): UnsignedTransaction {
  return buildTransfer(network, {
    selection: { ...o.selection, change: 0n },
    to: o.changeAddress,
    amount: o.selection.change,
    changeAddress: o.changeAddress,
    changePath: [],
    previous: o.previous,
  })
}
