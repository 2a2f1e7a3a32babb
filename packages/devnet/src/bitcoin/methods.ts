import { RpcError } from '../errors.ts'
import { addressOf, scriptOf, scriptType } from './address.ts'
import type { BitcoinChain } from './chain.ts'
import { btc, Literal } from './json.ts'
import type { Block } from './ledger.ts'
import type { Entry } from './mempool.ts'
import type { UtxoNetwork } from './networks.ts'
import {
  ALREADY_IN_UTXO_SET,
  DESERIALIZATION,
  hash,
  integer,
  INVALID_ADDRESS_OR_KEY,
  INVALID_PARAMETER,
  method,
  REJECTED,
  TRANSACTION_ERROR,
  TYPE,
  type Method,
  type Params,
} from './parameters.ts'
import type { Rejection } from './policy.ts'
import {
  addressObject,
  blockObject,
  chainWork,
  DIFFICULTY,
  headerObject,
  isLocked,
  mempoolEntry,
  outputFields,
  txObject,
} from './rpc-objects.ts'
import { outpoint, parseTx, type Tx } from './transaction.ts'
import { scanTxOutSet } from './scan.ts'
import { WALLET_METHODS } from './wallet-methods.ts'

const PACKAGE_MAX = 25

function blockOf(chain: BitcoinChain, value: unknown): Block {
  const block = chain.ledger.byHash.get(hash(value, 'blockhash'))
  if (!block) throw new RpcError(INVALID_ADDRESS_OR_KEY, 'Block not found')
  return block
}

function decode(network: UtxoNetwork, value: unknown): Tx {
  if (typeof value !== 'string')
    throw new RpcError(TYPE, `JSON value of type ${typeof value} is not of expected type string`)
  try {
    if (value.length === 0 || value.length % 2 || !/^[0-9a-fA-F]*$/.test(value))
      throw new Error('not hex')
    const tx = parseTx(Buffer.from(value, 'hex'), network)
    if (!network.segwit && tx.raw.length !== tx.baseSize) throw new Error('an unknown form')
    return tx
  } catch {
    throw new RpcError(
      DESERIALIZATION,
      'TX decode failed. Make sure the tx has at least one input.',
    )
  }
}

function feeRateCeiling(network: UtxoNetwork, value: unknown): bigint {
  if (value === undefined || value === null) return network.maxFeeRate
  const text = typeof value === 'number' ? value.toFixed(8) : String(value)
  if (!/^\d{1,8}(\.\d{1,8})?$/.test(text)) throw new RpcError(TYPE, 'Invalid amount')
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(8, '0'))
}

function exceedsFeeRate(tx: Tx, fee: bigint, ceiling: bigint): boolean {
  return ceiling > 0n && fee > (ceiling * BigInt(tx.vsize)) / 1000n
}

function sentence({ reason, details }: Rejection): string {
  return details === undefined ? reason : `${reason}, ${details}`
}

function sendRawTransaction(chain: BitcoinChain, [hex, maxFeeRate, maxBurn]: Params): unknown {
  const tx = decode(chain.network, hex)
  const ceiling = feeRateCeiling(chain.network, maxFeeRate)
  const burnt = tx.outs.find(
    ({ value, script }) =>
      value > feeRateCeiling(chain.network, maxBurn ?? 0) && scriptType(script) === 'nulldata',
  )
  if (burnt)
    throw new RpcError(
      TRANSACTION_ERROR,
      'Unspendable output exceeds maximum configured by user (maxburnamount)',
    )
  if (tx.outs.some((_, vout) => chain.ledger.coins.has(outpoint(tx.txid, vout)))) {
    throw new RpcError(ALREADY_IN_UTXO_SET, 'Transaction outputs already in utxo set')
  }
  // As in Core, broadcasting a waiting transaction again is not an error.
  if (chain.mempool.entries.has(tx.txid)) return tx.txid
  const checked = chain.mempool.check(tx, 0)
  if ('entry' in checked && exceedsFeeRate(tx, checked.entry.fee, ceiling)) {
    throw new RpcError(
      TRANSACTION_ERROR,
      'Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)',
    )
  }
  const outcome = 'rejection' in checked ? checked : chain.submit(tx)
  if ('rejection' in outcome) {
    throw new RpcError(
      outcome.rejection.missingInputs ? TRANSACTION_ERROR : REJECTED,
      sentence(outcome.rejection),
    )
  }
  return tx.txid
}

