// Facts of the main networks, as literal lists with their sources, so that no edit of
// data/registry.json changes one unnoticed. If an independent library contains the same fact, the
// two are compared as well.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NetworkInfo } from '@emurgo/cardano-serialization-lib-nodejs'
import { Networks } from '@stellar/stellar-sdk'
import coininfo from 'coininfo'
import { getAddress } from 'ethers'
import { TronWeb } from 'tronweb'
import * as chains from 'viem/chains'
import { loadRegistry, readRegistryFile, type Network } from './index.ts'

const registry = loadRegistry('mainnet')
const network = (code: string): Network => registry.network(code) ?? assert.fail(code)

/**
 * Contract, decimals, issuer and whether the token is bridged. Sources: Tether and USDT0
 * (tether.to, docs.usdt0.to), Circle (developers.circle.com, "USDC contract addresses"),
 * Binance-Peg tokens (bscscan.com), OP and Base token lists (ethereum-optimism.github.io), Cronos
 * documentation (docs.cronos.org), Kaia and Stargate token lists; compared with the Uniswap default
 * token list 22.21.0 and trustwallet/assets on 25 Nov 2026.
 */
const TOKENS: [
  asset: string,
  contract: string,
  decimals: number,
  issuer: string,
  bridged: boolean,
][] = [
  ['USDT_ETH', '0xdAC17F958D2ee523a2206206994597C13D831ec7', 6, 'Tether', false],
  ['USDC_ETH', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 6, 'Circle', false],
  ['USDT_BSC', '0x55d398326f99059fF775485246999027B3197955', 18, 'Binance (Binance-Peg)', true],
  ['USDC_BSC', '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d', 18, 'Binance (Binance-Peg)', true],
  ['USDT_POL', '0xc2132D05D31c914a87C6611C10748AEb04B58e8F', 6, 'USDT0', true],
  ['USDC_POL', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 6, 'Circle', false],
  ['USDT_BASE', '0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2', 6, 'Base bridge', true],
  ['USDC_BASE', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 6, 'Circle', false],
  ['USDT_ARB', '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9', 6, 'USDT0', true],
  ['USDC_ARB', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 6, 'Circle', false],
  ['USDT_AVAX', '0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7', 6, 'Tether', false],
  ['USDC_AVAX', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 6, 'Circle', false],
  ['USDT_OP_ETH', '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58', 6, 'OP Mainnet bridge', true],
  ['USDC_OP_ETH', '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', 6, 'Circle', false],
  ['USDT0_OP_ETH', '0x01bFF41798a0BcF287b996046Ca68b395DbC1071', 6, 'USDT0', true],
  ['USDT_CRO', '0x66e428c3f67a68878562e79A0234c1F83c208770', 6, 'Cronos bridge', true],
  ['USDC_CRO', '0xc21223249CA28397B4B6541dfFaEcC539BfF0c59', 6, 'Cronos bridge', true],
  ['USDCN_CRO', '0x3D7F2C478aAfdB65542BCB44bCeeC05849999d2D', 6, 'Circle', false],
  ['USDT_KLAY', '0xd077A400968890Eacc75cdc901F0356c943e4fDb', 6, 'Tether', false],
  ['USDC_KLAY', '0xE2053BCf56D2030d2470Fb454574237cF9ee3D4B', 6, 'Stargate', true],
  ['USDT_TRX', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, 'Tether', false],
  ['USDC_TRX', 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8', 6, 'Circle', false],
  ['USDT_SOL', 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB', 6, 'Tether', false],
  ['USDC_SOL', 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', 6, 'Circle', false],
]

test('mainnet tokens have the contracts, decimals and issuers that their issuers publish', () => {
  const tokens = registry.assets.filter(({ type }) => type === 'token')
  const byName = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]))
  assert.deepEqual(
    tokens
      .map((token) => [
        token.asset_name,
        token.contract_address,
        token.decimals,
        token.issuer,
        token.bridged,
      ])
      .toSorted(byName),
    TOKENS.toSorted(byName),
  )
  for (const [asset, contract] of TOKENS) {
    if (contract.startsWith('0x'))
      assert.equal(contract, getAddress(contract.toLowerCase()), `${asset}: EIP-55`)
    if (contract.startsWith('T')) assert.ok(TronWeb.isAddress(contract), asset)
  }
})

