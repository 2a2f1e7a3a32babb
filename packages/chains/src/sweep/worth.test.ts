import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAmount } from '../amount.ts'
import { loadRegistry } from '../registry.ts'
import { isBeyondWorth } from './worth.ts'

for (const mode of ['mainnet', 'local'] as const)
  test(`${mode}: a sweep of the smallest amount of any asset is not worth any network's usual fee`, () => {
    const registry = loadRegistry(mode)
    for (const asset of registry.assets) {
      const native = registry.asset(asset.fee_asset)!
      // A ten-thousandth of a dollar at the usual price.
      const price = parseAmount(registry.coins[native.ticker]!.local_price, 12)
      const fee = 10n ** BigInt(native.decimals + 8) / price
      assert.ok(isBeyondWorth(registry, asset, 1n, fee > 1n ? fee : 2n), asset.asset_name)
    }
  })

test('a sweep of more than its fee at the usual prices is always worth it', () => {
  const registry = loadRegistry('mainnet')
  for (const asset of registry.assets) {
    const native = registry.asset(asset.fee_asset)!
    const price = (of: typeof asset) => parseAmount(registry.coins[of.ticker]!.local_price, 12)
    // Twenty dollars, and a fee of the same value.
    const amountOf = (of: typeof asset) => (20n * 10n ** BigInt(of.decimals + 12)) / price(of)
    assert.ok(!isBeyondWorth(registry, asset, amountOf(asset), amountOf(native)), asset.asset_name)
  }
})

test('the bounds are exact', () => {
  const registry = loadRegistry('mainnet')
  const usdc = registry.asset('USDC_SOL')!
  // 1 USDC is worth 2 USD at most, and 1 SOL 8 USD at least.
  assert.equal(isBeyondWorth(registry, usdc, 1_000_000n, 250_000_000n), false)
  assert.equal(isBeyondWorth(registry, usdc, 1_000_000n, 250_000_001n), true)
  // The account that an account creation pays for costs 0.00204 SOL.
  assert.equal(isBeyondWorth(registry, usdc, 1n, 2_044_280n), true)
})
