import { parseAmount } from './amount.ts'
import { AML_PROVIDERS } from './aml/faces.ts'
import { localContract } from './contracts.ts'
import type { Cardano, Devnet, Evm, Solana, Tagged, Tron, Utxo } from './devnet.ts'
import { RequestError } from './errors.ts'
import type { Control } from './http.ts'
import { SOLANA_TOKENS } from './solana/tokens.ts'
import { toBase58 } from './tron/address.ts'
import { GENESIS_ID, TRON_TOKENS } from './tron/chain.ts'
import { endpointsOf } from './urls.ts'

const BLOCKS_MAX = 1000
const DEPTH_MAX = 100
/** XRP and XLM: how far one command moves the ledger's time forward. */
const SECONDS_MAX = 1000
/** ADA: longer than any transaction of ours lives. */
const SLOTS_MAX = 10_000
const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const COMMANDS = 'fund, mine, reorg, fault, clock, risk, price, drop, congestion, contract, urls, info'

type Command = Record<string, unknown>
type Head = { height: number; hash: string }

/** The operator's side: everything a real network would not let anyone do. */
export function createControl(devnet: Devnet): Control {
  return async (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new RequestError('a command is a JSON object')
    const command = body as Command
    switch (command['command']) {
      case 'fund':
        return fund(devnet, command)
      case 'mine':
        return mine(devnet, command)
      case 'reorg':
        return reorg(devnet, command)
      case 'fault':
        return fault(devnet, command)
      case 'clock':
        return clock(devnet, command)
      case 'drop':
        return drop(devnet, command)
      case 'congestion':
        return congestion(devnet, command)
      case 'risk':
        return devnet.risks.set(command['address'], command['level'])
      case 'price':
        return devnet.quotes.set(command['coin'], command['price'], command['source'])
      case 'contract':
        return localContract(command['network'], command['ticker'])
      case 'urls':
        return { endpoints: endpointsOf(devnet) }
      case 'info':
        return info(devnet)
      default:
        throw new RequestError(`command ${JSON.stringify(command['command'])} is unknown: one of ${COMMANDS}`)
    }
  }
}

async function fund(devnet: Devnet, command: Command): Promise<unknown> {
  const { asset, address, amount, tag, tokens } = command
  if (tokens !== undefined && asset !== devnet.cardano.code) throw new RequestError(`tokens ride only on outputs of ${devnet.cardano.code}`)
  if (asset === 'XRP' || asset === 'XLM') {
    const chain = await devnet.tagged.find(({ code }) => code === asset)!.chain()
    return { hash: chain.fund(address, amount, tag, command['delivered']) }
  }
  if (tag !== undefined && tag !== null) throw new RequestError(`${String(asset)} has no address tags`)
  const utxo = devnet.utxo.find(({ network }) => network.code === asset)
  if (utxo) return { hash: (await utxo.chain()).fund(address, amount) }
  if (typeof asset === 'string' && (asset === 'TRX' || asset.endsWith('_TRX')) && assets(devnet).includes(asset)) return { hash: await (await devnet.tron.chain()).fund(asset, address, amount) }
  if (typeof asset === 'string' && (asset === devnet.solana.code || SOLANA_TOKENS.some((token) => token.asset === asset))) return { hash: await (await devnet.solana.chain()).fund(asset, address, amount) }
  if (asset === devnet.cardano.code) return { hash: (await devnet.cardano.chain()).fund(address, amount, tokens) }
  const evm = devnet.evm.find(({ network }) => network.native === asset || network.tokens.some((token) => token.asset === asset))
  if (!evm) throw new RequestError(`asset ${JSON.stringify(asset)} is unknown: one of ${assets(devnet).join(', ')}`)
  return { hash: await (await evm.chain()).fund(String(asset), address, amount) }
}

async function mine(devnet: Devnet, command: Command): Promise<unknown> {
  const blocks = count(command['blocks'], 'blocks', BLOCKS_MAX)
  const { height, hash } = await onNetwork<Head>(
    devnet,
    command,
    async (utxo) => (await utxo.chain()).mine(blocks, command['address']),
    async (evm) => (await evm.chain()).mine(blocks),
    async (tagged) => (await tagged.chain()).mine(blocks, command['seconds'] === undefined ? 0 : count(command['seconds'], 'seconds', SECONDS_MAX)),
    async (tron) => headOf(await (await tron.chain()).mine(blocks)),
    async (solana) => (await solana.chain()).mine(blocks),
    async (cardano) => (await cardano.chain()).mine(blocks, command['seconds'] === undefined ? 0 : count(command['seconds'], 'seconds', SLOTS_MAX)),
  )
  return { height, hash }
}

