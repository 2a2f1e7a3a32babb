import { join } from 'node:path'
import { RequestError } from './errors.ts'
import { Faults } from './faults.ts'
import type { ChainInfo, FundExtra, Head, LocalContract } from './local-chain.ts'
import type { Timing } from './timing.ts'

/** Storage of the chains, and the timing of their blocks. */
export interface ChainOptions {
  home: string
  timing: Timing
}

/**
 * Common part of every family's local chain: it is opened on first use, and opened again if that
 * failed.
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

  /** @param home folder of this chain */
  protected abstract open(home: string, timing: Timing): Promise<Chain>

  protected abstract headOf(chain: Chain): Head

  /** Returns the number of transactions that wait for a block. */
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

  /** Explains why blocks of this chain are never reorganized; unused if `reorg` is implemented. */
  protected get finality(): string {
    return 'its blocks are final'
  }

  /** Returns the fields that `info` adds to the head. */
  protected facts(_chain: Chain | undefined): Record<string, unknown> {
    return {}
  }

  protected chain(): Promise<Chain> {
    this.#opening ??= this.open(join(this.#home, this.code.toLowerCase()), this.#timing).then(
      (opened) => {
        // The chain was still opening when the process was stopped.
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
