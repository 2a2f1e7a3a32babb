import type { AmlEmulators } from './aml/api-emulators.ts'
import type { Risks } from './aml/risks.ts'
import { localContract } from './contracts.ts'
import { RequestError } from './errors.ts'
import type { Control } from './http-server.ts'
import type { FundExtra, Head, LocalChain } from './local-chain.ts'
import type { PriceEmulators } from './prices/api-emulators.ts'
import type { Quotes } from './prices/quotes.ts'
import { venueCommands } from './venue/commands.ts'
import type { VenueEmulators } from './venue/api-emulators.ts'
import { wholeNumber } from './whole-number.ts'

const BLOCKS_MAX = 1000
const DEPTH_MAX = 100
const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Components that the commands control. */
export interface DevnetParts {
  chains: readonly LocalChain[]
  risks: Risks
  aml: AmlEmulators
  quotes: Quotes
  prices: PriceEmulators
  venues: VenueEmulators
  /** URL of the server, once it listens. */
  url: string
}

type Command = Record<string, unknown>
type Answering = (parts: DevnetParts, command: Command) => unknown

const COMMANDS: Record<string, Answering> = {
  fund,
  mine,
  halt,
  reorg,
  fault,
  clock,
  risk: ({ risks }, { address, level }) => risks.set(address, level),
  price: ({ quotes }, { coin, price, source }) => quotes.set(coin, price, source),
  drop,
  congestion,
  special,
  contract: ({ chains }, { network, ticker }) => localContract(chains, network, ticker),
  venue: ({ venues, url }, command) => venueCommands(venues, url, command),
  urls,
  info,
}

/** Creates the operator's commands, which have no counterpart on real networks. */
export function createControl(parts: DevnetParts): Control {
  return async (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      throw new RequestError('a command must be a JSON object')
    const command = body as Command
    const { command: name } = command
    const answer =
      typeof name === 'string' && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!answer)
      throw new RequestError(
        `command ${JSON.stringify(name)} is unknown; must be one of ${Object.keys(COMMANDS).join(', ')}`,
      )
    return answer(parts, command)
  }
}

async function fund(
  { chains }: DevnetParts,
  { asset, address, amount, tag, tokens, delivered }: Command,
): Promise<unknown> {
  const chain = chains.find(({ assets }) => assets.includes(asset as string))
  const isRefused = (extra: FundExtra, value: unknown) =>
    value !== undefined && chain?.fundExtras.includes(extra) !== true
  if (isRefused('tokens', tokens)) {
    const carriers = chains.filter(({ fundExtras }) => fundExtras.includes('tokens'))
    throw new RequestError(`tokens are supported only in outputs of ${codesOf(carriers)}`)
  }
  if (isRefused('tag', tag ?? undefined))
    throw new RequestError(`${String(asset)} has no address tags`)
  if (!chain) {
    const networks = chains.flatMap(({ assets }) => assets)
    throw new RequestError(
      `asset ${JSON.stringify(asset)} is unknown; must be one of ${networks.join(', ')}`,
    )
  }
  return {
    hash: await chain.fund({ asset: String(asset), address, amount, tag, tokens, delivered }),
  }
}

async function mine(
  { chains }: DevnetParts,
  { network, blocks, address, seconds }: Command,
): Promise<Head> {
  const count = wholeNumber(blocks, 'blocks', BLOCKS_MAX)
  const { height, hash } = await chainOf(chains, network).mine(count, { address, seconds })
  return { height, hash }
}

/** Stops block production, so that no new block follows the state that a test inspects. */
function halt({ chains }: DevnetParts, { network, halted }: Command): unknown {
  if (typeof halted !== 'boolean') throw new RequestError('halted must be true or false')
  chainOf(chains, network).halt(halted)
  return { network, halted }
}

async function reorg(
  { chains }: DevnetParts,
  { network, depth, drop: isDropping }: Command,
): Promise<Head> {
  const count = wholeNumber(depth, 'depth', DEPTH_MAX)
  if (isDropping !== undefined && typeof isDropping !== 'boolean')
    throw new RequestError('drop is true or false')
  const { height, hash } = await chainOf(chains, network).reorg(count, isDropping === true)
  return { height, hash }
}

