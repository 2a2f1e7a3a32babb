import type { Devnet, Evm, Tagged, Utxo } from './devnet.ts'
import { RequestError } from './errors.ts'
import type { Control } from './http.ts'

const BLOCKS_MAX = 1000
const DEPTH_MAX = 100
/** XRP and XLM: how far one command moves the ledger's time forward. */
const SECONDS_MAX = 1000

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
      case 'info':
        return info(devnet)
      default:
        throw new RequestError(`command ${JSON.stringify(command['command'])} is unknown: one of fund, mine, reorg, fault, info`)
    }
  }
}

async function fund(devnet: Devnet, command: Command): Promise<unknown> {
  const { asset, address, amount, tag } = command
  if (asset === 'XRP' || asset === 'XLM') {
    const chain = await devnet.tagged.find(({ code }) => code === asset)!.chain()
    return { hash: chain.fund(address, amount, tag, command['delivered']) }
  }
  if (tag !== undefined && tag !== null) throw new RequestError(`${String(asset)} has no address tags`)
  const utxo = devnet.utxo.find(({ network }) => network.code === asset)
  if (utxo) return { hash: (await utxo.chain()).fund(address, amount) }
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
  )
  return { height, hash }
}

async function fault(devnet: Devnet, command: Command): Promise<unknown> {
  const faults = await onNetwork(
    devnet,
    command,
    async (utxo) => utxo.faults,
    async (evm) => evm.faults,
    async (tagged) => tagged.faults,
  )
  faults.set(command['mode'])
  return { network: command['network'], mode: faults.mode }
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
  return { networks, tokens }
}

function assets(devnet: Devnet): string[] {
  return [...devnet.utxo.map(({ network }) => network.code), ...devnet.evm.flatMap(({ network }) => [network.native, ...network.tokens.map((token) => token.asset)]), ...devnet.tagged.map(({ code }) => code)]
}

async function onNetwork<T>(devnet: Devnet, command: Command, utxo: (utxo: Utxo) => Promise<T>, evm: (evm: Evm) => Promise<T>, tagged: (tagged: Tagged) => Promise<T>): Promise<T> {
  const code = command['network']
  const ledger = devnet.utxo.find(({ network }) => network.code === code)
  if (ledger) return utxo(ledger)
  const found = devnet.evm.find(({ network }) => network.code === code)
  if (found) return evm(found)
  const withTags = devnet.tagged.find((each) => each.code === code)
  if (withTags) return tagged(withTags)
  const codes = [...devnet.utxo.map(({ network }) => network.code), ...devnet.evm.map(({ network }) => network.code), ...devnet.tagged.map((each) => each.code)]
  throw new RequestError(`network ${JSON.stringify(code)} is unknown: one of ${codes.join(', ')}`)
}

function count(value: unknown, name: string, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new RequestError(`${name} ${JSON.stringify(value)} is not a whole number from 1 to ${max}`)
  }
  return value
}
