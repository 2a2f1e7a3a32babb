import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import {
  ChainError,
  CoinRefusal,
  type Network,
  type Payable,
  type UtxoTokens,
  type UnsignedTransaction,
} from '../types.ts'
import { reasonOf } from '../reason.ts'
import { addressBytes, addressText } from './address.ts'
import {
  compareInputs,
  encodeBody,
  encodeOutput,
  encodeValue,
  hashOf,
  NO_ASSETS,
  openTransaction,
  outputOf,
  parseBody,
  signedBytes,
  type Assets,
  type Body,
  type Output,
} from './body.ts'

/**
 * An unspent output that the wallet can spend, with the tokens and the script that it carries in
 * addition to lovelace.
 */
export interface Coin {
  txid: string
  vout: number
  value: bigint
  path: number[]
  address: string
  riders: UtxoTokens | null
}

/** Protocol parameters of the chain that determine a payment's fee and minimum amount. */
export interface Parameters {
  /** Fee in lovelace per byte of the signed transaction. */
  feePerByte: bigint
  feeConstant: bigint
  /** Lovelace that an output must contain for each of its bytes. */
  coinsPerByte: bigint
  transactionBytesMax: number
  valueBytesMax: number
}

export const PARAMETERS: Parameters = {
  feePerByte: 44n,
  feeConstant: 155_381n,
  coinsPerByte: 4310n,
  transactionBytesMax: 16_384,
  valueBytesMax: 5000,
}
/** Number of slots, of one second each, in which a transaction can be included. */
export const SLOTS_TO_LIVE = 3600
/** Placeholder for a transaction's last slot where only its size matters. */
export const NOMINAL_END = 100_000_000n
/**
 * Fee in lovelace per byte of a reference script on a spent output, for the first 25,600 bytes in
 * total. Each further step of that size costs one fifth more.
 */
const SCRIPT_FEE_PER_BYTE = 15n
const SCRIPT_STEP_BYTES = 25_600n
/** Bytes that the ledger adds to an output's own size. */
const OUTPUT_OVERHEAD_BYTES = 160n
/**
 * Maximum number of inputs. More never fit into a transaction, even if one key owns all of them.
 */
export const INPUTS_MAX = 440
const QUANTITY_MAX = (1n << 63n) - 1n
/** Size of the longest address that can be paid, in bytes: of a base address. */
const LONGEST_OUTPUT_BYTES = 57
/** Size of an enterprise address in bytes, used where only the size of an output matters. */
const TYPICAL_OUTPUT_BYTES = 29

export interface Selection {
  coins: Coin[]
  fee: bigint
  change: bigint
  assets: Assets
  size: number
}

/**
 * Returns the fee in lovelace for the reference scripts of spent outputs, never less than the
 * ledger requires.
 */
export function scriptFee(bytes: number): bigint {
  let fee = 0n
  let left = BigInt(bytes)
  // The steps of one fifth are computed as an exact fraction, which is rounded once.
  for (
    let numerator = SCRIPT_FEE_PER_BYTE, denominator = 1n;
    left > 0n;
    numerator *= 6n, denominator *= 5n
  ) {
    const step = left < SCRIPT_STEP_BYTES ? left : SCRIPT_STEP_BYTES
    fee += (step * numerator + denominator - 1n) / denominator
    left -= step
  }
  return fee
}

/** Returns the smallest amount of lovelace that an output may contain. */
function leastCoin(output: Output, parameters: Parameters = PARAMETERS): bigint {
  return (OUTPUT_OVERHEAD_BYTES + BigInt(encodeOutput(output).length)) * parameters.coinsPerByte
}

/** Returns the smallest amount in lovelace that can be paid to an address. */
export function leastPayment(
  network: Network,
  to: string,
  amount: bigint,
  parameters: Parameters = PARAMETERS,
): bigint {
  return leastCoin(
    { address: addressBytes(network, to), coin: amount, assets: NO_ASSETS },
    parameters,
  )
}

/**
 * Returns why signer nodes would refuse to sign for a coin: the body that created it cannot be
 * read, or its output does not match the coin. Returns null if they would sign.
 * @param previous the body in hex
 */
export function unspendable(
  network: Network,
  coin: Pick<Coin, 'txid' | 'vout' | 'value' | 'address'>,
  previous: string,
): string | null {
  try {
    const body = hexToBytes(previous)
    if (bytesToHex(hashOf(body)) !== coin.txid) return 'its transaction has another id'
    const output = outputOf(body, coin.vout)
    if (output === null) return 'its transaction has no such output'
    if (output.coin !== coin.value || addressText(network, output.address) !== coin.address)
      return 'its output has another address or amount than recorded'
    return null
  } catch (error) {
    return `its transaction cannot be read: ${reasonOf(error)}`
  }
}

