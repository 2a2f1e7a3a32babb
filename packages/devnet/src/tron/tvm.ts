import type { Hex } from 'viem'
import { encodeDeployData } from 'viem/utils'
import { privateKeyToAddress } from 'viem/accounts'
import { Anvil, type Machine } from '../evm/anvil.ts'
import { artefact, deployedAddress, deployerKey } from '../evm/contracts.ts'
import { localTokens, REGISTRY, type RegistryData } from '../registry.ts'
import { toBase58, toHex } from './address.ts'
import { FORWARDER } from './forwarder.ts'

/** A call of a contract. Addresses have 42 digits. */
export type Call = { from: string; to: string; data: string }
export type Log = { address: string; topics: string[]; data: string }
/** `energy` includes `penalty`, which nodes charge for frequently called contracts. */
export type TvmResult = {
  energy: number
  penalty: number
  output: string
  logs: Log[]
  reverted: boolean
}
export type TronToken = {
  asset: string
  /** Address in 42 digits. */
  address: string
  decimals: number
  artefact: string
  owner: string
}

type Trace = {
  gasUsed: Hex
  output?: Hex
  error?: string
  logs?: { address: Hex; topics: Hex[]; data?: Hex }[]
}

/**
 * Gas that an EVM charges for a transaction before its code runs. A TVM charges it as bandwidth.
 */
const INTRINSIC_GAS = 21_000
const ZERO_BYTE_GAS = 4
const BYTE_GAS = 16
const CALL_GAS = 2_000_000
const SUPPLY = 10n ** 12n
/**
 * Additional energy. The production USDT contract does more work in a transfer than ours and has a
 * high energy factor. With these values, a transfer costs the same as there: about 64,300 energy to
 * a holder and 130,300 to another address.
 */
const USDT_WORK = 5_900
const USDT_FACTOR = 3.86
/** Number of repeated calls that fit into one block of the engine. */
const REPEATED_AT_ONCE = 10

const MACHINE: Machine = {
  code: 'TRX',
  chainId: 728126428,
  hardfork: 'istanbul',
  genesisTime: 1_700_000_000,
}

export function tokenAddress(asset: string): string {
  return `41${deployedAddress(deployerKey(asset)).slice(2).toLowerCase()}`
}

/**
 * Returns the tokens of the asset registry for the local Tron; the owner has their whole supply.
 */
export function tokensOf(owner: string, registry: RegistryData = REGISTRY): TronToken[] {
  return localTokens(registry, 'TRX').map(({ asset, ticker, decimals, address: named }) => {
    const address = tokenAddress(asset)
    if (toHex(named) !== address)
      throw new Error(
        `the asset registry has ${asset} at ${named}: on the local chain it is at ${toBase58(address)}`,
      )
    return {
      asset,
      address,
      decimals,
      artefact: ticker === 'USDT' ? 'TetherLike' : 'CircleLike',
      owner,
    }
  })
}

/**
 * TRC-20 contracts, executed by a real EVM. Its whole state is computed from the calls in the
 * chain's blocks, so it starts on the first call and may be killed at any time.
 */
export class Tvm {
  readonly #home: string
  readonly #tokens: readonly TronToken[]
  /** Returns every successful call of the chain so far. */
  readonly #past: () => Iterable<Call>
  #engine: Promise<Anvil> | undefined
  #closed = false

  constructor(home: string, tokens: readonly TronToken[], past: () => Iterable<Call>) {
    this.#home = home
    this.#tokens = tokens
    this.#past = past
  }

  isContract(address: string): boolean {
    return address === FORWARDER || this.#tokens.some((token) => token.address === address)
  }