async function reorg(devnet: Devnet, command: Command): Promise<unknown> {
  const depth = count(command['depth'], 'depth', DEPTH_MAX)
  const drop = command['drop']
  if (drop !== undefined && typeof drop !== 'boolean') throw new RequestError('drop is true or false')
  const { height, hash } = await onNetwork<Head>(
    devnet,
    command,
    async (utxo) => (await utxo.chain()).reorg(depth, drop === true),
    async (evm) => (await evm.chain()).reorg(depth),
    async ({ code }) => { throw new RequestError(`${code} is never reorganised: its validated ledgers are final`) },
    async (tron) => headOf(await (await tron.chain()).reorg(depth, drop === true)),
    async ({ code }) => { throw new RequestError(`${code} is never reorganised: its finalized blocks stay`) },
    async (cardano) => (await cardano.chain()).reorg(depth, drop === true),
  )
  return { height, hash }
}

async function fault(devnet: Devnet, command: Command): Promise<unknown> {
  if (devnet.prices.fault(command['network'], command['mode'])) return { network: command['network'], mode: command['mode'] }
  const providers = AML_PROVIDERS.filter((provider) => command['network'] === 'AML' || command['network'] === provider)
  for (const provider of providers) devnet.aml.faults[provider].set(command['mode'])
  if (providers.length > 0) return { network: command['network'], mode: command['mode'] }
  const faults = await onNetwork(
    devnet,
    command,
    async (utxo) => utxo.faults,
    async (evm) => evm.faults,
    async (tagged) => tagged.faults,
    async (tron) => tron.faults,
    async (solana) => solana.faults,
    async (cardano) => cardano.faults,
  )
  faults.set(command['mode'])
  return { network: command['network'], mode: faults.mode }
}

/** A node forgets a transaction that waits, as nodes do when they restart or run full. */
async function drop(devnet: Devnet, command: Command): Promise<unknown> {
  const evm = devnet.evm.find(({ network }) => network.code === command['network'])
  if (!evm) throw new RequestError(`network ${JSON.stringify(command['network'])} has no transaction to drop: one of ${devnet.evm.map(({ network }) => network.code).join(', ')}`)
  const { hash } = command
  if (typeof hash !== 'string' || !/^0x[0-9a-f]{64}$/.test(hash)) throw new RequestError(`hash ${JSON.stringify(hash)} is not a transaction's hash`)
  if (!await (await evm.chain()).drop(hash as `0x${string}`)) throw new RequestError(`transaction ${hash} does not wait`)
  return { network: command['network'], hash }
}

/** Blocks leave out what pays less than a rate: satoshi per vbyte, or gwei of base fee. 0 ends it. */
async function congestion(devnet: Devnet, command: Command): Promise<unknown> {
  const { network, fee_rate: rate } = command
  const none = ({ code }: { code: string }): never => { throw new RequestError(`${code} has no fee market that can be congested here`) }
  await onNetwork<void>(
    devnet,
    command,
    async (utxo) => (await utxo.chain()).congest(rate === '0' ? 0n : parseAmount(rate, 0)),
    async (evm) => (await evm.chain()).congest(rate === '0' ? null : parseAmount(rate, 9)),
    async (tagged) => none(tagged),
    async (tron) => none(tron),
    async (solana) => none(solana),
    async (cardano) => none(cardano),
  )
  return { network, fee_rate: rate }
}

/** Moves the time of a chain's blocks, and nothing else's: what takes days on it can be waited for. */
async function clock(devnet: Devnet, command: Command): Promise<unknown> {
  const { network, advance } = command
  if (network !== devnet.tron.code) throw new RequestError(`network ${JSON.stringify(network)} has no clock that can be moved: only ${devnet.tron.code}`)
  const [, amount = '', unit = ''] = /^\+(\d{1,9})([smhd])$/.exec(String(advance)) ?? []
  if (amount === '') throw new RequestError(`advance ${JSON.stringify(advance)} is not a span such as "+14d", "+2h", "+30m" or "+5s"`)
  const block = await (await devnet.tron.chain()).advance(Number(amount) * UNIT_MS[unit]!)
  return { ...headOf(block), time: block.time }
}

function headOf({ number, id }: { number: number; id: string }): Head {
  return { height: number, hash: id }
}

