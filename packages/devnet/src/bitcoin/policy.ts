import { pushesOnly, scriptType, witnessProgram } from './address.ts'
import { splitToken } from './cash-tokens.ts'
import { BTC, type UtxoNetwork } from './networks.ts'
import { isCoinbase, outpoint, type Tx, type TxOut } from './transaction.ts'

/** Reason for rejecting a transaction. `reason` and `details` are in Core's words. */
export type Rejection = { reason: string; details?: string; missingInputs?: boolean }

export function rejection(reason: string, details?: string): Rejection {
  return details === undefined ? { reason } : { reason, details }
}

const WEIGHT_MAX = 400_000
const SCRIPT_SIG_MAX = 1650
const DATA_CARRIER_MAX = 83

/** Checks the consensus rules that depend only on the transaction. */
export function checkTransaction(tx: Tx, network: UtxoNetwork): Rejection | undefined {
  if (tx.ins.length === 0) return rejection('bad-txns-vin-empty')
  if (tx.outs.length === 0) return rejection('bad-txns-vout-empty')
  if (tx.baseSize * 4 > 4_000_000) return rejection('bad-txns-oversize')
  let total = 0n
  for (const { value } of tx.outs) {
    if (value >= 1n << 63n) return rejection('bad-txns-vout-negative')
    if (value > network.maxMoney) return rejection('bad-txns-vout-toolarge')
    total += value
    if (total > network.maxMoney) return rejection('bad-txns-txouttotal-toolarge')
  }
  if (new Set(tx.ins.map(({ txid, vout }) => outpoint(txid, vout))).size !== tx.ins.length)
    return rejection('bad-txns-inputs-duplicate')
  if (isCoinbase(tx)) {
    const length = tx.ins[0]!.script.length
    if (length < 2 || length > 100) return rejection('bad-cb-length')
  } else if (tx.ins.some(({ txid, vout }) => vout === 0xffffffff && /^0+$/.test(txid)))
    return rejection('bad-txns-prevout-null')
  return undefined
}

/** Checks the relay rules of a node, which are stricter than those of a block. */
export function checkStandard(tx: Tx, network: UtxoNetwork): Rejection | undefined {
  if (tx.version < 1 || tx.version > network.versionMax) return rejection('version')
  if (tx.weight > WEIGHT_MAX) return rejection('tx-size')
  for (const { script } of tx.ins) {
    if (script.length > SCRIPT_SIG_MAX) return rejection('scriptsig-size')
    if (!pushesOnly(script)) return rejection('scriptsig-not-pushonly')
  }
  let dataOutputs = 0
  for (const { script } of tx.outs) {
    const type = scriptType(
      network.cashTokens ? splitToken(script).locking : script,
      network.segwit,
    )
    if (type === 'nonstandard') return rejection('scriptpubkey')
    if (type === 'nulldata') {
      if (script.length > DATA_CARRIER_MAX) return rejection('scriptpubkey')
      dataOutputs += 1
    }
  }
  if (tx.outs.some((output) => isDust(output, network))) return rejection('dust')
  if (dataOutputs > 1) return rejection('multi-op-return')
  if (tx.baseSize < network.sizeMin) return rejection('tx-size-small')
  return undefined
}

export function dustLimit(script: Buffer, network: UtxoNetwork = BTC): bigint {
  if (script[0] === 0x6a) return 0n
  const output = 8 + (script.length < 253 ? 1 : 3) + script.length
  const spend = witnessProgram(script) ? 32 + 4 + 1 + Math.floor(107 / 4) + 4 : 148
  const limit = BigInt(output + spend) * network.dustRate
  return limit > network.dustFloor ? limit : network.dustFloor
}

function isDust({ value, script }: TxOut, network: UtxoNetwork): boolean {
  return value < dustLimit(script, network)
}

/** Checks that all inputs spend standard scripts, which every node relays. */
export function checkInputs(
  tx: Tx,
  scripts: readonly Buffer[],
  network: UtxoNetwork,
): Rejection | undefined {
  for (const [index, script] of scripts.entries()) {
    const type = scriptType(
      network.cashTokens ? splitToken(script).locking : script,
      network.segwit,
    )
    if (type === 'nonstandard' || type === 'witness_unknown')
      return rejection('bad-txns-nonstandard-inputs')
    const { witness } = tx.ins[index]!
    if (witness.length === 0) continue
    if (type !== 'scripthash' && !witnessProgram(script))
      return rejection('bad-witness-nonstandard')
    if (type === 'witness_v0_scripthash') {
      const items = witness.slice(0, -1)
      if (
        witness.at(-1)!.length > 3600 ||
        items.length > 100 ||
        items.some((item) => item.length > 80)
      ) {
        return rejection('bad-witness-nonstandard')
      }
    }
    if (type === 'witness_v1_taproot' && witness.length > 1 && witness.at(-1)![0] === 0x50)
      return rejection('bad-witness-nonstandard')
  }
  return undefined
}
