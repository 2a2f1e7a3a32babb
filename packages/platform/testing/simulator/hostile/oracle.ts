import { address as btcAddress, networks, Transaction } from 'bitcoinjs-lib'
import type { UnsignedTransaction } from '@custody/chains'
import { decodeFunctionData, erc20Abi, parseTransaction } from 'viem'
import { DECIMALS, type PlannedRequest } from './requests.ts'

/**
 * An unsigned transaction as decoded by the oracle, with other libraries than the nodes'. `places`:
 * two transactions that share one exclude each other.
 */
export interface Read {
  places: string[]
  asset: string
  pays: { to: string; units: bigint }[]
  fee: bigint
  sub: number
  index: number
}

export function read(
  unsigned: UnsignedTransaction,
  usdt: string,
  coins: ReadonlyMap<string, bigint>,
): Read {
  const [{ path }] = unsigned.inputs as [{ path: number[] }]
  const [sub = -1, , index = -1] = path
  if (unsigned.network === 'BTC') {
    const transaction = Transaction.fromHex(unsigned.bytes)
    const outs = transaction.outs.filter((_, at) => at !== unsigned.change?.output)
    const places = transaction.ins.map(
      ({ hash, index: vout }) => `${Buffer.from(hash).reverse().toString('hex')}:${vout}`,
    )
    const spent = places.reduce((sum, place) => sum + (coins.get(place) ?? 0n), 0n)
    return {
      places,
      asset: 'BTC',
      sub,
      index,
      fee: spent - transaction.outs.reduce((sum, { value }) => sum + BigInt(value), 0n),
      pays: outs.map(({ script, value }) => ({
        to: btcAddress.fromOutputScript(script, networks.regtest),
        units: BigInt(value),
      })),
    }
  }
  const {
    to = null,
    value = 0n,
    data,
    nonce = 0,
    gas = 0n,
    maxFeePerGas = 0n,
  } = parseTransaction(`0x${unsigned.bytes}`)
  const common = { places: [`${path.join('/')} ${nonce}`], fee: gas * maxFeePerGas, sub, index }
  if (data === undefined || data === '0x')
    return { ...common, asset: 'ETH', pays: [{ to: String(to), units: value }] }
  const { functionName, args } = decodeFunctionData({ abi: erc20Abi, data })
  if (functionName !== 'transfer' || to?.toLowerCase() !== usdt.toLowerCase() || value !== 0n)
    return { ...common, asset: 'unknown', pays: [] }
  return { ...common, asset: 'USDT_ETH', pays: [{ to: args[0], units: args[1] }] }
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/**
 * All signed transactions, by authorization. The oracle does not trust the nodes, only the requests
 * of the callers.
 */
export class Signatures {
  readonly #by = new Map<string, Read[]>()
  /**
   * Authorizations that two nodes have voided, with the transactions that had been signed for them
   * by then.
   */
  readonly #voided = new Map<string, ReadonlySet<string>>()
  readonly #bytes = new Map<string, Set<string>>()
  readonly problems: string[] = []
  count = 0

  voided(name: string): void {
    if (!this.#voided.has(name)) this.#voided.set(name, new Set(this.#bytes.get(name)))
  }

  /**
   * Checks a payment, or a transaction that replaces it: it pays what its caller requested, or only
   * the own wallet.
   */
  payment(
    planned: PlannedRequest | undefined,
    transaction: Read,
    bytes: string,
    own: string | null,
  ): void {
    if (!planned) return this.#wrong('a payment that nobody wished', transaction)
    const [pays, more] = transaction.pays
    const isCancel = own !== null
    const isWished =
      !isCancel &&
      transaction.asset === planned.asset &&
      pays?.units === planned.units &&
      same(pays.to, planned.to)
    const isNothing =
      isCancel &&
      planned.cancels.length > 0 &&
      pays !== undefined &&
      same(pays.to, own) &&
      (transaction.asset === 'BTC' || (transaction.asset === 'ETH' && pays.units === 0n))
    if (more || !(isWished || isNothing))
      this.#wrong(
        `not what ${planned.name} wished: ${planned.units} ${planned.asset} to ${planned.to}`,
        transaction,
      )
    if (
      transaction.sub !== planned.person.subAccount ||
      (planned.asset !== 'BTC' && transaction.index !== 0)
    )
      this.#wrong('from another wallet', transaction)
    this.#add(planned.name, transaction, bytes, isCancel)
  }

  /**
   * Checks a sweep: it goes from a deposit address to the first address of the same sub-account.
   */
  sweep(home: string, transaction: Read): void {
    this.count++
    const [pays, more] = transaction.pays
    if (more || !pays || transaction.sub < 1 || transaction.index < 1 || !same(pays.to, home))
      this.#wrong(`a sweep to another than ${home}`, transaction)
    this.#assertFee(transaction)
  }

  /**
   * Checks a fuel transaction: it goes to the payer's address, names each payment once, and does
   * not exceed the maximum cost of these payments.
   * @param faster the caller's order to speed the payment up, which has a separate fuel
   *   transaction; otherwise empty
   */
  fuel(
    wishes: readonly (PlannedRequest | undefined)[],
    faster: string,
    most: bigint,
    to: string | null,
    transaction: Read,
    bytes: string,
  ): void {
    if (wishes.includes(undefined)) return this.#wrong('fuel for what nobody wished', transaction)
    const [pays, more] = transaction.pays
    if (
      more ||
      transaction.asset !== 'ETH' ||
      transaction.sub !== 0 ||
      !pays ||
      to === null ||
      !same(pays.to, to) ||
      pays.units > most
    ) {
      this.#wrong(`fuel of more than ${most}, or to another than ${to}`, transaction)
    }
    if (new Set(wishes.map((planned) => planned?.name)).size !== wishes.length)
      this.#wrong('fuel that names a payment twice', transaction)
    for (const request of wishes) this.#add(`fuel ${request?.name} ${faster}`, transaction, bytes)
  }

  #add(name: string, transaction: Read, bytes: string, isCancel = false): void {
    this.count++
    this.#assertFee(transaction)
    const all = this.#by.get(name) ?? []
    for (const earlier of all) {
      if (!earlier.places.some((place) => transaction.places.includes(place)))
        this.#wrong(`two that do not exclude each other, for ${name}`, {
          earlier,
          found: transaction,
        })
    }
    this.#by.set(name, [...all, transaction])
    const signed = this.#bytes.get(name) ?? new Set()
    // A cancellation, which pays only the own wallet, may be signed after a void.
    if (!isCancel && this.#voided.has(name) && !this.#voided.get(name)?.has(bytes))
      this.#wrong(`signed after two nodes had voided ${name}`, transaction)
    this.#bytes.set(name, signed.add(bytes))
  }

  #assertFee(transaction: Read): void {
    const limit = 10n ** BigInt((DECIMALS[transaction.asset] ?? 18) === 8 ? 6 : 17)
    if (transaction.fee > limit) this.#wrong('a fee above the cap', transaction)
  }

  #wrong(what: string, shown: unknown): void {
    this.problems.push(
      `${what}: ${JSON.stringify(shown, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`,
    )
  }
}
