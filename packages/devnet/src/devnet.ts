import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { AmlEmulators } from './aml/api-emulators.ts'
import { Risks } from './aml/risks.ts'
import { localUtxoChains } from './bitcoin/local.ts'
import { localCardanoChains } from './cardano/local.ts'
import { createControl, type DevnetParts } from './control.ts'
import { localEvmChains } from './ethereum/local.ts'
import {
  answerOf,
  createDevnetServer,
  type ReceivedRequest,
  type DevnetApis,
  type ExternalApis,
  type RpcApi,
} from './http-server.ts'
import type { Faults } from './faults.ts'
import type { LocalChain } from './local-chain.ts'
import type { ChainOptions } from './lazy-chain.ts'
import { PriceEmulators } from './prices/api-emulators.ts'
import { Quotes } from './prices/quotes.ts'
import { localSolanaChains } from './solana/local.ts'
import { localStellarChains } from './stellar/local.ts'
import { manualTime, quickTime, toldTime } from './timing.ts'
import { localTronChains } from './tron/local.ts'
import { VenueEmulators } from './venue/api-emulators.ts'
import { localXrpChains } from './xrp/local.ts'

/** Creates the networks of one family without starting them. */
export type Family = (place: ChainOptions) => LocalChain[]

/**
 * Every family, in the order in which networks and assets are listed. A further family is a folder
 * and a line here.
 */
export const FAMILIES: readonly Family[] = [
  localUtxoChains,
  localEvmChains,
  localXrpChains,
  localStellarChains,
  localTronChains,
  localSolanaChains,
  localCardanoChains,
]

export interface DevnetOptions {
  /** Blocks are produced only on command, and clocks stand still in between. */
  manual?: boolean
  /**
   * Like `manual`, but with this clock (Unix milliseconds) and with identical blocks in each run.
   */
  now?: () => number
  /** Factor by which blocks are faster while a transaction waits for them. */
  pace?: number
  /** Clock of automatic blocks in Unix milliseconds; by default this machine's. */
  clock?: () => number
  families?: readonly Family[]
  /** Address to listen on, 127.0.0.1 by default. Everyone who can connect can fund and mine. */
  host?: string
}

/** All local chains on one HTTP port. */
export class Devnet implements DevnetParts {
  readonly chains: readonly LocalChain[]
  readonly risks: Risks
  readonly aml: AmlEmulators
  readonly quotes: Quotes
  readonly prices: PriceEmulators
  readonly venues: VenueEmulators
  readonly #apis: DevnetApis
  readonly #server: Server
  url = ''

  private constructor(
    home: string,
    { manual = false, now, pace = 1, clock, families = FAMILIES }: DevnetOptions,
  ) {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const place = {
      home,
      timing: now ? toldTime(now) : manual ? manualTime() : quickTime(pace, clock),
    }
    this.chains = families.flatMap((family) => family(place))
    this.risks = Risks.open(join(home, 'aml'))
    this.aml = new AmlEmulators(() => this.risks)
    this.quotes = Quotes.open(join(home, 'prices'))
    this.prices = new PriceEmulators(() => this.quotes)
    this.venues = new VenueEmulators({
      home: join(home, 'exchanges'),
      quotes: () => this.quotes,
      chains: this.chains,
    })
    this.#apis = {
      apiAt: (path) => this.#apiAt(path),
      control: createControl(this),
      outside: (path) => this.#outside(path),
    }
    this.#server = createDevnetServer(this.#apis)
  }

  static async start(home: string, port: number, options: DevnetOptions = {}): Promise<Devnet> {
    const devnet = new Devnet(home, options)
    try {
      await Promise.all(
        devnet.chains.filter(({ isEager }) => isEager).map((chain) => chain.start()),
      )
      await new Promise<void>((resolve, reject) => {
        devnet.#server.once('error', reject)
        devnet.#server.listen(port, options.host ?? '127.0.0.1', resolve)
      })
    } catch (error) {
      devnet.close()
      throw error
    }
    const address = devnet.#server.address()
    devnet.url = `http://${options.host ?? '127.0.0.1'}:${typeof address === 'object' && address ? address.port : port}`
    return devnet
  }

  /**
   * Returns the response of the HTTP port to a caller in the same process.
   * @param faults of the endpoint that a chain's request is sent to; by default those of the chain
   */
  answer(request: ReceivedRequest, faults?: Faults): ReturnType<typeof answerOf> {
    const apis = faults
      ? { ...this.#apis, apiAt: (path: string) => this.#apiAt(path, faults) }
      : this.#apis
    return answerOf(apis, request)
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    for (const each of [this.venues, this.risks, this.quotes, ...this.chains]) each.close()
  }

  /** Returns the emulator of an external service. */
  #outside(path: string): ReturnType<ExternalApis> {
    const priced = PriceEmulators.at(path)
    if (priced) return async (request) => this.prices.handle({ ...request, path: priced.rest })
    const traded = VenueEmulators.at(path)
    if (traded)
      return async (request) =>
        this.venues.handle(traded.exchange, { ...request, path: traded.rest })
    const result = AmlEmulators.at(path)
    return (
      result &&
      (async (request) => this.aml.handle(result.provider, { ...request, path: result.rest }))
    )
  }

  async #apiAt(path: string, faults?: Faults): Promise<RpcApi | undefined> {
    const chain = this.chains.find((each) => path === each.path || path.startsWith(`${each.path}/`))
    return chain?.apiAt(path.slice(chain.path.length), this.url + chain.path, faults)
  }
}
