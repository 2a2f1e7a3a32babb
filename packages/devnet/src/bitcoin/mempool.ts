import { formatAmount } from '../amount.ts'
import { isFinal, sum, type Coin, type Ledger } from './ledger.ts'
import {
  checkInputs,
  checkStandard,
  checkTransaction,
  rejection,
  type Rejection,
} from './policy.ts'
import { scriptReason, verifyScripts } from './script.ts'
import { isCoinbase, outpoint, type Tx } from './transaction.ts'

export type Entry = { tx: Tx; coins: Coin[]; fee: bigint; time: number; height: number }
export type Outcome = { entry: Entry; replaced: Entry[] } | { rejection: Rejection }

const CHAIN_MAX = 25
const REPLACED_MAX = 100
const BIP125_SEQUENCE_MAX = 0xfffffffd

/** Transactions that wait for a block, in an order that is valid within a block. */
export class Mempool {
  readonly entries = new Map<string, Entry>()
  /** Id of the waiting transaction that spends an output, by output. */
  readonly spenders = new Map<string, string>()
  /**
   * Replacement policy: `full` lets a higher fee replace any waiting transaction; `signalled` only
   * one that signals it; `none` disables replacement.
   */
  readonly replacement: 'full' | 'signalled' | 'none'
  readonly #ledger: Ledger
  sequence = 1

  constructor(ledger: Ledger, fullRbf = true) {
    this.#ledger = ledger
    this.replacement =
      ledger.network.replacement === 'none' ? 'none' : fullRbf ? 'full' : 'signalled'
  }

  accept(tx: Tx, now: number): Outcome {
    const outcome = this.check(tx, now)
    if ('rejection' in outcome) return outcome
    for (const { tx: old } of outcome.replaced) this.#delete(old)
    this.entries.set(tx.txid, outcome.entry)
    for (const { txid, vout } of tx.ins) this.spenders.set(outpoint(txid, vout), tx.txid)
    this.sequence += 1
    return outcome
  }