/**
 * Sets a fault mode. External services recognize their own names; every other name is a network.
 */
function fault({ aml, prices, venues, chains }: DevnetParts, { network, mode }: Command): unknown {
  // PRICES means all price sources, of which there are several.
  const networks = [
    prices.fault(network, mode),
    venues.fault(network, mode),
    aml.fault(network, mode),
  ]
  if (networks.includes(true)) return { network, mode }
  const { faults } = chainOf(chains, network)
  faults.set(mode)
  return { network, mode: faults.mode }
}

/**
 * Makes a node drop a waiting transaction, as nodes do after a restart or when the mempool is full.
 */
async function drop({ chains }: DevnetParts, { network, hash }: Command): Promise<unknown> {
  await having(chains, network, 'drop', 'has no transaction to drop').drop(hash)
  return { network, hash }
}

/** Makes a payment in a format that only some networks have. */
async function special(
  { chains }: DevnetParts,
  { network, kind, address, amount, tokens, nft, commitment }: Command,
): Promise<unknown> {
  return having(chains, network, 'special', 'has no special payments').special({
    kind,
    address,
    amount,
    tokens,
    nft,
    commitment,
  })
}

/**
 * Makes blocks leave out transactions below a fee rate, in the unit of the network's fees. 0 ends
 * it.
 */
async function congestion(
  { chains }: DevnetParts,
  { network, fee_rate: rate }: Command,
): Promise<unknown> {
  await chainOf(chains, network).congest(rate)
  return { network, fee_rate: rate }
}

/** Moves only the time of a chain's blocks, so that tests need not wait for periods of days. */
async function clock({ chains }: DevnetParts, { network, advance }: Command): Promise<unknown> {
  const chain = having(chains, network, 'advance', 'has no clock that can be moved')
  const [, amount = '', unit = ''] = /^\+(\d{1,9})([smhd])$/.exec(String(advance)) ?? []
  if (amount === '')
    throw new RequestError(
      `advance ${JSON.stringify(advance)} is not a span such as "+14d", "+2h", "+30m" or "+5s"`,
    )
  return chain.advance(Number(amount) * UNIT_MS[unit]!)
}

function urls({ chains, url }: DevnetParts): unknown {
  return {
    endpoints: chains.flatMap((chain) =>
      chain.endpoints(url + chain.path).map((endpoint) => ({ network: chain.code, ...endpoint })),
    ),
  }
}

async function info({ chains, url }: DevnetParts): Promise<unknown> {
  const networks: Record<string, unknown> = {}
  const tokens: Record<string, unknown> = {}
  for (const chain of chains) {
    const { head, waiting, engine, more } = await chain.info()
    const { height, hash } = head ?? { height: null, hash: null }
    networks[chain.code] = {
      height,
      hash,
      waiting,
      url: url + chain.path,
      engine,
      ...more,
      fault: chain.faults.mode,
    }
    for (const { asset, address, decimals } of chain.tokens)
      tokens[asset] = { network: chain.code, address, decimals }
  }
  return { networks, tokens }
}

function chainOf(chains: readonly LocalChain[], network: unknown): LocalChain {
  const chain = chains.find(({ code }) => code === network)
  if (!chain)
    throw new RequestError(
      `network ${JSON.stringify(network)} is unknown; must be one of ${codesOf(chains)}`,
    )
  return chain
}

/** Returns the chain of a network, if it supports the given function. */
function having<Ability extends 'advance' | 'drop' | 'special'>(
  chains: readonly LocalChain[],
  network: unknown,
  ability: Ability,
  hasNone: string,
): LocalChain & Required<Pick<LocalChain, Ability>> {
  const able = chains.filter(
    (chain): chain is LocalChain & Required<Pick<LocalChain, Ability>> =>
      chain[ability] !== undefined,
  )
  const chain = able.find(({ code }) => code === network)
  if (!chain) {
    throw new RequestError(
      `network ${JSON.stringify(network)} ${hasNone}: ${able.length === 1 ? 'only' : 'one of'} ${codesOf(able)}`,
    )
  }
  return chain
}

function codesOf(chains: readonly LocalChain[]): string {
  return chains.map(({ code }) => code).join(', ')
}
