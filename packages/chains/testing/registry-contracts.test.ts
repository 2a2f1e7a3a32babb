// Payments to contracts of the registry are refused, because they would be lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, validateAddress } from '../src/index.ts'

const ORACLE = '0x420000000000000000000000000000000000000F'

test('refuses payments to any contract that the registry lists on its network, however written', () => {
  for (const mode of ['mainnet', 'local'] as const) {
    const registry = loadRegistry(mode)
    let refused = 0
    for (const asset of registry.assets) {
      for (const { contract_address: contract, asset_name } of registry.assetsOf(asset.network)) {
        if (contract === null) continue
        const spellings = contract.startsWith('0x')
          ? [contract, contract.toLowerCase()]
          : [contract]
        for (const text of spellings) {
          const checked = validateAddress(registry, asset.asset_name, text)
          assert.ok(!checked.valid, `${asset.asset_name} to ${asset_name}`)
          assert.match(
            checked.reason,
            asset_name === asset.asset_name ? /own contract/ : /is the contract of/,
          )
          refused++
        }
      }
    }
    assert.ok(refused > 100, `${refused} in ${mode}`)
  }
})

test('refuses the fee oracle of a roll-up on its own networks, and accepts it elsewhere', () => {
  const registry = loadRegistry('mainnet')
  for (const asset of ['BASE', 'USDC_BASE', 'OP_ETH', 'USDT0_OP_ETH']) {
    for (const text of [ORACLE, ORACLE.toLowerCase()])
      assert.equal(validateAddress(registry, asset, text).valid, false, `${asset} ${text}`)
  }
  assert.equal(validateAddress(registry, 'ETH', ORACLE).valid, true)
})

test('a token’s contract address on one network is a plain address on another network', () => {
  const registry = loadRegistry('mainnet')
  const contract = registry.asset('USDC_ETH')?.contract_address as string
  assert.deepEqual(validateAddress(registry, 'AVAX', contract), {
    valid: true,
    address: contract,
    address_tag: null,
  })
})