  /** Adds a transaction without checks, because it is valid by construction. */
  insert(tx: Tx, fee: bigint, now: number): void {
    this.entries.set(tx.txid, { tx, coins: [], fee, time: now, height: this.#ledger.tip.height })
    this.sequence += 1
  }

  /** Runs the checks of Core's MemPoolAccept, in its order. */
  check(tx: Tx, now: number): Outcome {
    const ledger = this.#ledger
    const height = ledger.tip.height + 1
    const { network } = ledger
    const early =
      checkTransaction(tx, network) ??
      (isCoinbase(tx) ? rejection('coinbase') : undefined) ??
      checkStandard(tx, network)
    if (early) return { rejection: early }
    if (!isFinal(tx, height, ledger.tip.medianTime)) return { rejection: rejection('non-final') }
    const same = this.entries.get(tx.txid)
    if (same)
      return {
        rejection: rejection(
          same.tx.wtxid === tx.wtxid
            ? 'txn-already-in-mempool'
            : 'txn-same-nonwitness-data-in-mempool',
        ),
      }

    const conflicts = this.#conflicts(tx)
    if (conflicts.some((entry) => !this.isReplaceable(entry)))
      return { rejection: rejection('txn-mempool-conflict') }

    const coins = this.#spentCoins(tx)
    if ('reason' in coins) return { rejection: coins }
    if (!ledger.sequenceLocksHold(tx, coins, height))
      return { rejection: rejection('non-BIP68-final') }
    for (const coin of coins) {
      const depth = height - coin.height
      if (coin.coinbase && depth < network.maturity) {
        return {
          rejection: rejection(
            'bad-txns-premature-spend-of-coinbase',
            `tried to spend coinbase at depth ${depth}`,
          ),
        }
      }
    }
    const [valueIn, valueOut] = [sum(coins), sum(tx.outs)]
    const wrongValue = checkValues(valueIn, valueOut, network.maxMoney)
    if (wrongValue) return { rejection: wrongValue }
    const nonstandard = checkInputs(
      tx,
      coins.map(({ script }) => script),
      network,
    )
    if (nonstandard) return { rejection: nonstandard }

    const fee = valueIn - valueOut
    const floor = network.relayRate * BigInt(tx.vsize)
    if (fee < floor) return { rejection: rejection('min relay fee not met', `${fee} < ${floor}`) }
    const entry: Entry = { tx, coins, fee, time: now, height: ledger.tip.height }
    const ancestors = this.ancestors(tx)
    const tooLong = this.#checkChainLength(tx, ancestors)
    if (tooLong) return { rejection: tooLong }
    const replacement = this.#checkReplacement(entry, conflicts, ancestors)
    if ('reason' in replacement) return { rejection: replacement }
    const script = verifyScripts(network, tx, coins, 'policy')
    if (script !== undefined)
      return { rejection: rejection(scriptReason(network, tx, coins, script)) }
    return { entry, replaced: replacement }
  }

  /** Returns the coins that a transaction spends, or why they are missing. */
  #spentCoins(tx: Tx): Coin[] | Rejection {
    const coins: Coin[] = []
    for (const { txid, vout } of tx.ins) {
      const coin = this.coin(outpoint(txid, vout))
      if (!coin) {
        const isKnown = tx.outs.some((_, index) => this.#ledger.coins.has(outpoint(tx.txid, index)))
        if (isKnown) return rejection('txn-already-known')
        return { reason: 'bad-txns-inputs-missingorspent', missingInputs: true }
      }
      coins.push(coin)
    }
    return coins
  }

  /** Checks the lengths of the chains of unconfirmed transactions that this one would extend. */
  #checkChainLength(tx: Tx, ancestors: Entry[]): Rejection | undefined {
    if (ancestors.length + 1 > CHAIN_MAX) {
      return rejection(
        'too-long-mempool-chain',
        `too many unconfirmed ancestors [limit: ${CHAIN_MAX}]`,
      )
    }
    for (const ancestor of ancestors) {
      if (this.descendants(ancestor.tx).length + 2 > CHAIN_MAX) {
        return rejection(
          'too-long-mempool-chain',
          `too many descendants for tx ${ancestor.tx.txid} [limit: ${CHAIN_MAX}]`,
        )
      }
    }
    return undefined
  }

  /** Applies BIP125 as nodes do today; returns the transactions that would be replaced. */
  #checkReplacement(entry: Entry, conflicts: Entry[], ancestors: Entry[]): Entry[] | Rejection {
    if (conflicts.length === 0) return []
    const { tx, fee } = entry
    const refuse = (details: string): Rejection =>
      rejection('insufficient fee', `rejecting replacement ${tx.txid}${details}`)
    for (const conflict of conflicts) {
      if (ancestors.includes(conflict)) {
        return rejection(
          'bad-txns-spends-conflicting-tx',
          `${tx.txid} spends conflicting transaction ${conflict.tx.txid}`,
        )
      }
    }
    for (const conflict of conflicts) {
      if (fee * BigInt(conflict.tx.vsize) <= conflict.fee * BigInt(tx.vsize)) {
        return refuse(
          `; new feerate ${rate(entry)} BTC/kvB <= old feerate ${rate(conflict)} BTC/kvB`,
        )
      }
    }
    const replaced = new Set(conflicts)
    for (const conflict of conflicts)
      for (const descendant of this.descendants(conflict.tx)) replaced.add(descendant)
    if (replaced.size > REPLACED_MAX) {
      return rejection(
        'too many potential replacements',
        `rejecting replacement ${tx.txid}; too many potential replacements (${replaced.size} > ${REPLACED_MAX})`,
      )
    }
    const oldParents = new Set(
      conflicts.flatMap((conflict) => conflict.tx.ins.map(({ txid }) => txid)),
    )
    for (const [index, { txid }] of tx.ins.entries()) {
      if (this.entries.has(txid) && !oldParents.has(txid)) {
        return rejection(
          'replacement-adds-unconfirmed',
          `replacement ${tx.txid} adds unconfirmed input, idx ${index}`,
        )
      }
    }
    const oldFees = [...replaced].reduce((total, old) => total + old.fee, 0n)
    if (fee < oldFees)
      return refuse(
        `, less fees than conflicting txs; ${formatAmount(fee, 8)} < ${formatAmount(oldFees, 8)}`,
      )
    const extra = fee - oldFees
    const least = this.#ledger.network.relayRate * BigInt(tx.vsize)
    if (extra < least)
      return refuse(
        `, not enough additional fees to relay; ${formatAmount(extra, 8)} < ${formatAmount(least, 8)}`,
      )
    return [...replaced]
  }

