import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { syncFolder } from '../journal.ts'
import type { Anvil } from '../evm/anvil.ts'
import type { Block, BlockRecord } from './blocks.ts'

/**
 * The engine hashes its whole state in each block, so replaying costs up to 6 ms a block once the
 * history contract (EIP-2935) has filled: a start may replay few.
 */
const SNAPSHOT_EVERY = 64
/** Enough for the deepest reorganisation on demand to start from one. */
const SNAPSHOTS_KEPT = 4
/**
 * A snapshot holds only its newest state, so this many blocks are always replayed on top of one.
 */
const REPLAY_MIN = 32

/**
 * The engine's state at some blocks, a file each. The journal is the truth; these only save time.
 */
export class Snapshots {
  readonly #home: string

  constructor(home: string) {
    this.#home = home
  }

  /** Height of the newest that the last of so many blocks can be reached from. */
  below(blocks: number): number | undefined {
    return this.#heights().find((height) => height <= blocks - 1 - REPLAY_MIN)
  }

  /** @returns whether it leads to the block */
  async load(anvil: Anvil, block: BlockRecord): Promise<boolean> {
    try {
      await anvil.call('anvil_loadState', readFileSync(this.#path(block.height), 'utf8'))
      return (await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)).hash === block.hash
    } catch {
      return false
    }
  }

  /** Keeps the engine's state where its turn has come. */
  async keep(anvil: Anvil, { height }: BlockRecord): Promise<void> {
    if (height % SNAPSHOT_EVERY !== 0) return
    const state = await anvil.call<Hex>('anvil_dumpState', false)
    const path = this.#path(height)
    const file = openSync(`${path}.part`, 'w', 0o600)
    writeSync(file, state)
    fsyncSync(file)
    closeSync(file)
    renameSync(`${path}.part`, path)
    syncFolder(this.#home)
    for (const old of this.#heights().slice(SNAPSHOTS_KEPT)) this.drop(old)
  }

  drop(height: number): void {
    rmSync(this.#path(height))
  }

  dropAbove(height: number): void {
    for (const each of this.#heights()) if (each > height) this.drop(each)
  }

  #path(height: number): string {
    return join(this.#home, `state-${height}.hex`)
  }

  /** The newest first. */
  #heights(): number[] {
    return readdirSync(this.#home)
      .flatMap((name) => /^state-(\d+)\.hex$/.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a)
  }
}