function testMempoolAccept(chain: BitcoinChain, [raw, maxFeeRate]: Params): unknown {
  if (!Array.isArray(raw) || raw.length < 1 || raw.length > PACKAGE_MAX) {
    throw new RpcError(
      INVALID_PARAMETER,
      `Array must contain between 1 and ${PACKAGE_MAX} transactions.`,
    )
  }
  const ceiling = feeRateCeiling(chain.network, maxFeeRate)
  const txs = raw.map((each) => decode(chain.network, each))
  return chain.mempool.tentatively(() =>
    txs.map((tx) => {
      const ids = { txid: tx.txid, wtxid: tx.wtxid }
      const outcome = chain.mempool.accept(tx, 0)
      if ('rejection' in outcome) {
        const { reason, missingInputs } = outcome.rejection
        return {
          ...ids,
          allowed: false,
          'reject-reason': missingInputs ? 'missing-inputs' : reason,
          'reject-details': sentence(outcome.rejection),
        }
      }
      const { fee } = outcome.entry
      if (exceedsFeeRate(tx, fee, ceiling))
        return { ...ids, allowed: false, 'reject-reason': 'max-fee-exceeded' }
      const effective = btc((fee * 1000n) / BigInt(tx.vsize))
      return {
        ...ids,
        allowed: true,
        vsize: tx.vsize,
        fees: { base: btc(fee), 'effective-feerate': effective, 'effective-includes': [tx.wtxid] },
      }
    }),
  )
}

/** Where a transaction is: in the mempool, or at `position` of `block`. */
interface Location {
  waiting: Entry | undefined
  block: Block | undefined
  position: number
}

/**
 * Finds a transaction; with `within` only in that block.
 * @throws RpcError as Bitcoin Core does, if it does not exist
 */
function locate(chain: BitcoinChain, txid: string, within: Block | undefined): Location {
  const waiting = within ? undefined : chain.mempool.entries.get(txid)
  const indexed = chain.ledger.txIndex.get(txid)
  const position = within ? within.txs.findIndex((tx) => tx.txid === txid) : (indexed?.index ?? -1)
  const block = within ?? indexed?.block
  if (!waiting && (!block || position < 0)) {
    const where = within
      ? 'No such transaction found in the provided block'
      : 'No such mempool or blockchain transaction'
    throw new RpcError(
      INVALID_ADDRESS_OR_KEY,
      `${where}. Use gettransaction for wallet transactions.`,
    )
  }
  return { waiting, block, position }
}

/** Returns the fields about the block of a confirmed transaction. */
function blockFields({ ledger, network }: BitcoinChain, block: Block): Record<string, unknown> {
  const active = ledger.isActive(block)
  return {
    blockhash: block.hash,
    confirmations: active ? ledger.tip.height - block.height + 1 : 0,
    time: active ? block.header.time : undefined,
    blocktime: active ? block.header.time : undefined,
    chainlock: network.chainLocks ? isLocked(ledger, block) : undefined,
  }
}

function getRawTransaction(chain: BitcoinChain, [id, verbose, blockHash]: Params): unknown {
  const txid = hash(id, 'parameter 1')
  const verbosity = integer(verbose, 0)
  const within =
    blockHash === undefined || blockHash === null ? undefined : blockOf(chain, blockHash)
  const extension = within ? undefined : chain.extension.waiting.get(txid)
  if (extension) return verbosity <= 0 ? extension.hex : extension
  const { waiting, block, position } = locate(chain, txid, within)
  const tx = waiting?.tx ?? block!.txs[position]!
  if (verbosity <= 0) return tx.raw.toString('hex')
  const coins = waiting?.coins ?? block!.spent[position - 1]
  const { fee, ...object } = txObject(chain.network, tx, verbosity >= 2 ? coins : undefined, true)
  return {
    ...(within ? { in_active_chain: chain.ledger.isActive(within) } : {}),
    ...object,
    fee: verbosity >= 2 ? fee : undefined,
    ...(waiting || !block ? {} : blockFields(chain, block)),
  }
}

