// data/registry.json: what the file may say.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getAddress } from 'ethers'
import { loadRegistry, parseAmount, readRegistryFile } from '../src/index.ts'

const file = readRegistryFile()
const FAMILIES = ['utxo', 'evm', 'tron', 'xrp', 'stellar', 'cardano', 'solana']
const codes = file.networks.map((network) => network.code)

test('codes and tickers are unique, and every asset lives on a network', () => {
  const tickers = file.assets.map((asset) => asset.asset_name)
  assert.equal(new Set(codes).size, codes.length)
  assert.equal(new Set(tickers).size, tickers.length)
  for (const asset of file.assets) assert.ok(codes.includes(asset.network), `${asset.asset_name}: no network ${asset.network}`)
})

test('every documented ticker is there', () => {
  const documented = 'BTC LTC DASH DOGE BCH ETH BSC POL BASE ARB AVAX OP_ETH FTM CRO ONE KLAY TRX USDT_TRX USDC_TRX XRP XLM ADA SOL USDT_SOL USDC_SOL USDT_ETH'.split(' ')
  for (const ticker of documented) assert.ok(file.assets.some((asset) => asset.asset_name === ticker), ticker)
})

test('networks are complete', () => {
  for (const network of file.networks) {
    const where = network.code
    assert.match(network.code, /^[A-Z][A-Z0-9_]*$/)
    assert.ok(FAMILIES.includes(network.family), where)
    assert.equal(network.curve, ['stellar', 'cardano', 'solana'].includes(network.family) ? 'ed25519' : 'secp256k1', where)
    assert.ok(Number.isInteger(network.chain_index) && network.chain_index >= 0 && network.chain_index < 2 ** 31, where)
    assert.ok(network.confirmations === null || network.confirmations > 0, where)
    assert.match(network.fee_cap, /^[1-9]\d*$/, where)
    assert.ok(network.fee_rate_unit.length > 0, where)
    const native = file.assets.filter((asset) => asset.network === network.code && asset.type === 'native')
    assert.deepEqual(native.map((asset) => asset.asset_name), [network.native_asset], where)
    for (const mode of [network.mainnet, network.local]) {
      if (!mode) continue
      if (network.family === 'evm') assert.ok(Number.isSafeInteger(mode.chain_id), where)
      if (network.family === 'utxo') {
        const params = mode.utxo
        assert.ok(params, where)
        for (const version of [params.p2pkh_version, params.p2sh_version]) assert.ok(version >= 0 && version < 256, where)
        assert.notEqual(params.p2pkh_version, params.p2sh_version, where)
        assert.ok(params.dust > 0 && params.min_fee_rate > 0 && params.coinbase_maturity > 0, where)
        assert.equal(params.script === 'p2wpkh', params.bech32_hrp !== null, where)
      }
      if (network.family === 'utxo' && network.ready) assert.match(mode.genesis ?? '', /^[0-9a-f]{64}$/, where)
      if (mode.explorer_transaction_url !== undefined) assert.match(mode.explorer_transaction_url, /^https:\/\/\S+\/$/, where)
    }
  }
})

test('no two networks share a chain id, so that no signature is valid on both', () => {
  for (const mode of ['mainnet', 'local'] as const) {
    const ids = file.networks.flatMap((network) => (network[mode]?.chain_id === undefined ? [] : [network[mode].chain_id]))
    assert.equal(new Set(ids).size, ids.length, mode)
  }
})

test('only EVM networks, whose addresses are the same everywhere, share a chain index', () => {
  const seen = new Map<number, string>()
  for (const network of file.networks) {
    const before = seen.get(network.chain_index)
    if (before !== undefined) assert.deepEqual([before, network.family], ['evm', 'evm'], `${network.code} shares index ${network.chain_index}`)
    seen.set(network.chain_index, network.family)
  }
})

test('assets are complete; contracts of EVM networks are in EIP-55', () => {
  for (const asset of file.assets) {
    const where = asset.asset_name
    assert.ok(Number.isInteger(asset.decimals) && asset.decimals >= 0 && asset.decimals <= 18, where)
    assert.ok(parseAmount(asset.min_withdrawal, asset.decimals) > 0n, where)
    assert.equal(typeof asset.requires_tag, 'boolean', where)
    if (asset.type === 'native') {
      assert.equal(asset.contract_address, undefined, where)
      continue
    }
    assert.equal(asset.asset_name, `${asset.ticker}_${asset.network}`, where)
    const evm = file.networks.find((network) => network.code === asset.network)?.family === 'evm'
    const contracts = Object.values(asset.contract_address ?? {})
    assert.ok(contracts.length > 0, where)
    if (evm) for (const contract of contracts) assert.equal(getAddress(contract), contract, where)
  }
  const mainnet = file.assets.flatMap((asset) => (asset.contract_address?.mainnet ? [`${asset.network} ${asset.contract_address.mainnet}`] : []))
  assert.equal(new Set(mainnet).size, mainnet.length, 'a contract stands twice')
})

test('only what is ready is loaded', () => {
  for (const mode of ['mainnet', 'local'] as const) {
    const registry = loadRegistry(mode)
    const ready = file.networks.filter((network) => network.ready && network[mode]).map((network) => network.code)
    assert.deepEqual(registry.networks.map((network) => network.code), ready)
    assert.ok(ready.includes('BTC') && ready.includes('ETH'))
    for (const network of registry.networks) {
      assert.equal(network.mode, mode)
      assert.ok(registry.assetsOf(network.code).some((asset) => asset.asset_name === network.native_asset), 'no native asset')
    }
    for (const asset of registry.assets) {
      const line = file.assets.find((each) => each.asset_name === asset.asset_name)
      assert.notEqual(line?.ready, false)
      assert.equal(registry.asset(asset.asset_name), asset)
      assert.equal(registry.networkOf(asset).code, asset.network)
      assert.equal(asset.type === 'token', asset.contract_address !== null)
      assert.ok(registry.asset(asset.fee_asset), 'the fee asset is loaded')
    }
    assert.equal(registry.asset('btc'), undefined)
    assert.equal(registry.asset('constructor'), undefined)
  }
})
