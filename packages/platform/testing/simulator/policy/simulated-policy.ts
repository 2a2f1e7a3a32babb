import { parseAmount } from '@custody/chains'
import type { Caller } from '../../../src/core/http/endpoint.ts'
import type { SimulatedNetwork } from '../networks.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { GovernedNodes } from './governed-nodes.ts'
import { PolicyRecord, WORKSPACE, type KnownDocument } from './policy-record.ts'
import { possessionsOf, type WrittenDocument } from './people.ts'
import { documentOf, drawTerms, FIRST_KEYS, type Asset, type Terms } from './terms.ts'

/** Share of the seeds in which the workspace has a policy: one of this number. */
const ONE_OF = 4

/** Whether the workspace of a seed has a policy. No draw decides it, so other seeds stay the same. */
export const isGovernedSeed = (seed: number): boolean => seed % ONE_OF === ONE_OF - 1

/** Whether a node of a seed loses its record and is restored. Other seeds stay the same. */
export const isRestoringSeed = (seed: number): boolean => seed % (2 * ONE_OF) === 2 * ONE_OF - 1

/** The parts of the simulation that a policy uses. */
interface PolicyEnvironment {
  readonly random: SeededRandom
  readonly networks: readonly { place: SimulatedNetwork }[]
  readonly callers: readonly Caller[]
  registryAsset(asset: string): { readonly decimals: number } | undefined
}

/** The policy of the workspace in a simulation with an honest platform. */
export class SimulatedPolicy extends PolicyRecord {
  readonly nodes: GovernedNodes
  #environment!: PolicyEnvironment

  constructor(now: () => number) {
    super()
    this.nodes = new GovernedNodes(now)
  }

  /** Writes the first document and enters it at the nodes. */
  async install(environment: PolicyEnvironment): Promise<void> {
    this.#environment = environment
    const first = this.write(drawTerms(environment.random, FIRST_KEYS), null)
    const { text: document } = first
    await this.nodes.install({ workspace: WORKSPACE, document, possessions: possessionsOf(first) })
  }

  get assets(): Asset[] {
    return this.#environment.networks.flatMap(({ place }) =>
      place.assets.map((code) => {
        const { decimals } = this.#environment.registryAsset(code) as { decimals: number }
        return { code, decimals, unit: parseAmount(place.unit, decimals) }
      }),
    )
  }

  write(terms: Terms, previous: WrittenDocument | null): KnownDocument {
    const apiKeys = [this.#environment.callers[0]?.apiKey as string]
    const { nodes } = this.nodes
    return this.add(documentOf(terms, { nodes, previous, apiKeys, assets: this.assets }), terms)
  }

  /** Returns a factor for the amount of a transfer, so that each rule has some. */
  drawFactor(): bigint {
    return this.#environment.random.of([1n, 1n, 2n, 2n, 3n, 4n])
  }
}
