// Rules for the content of data/registry.json.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, meaningOf, readRegistryFile, type Network } from './index.ts'
import { registryProblems } from '../testing/registry-check.ts'

const file = readRegistryFile()

test('networks, assets and coins are complete, unique, and spelled as on their chains', () => {
  assert.deepEqual(registryProblems(file), [])
})

test('reports an error in the file with its line', () => {
  type Lines = Record<'networks' | 'assets' | 'coins', Record<string, unknown>[]>
  const line = (lines: Lines, list: keyof Lines, name: string) =>
    lines[list].find((each) => [each['code'], each['asset_name'], each['ticker']].includes(name)) ??
    assert.fail(name)
  const mistakes: [(lines: Lines) => unknown, RegExp][] = [
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['network'] = 'ETHX'
      },
      /^USDC_ETH: there is no network ETHX$/,
    ],
    [
      (lines) => lines.assets.push(line(lines, 'assets', 'USDC_ETH')),
      /^USDC_ETH: two assets have this name$/,
    ],
    [
      (lines) => lines.coins.push(line(lines, 'coins', 'USDC')),
      /^USDC: two coins have this ticker$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['decimal'] = 6
      },
      /^USDC_ETH: the word "decimal" is unknown/,
    ],
    [
      (lines) => {
        delete line(lines, 'assets', 'USDC_ETH')['decimals']
      },
      /^USDC_ETH: decimals must be/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['min_withdrawal'] = '0.0000001'
      },
      /^USDC_ETH: min_withdrawal must be .* 6 decimals/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['min_withdrawal'] = 1
      },
      /^USDC_ETH: min_withdrawal/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['contract_address'] = {
          mainnet: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
        }
      },
      /^USDC_ETH: contract_address.mainnet must be 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 \(EIP-55\)$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['contract_address'] = { mainnet: '0xA0b8' }
      },
      /^USDC_ETH: contract_address.mainnet must be an address/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['contract_address'] = {
          main: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
        }
      },
      /^USDC_ETH: contract_address knows mainnet and local, not "main"$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['contract_address'] = {
          mainnet: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
        }
      },
      /^USDC_ETH: contract_address.mainnet is USDT_ETH's$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_TRX')['contract_address'] = {
          mainnet: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
        }
      },
      /^USDC_TRX: contract_address.mainnet must be a T… address$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_SOL')['contract_address'] = { local: 'G3EK' }
      },
      /^USDC_SOL: contract_address.local must be the address of a mint$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['ticker'] = 'USDX'
      },
      /^USDC_ETH: there is no line of the coin USDX/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'XRP')['takes_tag'] = false
      },
      /^XRP: takes_tag must be true: .* xrp carry tags$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_SOL')['takes_tag'] = true
      },
      /^USDC_SOL: takes_tag must be false: .* solana carry no tag$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'BTC')['requires_tag'] = true
      },
      /^BTC: requires_tag is true, and takes_tag is not$/,
    ],
    [
      (lines) => {
        delete line(lines, 'assets', 'XLM')['requires_tag']
      },
      /^XLM: requires_tag must be true or false$/,
    ],
    [
      (lines) => {
        line(lines, 'coins', 'USDC')['local_price'] = 1
      },
      /^USDC: local_price must be/,
    ],
    ...[undefined, ['2', '0.5'], ['0.5'], ['0', '2'], [0.5, 2], ['2', '3']].map(
      (range): [(lines: Lines) => void, RegExp] => [
        (lines) => {
          line(lines, 'coins', 'USDC')['usd_range'] = range
        },
        /USDC: usd_range must be/,
      ],
    ),
    [
      (lines) => {
        line(lines, 'coins', 'USDC')['coingecko_id'] = 'USD Coin'
      },
      /^USDC: coingecko_id must be/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['mainnet'] = { chain_id: 1 }
      },
      /^BASE, mainnet: the chain_id 1 is ETH's$/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'LTC')['chain_index'] = 60
      },
      /: the chain_index 60 is LTC's$/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['native_asset'] = 'BASED'
      },
      /^BASE: must have one native asset, BASED; there is BASE$/,
    ],
    [
      (lines) => {
        delete line(lines, 'assets', 'USDC_ETH')['issuer']
      },
      /^USDC_ETH: issuer must be text$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['bridged'] = 'no'
      },
      /^USDC_ETH: bridged must be true or false$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'BTC')['issuer'] = 'Satoshi'
      },
      /^BTC: a native coin has no issuer$/,
    ],
    [
      (lines) => {
        line(lines, 'assets', 'USDC_ETH')['status'] = {
          mainnet: { state: 'closed', since: '2026-01-01', reason: 'it ended' },
        }
      },
      /^USDC_ETH: status.state must be deprecated or retired$/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['mainnet'] = {
          chain_id: 8453,
          status: { state: 'retired', since: '2026-13-01', reason: 'it ended' },
        }
      },
      /^BASE, mainnet: status.since must be a day, as YYYY-MM-DD$/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['mainnet'] = {
          chain_id: 8453,
          status: { state: 'retired', since: '2026-01-01', reason: 'It ended.' },
        }
      },
      /^BASE, mainnet: status.reason must be a clause/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['mainnet'] = {
          chain_id: 8453,
          checkpoints: [{ height: 1, hash: 'ab' }],
        }
      },
      /^BASE, mainnet: checkpoints must have rising heights above zero and block hashes$/,
    ],
    [
      (lines) => {
        line(lines, 'networks', 'BASE')['fee_cap'] = 100
      },
      /^BASE: fee_cap must be/,
    ],
  ]
  for (const [spoil, expected] of mistakes) {
    const lines = structuredClone(file) as unknown as Lines
    spoil(lines)
    const problems = registryProblems(lines as never)
    assert.ok(
      problems.some((problem) => expected.test(problem)),
      `${String(expected)} is not in ${JSON.stringify(problems)}`,
    )
  }
})

