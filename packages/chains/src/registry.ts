import data from '../data/registry.json' with { type: 'json' }
import { byMode, chainIdIn, isMode, kindOf, type ModeKind, type NetworkMode } from './mode.ts'
import {
  ChainError,
  type Asset,
  type Checkpoint,
  type FamilyName,
  type LifecycleStatus,
  type Network,
  type UtxoParams,
} from './types.ts'

interface NetworkLine extends Omit<Network, 'mode' | 'utxo' | 'chain_id'> {
  ready: boolean
  mainnet?: ModeLine
  local?: ModeLine
  /**
   * Whether a rehearsal has the network: with the parameters of `local`, except those that are here,
   * and if it has a chain id, with that of the mode. An empty chain has no fee estimate.
   */
  regtest?: true | Pick<UtxoParams, 'fee_floors'>
}
interface ModeLine {
  utxo?: UtxoParams
  chain_id?: number
  passphrase?: string
  network_id?: number
  slot_zero?: number
  genesis?: string
  checkpoints?: readonly Checkpoint[]
  explorer_transaction_url?: string
  status?: LifecycleStatus
}
interface AssetLine {
  asset_name: string
  name: string
  ticker: string
  network: string
  decimals: number
  type: 'native' | 'token'
  takes_tag: boolean
  requires_tag: boolean
  min_withdrawal: string
  ready?: boolean
  contract_address?: Partial<Record<ModeKind, string>>
  issuer?: string
  bridged?: boolean
  status?: Partial<Record<ModeKind, LifecycleStatus>>
}

/**
 * The coin whose price determines an asset's value: one entry for each ticker, whatever networks it
 * is on.
 */
export interface Coin {
  ticker: string
  /** CoinGecko's id of the coin. */
  coingecko_id: string
  /** Initial USD price of the local price sources. */
  local_price: string
  /**
   * Lowest and highest USD price that is considered possible. The signer nodes compare a sweep's fee with
   * what it moves by these bounds; they are not quotes.
   */
  usd_range: [string, string]
}

/** Networks and assets of one mode, looked up by code and ticker. */
export interface Registry {
  mode: NetworkMode
  assets: Asset[]
  networks: Network[]
  /** Coins by ticker, including those that no asset of this mode has. */
  coins: Readonly<Record<string, Coin>>
  asset(ticker: string): Asset | undefined
  network(code: string): Network | undefined
  /** Returns the assets of one network. */
  assetsOf(network: string): Asset[]
  /** Returns the network of an asset. */
  networkOf(asset: Asset): Network
}

/**
 * Returns the parameters of a network that determine its keys, addresses and transactions, in one
 * fixed order, so that a changed registry is detected by comparison with an earlier result. Fields
 * that not all families have are at the end, if the network has them.
 */
export function meaningOf(network: Network): unknown[] {
  const { mode, family, curve, chain_index, native_asset, chain_id, utxo, passphrase, network_id } =
    network
  return [
    mode,
    family,
    curve,
    chain_index,
    native_asset,
    chain_id ?? null,
    utxo && [
      utxo.bech32_hrp,
      utxo.p2pkh_version,
      utxo.p2sh_version,
      utxo.script,
      ...(utxo.cashaddr_prefix === undefined ? [] : [utxo.cashaddr_prefix]),
    ],
    ...(passphrase === undefined && network_id === undefined ? [] : [passphrase ?? network_id]),
  ]
}

interface RegistryFile {
  networks: NetworkLine[]
  assets: AssetLine[]
  coins: Coin[]
}

/** Reads the complete data file, including unfinished networks, for tests and documentation. */
export function readRegistryFile(): RegistryFile {
  return structuredClone(data) as unknown as RegistryFile
}