async function info(devnet: Devnet): Promise<unknown> {
  const networks: Record<string, unknown> = {}
  const tokens: Record<string, unknown> = {}
  for (const utxo of devnet.utxo) {
    const { network } = utxo
    const chain = utxo.started() ? await utxo.chain() : undefined
    networks[network.code] = {
      height: chain?.head.height ?? null,
      hash: chain?.head.hash ?? null,
      url: devnet.url + network.path,
      engine: 'own regtest ledger',
      genesis: chain?.genesisHash ?? null,
      fault: utxo.faults.mode,
    }
  }
  for (const evm of devnet.evm) {
    const { network } = evm
    const head = evm.started() ? (await evm.chain()).head : undefined
    networks[network.code] = {
      height: head?.height ?? null,
      hash: head?.hash ?? null,
      url: devnet.url + network.path,
      engine: 'anvil',
      chain_id: network.chainId,
      fault: evm.faults.mode,
    }
    for (const { asset, address, decimals } of network.tokens) tokens[asset] = { network: network.code, address, decimals }
  }
  for (const tagged of devnet.tagged) {
    const head = tagged.started() ? (await tagged.chain()).head : undefined
    networks[tagged.code] = { height: head?.height ?? null, hash: head?.hash ?? null, url: devnet.url + tagged.path, engine: tagged.engine, fault: tagged.faults.mode }
  }
  const tron = devnet.tron.started() ? await devnet.tron.chain() : undefined
  networks[devnet.tron.code] = { height: tron?.head.number ?? null, hash: tron?.head.id ?? null, url: devnet.url + devnet.tron.path, engine: 'own ledger, contracts in anvil', genesis: GENESIS_ID, fault: devnet.tron.faults.mode }
  for (const { asset, address, decimals } of TRON_TOKENS) tokens[asset] = { network: devnet.tron.code, address: toBase58(address), decimals }
  const solana = devnet.solana.started() ? (await devnet.solana.chain()).head : undefined
  networks[devnet.solana.code] = { height: solana?.slot ?? null, hash: solana?.hash ?? null, url: devnet.url + devnet.solana.path, engine: 'litesvm', fault: devnet.solana.faults.mode }
  const cardano = devnet.cardano.started() ? (await devnet.cardano.chain()).head : undefined
  networks[devnet.cardano.code] = { height: cardano?.height ?? null, hash: cardano?.hash ?? null, url: devnet.url + devnet.cardano.path, engine: 'scalus', fault: devnet.cardano.faults.mode }
  for (const { asset, mint, decimals } of SOLANA_TOKENS) tokens[asset] = { network: devnet.solana.code, address: mint, decimals }
  return { networks, tokens }
}

function assets(devnet: Devnet): string[] {
  return [...devnet.utxo.map(({ network }) => network.code), ...devnet.evm.flatMap(({ network }) => [network.native, ...network.tokens.map((token) => token.asset)]), ...devnet.tagged.map(({ code }) => code), devnet.tron.code, ...TRON_TOKENS.map(({ asset }) => asset), devnet.solana.code, ...SOLANA_TOKENS.map(({ asset }) => asset), devnet.cardano.code]
}

async function onNetwork<T>(devnet: Devnet, command: Command, utxo: (utxo: Utxo) => Promise<T>, evm: (evm: Evm) => Promise<T>, tagged: (tagged: Tagged) => Promise<T>, tron: (tron: Tron) => Promise<T>, solana: (solana: Solana) => Promise<T>, cardano: (cardano: Cardano) => Promise<T>): Promise<T> {
  const code = command['network']
  const ledger = devnet.utxo.find(({ network }) => network.code === code)
  if (ledger) return utxo(ledger)
  const found = devnet.evm.find(({ network }) => network.code === code)
  if (found) return evm(found)
  const withTags = devnet.tagged.find((each) => each.code === code)
  if (withTags) return tagged(withTags)
  if (code === devnet.tron.code) return tron(devnet.tron)
  if (code === devnet.solana.code) return solana(devnet.solana)
  if (code === devnet.cardano.code) return cardano(devnet.cardano)
  const codes = [...devnet.utxo.map(({ network }) => network.code), ...devnet.evm.map(({ network }) => network.code), ...devnet.tagged.map((each) => each.code), devnet.tron.code, devnet.solana.code, devnet.cardano.code]
  throw new RequestError(`network ${JSON.stringify(code)} is unknown: one of ${codes.join(', ')}`)
}

function count(value: unknown, name: string, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new RequestError(`${name} ${JSON.stringify(value)} is not a whole number from 1 to ${max}`)
  }
  return value
}
