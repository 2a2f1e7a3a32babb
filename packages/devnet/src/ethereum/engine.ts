import { Anvil } from '../evm/anvil.ts'
import { replay, type Block, type BlockRecord } from './blocks.ts'
import { artefact } from '../evm/contracts.ts'
import type { EvmNetwork } from './networks.ts'
import type { Snapshots } from './snapshots.ts'

/** Starts the engines of one chain. Each is new, so no state of an earlier engine remains. */
export class Engines {
  readonly #network: EvmNetwork
  readonly #home: string
  readonly #snapshots: Snapshots
  #slot = 0

  constructor(network: EvmNetwork, home: string, snapshots: Snapshots) {
    this.#network = network
    this.#home = home
    this.#snapshots = snapshots
  }

  /** Starts an engine and replays `blocks`, comparing every hash with the journal. */
  async start(blocks: readonly BlockRecord[]): Promise<Anvil> {
    const { code, predeploys } = this.#network
    const genesis = blocks[0]
    for (;;) {
      this.#slot = 1 - this.#slot
      const anvil = await Anvil.start(this.#network, this.#home, `anvil-${this.#slot}`)
      try {
        for (const { address, artefact: name } of predeploys)
          await anvil.call('anvil_setCode', address, artefact(name).runtime)
        if (!genesis) return anvil
        const own = await anvil.call<Block>('eth_getBlockByNumber', '0x0', false)
        if (own.hash !== genesis.hash)
          throw new Error(`the genesis block of ${code} is not the journal's`)
        const snapshot = this.#snapshots.below(blocks.length)
        if (snapshot === undefined || (await this.#snapshots.load(anvil, blocks[snapshot]!))) {
          for (let next = (snapshot ?? 0) + 1; next < blocks.length; next += 1)
            await replay(anvil, blocks[next]!)
          return anvil
        }
        // Continue without this snapshot.
        console.error(
          `devnet: the snapshot of ${code} at ${snapshot} does not lead to the journal's block: dropped`,
        )
        this.#snapshots.drop(snapshot)
        anvil.kill()
      } catch (error) {
        anvil.kill()
        throw error
      }
    }
  }
}
