import { CoinRefusal, type Network, type Payable, type UtxoParams } from '../types.ts'
import { paramsOf, scriptOf } from './address.ts'
import { dustLimit, virtualSize } from './size.ts'

/** An unspent output that the wallet may spend. */
export interface Utxo {
  txid: string
  vout: number
  value: bigint
  path: number[]
  address: string
}

export interface Selection {
  utxos: Utxo[]
  fee: bigint
  change: bigint
  vsize: number
}

/** Maximum number of inputs. Nodes do not relay larger transactions (100,000 vbytes). */
export const INPUTS_MAX = 400

/** Expected fee rate of spending a coin later, as a multiple of the network's minimum. */
const LONG_TERM_FLOORS = 10n

/**
 * Returns the waste of a selection in thousandths of a satoshi, as Bitcoin Core measures it. It is
 * the cost of its inputs now minus their expected cost later (negative while fees are low, when
 * consolidating coins is worthwhile), plus either the cost of making change and spending it later,
 * or the amount that goes to the fee because change would be dust.
 * @param feeRate satoshi per 1000 vbytes
 */
export function wasteOf(network: Network, selection: Selection, feeRate: bigint): bigint {
  const params = paramsOf(network)
  const longTerm = BigInt(params.min_fee_rate) * 1000n * LONG_TERM_FLOORS
  const input = BigInt(virtualSize(params, 2, []) - virtualSize(params, 1, []))
  const output = BigInt(virtualSize(params, 1, [scriptLength(params)]) - virtualSize(params, 1, []))
  const timing = BigInt(selection.utxos.length) * input * (feeRate - longTerm)
  return (
    timing +
    (selection.change > 0n
      ? output * feeRate + input * longTerm
      : selection.fee * 1000n - BigInt(selection.vsize) * feeRate)
  )
}

/** Length of the script of a network's own addresses, in bytes. */
const scriptLength = (params: UtxoParams): number => (params.script === 'p2wpkh' ? 22 : 25)

/** Returns the selection with the least waste; of equal ones the first. */
function leastWasteful(
  network: Network,
  candidates: readonly (Selection | null)[],
  feeRate: bigint,
): Selection | null {
  return candidates.reduce(
    (best, each) =>
      each !== null &&
      (best === null || wasteOf(network, each, feeRate) < wasteOf(network, best, feeRate))
        ? each
        : best,
    null,
  )
}

/** A payment for which coins are chosen. */
interface CoinRequest {
  utxos: readonly Utxo[]
  to: string
  amount: bigint
  changeAddress: string
  /** Satoshi per 1000 vbytes. */
  feeRate: bigint
  /** Outpoints that must be among the inputs, because a replacement shares them. */
  required?: readonly Utxo[]
}

/**
 * Chooses coins by three methods and takes the result with the least waste: an exact match without
 * change (branch and bound, with a limit), the largest coins first, and the smallest coin that
 * suffices alone. Change below its dust limit goes to the fee.
 *
 * @throws CoinRefusal
 */
export function selectCoins(network: Network, o: CoinRequest): Selection {
  const params = paramsOf(network)
  const target = scriptOf(network, o.to)
  const changeScript = scriptOf(network, o.changeAddress)
  if (o.amount < dustLimit(params, target))
    throw new CoinRefusal('DUST', `is below the dust limit of ${dustLimit(params, target)} satoshi`)
  const feeAt = (inputs: number, withChange: boolean) => {
    const vsize = virtualSize(
      params,
      inputs,
      withChange ? [target.length, changeScript.length] : [target.length],
    )
    return { vsize, fee: (BigInt(vsize) * o.feeRate) / 1000n }
  }
  const required = o.required ?? []
  const taken = new Set(required.map(outpointOf))
  const free = o.utxos
    .filter((utxo) => !taken.has(outpointOf(utxo)))
    .sort((a, b) =>
      a.value === b.value ? (outpointOf(a) < outpointOf(b) ? -1 : 1) : a.value > b.value ? -1 : 1,
    )
  const dust = dustLimit(params, changeScript)
  const finish = (chosen: Utxo[]): Selection | null => {
    const sum = chosen.reduce((total, utxo) => total + utxo.value, 0n)
    const withChange = feeAt(chosen.length, true)
    const rest = sum - o.amount - withChange.fee
    if (rest >= dust)
      return { utxos: chosen, fee: withChange.fee, change: rest, vsize: withChange.vsize }
    const plain = feeAt(chosen.length, false)
    if (sum >= o.amount + plain.fee)
      return { utxos: chosen, fee: sum - o.amount, change: 0n, vsize: plain.vsize }
    return null
  }
  const all = [...required, ...free].reduce((total, { value }) => total + value, 0n)
  const candidates: (Selection | null)[] = []
  if (required.length === 0) {
    const exact = branchAndBound(free, (inputs) => o.amount + feeAt(inputs, false).fee, dust)
    const selection = exact && finish(exact)
    if (selection?.change === 0n) candidates.push(selection)
    const alone = free.findLast(({ value }) => value >= o.amount + feeAt(1, true).fee + dust)
    if (alone) candidates.push(finish([alone]))
  }
  const chosen = [...required]
  for (let next = 0; ; next++) {
    const selection = chosen.length > 0 ? finish([...chosen]) : null
    if (selection) {
      candidates.push(selection)
      break
    }
    const utxo = free[next]
    if (!utxo) break
    if (chosen.length >= INPUTS_MAX && all >= o.amount + feeAt(chosen.length, false).fee) {
      throw tooMany(chosen, feeAt(chosen.length, false).fee)
    }
    chosen.push(utxo)
  }
  const least = leastWasteful(network, candidates, o.feeRate)
  if (least) return least
  const sum = chosen.reduce((total, utxo) => total + utxo.value, 0n)
  const fee = feeAt(Math.max(1, chosen.length), false).fee
  throw new CoinRefusal(
    'INSUFFICIENT',
    `amount and network fee exceed the available coins by ${o.amount + fee - sum} satoshi`,
  )
}