function getTxOut(chain: BitcoinChain, [id, n, includeMempool]: Params): unknown {
  const key = outpoint(hash(id, 'txid'), integer(n, 0))
  const mempool = includeMempool !== false
  if (mempool && chain.mempool.spenders.has(key)) return null
  const coin = mempool ? chain.mempool.coin(key) : chain.ledger.coins.get(key)
  if (!coin) return null
  const { tip } = chain.ledger
  return {
    bestblock: tip.hash,
    confirmations: Math.max(0, tip.height - coin.height + 1),
    value: btc(coin.value),
    ...outputFields(coin.script, chain.network),
    coinbase: coin.coinbase,
  }
}

function getTxSpendingPrevout(chain: BitcoinChain, [outputs]: Params): unknown {
  if (!Array.isArray(outputs) || outputs.length === 0)
    throw new RpcError(INVALID_PARAMETER, 'Invalid parameter, outputs are missing')
  return outputs.map((output: { txid?: unknown; vout?: unknown }) => {
    const txid = hash(output?.txid, 'txid')
    const vout = integer(output?.vout, -1)
    if (vout < 0)
      throw new RpcError(INVALID_PARAMETER, 'Invalid parameter, vout cannot be negative')
    return { txid, vout, spendingtxid: chain.mempool.spenders.get(outpoint(txid, vout)) }
  })
}

/**
 * Returns constants, because there is no market to estimate from. Returns -1 where the network's
 * node has no estimate, as Dogecoin's.
 */
function estimateSmartFee({ network, congestionRate }: BitcoinChain, [target]: Params): unknown {
  const blocks = integer(target, 0)
  if (blocks < 1 || blocks > 1008)
    throw new RpcError(INVALID_PARAMETER, 'Invalid conf_target, must be between 1 and 1008')
  const rate = network.fees.targets.find(([most]) => blocks <= most)?.[1] ?? network.fees.floor
  if (rate < 0n) return { feerate: new Literal('-1'), blocks }
  return {
    feerate: btc((rate < congestionRate ? congestionRate : rate) * 1000n),
    blocks: Math.max(2, blocks),
  }
}

function getBlockchainInfo({ ledger }: BitcoinChain): unknown {
  const { tip } = ledger
  return {
    chain: 'regtest',
    blocks: tip.height,
    headers: tip.height,
    bestblockhash: tip.hash,
    bits: '207fffff',
    target: '7fffff'.padEnd(64, '0'),
    difficulty: DIFFICULTY,
    time: tip.header.time,
    mediantime: tip.medianTime,
    verificationprogress: 1,
    initialblockdownload: false,
    chainwork: chainWork(tip.height),
    size_on_disk: ledger.blocks.reduce((size, { raw }) => size + raw.length, 0),
    pruned: false,
    warnings: [],
  }
}

function getMempoolInfo({ mempool, network }: BitcoinChain): unknown {
  const entries = [...mempool.entries.values()]
  return {
    loaded: true,
    size: entries.length,
    bytes: entries.reduce((size, { tx }) => size + tx.vsize, 0),
    usage: entries.reduce((size, { tx }) => size + tx.raw.length + 1000, 0),
    total_fee: btc(entries.reduce((total, { fee }) => total + fee, 0n)),
    maxmempool: 300_000_000,
    mempoolminfee: btc(network.relayRate * 1000n),
    minrelaytxfee: btc(network.relayRate * 1000n),
    incrementalrelayfee: btc(network.relayRate * 1000n),
    unbroadcastcount: 0,
    fullrbf: mempool.replacement === 'full',
  }
}

function getRawMempool(
  { mempool, extension }: BitcoinChain,
  [verbose, withSequence]: Params,
): unknown {
  const entries = [...mempool.entries]
  if (verbose === true)
    return Object.fromEntries(entries.map(([txid, entry]) => [txid, mempoolEntry(mempool, entry)]))
  const txids = [...entries.map(([txid]) => txid), ...extension.waiting.keys()]
  return withSequence === true ? { txids, mempool_sequence: mempool.sequence } : txids
}

