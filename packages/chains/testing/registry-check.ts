// Checks the content of data/registry.json. Each problem is a sentence that begins with the line in
// which it is.
import { isAddress as isSolanaAddress } from '@solana/kit'
import { getAddress } from 'ethers'
import { TronWeb } from 'tronweb'
import { parseAmount, type LifecycleStatus, type readRegistryFile } from '../src/index.ts'
import type { Family } from '../src/family.ts'
import * as list from '../src/list.ts'

type File = ReturnType<typeof readRegistryFile>
type NetworkLine = File['networks'][number]
type AssetLine = File['assets'][number]
type CoinLine = File['coins'][number]

const FAMILIES = Object.keys(list)
const MODES = ['mainnet', 'local'] as const
const WORDS = {
  network: [
    'code',
    'name',
    'family',
    'curve',
    'native_asset',
    'ready',
    'chain_index',
    'fee_rate_unit',
    'confirmations',
    'fee_cap',
    'mainnet',
    'local',
    'regtest',
    'l1_fee_oracle',
    'legacy_gas_price',
    'gas_most',
    'min_tip',
  ],
  mode: [
    'utxo',
    'chain_id',
    'passphrase',
    'network_id',
    'block_ms',
    'stale_after_s',
    'slot_zero',
    'genesis',
    'checkpoints',
    'explorer_transaction_url',
    'status',
  ],
  utxo: [
    'bech32_hrp',
    'p2pkh_version',
    'p2sh_version',
    'script',
    'dust',
    'min_fee_rate',
    'fee_floors',
    'coinbase_maturity',
    'dust_rate',
    'replaceable',
    'cashaddr_prefix',
    'block_verbosity',
    'extension_blocks',
    'chainlock_confirmations',
    'special_transactions',
  ],
  asset: [
    'asset_name',
    'name',
    'ticker',
    'network',
    'decimals',
    'type',
    'takes_tag',
    'requires_tag',
    'min_withdrawal',
    'ready',
    'contract_address',
    'issuer',
    'bridged',
    'status',
  ],
  status: ['state', 'since', 'reason'],
  coin: ['ticker', 'coingecko_id', 'local_price', 'usd_range'],
}

/** Collects problems of one line; each begins with its name. */
class Line {
  readonly problems: string[] = []
  readonly name: string

  constructor(name: string, line: object, words: readonly string[]) {
    this.name = name
    for (const word of Object.keys(line))
      this.check(words.includes(word), `the word "${word}" is unknown: one of ${words.join(', ')}`)
  }

  check(holds: boolean, sentence: string): void {
    if (!holds) this.problems.push(`${this.name}: ${sentence}`)
  }

  text(value: unknown, word: string): void {
    this.check(typeof value === 'string' && value !== '', `${word} must be text`)
  }

  status(status: LifecycleStatus | undefined): void {
    if (status === undefined) return
    this.problems.push(...new Line(`${this.name}, status`, status, WORDS.status).problems)
    this.check(
      ['deprecated', 'retired'].includes(status.state),
      'status.state must be deprecated or retired',
    )
    this.check(
      /^\d{4}-\d\d-\d\d$/.test(status.since) && !Number.isNaN(Date.parse(status.since)),
      'status.since must be a day, as YYYY-MM-DD',
    )
    this.check(
      /^\S.*[^\s.]$/.test(status.reason),
      'status.reason must be a clause without a full stop',
    )
  }
}

/** Returns names that occur more than once. */
const twice = (names: readonly string[]): string[] => [
  ...new Set(names.filter((name, at) => names.indexOf(name) !== at)),
]

