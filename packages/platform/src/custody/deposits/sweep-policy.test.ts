import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAmount, type FamilyName } from '@custody/chains'
import { sweepKind } from './sweep-kind.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { PRICE_DECIMALS } from '../prices/decimals.ts'
import { sweepRules } from '../../core/settings/sweep-rules.ts'
import { FAMILIES, useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'

/**
 * Tests of sweeps of dust. Anyone can send dust of a token to a deposit address, and its sweep
 * would cost the customer's coins or the gas tank's.
 */
const database = useDatabase()
interface Price {
  price: bigint
  stale: boolean
}
const usd = (text: string): bigint => parseAmount(text, PRICE_DECIMALS)

/** Returns whether a sweep of a token at a deposit address runs, and the reason if not. */
async function sweepOf(
  family: FamilyName,
  amount: bigint,
  cost: bigint,
  prices: { native?: Price; token?: Price },
  min?: bigint,
): Promise<string | null> {
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  const [native, token] = (FAMILIES[family] as { assets: string[] }).assets as [string, string]
  const rules = sweepRules(
    'mainnet',
    undefined,
    min === undefined ? {} : { [`asset:${token}`]: { cost_multiple: null, min_amount: min } },
  )
  const price = (coin: string) =>
    prices[coin === fixture.services.registry.asset(native)?.ticker ? 'native' : 'token'] ?? null
  Object.assign(fixture.services, { prices: { price } })
  Object.assign(fixture.services.settings, { sweep: rules })
  const alice = await fixture.tenant('alice')
  fixture.chain.mine({
    txid: 'dust',
    outcome: [{ position: 0, asset: token, address: alice.deposit, amount }],
  })
  fixture.chain.bury()
  await fixture.settle()
  const row = await fixture.database.one<TransactionRow<'SWEEP'>>(
    `update transactions set lease_token = gen_random_uuid() where kind = 'SWEEP' and asset = $1
      returning *`,
    [token],
  )
  assert.ok(row, 'the deposit queued a sweep')
  const waits = await sweepKind(fixture.services).postpones?.(
    row,
    fixture.services.networks.get(fixture.network.code),
    { amount, cost, own: false },
  )
  const after = await fixture.database.one<TransactionRow>(
    'select * from transactions where id = $1',
    [row.id],
  )
  assert.equal(after?.waiting?.code ?? null, waits ? 'SWEEP_COST' : null)
  return waits ? String(after?.last_error) : null
}

const PRICES = {
  native: { price: usd('150'), stale: false },
  token: { price: usd('1'), stale: false },
}
const STALE = { native: { ...PRICES.native, stale: true }, token: { ...PRICES.token, stale: true } }

for (const family of ['solana', 'evm', 'tron'] as const) {
  test(`${family}: attack: a token's dust is never swept at a customer's cost, whatever the prices`, async () => {
    const [native, token] = (FAMILIES[family] as { assets: string[] }).assets as [string, string]
    const { registry } = new DepositFixture(database.get(), family).services
    const [coin, one] = [native, token].map(
      (name) => 10n ** BigInt(registry.asset(name)?.decimals ?? 0),
    ) as [bigint, bigint]
    // The cost is 0.01 of the coin, at a price of 1.50 USD.
    const cost = coin / 100n
    for (const prices of [PRICES, STALE]) {
      assert.match(
        (await sweepOf(family, one * 3n, cost, prices)) ?? '',
        /are worth less than 2 times the network fee/,
      )
      assert.equal(await sweepOf(family, one * 3n + 1n, cost, prices), null)
    }
    for (const prices of [{}, { native: PRICES.native }, { token: PRICES.token }]) {
      assert.match(
        (await sweepOf(family, one - 1n, cost, prices)) ?? '',
        /^waits: (without prices .* are less than the minimum sweep of 1 |.* cannot be worth )/,
      )
      assert.equal(await sweepOf(family, one, cost, prices), null)
    }
    assert.match(
      (await sweepOf(family, one * 4n, cost, {}, one * 5n)) ?? '',
      /less than the minimum sweep of 5 /,
    )
    assert.equal(
      await sweepOf(family, one / 10n, cost / 100n, {}, one / 10n),
      null,
      'the operator names another minimum',
    )
  })
}
