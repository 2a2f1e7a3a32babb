import { RpcRefused, RpcUnavailable, type JsonRpc } from '../rpc.ts'
import { reasonOf } from '../reason.ts'
import { ChainError, type Asset, type Network } from '../types.ts'
import type { ReportUnreadable } from '../unreadable.ts'
import { Answer } from './rpc-types.ts'

const BALANCE_OF = '70a08231'
const ADDRESS = /^0x[0-9a-f]{40}$/i
const WORD_BYTES = 32
/** Number of balances that are queried concurrently if each needs its own request. */
const SINGLE_AT_ONCE = 8
/** Milliseconds for which an endpoint that refused the call is not asked again. */
const REFUSED_MS = 3_600_000

/** Operations of the EVM by their mnemonic (Yellow Paper, appendix H.2; EIP-140, 211, 214). */
const OPCODES = {
  ADD: '01',
  SUB: '03',
  LT: '10',
  EQ: '14',
  ISZERO: '15',
  AND: '16',
  BALANCE: '31',
  CODESIZE: '38',
  CODECOPY: '39',
  RETURNDATASIZE: '3d',
  POP: '50',
  MLOAD: '51',
  MSTORE: '52',
  JUMP: '56',
  JUMPI: '57',
  GAS: '5a',
  JUMPDEST: '5b',
  DUP1: '80',
  DUP2: '81',
  DUP3: '82',
  DUP4: '83',
  SWAP1: '90',
  RETURN: 'f3',
  STATICCALL: 'fa',
  REVERT: 'fd',
} as const
const PUSH1 = 0x60

/**
 * Translates EVM assembly to byte code, in hex without prefix. `NAME:` is a jump target, `@NAME` its
 * position, `@END` the length of the code, and `0x…` a constant.
 */
function assemble(source: string): string {
  const labels = new Map<string, number>()
  const parts: string[] = []
  let bytes = 0
  for (const word of source.trim().split(/\s+/)) {
    if (word.endsWith(':')) labels.set(word.slice(0, -1), bytes)
    const part = word.endsWith(':')
      ? OPCODES.JUMPDEST
      : word.startsWith('@')
        ? word
        : word.startsWith('0x')
          ? `${(PUSH1 + (word.length - 2) / 2 - 1).toString(16)}${word.slice(2)}`
          : OPCODES[word as keyof typeof OPCODES]
    parts.push(part)
    bytes += part.startsWith('@') ? 2 : part.length / 2
  }
  labels.set('END', bytes)
  return parts
    .map((part) =>
      part.startsWith('@')
        ? `${PUSH1.toString(16)}${(labels.get(part.slice(1)) as number).toString(16).padStart(2, '0')}`
        : part,
    )
    .join('')
}

/**
 * Reads the addresses behind the code one by one, and writes a word of 32 bytes for each. The stack
 * is always `out at`: where the next word is written, and where the next address begins. The rest
 * is written from the bottom of the stack to its top.
 * @param out where the first word is written
 * @param into where an address of 20 bytes is copied to, from the stack `at 20 at out`
 * @param read writes the word of the address
 */
const loop = (out: string, into: string, read: string): string => `
  ${out} @END
  next:
    CODESIZE DUP2 LT ISZERO @done JUMPI
    0x14 DUP2 ${into} CODECOPY
    ${read}
    0x14 ADD SWAP1 0x20 ADD SWAP1
    @next JUMP
  done:
    POP`

/** Balances of the native coin. Each address is copied to the right end of its own word. */
const NATIVE = assemble(`
  ${loop('0x00', 'DUP4 0x0c ADD', 'DUP2 MLOAD BALANCE DUP3 MSTORE')}
  0x00 RETURN`)

/**
 * Balances of a token. The call's data is in bytes 28 to 63: the selector, and the address as a
 * word; the words begin at 64. The call reverts unless each answer is one word.
 */
const ofToken = (contract: string): string =>
  assemble(`
  0x${BALANCE_OF} 0x00 MSTORE
  ${loop(
    '0x40',
    '0x2c',
    `0x20 DUP3 0x24 0x1c ${contract} GAS STATICCALL
     RETURNDATASIZE 0x20 EQ AND ISZERO @failed JUMPI`,
  )}
  0x40 DUP2 SUB 0x40 RETURN
  failed:
    0x00 DUP1 REVERT`)

/**
 * Reads the balances of many addresses by one simulated creation of a contract: its code returns the
 * balances instead of a contract, so none needs to exist on the network. With 500 addresses the
 * code has 10 kB (EIP-3860 allows 48 kB), and the answer 16 kB (EIP-170 allows 24 kB).
 */