/** Returns every problem of the registry's data; empty: the data is valid. */
export function registryProblems(file: File): string[] {
  const { networks, assets, coins } = file
  return [
    ...twice(networks.map(({ code }) => code)).map(
      (code) => `${code}: two networks have this code`,
    ),
    ...twice(assets.map((asset) => asset.asset_name)).map(
      (name) => `${name}: two assets have this name`,
    ),
    ...twice(coins.map(({ ticker }) => ticker)).map(
      (ticker) => `${ticker}: two coins have this ticker`,
    ),
    ...networks.flatMap((network) => networkProblems(network, assets)),
    ...assets.flatMap((asset) => assetProblems(asset, file)),
    ...coins.flatMap((coin) => coinProblems(coin, assets)),
    ...sharedChainIds(networks),
    ...sharedChainIndices(networks),
    ...sharedContracts(assets),
  ]
}

function networkProblems(network: NetworkLine, assets: readonly AssetLine[]): string[] {
  const line = new Line(String(network.code), network, WORDS.network)
  line.check(
    /^[A-Z][A-Z0-9_]*$/.test(network.code),
    'code must be upper-case letters, digits and _',
  )
  line.text(network.name, 'name')
  line.check(FAMILIES.includes(network.family), `family must be one of ${FAMILIES.join(', ')}`)
  const curve = ['stellar', 'cardano', 'solana'].includes(network.family) ? 'ed25519' : 'secp256k1'
  line.check(network.curve === curve, `curve must be ${curve}`)
  line.check(typeof network.ready === 'boolean', 'ready must be true or false')
  line.check(
    Number.isInteger(network.chain_index) &&
      network.chain_index >= 0 &&
      network.chain_index < 2 ** 31,
    'chain_index must be an integer from 0 to 2^31 - 1',
  )
  line.check(
    network.confirmations === null || network.confirmations > 0,
    "confirmations must be above zero, or null for the chain's own finality",
  )
  line.check(
    typeof network.fee_cap === 'string' && /^[1-9]\d*$/.test(network.fee_cap),
    'fee_cap must be an amount of the smallest unit, in a string',
  )
  line.check(
    network.gas_most === undefined ||
      (network.family === 'evm' &&
        Number.isInteger(network.gas_most) &&
        network.gas_most >= 1_000_000),
    'gas_most must be an integer of at least 1000000, on an EVM network',
  )
  line.check(
    network.min_tip === undefined ||
      (network.family === 'evm' && /^[1-9]\d*$/.test(String(network.min_tip))),
    'min_tip must be a number of wei in a string, on an EVM network',
  )
  line.text(network.fee_rate_unit, 'fee_rate_unit')
  const native = assets
    .filter((asset) => asset.network === network.code && asset.type === 'native')
    .map((asset) => asset.asset_name)
  line.check(
    native.length === 1 && native[0] === network.native_asset,
    `must have one native asset, ${network.native_asset}; there is ${native.join(', ') || 'none'}`,
  )
  line.check(
    MODES.some((mode) => network[mode] !== undefined),
    'must have mainnet or local',
  )
  for (const mode of MODES) if (network[mode]) line.problems.push(...modeProblems(network, mode))
  return line.problems
}