  /**
   * Returns an output of the chain or of a waiting transaction that can be spent now. Conflicts are
   * not checked.
   */
  coin(key: string): Coin | undefined {
    const [txid = '', vout = ''] = key.split(':')
    const parent = this.entries.get(txid)?.tx.outs[Number(vout)]
    if (parent) return { ...parent, height: this.#ledger.tip.height + 1, coinbase: false }
    return this.#ledger.coins.get(key)
  }

  isReplaceable(entry: Entry): boolean {
    return (
      this.replacement === 'full' ||
      (this.replacement === 'signalled' && this.signalsReplacement(entry))
    )
  }

  signalsReplacement(entry: Entry): boolean {
    return [entry, ...this.ancestors(entry.tx)].some(({ tx }) =>
      tx.ins.some(({ sequence }) => sequence <= BIP125_SEQUENCE_MAX),
    )
  }

  ancestors(tx: Tx): Entry[] {
    const entries = new Set<Entry>()
    const visit = (current: Tx): void => {
      for (const { txid } of current.ins) {
        const parent = this.entries.get(txid)
        if (parent && !entries.has(parent)) {
          entries.add(parent)
          visit(parent.tx)
        }
      }
    }
    visit(tx)
    return [...entries]
  }

  children(tx: Tx): Entry[] {
    const ids = new Set(
      tx.outs.flatMap((_, vout) => this.spenders.get(outpoint(tx.txid, vout)) ?? []),
    )
    return [...ids].flatMap((txid) => this.entries.get(txid) ?? [])
  }

  descendants(tx: Tx): Entry[] {
    const entries = new Set<Entry>()
    const visit = (current: Tx): void => {
      for (const child of this.children(current)) {
        if (entries.has(child)) continue
        entries.add(child)
        visit(child.tx)
      }
    }
    visit(tx)
    return [...entries]
  }

  /**
   * Updates the mempool after a block: removes the transactions that it contains, and those that
   * conflict with it.
   */
  blockConnected(txs: readonly Tx[]): void {
    for (const tx of txs) {
      this.#delete(tx)
      for (const conflict of this.#conflicts(tx)) this.#deleteWithDescendants(conflict.tx)
    }
  }

  clear(): Tx[] {
    const txs = [...this.entries.values()].map(({ tx }) => tx)
    this.entries.clear()
    this.spenders.clear()
    return txs
  }

  /**
   * Runs `work` and then removes everything that it accepted, for testing transactions that depend
   * on each other.
   */
  tentatively<T>(work: () => T): T {
    const [entries, spenders, sequence] = [[...this.entries], [...this.spenders], this.sequence]
    try {
      return work()
    } finally {
      this.clear()
      for (const [txid, entry] of entries) this.entries.set(txid, entry)
      for (const [key, txid] of spenders) this.spenders.set(key, txid)
      this.sequence = sequence
    }
  }

  #conflicts(tx: Tx): Entry[] {
    const ids = new Set(
      tx.ins.flatMap(({ txid, vout }) => this.spenders.get(outpoint(txid, vout)) ?? []),
    )
    return [...ids].flatMap((txid) => this.entries.get(txid) ?? [])
  }

  #deleteWithDescendants(tx: Tx): void {
    for (const descendant of this.descendants(tx)) this.#delete(descendant.tx)
    this.#delete(tx)
  }

  #delete(tx: Tx): void {
    if (!this.entries.delete(tx.txid)) return
    this.sequence += 1
    for (const { txid, vout } of tx.ins) {
      const key = outpoint(txid, vout)
      if (this.spenders.get(key) === tx.txid) this.spenders.delete(key)
    }
  }
}

function rate({ fee, tx }: Entry): string {
  return formatAmount((fee * 1000n) / BigInt(tx.vsize), 8)
}

/** Checks that the inputs are in range and suffice for the outputs. */
function checkValues(valueIn: bigint, valueOut: bigint, maxMoney: bigint): Rejection | undefined {
  if (valueIn > maxMoney) return rejection('bad-txns-inputvalues-outofrange')
  if (valueIn < valueOut) {
    return rejection(
      'bad-txns-in-belowout',
      `value in (${formatAmount(valueIn, 8)}) < value out (${formatAmount(valueOut, 8)})`,
    )
  }
  return undefined
}
