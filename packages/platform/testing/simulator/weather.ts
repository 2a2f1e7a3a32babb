import { join } from 'node:path'
import { momentOf, PastNode, type Moment } from '../../../devnet/testing/past-node.ts'
import type { Devnet } from '../../../devnet/src/devnet.ts'
import type { FaultMode, Faults } from '../../../devnet/src/faults.ts'
import type { LocalChain } from '../../../devnet/src/local-chain.ts'
import { toldTime } from '../../../devnet/src/timing.ts'
import type { NetworkEndpoints } from '../../src/core/settings/configuration.ts'
import { chainsFetch } from '../chains/chains-fetch.ts'
import type { SimulatedNetwork } from './networks.ts'
import type { SeededRandom } from './seeded-random.ts'

type Fetch = typeof globalThis.fetch

/** Requests that send a transaction, by URL and body. */
const BROADCASTS =
  /send_?raw|sendtransaction|broadcast|\/submit|tx\/submit|"submit"|sendTransaction/i

/** Weathers in which a node shows an earlier state of its chain. */
const PAST = ['behind', 'syncing', 'rewound', 'forked'] as const
/** Weathers in which a node of the present state refuses something; local chains implement them. */
const LACKING = ['no-final', 'no-estimate', 'no-index', 'price'] as const
export type Weather = (typeof PAST)[number] | (typeof LACKING)[number]

const SAYS: Record<Weather, string> = {
  behind: 'a node was behind',
  syncing: 'a node synchronised from the first blocks',
  rewound: 'a node came back some blocks lower and without its mempool',
  forked: 'a node came back without peers and made other blocks',
  'no-final': 'a node knew no final block',
  'no-estimate': 'a node had no fee estimate',
  'no-index': 'a node built its index of transactions',
  price: 'a node required a higher fee',
}

/** Upper bounds (exclusive) of what is drawn. */
const DURATION_MS_MAX = 240_000
const LAG_BLOCKS_MAX = 24
const REWOUND_BLOCKS_MAX = 6
/** Number of blocks by which a node advances at once, because opening its chain takes time. */
const ADVANCE_BLOCKS_MIN = 3
const ADVANCE_BLOCKS_MAX = 9
const RATE_MAX = 400

interface Context {
  readonly random: SeededRandom
  readonly schedule: { nowMs: number }
  readonly devnet: Devnet
  noted(kind: string): void
}

/** Weather of a node from `beganMs` to `clearsMs`; `blocks` and `step` as drawn. */
interface Spell {
  weather: Weather
  beganMs: number
  clearsMs: number
  /** Number of moments at its begin. */
  beganAt: number
  blocks: number
  step: number
}

/** One node of a network: a view of its chain. */
class WeatherNode {
  readonly name: string
  readonly #chain: ChainMoments
  readonly #faults: Faults
  readonly #fetch: Fetch
  spell: Spell | null = null
  #past: { at: number; node: PastNode } | null = null