/**
 * Returns the body of a signed transaction, both in hex. An input needs it as its previous
 * transaction.
 */
export function bodyOf(raw: string): string {
  return bytesToHex(openTransaction(hexToBytes(raw)).body)
}

/**
 * Returns the lovelace that must stay with native tokens on one output of an enterprise address.
 */
export function keptWith(
  coins: readonly Pick<Coin, 'riders'>[],
  parameters: Parameters = PARAMETERS,
): bigint {
  const assets = assetsOf(coins)
  return assets.size === 0
    ? 0n
    : leastCoin(
        { address: new Uint8Array(TYPICAL_OUTPUT_BYTES), coin: 10_000_000n, assets },
        parameters,
      )
}

const scriptBytesOf = (coins: readonly Coin[]): number =>
  coins.reduce((sum, { riders }) => sum + (riders?.script_bytes ?? 0), 0)

/** Returns the fee in lovelace of one input and two plain outputs at a rate. */
export function typicalFee(rate: bigint, parameters: Parameters = PARAMETERS): bigint {
  const output = {
    address: new Uint8Array(TYPICAL_OUTPUT_BYTES),
    coin: 10_000_000n,
    assets: NO_ASSETS,
  }
  const body = encodeBody({
    inputs: [{ txid: '0'.repeat(64), index: 0 }],
    outputs: [output, output],
    fee: 170_000n,
    ttl: 100_000_000n,
  })
  return rate * BigInt(signedBytes(body.length, 1)) + parameters.feeConstant
}

/**
 * Bytes by which a transaction may overpay where the change amount is at the boundary between two
 * encoded lengths.
 */
export const EDGE_BYTES = 4n

/**
 * Returns the largest surplus in lovelace that may go to the fee because it is too small for a
 * change output, at a rate.
 */
export function surplusMost(rate: bigint, parameters: Parameters = PARAMETERS): bigint {
  const change = {
    address: new Uint8Array(TYPICAL_OUTPUT_BYTES),
    coin: 10_000_000n,
    assets: NO_ASSETS,
  }
  return leastCoin(change, parameters) + rate * BigInt(encodeOutput(change).length)
}

/**
 * Sums the native tokens of all coins. A sum that no output can contain is one above the largest
 * quantity, because any sender can mint that many and a larger number cannot be encoded.
 */
function assetsOf(coins: readonly Pick<Coin, 'riders'>[]): Assets {
  const sum = new Map<string, bigint>()
  for (const { riders } of coins) {
    for (const [unit, quantity] of Object.entries(riders?.assets ?? {})) {
      const next = (sum.get(unit) ?? 0n) + BigInt(quantity)
      sum.set(unit, next > QUANTITY_MAX ? QUANTITY_MAX + 1n : next)
    }
  }
  return sum
}

/** Formats an outpoint as `txid:vout`. */
const outpointOf = ({ txid, vout }: { txid: string; vout: number }): string => `${txid}:${vout}`

const total = (coins: readonly Coin[]): bigint => coins.reduce((sum, { value }) => sum + value, 0n)
const largestFirst = (a: Coin, b: Coin): number =>
  a.value === b.value ? (outpointOf(a) < outpointOf(b) ? -1 : 1) : a.value > b.value ? -1 : 1
const isPlain = ({ riders }: Coin): boolean => riders === null

interface Order {
  coins: readonly Coin[]
  to: string
  amount: bigint
  changeAddress: string
  /** Fee rate in lovelace per byte. */
  rate: bigint
  ttl: bigint
  parameters: Parameters
  /** Coins that must be among the inputs, because a replacement must share them. */
  required?: readonly Coin[]
}

/**
 * Chooses coins: those that contain only lovelace first, the largest first, until there is enough
 * for change that the ledger accepts. Native tokens of a chosen coin return with the change. If no
 * choice leaves enough for change, and there are no tokens, the surplus (less than the smallest
 * output) goes to the fee.
 *
 * @throws CoinRefusal
 */