/**
 * EIP-155 chain ids from chainlist.org and ethereum-lists/chains, and viem's definition of the same
 * chain.
 */
const EVM: [
  code: string,
  id: number,
  definition: { id: number; nativeCurrency: { decimals: number } },
][] = [
  ['ETH', 1, chains.mainnet],
  ['BSC', 56, chains.bsc],
  ['POL', 137, chains.polygon],
  ['BASE', 8453, chains.base],
  ['ARB', 42161, chains.arbitrum],
  ['AVAX', 43114, chains.avalanche],
  ['OP_ETH', 10, chains.optimism],
  ['FTM', 250, chains.fantom],
  ['CRO', 25, chains.cronos],
  ['ONE', 1666600000, chains.harmonyOne],
  ['KLAY', 8217, chains.kaia],
]

test('EVM networks have their EIP-155 chain ids, and roll-ups their fee-oracle contracts', () => {
  assert.deepEqual(
    registry.networks
      .filter(({ family }) => family === 'evm')
      .map(({ code }) => code)
      .sort(),
    EVM.map(([code]) => code).sort(),
  )
  for (const [code, id, definition] of EVM) {
    assert.deepEqual([network(code).chain_id, definition.id], [id, id], code)
    assert.equal(
      registry.asset(network(code).native_asset)?.decimals,
      definition.nativeCurrency.decimals,
      code,
    )
  }
  for (const [code, { contracts }] of [
    ['BASE', chains.base],
    ['OP_ETH', chains.optimism],
  ] as const) {
    assert.equal(network(code).l1_fee_oracle, '0x420000000000000000000000000000000000000F', code)
    assert.equal(contracts.gasPriceOracle.address, network(code).l1_fee_oracle, code)
  }
})

/** Explorers that exist according to the networks' own documentation. */
test('block explorers are those that viem lists for the network', () => {
  const hostOf = (url: string | undefined) => new URL(url ?? assert.fail('no explorer')).host
  for (const [code, definition] of [
    ['FTM', chains.fantom],
    ['CRO', chains.cronos],
    ['ETH', chains.mainnet],
    ['ARB', chains.arbitrum],
    ['BASE', chains.base],
  ] as const) {
    assert.equal(
      hostOf(network(code).explorer_transaction_url),
      hostOf(definition.blockExplorers.default.url),
      code,
    )
  }
})

/**
 * Versions of base58 addresses, bech32 prefix and hash of block 0, from each node's
 * chainparams.cpp.
 */
const UTXO: [
  code: string,
  p2pkh: number,
  p2sh: number,
  bech32: string | null,
  cashaddr: string | undefined,
  genesis: string,
][] = [
  [
    'BTC',
    0,
    5,
    'bc',
    undefined,
    '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
  ],
  [
    'LTC',
    48,
    50,
    'ltc',
    undefined,
    '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
  ],
  [
    'DASH',
    76,
    16,
    null,
    undefined,
    '00000ffd590b1485b3caadc19b22e6379c733355108f107a430458cdf3407ab6',
  ],
  [
    'DOGE',
    30,
    22,
    null,
    undefined,
    '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
  ],
  [
    'BCH',
    0,
    5,
    null,
    'bitcoincash',
    '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
  ],
]

test('Bitcoin and related chains have their address versions and genesis blocks', () => {
  for (const [code, p2pkh, p2sh, bech32, cashaddr, genesis] of UTXO) {
    const { utxo, genesis: ours } = network(code)
    assert.deepEqual(
      [utxo?.p2pkh_version, utxo?.p2sh_version, utxo?.bech32_hrp, utxo?.cashaddr_prefix, ours],
      [p2pkh, p2sh, bech32, cashaddr, genesis],
    )
    const coin = coininfo(code) ?? assert.fail(`coininfo has no ${code}`)
    assert.deepEqual(
      [coin.versions.public, coin.versions.scripthash, coin.hashGenesisBlock],
      [p2pkh, p2sh, genesis],
      code,
    )
    if (bech32 !== null) assert.equal(coin.bech32, bech32, code)
  }
})