  constructor(name: string, chain: ChainMoments) {
    this.name = name
    this.#chain = chain
    this.#faults = chain.chain.faults.another()
    this.#fetch = chainsFetch({
      url: `http://${name}.simulated`,
      answer: async (request) =>
        (await this.#pastNode())?.answer(request) ?? chain.devnet.answer(request, this.#faults),
    })
  }

  /** Weathers that this node can have. */
  static kindsOf({ faults }: LocalChain, { depthMax }: SimulatedNetwork): Weather[] {
    return [
      ...PAST.filter((weather) => weather !== 'forked' || depthMax > 0),
      ...LACKING.filter((weather) => faults.modes.includes(weather as FaultMode)),
    ]
  }

  /** Height at which the node stands; null: at that of the chain, or in blocks of its own. */
  get height(): number | null {
    return this.spell?.weather === 'forked' ? null : (this.#past?.node.moment.height ?? null)
  }

  begin(spell: Spell): void {
    this.spell = spell
    if ((LACKING as readonly string[]).includes(spell.weather)) this.#faults.set(spell.weather)
  }

  clear(): void {
    this.spell = null
    this.#faults.set('heal')
    this.#past?.node.close()
    this.#past = null
  }

  async ask(input: string, init: RequestInit | undefined): Promise<Response> {
    const isBroadcast = BROADCASTS.test(`${input} ${String(init?.body ?? '')}`)
    const past = isBroadcast ? await this.#pastNode() : null
    if (!past || this.spell?.weather === 'forked') return this.#fetch(input, init)
    // A node sends its peers what it accepts, and not what it refuses.
    const before = await past.waiting()
    const response = await this.#fetch(input, init)
    if ((await past.waiting()) > before)
      await chainsFetch(this.#chain.devnet)(this.#chain.devnet.url + pathOf(input), init)
    return response
  }

  /** Returns the node at the earlier moment that its weather shows; null: the present one. */
  async #pastNode(): Promise<PastNode | null> {
    const { spell } = this
    if (spell === null || !(PAST as readonly string[]).includes(spell.weather)) return null
    const at = this.#chain.momentOf(spell)
    const shown = this.#past?.at
    const isFixed = spell.weather === 'rewound' || spell.weather === 'forked'
    if (this.#past && shown !== undefined && (isFixed || at - shown < spell.step))
      return this.#past.node
    this.#past?.node.close()
    this.#past = null
    const node = await this.#chain.open(at)
    this.#past = { at, node }
    if (spell.weather === 'forked') await node.mine(1 + (spell.blocks % this.#chain.place.depthMax))
    return node
  }
}

const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/]*/, '')

/** The moments of one chain, from its first blocks to its head. */
class ChainMoments {
  readonly chain: LocalChain
  readonly place: SimulatedNetwork
  readonly devnet: Devnet
  readonly #home: string
  readonly #context: Context
  readonly #moments: Moment[] = []
  #opened = 0

  constructor(context: Context, home: string, place: SimulatedNetwork) {
    this.#context = context
    this.#home = home
    this.place = place
    this.devnet = context.devnet
    this.chain = context.devnet.chains.find(({ code }) => code === place.code) as LocalChain
  }

  get count(): number {
    return this.#moments.length
  }

  async record(): Promise<void> {
    this.#moments.push(await momentOf(this.#home, this.chain))
  }

  /** Returns the index of the moment that a node shows now. */
  momentOf({ weather, beganMs, clearsMs, beganAt, blocks }: Spell): number {
    const last = this.#moments.length - 1
    const passed = (this.#context.schedule.nowMs - beganMs) / (clearsMs - beganMs)
    const at =
      weather === 'behind'
        ? last - blocks
        : weather === 'syncing'
          ? Math.floor(last * Math.min(1, passed))
          : beganAt - 1 - (weather === 'rewound' ? 1 + (blocks % REWOUND_BLOCKS_MAX) : blocks % 2)
    return Math.max(0, Math.min(last, at))
  }

  open(at: number): Promise<PastNode> {
    const { schedule } = this.#context
    return PastNode.open(this.place.code, this.#moments[at] as Moment, {
      source: this.#home,
      home: join(this.#home, `past-${this.place.code}-${++this.#opened}`),
      timing: toldTime(() => schedule.nowMs),
    })
  }
}

/** An endpoint: one node, or a load balancer that sends each request to either of two. */
interface Endpoint {
  url: string
  nodes: WeatherNode[]
}

interface WeatherNetwork {
  place: SimulatedNetwork
  moments: ChainMoments
  endpoints: Endpoint[]
  quorum: number
}

/**
 * The endpoints of the simulation's networks, and what each of their nodes shows of its chain: the
 * present state, or an earlier one, or a present one that lacks something. The chains themselves
 * go on. The seed determines the endpoints, and when which weather begins and clears.
 */
export class WeatherReport {
  readonly #context: Context
  #networks: WeatherNetwork[] = []
  #rate = 0

  constructor(context: Context) {
    this.#context = context
  }

  /** @param home folder of the local chains */
  async open(home: string, places: readonly SimulatedNetwork[]): Promise<void> {
    const { random } = this.#context
    for (const place of places) {
      const moments = new ChainMoments(this.#context, home, place)
      await moments.record()
      const count = random.of([1, 1, 1, 2, 2, 3])
      const endpoints = Array.from({ length: count }, (_, at): Endpoint => {
        const name = `${place.code.toLowerCase()}-${at + 1}`
        const names = random.below(3) === 0 ? [`${name}a`, `${name}b`] : [name]
        return {
          url: `http://${name}.simulated/${place.code.toLowerCase()}`,
          nodes: names.map((each) => new WeatherNode(each, moments)),
        }
      })
      const quorum = count === 3 && random.below(2) === 1 ? 2 : 1
      this.#networks.push({ place, moments, endpoints, quorum })
    }
  }

  /** Endpoints of the networks, as in the platform's configuration. */
  get endpoints(): Record<string, NetworkEndpoints> {
    return Object.fromEntries(
      this.#networks.map(({ place, endpoints, quorum }) => [
        place.code,
        { endpoints: endpoints.map(({ url }) => ({ url })), quorum },
      ]),
    )
  }

  /** Nodes that are endpoints of their own, by the names of their hosts. */
  get alone(): { code: string; host: string; weather: Weather; height: number | null }[] {
    return this.#networks.flatMap(({ place, endpoints }) =>
      endpoints.flatMap(({ url, nodes: [node, ...others] }) =>
        node?.spell && others.length === 0
          ? [
              {
                code: place.code,
                host: new URL(url).host,
                weather: node.spell.weather,
                height: node.height,
              },
            ]
          : [],
      ),
    )
  }

  /** Sends a request to an endpoint. */
  fetch: Fetch = async (input, init) => {
    const url = String(input)
    const endpoint = this.#networks
      .flatMap(({ endpoints }) => endpoints)
      .find((each) => url === each.url || url.startsWith(`${each.url}/`))
    if (!endpoint) throw new TypeError(`no endpoint at ${url}`)
    const { nodes } = endpoint
    const node = nodes.length > 1 ? this.#context.random.of(nodes) : (nodes[0] as WeatherNode)
    return node.ask(`http://${node.name}.simulated${pathOf(url)}`, init)
  }

  /** Notes that a chain has a new head. */
  async record(code: string): Promise<void> {
    await this.#networks.find(({ place }) => place.code === code)?.moments.record()
  }

  /** Draws how much weather there is. */
  draw(): void {
    const { random } = this.#context
    this.#rate = random.below(4) === 0 ? 0 : random.below(RATE_MAX)
  }

  /** Begins and clears weather, when it is due. */
  tick(): void {
    const { random, schedule, noted } = this.#context
    for (const { place, moments, endpoints } of this.#networks) {
      for (const node of endpoints.flatMap(({ nodes }) => nodes)) {
        if (node.spell) {
          if (schedule.nowMs >= node.spell.clearsMs) node.clear()
          continue
        }
        if (!random.rarely(this.#rate)) continue
        const weather = random.of(WeatherNode.kindsOf(moments.chain, place))
        noted.call(this.#context, SAYS[weather])
        node.begin({
          weather,
          beganMs: schedule.nowMs,
          clearsMs: schedule.nowMs + 1000 + random.below(DURATION_MS_MAX),
          beganAt: moments.count,
          blocks: 1 + random.below(LAG_BLOCKS_MAX),
          step: ADVANCE_BLOCKS_MIN + random.below(ADVANCE_BLOCKS_MAX - ADVANCE_BLOCKS_MIN),
        })
      }
    }
  }

  /** Clears all weather. */
  heal(): void {
    this.#rate = 0
    for (const { endpoints } of this.#networks)
      for (const { nodes } of endpoints) for (const node of nodes) node.clear()
  }
}