export class EvmBalances {
  readonly #network: Network
  readonly #call: JsonRpc
  readonly #report: ReportUnreadable
  readonly #now: () => number
  /** By asset: until when the call is not made, because the endpoint has refused it. */
  readonly #refusedUntilMs = new Map<string, number>()

  /** @param report is called when the endpoint refuses the call */
  constructor(network: Network, call: JsonRpc, report: ReportUnreadable, now: () => number) {
    this.#network = network
    this.#call = call
    this.#report = report
    this.#now = now
  }

  /**
   * Returns the balances in the smallest unit, in the order of the addresses, all of one block if the
   * endpoint serves the call, and otherwise by single requests.
   * @param height block; absent: the newest
   * @throws ChainError `ADDRESS`; RpcUnavailable if the answer is not one balance per address;
   *   RpcRefused if the endpoint refuses a single balance
   */
  async read(addresses: readonly string[], asset: Asset, height?: number): Promise<bigint[]> {
    const block = height === undefined ? 'latest' : `0x${height.toString(16)}`
    const words = addresses.map(hexOf)
    if (words.length === 0) return []
    const { asset_name: name } = asset
    const now = this.#now()
    const untilMs = this.#refusedUntilMs.get(name) ?? 0
    // An end beyond one period is of a clock that was set back.
    if (now < untilMs && untilMs <= now + REFUSED_MS) return this.#singly(words, asset, block)
    try {
      const balances = await this.#together(words, asset, block)
      this.#refusedUntilMs.delete(name)
      return balances
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      const balances = await this.#singly(words, asset, block)
      // Remembered only now: an endpoint that refuses single requests too has another problem.
      this.#refusedUntilMs.set(name, now + REFUSED_MS)
      const reason = reasonOf(error)
      this.#report({
        network: this.#network.code,
        kind: 'method',
        name: 'eth_call of init code',
        reason,
      })
      return balances
    }
  }

  /** @param words addresses in hex without prefix */
  async #together(words: readonly string[], asset: Asset, block: string): Promise<bigint[]> {
    const code = asset.type === 'native' ? NATIVE : ofToken(contractOf(asset))
    const answered = await this.#call<unknown>('eth_call', [
      { data: `0x${code}${words.join('')}` },
      block,
    ])
    // Nodes that do not run init code in a call return nothing.
    if (answered === '0x') throw new RpcRefused(0, 'the node returns nothing for init code')
    const digits = 2 * WORD_BYTES
    if (
      typeof answered !== 'string' ||
      answered.length !== 2 + digits * words.length ||
      !/^0x[0-9a-f]*$/i.test(answered)
    )
      throw new RpcUnavailable(
        `${this.#network.code}: eth_call returned other than ${words.length} balances`,
      )
    return words.map((_, at) =>
      BigInt(`0x${answered.slice(2 + at * digits, 2 + (at + 1) * digits)}`),
    )
  }

  async #singly(words: readonly string[], asset: Asset, block: string): Promise<bigint[]> {
    const balances: bigint[] = []
    for (let at = 0; at < words.length; at += SINGLE_AT_ONCE)
      balances.push(
        ...(await Promise.all(
          words.slice(at, at + SINGLE_AT_ONCE).map((word) => this.#single(word, asset, block)),
        )),
      )
    return balances
  }

  async #single(word: string, asset: Asset, block: string): Promise<bigint> {
    if (asset.type === 'native') {
      const answered = await this.#call<unknown>('eth_getBalance', [`0x${word}`, block])
      return new Answer(this.#network.code, 'eth_getBalance').quantity(answered, 'balance')
    }
    const data = `0x${BALANCE_OF}${word.padStart(2 * WORD_BYTES, '0')}`
    const answered = await this.#call<unknown>('eth_call', [{ to: contractOf(asset), data }, block])
    const answer = new Answer(this.#network.code, 'eth_call')
    if (typeof answered !== 'string' || answered.length !== 2 + 2 * WORD_BYTES)
      return answer.refuse(`returned other than a word for a balance of ${asset.asset_name}`)
    return answer.quantity(answered, 'balance')
  }
}

const contractOf = (asset: Asset): string => (asset.contract_address as string).toLowerCase()

/**
 * Returns an address in hex without prefix.
 * @throws ChainError `ADDRESS` if it does not have 20 bytes: it would shift those that follow
 */
function hexOf(address: string): string {
  if (!ADDRESS.test(address)) throw new ChainError('ADDRESS', 'is not an EVM address')
  return address.slice(2).toLowerCase()
}