/** @param fee of a transaction with as many inputs as are allowed, which are `chosen` */
function tooMany(chosen: readonly Utxo[], fee: bigint): CoinRefusal {
  const most = chosen.reduce((total, { value }) => total + value, 0n) - fee
  return new CoinRefusal(
    'TOO_MANY_INPUTS',
    `requires more than ${INPUTS_MAX} coins of the wallet; send a smaller amount first`,
    most > 0n ? most : 0n,
  )
}

/**
 * Returns the largest amount in satoshi that one transaction can pay from these coins to an address of
 * any kind, without change, its fee, and the least that can be paid to every kind. Coins that cost more
 * than they are worth are left out.
 * @param feeRate satoshi per 1000 vbytes
 */
export function mostPayable(
  network: Network,
  coins: readonly Pick<Utxo, 'value'>[],
  feeRate: bigint,
): Payable {
  const params = paramsOf(network)
  const least = dustLimit(params, new Uint8Array(P2PKH_SCRIPT_BYTES))
  const values = coins.map(({ value }) => value).sort((a, b) => (a === b ? 0 : a > b ? -1 : 1))
  let best = { amount: 0n, fee: 0n, least }
  let sum = 0n
  for (const [at, value] of values.slice(0, INPUTS_MAX).entries()) {
    sum += value
    const vsize = virtualSize(params, at + 1, [longestScript(params)])
    const fee = (BigInt(vsize) * feeRate) / 1000n
    if (sum - fee > best.amount) best = { amount: sum - fee, fee, least }
  }
  return best
}

/** Length of the script with the highest dust limit, in bytes. */
const P2PKH_SCRIPT_BYTES = 25

/** Length of the longest script of an address that can be paid on a network, in bytes. */
const longestScript = (params: UtxoParams): number =>
  params.script === 'p2wpkh' ? 34 : P2PKH_SCRIPT_BYTES

/**
 * Returns all coins, less the fee, to the wallet. The transaction replaces a cancelled payment.
 * @param o.feeRate satoshi per 1000 vbytes
 * @param o.above fee of the replaced transaction, which must be paid in addition to the relay fee
 *   (BIP125)
 * @throws CoinRefusal `INSUFFICIENT` if less than dust would return
 */
export function selectReturn(
  network: Network,
  o: { utxos: readonly Utxo[]; changeAddress: string; feeRate: bigint; above: bigint },
): Selection {
  const params = paramsOf(network)
  const script = scriptOf(network, o.changeAddress)
  const vsize = virtualSize(params, o.utxos.length, [script.length])
  const sum = o.utxos.reduce((total, utxo) => total + utxo.value, 0n)
  const least = o.above + BigInt(vsize) * BigInt(params.min_fee_rate)
  const wanted = (BigInt(vsize) * o.feeRate) / 1000n
  const fee = wanted > least ? wanted : least
  if (sum - fee < dustLimit(params, script)) {
    throw new CoinRefusal(
      'INSUFFICIENT',
      `a fee of ${fee} satoshi would consume all ${sum} satoshi of the coins`,
    )
  }
  return { utxos: [...o.utxos], fee, change: sum - fee, vsize }
}

/**
 * Searches depth-first for a set whose surplus over amount and fee is smaller than the cost of a
 * change output.
 */
function branchAndBound(
  sorted: readonly Utxo[],
  cost: (inputs: number) => bigint,
  tolerance: bigint,
): Utxo[] | null {
  let tries = 20_000
  const suffix: bigint[] = Array.from({ length: sorted.length + 1 }, () => 0n)
  for (let at = sorted.length - 1; at >= 0; at--)
    suffix[at] = (suffix[at + 1] as bigint) + (sorted[at] as Utxo).value
  // Excluding a coin continues the loop, and including it recurses, because a wallet may have more
  // coins than the stack has frames.
  const search = (from: number, chosen: Utxo[], sum: bigint): Utxo[] | null => {
    for (let at = from; tries-- > 0; at++) {
      if (chosen.length > 0) {
        const surplus = sum - cost(chosen.length)
        if (surplus >= 0n) return surplus < tolerance ? chosen : null
      }
      if (
        at >= sorted.length ||
        chosen.length >= 20 ||
        sum + (suffix[at] as bigint) < cost(chosen.length + 1)
      )
        return null
      const utxo = sorted[at] as Utxo
      const result = search(at + 1, [...chosen, utxo], sum + utxo.value)
      if (result) return result
    }
    return null
  }
  return search(0, [], 0n)
}

/** Formats an outpoint as `txid:vout`. */
export function outpointOf(utxo: { txid: string; vout: number }): string {
  return `${utxo.txid}:${utxo.vout}`
}