function modeProblems(network: NetworkLine, name: 'mainnet' | 'local'): string[] {
  const mode = network[name] as NonNullable<NetworkLine['mainnet']>
  const line = new Line(`${network.code}, ${name}`, mode, WORDS.mode)
  if (network.family === 'evm')
    line.check(Number.isSafeInteger(mode.chain_id), 'chain_id must be an integer')
  if (network.family === 'utxo') {
    const params = mode.utxo
    line.check(params !== undefined, 'utxo must be there')
    if (params) {
      line.problems.push(...new Line(line.name, params, WORDS.utxo).problems)
      for (const version of [params.p2pkh_version, params.p2sh_version])
        line.check(version >= 0 && version < 256, 'versions of addresses must be a byte')
      line.check(
        params.p2pkh_version !== params.p2sh_version,
        'p2pkh_version and p2sh_version must differ',
      )
      line.check(
        params.dust > 0 && params.min_fee_rate > 0 && params.coinbase_maturity > 0,
        'dust, min_fee_rate and coinbase_maturity must be above zero',
      )
      if (params.fee_floors) {
        const floors = (['low', 'medium', 'high'] as const).map((level) =>
          Number(params.fee_floors?.[level]),
        )
        line.check(
          floors.every((floor, at) => floor >= (floors[at - 1] ?? params.min_fee_rate)),
          'fee_floors must name low, medium and high, none below min_fee_rate or the level before',
        )
      }
      line.check(
        (params.script === 'p2wpkh') === (params.bech32_hrp !== null),
        'bech32_hrp belongs to script p2wpkh',
      )
    }
    if (network.ready)
      line.check(/^[0-9a-f]{64}$/.test(mode.genesis ?? ''), 'genesis must be a block hash')
  }
  line.status(mode.status)
  for (const [at, { height, hash }] of (mode.checkpoints ?? []).entries())
    line.check(
      Number.isSafeInteger(height) &&
        height > (mode.checkpoints?.[at - 1]?.height ?? 0) &&
        /^[0-9a-f]{64}$/.test(hash),
      'checkpoints must have rising heights above zero and block hashes',
    )
  line.check(
    (mode.slot_zero !== undefined) === (network.family === 'cardano' && name === 'mainnet'),
    'slot_zero belongs to cardano, mainnet',
  )
  if (mode.explorer_transaction_url !== undefined)
    line.check(
      /^https:\/\/\S+\/$/.test(mode.explorer_transaction_url),
      'explorer_transaction_url must be https and end in /',
    )
  return line.problems
}

function assetProblems(asset: AssetLine, { networks, coins }: File): string[] {
  const line = new Line(String(asset.asset_name), asset, WORDS.asset)
  const network = networks.find(({ code }) => code === asset.network)
  line.text(asset.name, 'name')
  line.check(network !== undefined, `there is no network ${asset.network}`)
  line.check(asset.type === 'native' || asset.type === 'token', 'type must be native or token')
  const isCounted = Number.isInteger(asset.decimals) && asset.decimals >= 0 && asset.decimals <= 18
  line.check(isCounted, 'decimals must be an integer from 0 to 18')
  if (isCounted)
    line.check(
      isAmount(asset.min_withdrawal, asset.decimals),
      `min_withdrawal must be a decimal above zero with at most ${asset.decimals} decimals, in a string`,
    )
  line.check(typeof asset.takes_tag === 'boolean', 'takes_tag must be true or false')
  line.check(typeof asset.requires_tag === 'boolean', 'requires_tag must be true or false')
  const family = network && (list as Partial<Record<string, Family>>)[network.family]
  if (family)
    line.check(
      asset.takes_tag === (family.tags !== undefined),
      `takes_tag must be ${family.tags !== undefined}: payments of the family ${network.family} carry ${family.tags ? 'tags' : 'no tag'}`,
    )
  line.check(!asset.requires_tag || asset.takes_tag, 'requires_tag is true, and takes_tag is not')
  line.check(
    coins.some(({ ticker }) => ticker === asset.ticker),
    `there is no line of the coin ${asset.ticker} in "coins", so that nobody can tell what it is worth`,
  )
  for (const status of Object.values(asset.status ?? {})) line.status(status)
  if (asset.type === 'native') {
    line.check(asset.contract_address === undefined, 'a native coin has no contract_address')
    line.check(
      asset.issuer === undefined && asset.bridged === undefined,
      'a native coin has no issuer',
    )
  }
  if (asset.type !== 'token') return line.problems
  line.check(
    asset.asset_name === `${asset.ticker}_${asset.network}`,
    `asset_name must be ${asset.ticker}_${asset.network}`,
  )
  line.text(asset.issuer, 'issuer')
  line.check(typeof asset.bridged === 'boolean', 'bridged must be true or false')
  const contracts = Object.entries(asset.contract_address ?? {})
  line.check(contracts.length > 0, 'contract_address must name the contract on mainnet or local')
  for (const [mode, contract] of contracts) {
    line.check(
      mode === 'mainnet' || mode === 'local',
      `contract_address knows mainnet and local, not "${mode}"`,
    )
    line.problems.push(
      ...contractProblem(network?.family, contract).map(
        (sentence) => `${line.name}: contract_address.${mode} ${sentence}`,
      ),
    )
  }
  return line.problems
}