test('every documented ticker exists', () => {
  const documented =
    'BTC LTC DASH DOGE BCH ETH BSC POL BASE ARB AVAX OP_ETH FTM CRO ONE KLAY TRX USDT_TRX USDC_TRX XRP XLM ADA SOL USDT_SOL USDC_SOL USDT_ETH'.split(
      ' ',
    )
  for (const ticker of documented)
    assert.ok(
      file.assets.some((asset) => asset.asset_name === ticker),
      ticker,
    )
})

test('loads only the networks that are ready in the given mode', () => {
  for (const mode of ['mainnet', 'local'] as const) {
    const registry = loadRegistry(mode)
    const ready = file.networks
      .filter((network) => network.ready && network[mode])
      .map((network) => network.code)
    assert.deepEqual(
      registry.networks.map((network) => network.code),
      ready,
    )
    assert.ok(ready.includes('BTC') && ready.includes('ETH'))
    for (const network of registry.networks) {
      assert.equal(network.mode, mode)
      assert.ok(
        registry.assetsOf(network.code).some((asset) => asset.asset_name === network.native_asset),
        'no native asset',
      )
    }
    for (const asset of registry.assets) {
      const line = file.assets.find((each) => each.asset_name === asset.asset_name)
      assert.notEqual(line?.ready, false)
      assert.equal(registry.asset(asset.asset_name), asset)
      assert.equal(registry.networkOf(asset).code, asset.network)
      assert.equal(asset.type === 'token', asset.contract_address !== null)
      assert.ok(registry.asset(asset.fee_asset), 'the fee asset is loaded')
    }
    for (const asset of registry.assets)
      assert.ok(registry.coins[asset.ticker], `${asset.asset_name} has a coin`)
    assert.equal(registry.asset('btc'), undefined)
    assert.equal(registry.asset('constructor'), undefined)
  }
})

// A signer node writes these texts into its record when it first uses the network, and refuses to
// start if one of them differs.
test('the serialized definition of a network never changes', () => {
  const mainnet = loadRegistry('mainnet')
  const meaning = (code: string) => JSON.stringify(meaningOf(mainnet.network(code) as Network))
  assert.equal(meaning('BTC'), '["mainnet","utxo","secp256k1",0,"BTC",null,["bc",0,5,"p2wpkh"]]')
  assert.equal(
    meaning('BCH'),
    '["mainnet","utxo","secp256k1",145,"BCH",null,[null,0,5,"p2pkh","bitcoincash"]]',
  )
  assert.equal(meaning('ETH'), '["mainnet","evm","secp256k1",60,"ETH",1,null]')
  assert.equal(meaning('TRX'), '["mainnet","tron","secp256k1",195,"TRX",null,null]')
  assert.equal(meaning('XRP'), '["mainnet","xrp","secp256k1",144,"XRP",null,null,0]')
  assert.equal(
    meaning('XLM'),
    '["mainnet","stellar","ed25519",148,"XLM",null,null,"Public Global Stellar Network ; September 2015"]',
  )
  assert.equal(meaning('ADA'), '["mainnet","cardano","ed25519",1815,"ADA",null,null,764824073]')
  assert.equal(meaning('SOL'), '["mainnet","solana","ed25519",501,"SOL",null,null]')
})
