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
 * Number of blocks between two snapshots. The engine hashes its whole state in each block, so
 * replaying costs up to 6 ms per block once the history contract (EIP-2935) is full; a start must
 * replay few.
 */
const SNAPSHOT_EVERY = 64
/** Number of snapshots, enough for the deepest reorganization on demand to start from one. */
const SNAPSHOTS_KEPT = 4
/**
 * Minimum number of blocks that are replayed on top of a snapshot, because a snapshot contains only
 * its newest state.
 */
const REPLAY_MIN = 32

/**
 * Snapshots of the engine's state at some blocks, one file each. The journal is authoritative;
 * snapshots only save time.
 */
export class Snapshots {
  readonly #home: string

  constructor(home: string) {
    this.#home = home
  }

  /**
   * Returns the height of the newest snapshot from which the last of the given number of blocks can
   * be reached.
   */
  below(blocks: number): number | undefined {
    return this.#heights().find((height) => height <= blocks - 1 - REPLAY_MIN)
  }

  /**
   * Loads a snapshot.
   * @returns whether its state leads to the block
   */
  async load(anvil: Anvil, block: BlockRecord): Promise<boolean> {
    try {
      await anvil.call('anvil_loadState', readFileSync(this.#path(block.height), 'utf8'))
      return (await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)).hash === block.hash
    } catch {
      return false
    }
  }

  /** Saves the engine's state if a snapshot is due. */
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

  /** Returns the heights of the snapshots, newest first. */
  #heights(): number[] {
    return readdirSync(this.#home)
      .flatMap((name) => /^state-(\d+)\.hex$/.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a)
  }
}