  /** Returns the result that a call would have now. */
  async simulate(call: Call): Promise<TvmResult> {
    const anvil = await this.#anvil()
    const request = requestOf(call)
    const trace = await anvil.call<Trace>('debug_traceCall', request, 'latest', {
      tracer: 'callTracer',
      tracerConfig: { withLog: true },
    })
    const work = Number(trace.gasUsed) - intrinsic(call.data)
    const isUsdt = this.#tokens.some(
      ({ address, artefact: name }) => address === call.to && name === 'TetherLike',
    )
    const base = isUsdt ? work + USDT_WORK : work
    const energy = isUsdt ? Math.floor(base * USDT_FACTOR) : base
    return {
      energy,
      penalty: energy - base,
      output: (trace.output ?? '0x').slice(2),
      reverted: trace.error !== undefined,
      logs:
        trace.error === undefined
          ? (trace.logs ?? []).map(({ address, topics, data }) => ({
              address: address.slice(2),
              topics: topics.map((topic) => topic.slice(2)),
              data: (data ?? '0x').slice(2),
            }))
          : [],
    }
  }

  /** Executes a call that would not revert. */
  async execute(call: Call): Promise<void> {
    const anvil = await this.#anvil()
    const hash = await anvil.call<Hex>('eth_sendTransaction', requestOf(call))
    await anvil.call('evm_mine')
    const receipt = await anvil.call<{ status: Hex } | null>('eth_getTransactionReceipt', hash)
    if (receipt?.status !== '0x1')
      throw new Error('the engine did not execute a call that it had simulated')
  }

  /** Discards the state. The next call computes it again from the chain's blocks. */
  reset(): void {
    const engine = this.#engine
    this.#engine = undefined
    void engine?.then(
      (anvil) => anvil.kill(),
      () => undefined,
    )
  }

  close(): void {
    this.#closed = true
    this.reset()
  }

  #anvil(): Promise<Anvil> {
    if (this.#closed) throw new Error('the chain is closed')
    this.#engine ??= this.#start().then(
      (anvil) => {
        anvil.onExit(() => {
          this.#engine = undefined
        })
        return anvil
      },
      (error: unknown) => {
        this.#engine = undefined
        throw error
      },
    )
    return this.#engine
  }

  async #start(): Promise<Anvil> {
    const anvil = await Anvil.start(MACHINE, this.#home, 'tvm')
    try {
      await anvil.call('anvil_autoImpersonateAccount', true)
      for (const token of this.#tokens) {
        const { abi, bytecode } = artefact(token.artefact)
        const data = encodeDeployData({
          abi,
          bytecode,
          args: [
            SUPPLY * 10n ** BigInt(token.decimals),
            token.decimals,
            `0x${token.owner.slice(2)}`,
          ],
        })
        await anvil.call('eth_sendTransaction', {
          from: privateKeyToAddress(deployerKey(token.asset)),
          data,
          gas: `0x${CALL_GAS.toString(16)}`,
          gasPrice: '0x0',
        })
        await anvil.call('evm_mine')
        if (
          (await anvil.call<Hex>('eth_getCode', `0x${token.address.slice(2)}`, 'latest')) === '0x'
        ) {
          throw new Error(`${token.asset} is not at its address`)
        }
      }
      let waiting = 0
      const mine = async (): Promise<void> => {
        await anvil.call('evm_mine')
        const receipts = await anvil.call<{ status: Hex }[]>('eth_getBlockReceipts', 'latest')
        if (receipts.length !== waiting || receipts.some(({ status }) => status !== '0x1')) {
          throw new Error('a token transfer of the journal could not be restored')
        }
        waiting = 0
      }
      for (const call of this.#past()) {
        await anvil.call('eth_sendTransaction', requestOf(call))
        waiting += 1
        if (waiting === REPEATED_AT_ONCE) await mine()
      }
      if (waiting > 0) await mine()
      return anvil
    } catch (error) {
      anvil.kill()
      throw error
    }
  }
}

function requestOf({ from, to, data }: Call): Record<string, string> {
  return {
    from: `0x${from.slice(2)}`,
    to: `0x${to.slice(2)}`,
    data: `0x${data}`,
    gas: `0x${CALL_GAS.toString(16)}`,
    gasPrice: '0x0',
  }
}

function intrinsic(data: string): number {
  return Buffer.from(data, 'hex').reduce(
    (sum, byte) => sum + (byte === 0 ? ZERO_BYTE_GAS : BYTE_GAS),
    INTRINSIC_GAS,
  )
}