export function selectCoins(network: Network, o: Order): Selection {
  const payment: Output = {
    address: addressBytes(network, o.to),
    coin: o.amount,
    assets: NO_ASSETS,
  }
  const least = leastCoin(payment, o.parameters)
  if (o.amount < least)
    throw new CoinRefusal(
      'DUST',
      `is below the ${least} lovelace that the chain requires in an output to this address`,
    )
  const changeTo = addressBytes(network, o.changeAddress)
  const required = o.required ?? []
  const ordered = optionalCoins(o.coins, required)
  const feeAt = (chosen: readonly Coin[], change: Output | null) =>
    feeOf(o, chosen, change ? [payment, change] : [payment])
  const withChange = (chosen: readonly Coin[]): Selection | null => {
    const assets = assetsOf(chosen)
    const rest = total(chosen) - o.amount
    if (rest <= 0n) return null
    let fee = 0n
    let size = 0
    // The change amount determines its encoded length, which determines the fee. Two rounds are
    // enough, except at the boundary between two lengths, where the higher fee is used.
    for (let round = 0; round < 3; round++) {
      if (rest <= fee) return null
      const next = feeAt(chosen, { address: changeTo, coin: rest - fee, assets })
      if (round === 0 || next.fee > fee || round === 1) fee = next.fee
      size = next.size
    }
    if (
      rest - fee <
      leastCoin({ address: changeTo, coin: rest > fee ? rest - fee : 0n, assets }, o.parameters)
    )
      return null
    return { coins: [...chosen], fee, change: rest - fee, assets, size }
  }
  const withoutChange = (chosen: readonly Coin[], surplusAllowed: boolean): Selection | null => {
    if (chosen.length === 0 || assetsOf(chosen).size > 0) return null
    const { fee, size } = feeAt(chosen, null)
    const surplus = total(chosen) - o.amount - fee
    return surplus === 0n || (surplusAllowed && surplus > 0n)
      ? { coins: [...chosen], fee: fee + surplus, change: 0n, assets: NO_ASSETS, size }
      : null
  }
  const search = (finish: (chosen: readonly Coin[]) => Selection | null): Selection | null => {
    const chosen = [...required]
    for (let next = 0; ; next++) {
      const selection = chosen.length > 0 ? finish(chosen) : null
      if (!selection && total(required) + total(ordered) <= o.amount) return null
      if (selection || chosen.length > INPUTS_MAX) {
        if (!selection || selection.size > o.parameters.transactionBytesMax) {
          throw new CoinRefusal(
            'TOO_MANY_INPUTS',
            `requires ${chosen.length} coins of the wallet, more than fit into a transaction; send a smaller amount first`,
            mostOf(o, chosen, payment),
          )
        }
        return selection
      }
      const coin = ordered[next]
      if (!coin) return null
      if (isPlain(coin) || fitsIntoChange([...chosen, coin], o.parameters)) chosen.push(coin)
    }
  }
  const selection =
    search((chosen) => withoutChange(chosen, false) ?? withChange(chosen)) ??
    search((chosen) => withoutChange(chosen, true))
  if (selection) return selection
  throw insufficient(o, [...required, ...ordered], payment, changeTo)
}

/**
 * Returns the largest amount that one transaction can pay from coins of lovelace alone, in lovelace.
 * @param chosen more coins than fit into a transaction, the largest first
 */
const mostOf = (o: Order, chosen: readonly Coin[], payment: Output): bigint =>
  mostFrom(o, chosen.filter(isPlain), payment).amount

/** The parts of an order that determine fee and size of its transaction. */
type Terms = Pick<Order, 'rate' | 'ttl' | 'parameters'>

/** @param plain coins of lovelace alone, the largest first */
function mostFrom(
  terms: Terms,
  plain: readonly Coin[],
  payment: Output,
): { amount: bigint; fee: bigint } {
  let [fits, exceeds] = [0, plain.length + 1]
  while (exceeds - fits > 1) {
    const middle = Math.floor((fits + exceeds) / 2)
    const { size } = feeOf(terms, plain.slice(0, middle), [payment])
    if (size <= terms.parameters.transactionBytesMax) fits = middle
    else exceeds = middle
  }
  const coins = plain.slice(0, fits)
  const { fee } = feeOf(terms, coins, [payment])
  const most = total(coins) - fee
  return { amount: most > 0n ? most : 0n, fee }
}

/**
 * Returns the largest amount in lovelace that one transaction can pay from these coins to an address of
 * any kind, without change, its fee, and the least that can be paid to every kind. Coins with native
 * tokens are left out.
 * @param rate lovelace per byte
 */
export function mostPayable(
  coins: readonly Coin[],
  rate: bigint,
  parameters: Parameters = PARAMETERS,
): Payable {
  const payment = {
    address: new Uint8Array(LONGEST_OUTPUT_BYTES),
    coin: total(coins),
    assets: NO_ASSETS,
  }
  const plain = coins.filter(isPlain).sort(largestFirst).slice(0, INPUTS_MAX)
  return {
    ...mostFrom({ rate, ttl: NOMINAL_END, parameters }, plain, payment),
    least: leastCoin(payment, parameters),
  }
}

