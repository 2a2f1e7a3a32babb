// What other publications state about the main networks, tokens and coins of data/registry.json.
// The literals below have their source beside them and are compared with the registry and, where
// one contains the same fact, with an independent library. A wrong entry of the registry loses
// money, so an entry without facts is a problem too.
import { NetworkInfo } from '@emurgo/cardano-serialization-lib-nodejs'
import slip44 from '@metamask/slip44' with { type: 'json' }
import { Networks } from '@stellar/stellar-sdk'
import coininfo from 'coininfo'
import * as chains from 'viem/chains'
import type { Checkpoint, readRegistryFile } from '../src/index.ts'

type File = ReturnType<typeof readRegistryFile>
type NetworkLine = File['networks'][number]
type MainnetLine = NonNullable<NetworkLine['mainnet']>

const HERE = 'packages/chains/testing/mainnet-facts.ts'
const DATA = 'packages/chains/data/registry.json'

/** What identifies a main network: which chain it is, and what its addresses look like. */
interface Identity {
  chain_id?: number
  network_id?: number
  slot_zero?: number
  passphrase?: string
  /** Hash of block 0. */
  genesis?: string
  checkpoints?: readonly Checkpoint[]
  p2pkh_version?: number
  p2sh_version?: number
  bech32_hrp?: string | null
  cashaddr_prefix?: string
}
const FIELDS: readonly (keyof Identity)[] = [
  'chain_id',
  'network_id',
  'slot_zero',
  'passphrase',
  'genesis',
  'checkpoints',
  'p2pkh_version',
  'p2sh_version',
  'bech32_hrp',
  'cashaddr_prefix',
]

/** Facts of one main network. */
interface NetworkFacts extends Identity {
  /** Where the facts are published. */
  source: string
  /** Decimals of the native coin. */
  decimals: number
  /** Facts that the compared library states wrongly, although the network's own source is clear. */
  library_errors?: readonly (keyof Identity)[]
  /** EVM: viem's definition of the chain. */
  viem?: chains.Chain
}

/** EIP-155 chain id, and viem's definition of the same chain. */
const evm = (chain_id: number, viem: chains.Chain): NetworkFacts => ({
  source: 'https://chainlist.org and github.com/ethereum-lists/chains',
  decimals: 18,
  chain_id,
  viem,
})

/** Main networks by their codes in the registry. */
const NETWORKS: Readonly<Record<string, NetworkFacts>> = {
  BTC: {
    source: 'bitcoin/bitcoin, src/kernel/chainparams.cpp',
    decimals: 8,
    p2pkh_version: 0,
    p2sh_version: 5,
    bech32_hrp: 'bc',
    genesis: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
    checkpoints: [
      // The first block after the split of Bitcoin Cash.
      { height: 478_559, hash: '00000000000000000019f112ec0a9982926f1258cdcc558dd7c3b7e5dc7fa148' },
      // bitcoin/bitcoin, src/chainparams.cpp, MainAssumeutxo: the newest entry. It is later than
      // August 2026, when nodes that enforce BIP-110 began to refuse blocks.
      { height: 965_000, hash: '00000000000000000001595977e6000ce56129f5c9b4073e31ccc30b90b97da9' },
    ],
  },
  LTC: {
    source: 'litecoin-project/litecoin, src/chainparams.cpp',
    decimals: 8,
    p2pkh_version: 48,
    p2sh_version: 50,
    bech32_hrp: 'ltc',
    genesis: '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
  },
  DASH: {
    source: 'dashpay/dash, src/chainparams.cpp',
    decimals: 8,
    p2pkh_version: 76,
    p2sh_version: 16,
    bech32_hrp: null,
    genesis: '00000ffd590b1485b3caadc19b22e6379c733355108f107a430458cdf3407ab6',
  },
  DOGE: {
    source: 'dogecoin/dogecoin, src/chainparams.cpp',
    decimals: 8,
    p2pkh_version: 30,
    p2sh_version: 22,
    bech32_hrp: null,
    genesis: '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
  },
  BCH: {
    source: 'bitcoin-cash-node, src/chainparams.cpp',
    decimals: 8,
    p2pkh_version: 0,
    p2sh_version: 5,
    bech32_hrp: null,
    cashaddr_prefix: 'bitcoincash',
    genesis: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
    // The first block after the split from Bitcoin.
    checkpoints: [
      { height: 478_559, hash: '000000000000000000651ef99cb9fcbe0dadde1d424bd9f15ff20136191a5eec' },
    ],
  },
  ETH: evm(1, chains.mainnet),
  BSC: evm(56, chains.bsc),
  POL: evm(137, chains.polygon),
  BASE: evm(8453, chains.base),
  ARB: evm(42161, chains.arbitrum),
  AVAX: evm(43114, chains.avalanche),
  OP_ETH: evm(10, chains.optimism),
  FTM: evm(250, chains.fantom),
  CRO: evm(25, chains.cronos),
  ONE: evm(1666600000, chains.harmonyOne),
  KLAY: evm(8217, chains.kaia),
  TRX: {
    source: 'tronprotocol/java-tron, block 0 as every public node returns it',
    decimals: 6,
    genesis: '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
  },
  XRP: {
    // Main networks have ids that transactions do not carry; that of the XRP Ledger is 0.
    source: 'xrpl.org, "NetworkID"',
    decimals: 6,
    network_id: 0,
  },
  XLM: {
    source: 'developers.stellar.org, "Networks"',
    decimals: 7,
    passphrase: 'Public Global Stellar Network ; September 2015',
  },
  ADA: {
    // Slot 4,492,800 began at 2020-07-29T21:44:51Z, and every slot since then takes one second.
    source: 'book.world.dev.cardano.org, mainnet: byron-genesis.json and shelley-genesis.json',
    decimals: 6,
    network_id: 764_824_073,
    slot_zero: Date.parse('2020-07-29T21:44:51Z') / 1000 - 4_492_800,
  },
  SOL: {
    source: 'docs.anza.xyz, "Solana Clusters": mainnet-beta',
    decimals: 9,
    genesis: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  },
}