function contractProblem(family: string | undefined, contract: string): string[] {
  switch (family) {
    case 'evm':
      if (!/^0x[0-9a-fA-F]{40}$/.test(contract)) return ['must be an address of 40 hex digits']
      return contract === getAddress(contract.toLowerCase())
        ? []
        : [`must be ${getAddress(contract.toLowerCase())} (EIP-55)`]
    case 'tron':
      return TronWeb.isAddress(contract) && contract.startsWith('T') ? [] : ['must be a T… address']
    case 'solana':
      return isSolanaAddress(contract) ? [] : ['must be the address of a mint']
    case undefined:
      return []
    default:
      return [`means nothing on the family ${family}: it has no tokens here`]
  }
}

function isAmount(text: unknown, decimals: number): boolean {
  try {
    return typeof text === 'string' && parseAmount(text, decimals) > 0n
  } catch {
    return false
  }
}

const isRange = (range: unknown): range is [string, string] =>
  Array.isArray(range) && range.length === 2 && range.every((price) => isAmount(price, 12))

const isWithin = (price: string, [least, most]: [string, string]): boolean =>
  isAmount(price, 12) &&
  parseAmount(least, 12) < parseAmount(price, 12) &&
  parseAmount(price, 12) < parseAmount(most, 12)

function coinProblems(coin: CoinLine, assets: readonly AssetLine[]): string[] {
  const line = new Line(String(coin.ticker), coin, WORDS.coin)
  line.check(
    assets.some(({ ticker }) => ticker === coin.ticker),
    'no asset has this ticker',
  )
  line.check(
    /^[a-z0-9][a-z0-9._-]*$/.test(coin.coingecko_id),
    "coingecko_id must be CoinGecko's id of the coin",
  )
  line.check(
    isAmount(coin.local_price, 12),
    'local_price must be a price in USD above zero, in a string',
  )
  line.check(
    isRange(coin.usd_range) && isWithin(coin.local_price, coin.usd_range),
    'usd_range must be the lowest and highest possible price in USD, in strings, around local_price',
  )
  return line.problems
}

/** Chain ids must be unique, so that no signature is valid on two networks. */
function sharedChainIds(networks: readonly NetworkLine[]): string[] {
  return MODES.flatMap((mode) => {
    const ids = networks.flatMap((network) =>
      network[mode]?.chain_id === undefined
        ? []
        : [{ code: network.code, id: network[mode].chain_id }],
    )
    return ids.flatMap(({ code, id }, at) => {
      const before = ids.slice(0, at).find((each) => each.id === id)
      return before ? [`${code}, ${mode}: the chain_id ${id} is ${before.code}'s`] : []
    })
  })
}

/** Only EVM networks, whose addresses are the same everywhere, share a chain index. */
function sharedChainIndices(networks: readonly NetworkLine[]): string[] {
  return networks.flatMap((network, at) => {
    const before = networks
      .slice(0, at)
      .find(
        (each) =>
          each.chain_index === network.chain_index &&
          !(each.family === 'evm' && network.family === 'evm'),
      )
    return before
      ? [`${network.code}: the chain_index ${network.chain_index} is ${before.code}'s`]
      : []
  })
}

function sharedContracts(assets: readonly AssetLine[]): string[] {
  return MODES.flatMap((mode) =>
    assets.flatMap((asset, at) => {
      const contract = asset.contract_address?.[mode]
      const before =
        contract === undefined
          ? undefined
          : assets
              .slice(0, at)
              .find(
                (each) =>
                  each.network === asset.network && each.contract_address?.[mode] === contract,
              )
      return before
        ? [`${asset.asset_name}: contract_address.${mode} is ${before.asset_name}'s`]
        : []
    }),
  )
}