/** Returns the lifecycle of an asset, which is at most that of its network. */
function lifecycleOf(
  network: Network,
  own: LifecycleStatus | undefined,
): Pick<Asset, 'status' | 'status_since' | 'status_reason'> {
  const status = network.status?.state === 'retired' ? network.status : (own ?? network.status)
  return {
    status: status?.state ?? 'active',
    status_since: status?.since ?? null,
    status_reason: status?.reason ?? null,
  }
}

/** Mode that `regtest` alone stands for: 1337 is the chain id of `geth --dev`. */
const REGTEST: NetworkMode = 'regtest-1337'

/**
 * Parses a mode as an operator enters it.
 * @throws ChainError `MODE` if it is none, or a rehearsal would use the chain id of a known network
 */
export function readMode(text: string): NetworkMode {
  const mode = text === 'regtest' ? REGTEST : text
  if (!isMode(mode))
    throw new ChainError(
      'MODE',
      'must be local, mainnet or regtest-CHAIN_ID; regtest alone is ' + REGTEST,
    )
  const id = chainIdIn(mode)
  const owner = readRegistryFile().networks.find(
    ({ local, mainnet }) => id !== null && [local?.chain_id, mainnet?.chain_id].includes(id),
  )
  if (owner)
    throw new ChainError(
      'MODE',
      `${String(id)} is the chain id of ${owner.name}; a rehearsal needs a chain with an id of its own`,
    )
  return mode
}

/** Returns the parameters of a network in a mode; undefined if the mode does not have the network. */
function lineOf(
  mode: NetworkMode,
  { local, mainnet, regtest }: Pick<NetworkLine, ModeKind>,
): ModeLine | undefined {
  const id = chainIdIn(mode)
  const rehearsed = regtest && local
  return byMode(mode, {
    local,
    mainnet,
    regtest: rehearsed && {
      ...rehearsed,
      ...(rehearsed.utxo && regtest !== true ? { utxo: { ...rehearsed.utxo, ...regtest } } : {}),
      ...(rehearsed.chain_id === undefined || id === null ? {} : { chain_id: id }),
    },
  })
}

/**
 * Loads data/registry.json for one mode. Networks whose family is not finished (`ready: false`) or
 * that have no entry for the mode are left out, and so are their assets.
 */
export function loadRegistry(mode: NetworkMode): Registry {
  const file = readRegistryFile()
  const networks: Network[] = []
  for (const { ready, mainnet, local, regtest, ...line } of file.networks) {
    const modeLine = lineOf(mode, { mainnet, local, regtest })
    if (ready && modeLine) networks.push({ ...line, ...modeLine, mode })
  }
  const byCode = new Map(networks.map((network) => [network.code, network]))
  const assets: Asset[] = []
  for (const line of file.assets) {
    const network = byCode.get(line.network)
    const contract = line.contract_address?.[kindOf(mode)] ?? null
    if (!network || line.ready === false || (line.type === 'token' && contract === null)) continue
    assets.push({
      asset_name: line.asset_name,
      name: line.name,
      ticker: line.ticker,
      blockchain: network.name,
      network: network.code,
      family: network.family satisfies FamilyName,
      decimals: line.decimals,
      type: line.type,
      contract_address: contract,
      fee_asset: network.native_asset,
      takes_tag: line.takes_tag,
      requires_tag: line.requires_tag,
      min_withdrawal: line.min_withdrawal,
      issuer: line.issuer ?? null,
      bridged: line.bridged ?? false,
      ...lifecycleOf(network, line.status?.[kindOf(mode)]),
    })
  }
  const byTicker = new Map(assets.map((asset) => [asset.asset_name, asset]))
  return {
    mode,
    assets,
    networks,
    coins: Object.fromEntries(file.coins.map((coin) => [coin.ticker, coin])),
    asset: (ticker) => byTicker.get(ticker),
    network: (code) => byCode.get(code),
    assetsOf: (network) => assets.filter((asset) => asset.network === network),
    networkOf: (asset) => byCode.get(asset.network) as Network,
  }
}