function validateAddress({ network }: BitcoinChain, [address]: Params): unknown {
  if (typeof address !== 'string')
    throw new RpcError(TYPE, 'JSON value is not a string as expected')
  const script = scriptOf(address, network)
  if (!Buffer.isBuffer(script)) return { isvalid: false, error_locations: [], error: script.error }
  return addressObject(network, addressOf(script, network) ?? address, script)
}

const NETWORK_INFO = {
  protocolversion: 70016,
  localservices: '0000000000000409',
  localservicesnames: ['NETWORK', 'WITNESS', 'NETWORK_LIMITED'],
  localrelay: true,
  timeoffset: 0,
  networkactive: true,
  connections: 0,
  connections_in: 0,
  connections_out: 0,
  networks: [],
  localaddresses: [],
  warnings: [],
}

function relayFees({ relayRate }: UtxoNetwork): Record<string, unknown> {
  return { relayfee: btc(relayRate * 1000n), incrementalfee: btc(relayRate * 1000n) }
}

export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['getblockchaininfo', method('', getBlockchainInfo)],
  [
    'getnetworkinfo',
    method('', ({ network }) => ({
      version: network.version,
      subversion: network.subversion,
      ...NETWORK_INFO,
      ...relayFees(network),
    })),
  ],
  ['getblockcount', method('', ({ ledger }) => ledger.tip.height)],
  ['getbestblockhash', method('', ({ ledger }) => ledger.tip.hash)],
  [
    'getblockhash',
    method('height', ({ ledger }, [height]) => {
      const block = ledger.blocks[integer(height, -1)]
      if (!block) throw new RpcError(INVALID_PARAMETER, 'Block height out of range')
      return block.hash
    }),
  ],
  [
    'getblockheader',
    method('blockhash verbose', (chain, [id, verbose]) => {
      const block = blockOf(chain, id)
      return verbose === false
        ? block.headerBytes.toString('hex')
        : headerObject(chain.ledger, block)
    }),
  ],
  [
    'getblock',
    method('blockhash verbosity', (chain, [id, verbose]) => {
      const verbosity = Math.min(integer(verbose, 1), chain.network.blockVerbosity)
      const block = blockOf(chain, id)
      return verbosity <= 0
        ? block.raw.toString('hex')
        : blockObject(chain.ledger, block, verbosity)
    }),
  ],
  ['scantxoutset', method('action scanobjects', scanTxOutSet)],
  ...WALLET_METHODS,
  ['getrawtransaction', method('txid verbosity blockhash', getRawTransaction)],
  ['gettxout', method('txid n include_mempool', getTxOut)],
  ['gettxspendingprevout', method('outputs', getTxSpendingPrevout)],
  ['getmempoolinfo', method('', getMempoolInfo)],
  ['getrawmempool', method('verbose mempool_sequence', getRawMempool)],
  [
    'getmempoolentry',
    method('txid', ({ mempool }, [id]) => {
      const entry = mempool.entries.get(hash(id, 'txid'))
      if (!entry) throw new RpcError(INVALID_ADDRESS_OR_KEY, 'Transaction not in mempool')
      return mempoolEntry(mempool, entry)
    }),
  ],
  ['testmempoolaccept', method('rawtxs maxfeerate', testMempoolAccept)],
  ['sendrawtransaction', method('hexstring maxfeerate maxburnamount', sendRawTransaction)],
  ['estimatesmartfee', method('conf_target estimate_mode', estimateSmartFee)],
  ['estimatefee', method('', ({ network }) => btc(network.fees.floor * 1000n))],
  [
    'decoderawtransaction',
    method('hexstring iswitness', ({ network }, [hex]) => {
      const { hex: _hex, ...object } = txObject(network, decode(network, hex))
      return object
    }),
  ],
  ['validateaddress', method('address', validateAddress)],
  ['uptime', method('', ({ started, timing }) => Math.floor((timing.now() - started) / 1000))],
  [
    'getindexinfo',
    method('index_name', ({ ledger }, [name]) =>
      name === undefined || name === 'txindex'
        ? { txindex: { synced: true, best_block_height: ledger.tip.height } }
        : {},
    ),
  ],
])
