import { join } from 'node:path'
import { RequestError } from './errors.ts'
import { Faults } from './faults.ts'
import type { ChainInfo, FundExtra, Head, LocalContract } from './local-chain.ts'
import type { Timing } from './timing.ts'

/** Where the chains keep what they know, and how their time passes. */
export interface ChainOptions {
  home: string
  timing: Timing
}

/**
 * What every family's local chain has alike: it is opened when it is first asked for, and one that
 * could not be opened is tried again.
 */
export abstract class LazyChain<Chain extends { close: () => void }> {
  abstract readonly code: string
  abstract readonly engine: string
  readonly faults = new Faults()
  readonly isEager: boolean = false
  readonly tokens: readonly LocalContract[] = []
  readonly fundExtras: readonly FundExtra[] = []
  readonly #home: string
  readonly #timing: Timing
  #opening: Promise<Chain> | undefined
  #opened: Chain | undefined
  #closed = false

  constructor(place: ChainOptions) {
    this.#home = place.home
    this.#timing = { ...place.timing }
  }

  /** @param home this chain's own folder */
  protected abstract open(home: string, timing: Timing): Promise<Chain>

  protected abstract headOf(chain: Chain): Head

  /** How many transactions wait for a block. */
  protected abstract waitingIn(chain: Chain): number

  get path(): string {
    return `/${this.code.toLowerCase()}`
  }

  get assets(): readonly string[] {
    return [this.code, ...this.tokens.map(({ asset }) => asset)]
  }

  async start(): Promise<void> {
    await this.chain()
  }

  close(): void {
    this.#closed = true
    this.#opened?.close()
    this.#opened = undefined
  }

  async info(): Promise<ChainInfo> {
    const chain = this.#opening ? await this.chain() : undefined
    return {
      head: chain ? this.headOf(chain) : null,
      waiting: chain ? this.waitingIn(chain) : null,
      engine: this.engine,
      more: this.facts(chain),
    }
  }

  halt(halted: boolean): void {
    this.#timing.halted = halted
  }

  async reorg(_depth: number, _drop: boolean): Promise<Head> {
    throw new RequestError(`${this.code} is never reorganised: ${this.finality}`)
  }

  async congest(_rate: unknown): Promise<void> {
    throw new RequestError(`${this.code} has no fee market that can be congested here`)
  }

  /** Why no block of it is ever taken back; of no interest where `reorg` is there. */
  protected get finality(): string {
    return 'its blocks are final'
  }

  /** What `info` tells beside the head. */
  protected facts(_chain: Chain | undefined): Record<string, unknown> {
    return {}
  }

  protected chain(): Promise<Chain> {
    this.#opening ??= this.open(join(this.#home, this.code.toLowerCase()), this.#timing).then(
      (opened) => {
        // One that was still opening when the process was told to end.
        if (this.#closed) opened.close()
        else this.#opened = opened
        return opened
      },
      (error: unknown) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }
}