/** Returns the coins that are not required: those of lovelace alone first, the largest first. */
function optionalCoins(coins: readonly Coin[], required: readonly Coin[]): Coin[] {
  const taken = new Set(required.map(outpointOf))
  const free = coins.filter((coin) => !taken.has(outpointOf(coin)))
  return [
    ...free.filter(isPlain).sort(largestFirst),
    ...free.filter((coin) => !isPlain(coin)).sort(largestFirst),
  ]
}

/** Returns the fee and the size in bytes of a transaction with these coins and outputs. */
function feeOf(
  { rate, ttl, parameters }: Terms,
  chosen: readonly Coin[],
  outputs: Output[],
): { fee: bigint; size: number } {
  const body: Body = {
    inputs: inputsOf(chosen),
    outputs,
    fee: parameters.feeConstant,
    ttl,
  }
  const size = signedBytes(
    encodeBody(body).length,
    new Set(chosen.map(({ address }) => address)).size,
  )
  return {
    fee: rate * BigInt(size) + parameters.feeConstant + scriptFee(scriptBytesOf(chosen)),
    size,
  }
}

/** Returns whether the native tokens of these coins fit into one change output. */
function fitsIntoChange(chosen: readonly Coin[], { valueBytesMax }: Parameters): boolean {
  const assets = assetsOf(chosen)
  return (
    encodeValue(QUANTITY_MAX, assets).length <= valueBytesMax &&
    [...assets.values()].every((quantity) => quantity <= QUANTITY_MAX)
  )
}

/** Returns the error of a payment that all coins cannot pay, with the missing amount. */
function insufficient(
  order: Order,
  all: readonly Coin[],
  payment: Output,
  changeTo: Uint8Array,
): CoinRefusal {
  const { amount, parameters } = order
  const tokens = assetsOf(all)
  const reserve =
    tokens.size > 0
      ? leastCoin({ address: changeTo, coin: 0xffff_ffffn, assets: tokens }, parameters)
      : 0n
  const { fee } = feeOf(order, all.slice(0, 1), [payment])
  const missing = amount + fee + reserve - total(all)
  const ofThem = reserve > 0n ? `, of which ${reserve} must stay with the native tokens` : ''
  return new CoinRefusal(
    'INSUFFICIENT',
    `amount and network fee exceed the available coins by ${missing > 0n ? missing : 1n} lovelace${ofThem}`,
  )
}

const inputsOf = (coins: readonly Coin[]) =>
  coins.map(({ txid, vout }) => ({ txid, index: vout })).sort(compareInputs)

/**
 * Builds the unsigned transaction of a selection: payment first, then change.
 * @param o.previous bodies (hex) of the transactions that created the coins, by txid
 */
export function buildTransfer(
  network: Network,
  o: {
    selection: Selection
    to: string
    amount: bigint
    changeAddress: string
    changePath: number[]
    ttl: bigint
    previous: ReadonlyMap<string, string>
  },
): UnsignedTransaction {
  const { coins, fee, change, assets } = o.selection
  const inputs = inputsOf(coins)
  const outputs: Output[] = [
    { address: addressBytes(network, o.to), coin: o.amount, assets: NO_ASSETS },
  ]
  if (change > 0n)
    outputs.push({ address: addressBytes(network, o.changeAddress), coin: change, assets })
  const unsigned: UnsignedTransaction = {
    network: network.code,
    bytes: bytesToHex(encodeBody({ inputs, outputs, fee, ttl: o.ttl })),
    inputs: inputs.map(({ txid, index }) => {
      const previous = o.previous.get(txid)
      if (previous === undefined)
        throw new ChainError('PREVIOUS_TRANSACTION', `previous transaction ${txid} is missing`)
      return {
        path: (coins.find((coin) => coin.txid === txid && coin.vout === index) as Coin).path,
        previous,
      }
    }),
  }
  if (change > 0n) unsigned.change = { output: 1, path: o.changePath }
  return unsigned
}

/**
 * Returns the coins that a transaction spends, in the order of its inputs. `value` is null if an
 * input lacks the body that created it.
 */
export function coinsOf({
  bytes,
  inputs,
}: UnsignedTransaction): { txid: string; vout: number; value: bigint | null }[] {
  return parseBody(hexToBytes(bytes)).inputs.map(({ txid, index }, at) => {
    const previous = inputs[at]?.previous
    return {
      txid,
      vout: index,
      value: previous === undefined ? null : (outputOf(hexToBytes(previous), index)?.coin ?? null),
    }
  })
}
