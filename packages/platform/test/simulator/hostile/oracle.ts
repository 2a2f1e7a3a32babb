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
  payment(wish: PlannedRequest | undefined, found: Read, bytes: string, own: string | null): void {
    if (!wish) return this.#wrong('a payment that nobody wished', found)
    const [pays, more] = found.pays
    const isCancel = own !== null
    const isWished =
      !isCancel &&
      found.asset === wish.asset &&
      pays?.units === wish.units &&
      same(pays.to, wish.to)
    const isNothing =
      isCancel &&
      wish.cancels.length > 0 &&
      pays !== undefined &&
      same(pays.to, own) &&
      (found.asset === 'BTC' || (found.asset === 'ETH' && pays.units === 0n))
    if (more || !(isWished || isNothing))
      this.#wrong(`not what ${wish.name} wished: ${wish.units} ${wish.asset} to ${wish.to}`, found)
    if (found.sub !== wish.person.subAccount || (wish.asset !== 'BTC' && found.index !== 0))
      this.#wrong('from another wallet', found)
    this.#add(wish.name, found, bytes, isCancel)
  }

  /**
   * Checks a sweep: it goes from a deposit address to the first address of the same sub-account.
   */
  sweep(home: string, found: Read): void {
    this.count++
    const [pays, more] = found.pays
    if (more || !pays || found.sub < 1 || found.index < 1 || !same(pays.to, home))
      this.#wrong(`a sweep to another than ${home}`, found)
    this.#assertFee(found)
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
    found: Read,
    bytes: string,
  ): void {
    if (wishes.includes(undefined)) return this.#wrong('fuel for what nobody wished', found)
    const [pays, more] = found.pays
    if (
      more ||
      found.asset !== 'ETH' ||
      found.sub !== 0 ||
      !pays ||
      to === null ||
      !same(pays.to, to) ||
      pays.units > most
    ) {
      this.#wrong(`fuel of more than ${most}, or to another than ${to}`, found)
    }
    if (new Set(wishes.map((wish) => wish?.name)).size !== wishes.length)
      this.#wrong('fuel that names a payment twice', found)
    for (const wish of wishes) this.#add(`fuel ${wish?.name} ${faster}`, found, bytes)
  }

  #add(name: string, found: Read, bytes: string, isCancel = false): void {
    this.count++
    this.#assertFee(found)
    const all = this.#by.get(name) ?? []
    for (const earlier of all) {
      if (!earlier.places.some((place) => found.places.includes(place)))
        this.#wrong(`two that do not exclude each other, for ${name}`, { earlier, found })
    }
    this.#by.set(name, [...all, found])
    const known = this.#bytes.get(name) ?? new Set()
    // A cancellation, which pays only the own wallet, may be signed after a void.
    if (!isCancel && this.#voided.has(name) && !this.#voided.get(name)?.has(bytes))
      this.#wrong(`signed after two nodes had voided ${name}`, found)
    this.#bytes.set(name, known.add(bytes))
  }

  #assertFee(found: Read): void {
    const limit = 10n ** BigInt((DECIMALS[found.asset] ?? 18) === 8 ? 6 : 17)
    if (found.fee > limit) this.#wrong('a fee above the cap', found)
  }

  #wrong(what: string, shown: unknown): void {
    this.problems.push(
      `${what}: ${JSON.stringify(shown, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`,
    )
  }
}