test('checkpoints distinguish chains with the same genesis block', () => {
  assert.deepEqual(network('BTC').checkpoints, [
    // The first block after the split of Bitcoin Cash.
    { height: 478_559, hash: '00000000000000000019f112ec0a9982926f1258cdcc558dd7c3b7e5dc7fa148' },
    // bitcoin/bitcoin, src/chainparams.cpp, MainAssumeutxo: the newest entry. It is later than
    // August 2026, when nodes that enforce BIP-110 began to refuse blocks.
    { height: 965_000, hash: '00000000000000000001595977e6000ce56129f5c9b4073e31ccc30b90b97da9' },
  ])
  // bitcoin-cash-node, src/chainparams.cpp: the first block after the split from Bitcoin.
  assert.deepEqual(network('BCH').checkpoints, [
    { height: 478_559, hash: '000000000000000000651ef99cb9fcbe0dadde1d424bd9f15ff20136191a5eec' },
  ])
  assert.deepEqual(
    registry.networks.filter(({ checkpoints }) => checkpoints).map(({ code }) => code),
    ['BTC', 'BCH'],
  )
})

test('networks of other families have the identifiers of their mainnet', () => {
  assert.equal(network('XLM').passphrase, 'Public Global Stellar Network ; September 2015')
  assert.equal(network('XLM').passphrase, Networks.PUBLIC)
  assert.equal(network('ADA').network_id, 764_824_073)
  assert.equal(network('ADA').network_id, NetworkInfo.mainnet().protocol_magic())
  // xrpl.org, "NetworkID": main networks have ids that transactions do not carry; that of the XRP
  // Ledger is 0.
  assert.equal(network('XRP').network_id, 0)
  // docs.anza.xyz, "Solana Clusters": mainnet-beta.
  assert.equal(network('SOL').genesis, '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d')
  // tronprotocol/java-tron, block 0 as every public node returns it.
  assert.equal(
    network('TRX').genesis,
    '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
  )
})

test('each active network has a coin with a price source and its current CoinGecko id', () => {
  // CoinGecko renamed klay-token when Klaytn became Kaia (docs.kaia.io links
  // coingecko.com/en/coins/kaia).
  const IDS = {
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
  assert.deepEqual(
    Object.fromEntries(
      Object.values(registry.coins).map((coin) => [coin.ticker, coin.coingecko_id]),
    ),
    IDS,
  )
  for (const each of registry.networks.filter(({ status }) => status?.state !== 'retired')) {
    const native = registry.asset(each.native_asset) ?? assert.fail(each.code)
    assert.ok(Object.hasOwn(registry.coins, native.ticker), each.code)
  }
})

/**
 * Networks and tokens that are closed on main networks. Sources: Ankr's notice of Harmony's end,
 * Sonic Labs, Circle (Tron; Cronos), USDT0.
 */
test('on mainnet, Harmony is retired, and Fantom and three tokens are deprecated', () => {
  assert.deepEqual(
    registry.assets
      .filter(({ status }) => status !== 'active')
      .map(({ asset_name, status, status_since }) => [asset_name, status, status_since]),
    [
      ['FTM', 'deprecated', '2024-12-18'],
      ['ONE', 'retired', '2026-09-10'],
      ['USDT_OP_ETH', 'deprecated', '2026-11-26'],
      ['USDC_CRO', 'deprecated', '2026-06-22'],
      ['USDC_TRX', 'deprecated', '2024-02-21'],
    ],
  )
  const local = loadRegistry('local')
  assert.deepEqual(
    local.assets.filter(
      ({ status, status_since, status_reason }) =>
        status !== 'active' || status_since !== null || status_reason !== null,
    ),
    [],
  )
  // Tokens that exist in the registry for main networks alone.
  const added = ['USDT0_OP_ETH', 'USDCN_CRO']
  assert.deepEqual(
    local.assets.map(({ asset_name }) => asset_name),
    readRegistryFile()
      .assets.map(({ asset_name }) => asset_name)
      .filter((name) => !added.includes(name)),
  )
})