/**
 * Contract, decimals, issuer and whether the token is bridged. Sources: Tether and USDT0
 * (tether.to, docs.usdt0.to), Circle (developers.circle.com, "USDC contract addresses"),
 * Binance-Peg tokens (bscscan.com), OP and Base token lists (ethereum-optimism.github.io), Cronos
 * documentation (docs.cronos.org), Kaia and Stargate token lists; compared with the Uniswap default
 * token list 22.21.0 and trustwallet/assets on 25 Nov 2026.
 */
const TOKENS: Readonly<
  Record<string, [contract: string, decimals: number, issuer: string, bridged: boolean]>
> = {
  USDT_ETH: ['0xdAC17F958D2ee523a2206206994597C13D831ec7', 6, 'Tether', false],
  USDC_ETH: ['0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 6, 'Circle', false],
  USDT_BSC: ['0x55d398326f99059fF775485246999027B3197955', 18, 'Binance (Binance-Peg)', true],
  USDC_BSC: ['0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d', 18, 'Binance (Binance-Peg)', true],
  USDT_POL: ['0xc2132D05D31c914a87C6611C10748AEb04B58e8F', 6, 'USDT0', true],
  USDC_POL: ['0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 6, 'Circle', false],
  USDT_BASE: ['0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2', 6, 'Base bridge', true],
  USDC_BASE: ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 6, 'Circle', false],
  USDT_ARB: ['0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9', 6, 'USDT0', true],
  USDC_ARB: ['0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 6, 'Circle', false],
  USDT_AVAX: ['0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7', 6, 'Tether', false],
  USDC_AVAX: ['0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 6, 'Circle', false],
  USDT_OP_ETH: ['0x94b008aA00579c1307B0EF2c499aD98a8ce58e58', 6, 'OP Mainnet bridge', true],
  USDC_OP_ETH: ['0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', 6, 'Circle', false],
  USDT0_OP_ETH: ['0x01bFF41798a0BcF287b996046Ca68b395DbC1071', 6, 'USDT0', true],
  USDT_CRO: ['0x66e428c3f67a68878562e79A0234c1F83c208770', 6, 'Cronos bridge', true],
  USDC_CRO: ['0xc21223249CA28397B4B6541dfFaEcC539BfF0c59', 6, 'Cronos bridge', true],
  USDCN_CRO: ['0x3D7F2C478aAfdB65542BCB44bCeeC05849999d2D', 6, 'Circle', false],
  USDT_KLAY: ['0xd077A400968890Eacc75cdc901F0356c943e4fDb', 6, 'Tether', false],
  USDC_KLAY: ['0xE2053BCf56D2030d2470Fb454574237cF9ee3D4B', 6, 'Stargate', true],
  USDT_TRX: ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, 'Tether', false],
  USDC_TRX: ['TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8', 6, 'Circle', false],
  USDT_SOL: ['Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB', 6, 'Tether', false],
  USDC_SOL: ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', 6, 'Circle', false],
}

/**
 * "API ID" of each coin's page at coingecko.com. CoinGecko renamed klay-token when Klaytn became
 * Kaia (docs.kaia.io links coingecko.com/en/coins/kaia).
 */
const COINGECKO_IDS: Readonly<Record<string, string>> = {
  BTC: 'bitcoin',
  LTC: 'litecoin',
  DASH: 'dash',
  DOGE: 'dogecoin',
  BCH: 'bitcoin-cash',
  ETH: 'ethereum',
  BNB: 'binancecoin',
  POL: 'polygon-ecosystem-token',
  AVAX: 'avalanche-2',
  FTM: 'fantom',
  CRO: 'crypto-com-chain',
  ONE: 'harmony',
  KLAY: 'kaia',
  TRX: 'tron',
  XRP: 'ripple',
  XLM: 'stellar',
  ADA: 'cardano',
  SOL: 'solana',
  USDT: 'tether',
  USDC: 'usd-coin',
  USDT0: 'usdt0',
  USDCN: 'usd-coin',
}

/** What an independent library states about a network; empty if it contains nothing. */
function libraryFacts(
  network: NetworkLine,
  ticker: string,
): [library: string, Partial<NetworkFacts>] {
  switch (network.family) {
    case 'evm': {
      const definition = NETWORKS[network.code]?.viem
      if (!definition) return ['viem', {}]
      return ['viem', { chain_id: definition.id, decimals: definition.nativeCurrency.decimals }]
    }
    case 'utxo': {
      const coin = coininfo(ticker)
      if (!coin) return ['coininfo', {}]
      return [
        'coininfo',
        {
          p2pkh_version: coin.versions.public,
          p2sh_version: coin.versions.scripthash,
          genesis: coin.hashGenesisBlock,
          ...(coin.bech32 === undefined ? {} : { bech32_hrp: coin.bech32 }),
        },
      ]
    }
    case 'stellar':
      return ['@stellar/stellar-sdk', { passphrase: Networks.PUBLIC }]
    case 'cardano':
      return [
        '@emurgo/cardano-serialization-lib-nodejs',
        { network_id: NetworkInfo.mainnet().protocol_magic() },
      ]
    default:
      return ['', {}]
  }
}

/** Returns what identifies a network of the registry. */
function identityOf({ utxo, ...line }: MainnetLine): Identity {
  const all: Identity = { ...line, ...utxo }
  return Object.fromEntries(
    FIELDS.filter((field) => all[field] !== undefined).map((field) => [field, all[field]]),
  )
}

const text = (value: unknown) => JSON.stringify(value) ?? 'absent'

/** Returns the registry's main networks whose facts are missing, or differ from what is published. */
function networkProblems(network: NetworkLine, { assets }: File): string[] {
  const { code, family, mainnet } = network
  if (!mainnet) return []
  const facts = NETWORKS[code]
  const identity = identityOf(mainnet)
  if (!facts) {
    const needed = ['source', 'decimals', ...Object.keys(identity)].join(', ')
    const entry =
      family === 'evm'
        ? `evm(CHAIN_ID, chains.NAME), with the id from https://chainlist.org and viem's chain`
        : `{ ${needed} }, from the source code or documentation of the network`
    return [`${code}: has no published facts; add to NETWORKS in ${HERE}: ${code}: ${entry}`]
  }
  const native = assets.find(({ asset_name }) => asset_name === network.native_asset)
  const ours: Partial<NetworkFacts> = { ...identity, decimals: native?.decimals }
  const [library, published] = libraryFacts(network, native?.ticker ?? code)
  return [
    ...(['decimals', ...FIELDS] as const).flatMap((field) => [
      ...(text(ours[field]) === text(facts[field])
        ? []
        : [
            `${code}: ${field} is ${text(ours[field])} in ${DATA}, and ${text(facts[field])} in ${HERE} (${facts.source}); correct the wrong one`,
          ]),
      ...(field in published &&
      text(published[field]) !== text(ours[field]) &&
      !facts.library_errors?.includes(field as keyof Identity)
        ? [
            `${code}: ${field} is ${text(ours[field])} in ${DATA}, and ${text(published[field])} in the library ${library}; correct ${DATA}, or, if the network's own source proves the library wrong, add library_errors: ['${field}'] in ${HERE}`,
          ]
        : []),
    ]),
    ...indexProblems(network, native?.ticker ?? code),
    ...(facts.viem ? viemProblems(network, facts.viem) : []),
  ]
}

/** SLIP-44 assigns each coin its index; all EVM networks use that of Ether, as wallets do. */
function indexProblems(
  { code, family, chain_index: index }: NetworkLine,
  ticker: string,
): string[] {
  const expected = family === 'evm' ? 'ETH' : ticker
  const coin = (slip44 as Partial<Record<string, { symbol: string }>>)[index]
  if (coin?.symbol === expected) return []
  return [
    `${code}: chain_index is ${index} in ${DATA}, which SLIP-44 assigns to ${coin?.symbol ?? 'no coin'}; use the index of ${expected} (https://github.com/satoshilabs/slips/blob/master/slip-0044.md)`,
  ]
}

/** Compares explorer and fee oracle with viem's definition of the chain. */
function viemProblems(network: NetworkLine, { blockExplorers, contracts }: chains.Chain): string[] {
  const { code, mainnet, l1_fee_oracle: ours } = network
  const explorer = blockExplorers?.default.url
  const hostOf = (url: string | undefined) => (url === undefined ? null : new URL(url).host)
  const oracle = (contracts as { gasPriceOracle?: { address: string } } | undefined)?.gasPriceOracle
    ?.address
  return [
    ...(hostOf(explorer) === hostOf(mainnet?.explorer_transaction_url)
      ? []
      : [
          `${code}: explorer_transaction_url is ${text(mainnet?.explorer_transaction_url)} in ${DATA}, and viem lists ${text(explorer)}; correct ${DATA}`,
        ]),
    ...(oracle === ours
      ? []
      : [
          `${code}: l1_fee_oracle is ${text(ours)} in ${DATA}, and ${text(oracle)} in viem; correct ${DATA}`,
        ]),
  ]
}

function tokenProblems({ assets }: File): string[] {
  return assets.flatMap(({ asset_name: name, type, contract_address: contract, ...asset }) => {
    if (type !== 'token' || contract?.mainnet === undefined) return []
    const ours = [contract.mainnet, asset.decimals, asset.issuer, asset.bridged]
    if (text(TOKENS[name]) === text(ours)) return []
    return [
      TOKENS[name]
        ? `${name}: contract, decimals, issuer and bridged are ${text(ours)} in ${DATA}, and ${text(TOKENS[name])} in ${HERE}; correct the wrong one`
        : `${name}: has no published facts; add to TOKENS in ${HERE}: ${name}: ['CONTRACT', DECIMALS, 'ISSUER', IS_BRIDGED], as the issuer publishes them`,
    ]
  })
}

/** A coin of local chains alone has no published facts and needs none. */
function coinProblems({ networks, assets, coins }: File): string[] {
  const main = new Set(networks.filter(({ mainnet }) => mainnet).map(({ code }) => code))
  const isLocal = (ticker: string): boolean => {
    const forms = assets.filter((asset) => asset.ticker === ticker)
    return forms.length > 0 && !forms.some(({ network }) => main.has(network))
  }
  return coins.flatMap(({ ticker, coingecko_id: ours }) => {
    const published = COINGECKO_IDS[ticker]
    if (published === undefined ? isLocal(ticker) : published === ours) return []
    return [
      published === undefined
        ? `${ticker}: has no published facts; add to COINGECKO_IDS in ${HERE}: ${ticker}: the "API ID" of its page at coingecko.com`
        : `${ticker}: coingecko_id is ${ours} in ${DATA}, and ${published} in ${HERE}; correct the wrong one`,
    ]
  })
}

/** Facts whose network, token or coin the registry no longer has. */
function unusedFacts({ networks, assets, coins }: File): string[] {
  const known = new Set([
    ...networks.filter(({ mainnet }) => mainnet).map(({ code }) => `NETWORKS.${code}`),
    ...assets
      .filter(({ contract_address: contract }) => contract?.mainnet !== undefined)
      .map(({ asset_name: name }) => `TOKENS.${name}`),
    ...coins.map(({ ticker }) => `COINGECKO_IDS.${ticker}`),
  ])
  return Object.entries({ NETWORKS, TOKENS, COINGECKO_IDS }).flatMap(([list, entries]) =>
    Object.keys(entries)
      .filter((name) => !known.has(`${list}.${name}`))
      .map((name) => `${name}: is not in ${DATA}; remove it from ${list} in ${HERE}`),
  )
}

/** Returns each entry of the registry without published facts, or that differs from them. */
export function factProblems(file: File): string[] {
  return [
    ...file.networks.flatMap((network) => networkProblems(network, file)),
    ...tokenProblems(file),
    ...coinProblems(file),
    ...unusedFacts(file),
  ]
}
