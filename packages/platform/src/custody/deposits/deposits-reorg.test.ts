import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FamilyName, traitsOf } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import {
  DEPTH,
  FAMILIES,
  useDatabase,
  DepositFixture,
  type Outcome,
  type ScriptedTransaction,
  type Tenant,
} from '../../../testing/deposits-support.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Tests that after any reorganisations, each customer has exactly the amounts that the final chain
 * pays to the customer's addresses. No deposit turns into another one, none is credited twice, and
 * none that is mined again is missed.
 */
const database = useDatabase()

async function openFixture(
  family: FamilyName,
): Promise<{ fixture: DepositFixture; alice: Tenant; bob: Tenant }> {
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  return { fixture, alice: await fixture.tenant('alice'), bob: await fixture.tenant('bob') }
}

test('a reorganisation that moves logs within a block never swaps the deposits of two customers', async () => {
  const { fixture, alice, bob } = await openFixture('evm')
  const usdt = {
    position: 0,
    asset: 'USDT_ETH',
    address: alice.deposit,
    amount: 1_000_000_000_000n,
  }
  const usdc = { position: 1, asset: 'USDC_ETH', address: bob.deposit, amount: 7n }
  fixture.chain.mine({ txid: '0xboth', outcome: [usdt, usdc] })
  await fixture.settle()
  fixture.chain.drop(1)
  fixture.chain.mine({
    txid: '0xboth',
    outcome: [
      { ...usdc, position: 0 },
      { ...usdt, position: 1 },
    ],
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: '1000000000000' })
  assert.deepEqual(await fixture.books(bob), { USDC_ETH: '7' })
})

test('a transaction with another result after a reorganisation creates a new deposit', async () => {
  const { fixture, alice, bob } = await openFixture('evm')
  fixture.chain.mine({
    txid: '0xswap',
    outcome: [{ position: 4, asset: 'USDT_ETH', address: alice.deposit, amount: 1_000_000n }],
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: '1000000' })
  fixture.chain.drop(DEPTH + 1)
  fixture.chain.mine({
    txid: '0xswap',
    outcome: [{ position: 4, asset: 'USDC_ETH', address: bob.deposit, amount: 1_000_000n }],
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.books(alice), await fixture.books(bob)],
    [{}, { USDC_ETH: '1000000' }],
  )
  const rows = await fixture.deposits()
  assert.deepEqual(
    rows.map(({ state, asset, workspace_id: owner, destination_id: to }) => [
      state,
      asset,
      owner,
      to,
    ]),
    [
      ['REORGED', 'USDT_ETH', alice.workspace, alice.deposit],
      ['CREDITED', 'USDC_ETH', bob.workspace, bob.deposit],
    ],
  )
})

test('identical payments of one transaction stay the same deposits when their logs move', async () => {
  const { fixture, alice } = await openFixture('evm')
  const paid = { asset: 'USDT_ETH', address: alice.deposit, amount: 5n }
  const mine = (...amounts: [position: number, amount: bigint][]) => {
    fixture.chain.mine({
      txid: '0xequal',
      outcome: amounts.map(([position, amount]) => ({ ...paid, position, amount })),
    })
    fixture.chain.bury()
  }
  mine([41, 5n], [42, 5n], [43, 6n])
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: '16' })
  const ids = (await fixture.deposits()).map(({ id }) => id).sort()
  fixture.chain.drop(DEPTH + 1)
  mine([0, 6n], [1, 5n], [2, 5n])
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: '16' })
  assert.deepEqual((await fixture.deposits()).map(({ id }) => id).sort(), ids)
})

test('a UTXO of a removed block cannot be spent, and returns to its own wallet when mined again', async () => {
  const { fixture, alice } = await openFixture('utxo')
  const coin = { position: 0, asset: 'BTC', address: alice.deposit, amount: 700n }
  fixture.chain.mine({ txid: 'coin', outcome: [coin] })
  fixture.chain.bury()
  await fixture.settle()
  const coins = () =>
    database
      .get()
      .query('select address, wallet_id, value::text, spendable, block_height::text from utxos')
  const spendable = {
    address: alice.deposit,
    wallet_id: alice.wallets['BTC'],
    value: '700',
    spendable: true,
    block_height: '1',
  }
  assert.deepEqual(await coins(), [spendable])
  fixture.chain.drop(DEPTH + 1)
  for (let count = 0; count < DEPTH + 2; count++) fixture.chain.mine()
  await fixture.settle()
  assert.deepEqual(await coins(), [{ ...spendable, spendable: false, block_height: null }])
  const { height } = fixture.chain.mine({ txid: 'coin', outcome: [coin] })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await coins(), [{ ...spendable, block_height: String(height) }])
})

test('a UTXO that a node later reports for another customer is removed from the first wallet', async () => {
  const { fixture, alice, bob } = await openFixture('utxo')
  fixture.chain.mine({
    txid: 'lie',
    outcome: [{ position: 0, asset: 'BTC', address: alice.deposit, amount: 700n }],
  })
  await fixture.settle()
  fixture.chain.drop(1)
  fixture.chain.mine({
    txid: 'lie',
    outcome: [{ position: 0, asset: 'BTC', address: bob.deposit, amount: 900n }],
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual([await fixture.books(alice), await fixture.books(bob)], [{}, { BTC: '900' }])
  assert.deepEqual(
    await database.get().query('select address, wallet_id, value::text, spendable from utxos'),
    [{ address: bob.deposit, wallet_id: bob.wallets['BTC'], value: '900', spendable: true }],
  )
})

/** A payment of a random transaction: receiver, amount and, on chains with tags, the tag. */
interface Payment {
  to: number
  asset: number
  amount: number
  tag: number
}
type Command = { mine: Random[] } | { drop: number; mine: Random[][] } | 'settle'
interface Random {
  id: number
  payments: Payment[]
  noise: number
}

const payment: fc.Arbitrary<Payment> = fc.record({
  to: fc.nat(5),
  asset: fc.nat(2),
  amount: fc.integer({ min: 1, max: 3 }),
  tag: fc.nat(2),
})
const transaction: fc.Arbitrary<Random> = fc.record({
  id: fc.nat(6),
  payments: fc.array(payment, { minLength: 1, maxLength: 4 }),
  noise: fc.nat(2),
})
const transactions = fc.array(transaction, { maxLength: 3 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: transactions.map((mine) => ({ mine })) },
  {
    weight: 3,
    arbitrary: fc.record({
      drop: fc.integer({ min: 1, max: 5 }),
      mine: fc.array(transactions, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant('settle' as const) },
)

/** Assigns positions to transfers as the client of each family does. */
class Positions {
  #inBlock = 0
  readonly #family: FamilyName

  constructor(family: FamilyName) {
    this.#family = family
  }

  newBlock(): void {
    this.#inBlock = 0
  }

  place(fixture: DepositFixture, tenants: readonly Tenant[], { payments, noise }: Random): Outcome {
    this.#inBlock += noise
    let rank = 0
    let isPaid = false
    return payments.flatMap(({ to, asset, amount, tag }): Outcome => {
      const tenant = tenants[to % 3]
      const name = fixture.assets[asset % fixture.assets.length] as string
      const tagged = traitsOf(fixture.network).deposits === 'tagged'
      const address = tenant ? (to < 3 || tagged ? tenant.omnibus : tenant.deposit) : 'a-stranger'
      const paid = {
        asset: name,
        address,
        amount: BigInt(amount),
        ...(tagged ? { tag: [null, '1', '99'][tag] as string | null } : {}),
      }
      if (this.#family === 'evm' || this.#family === 'tron') {
        // A transaction has at most one movement of the native coin and any number of logs. Logs
        // are counted per block or per transaction.
        if (name !== fixture.network.native_asset)
          return [{ ...paid, position: this.#family === 'evm' ? this.#inBlock++ : rank++ }]
        if (isPaid) return []
        isPaid = true
        return [{ ...paid, position: -1 }]
      }
      if (this.#family === 'xrp' && rank > 0) return []
      return [{ ...paid, position: rank++ }]
    })
  }
}

/**
 * Families whose transaction ids commit to the payments, so a transaction always has the same
 * outcome.
 */
const FIXED = new Set<FamilyName>(['utxo', 'cardano'])

for (const family of Object.keys(FAMILIES) as FamilyName[]) {
  test(`${family}: after any reorganisations, customer balances equal their payments on chain`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 2, maxLength: 12 }), async (commands) => {
        const { fixture, alice, bob } = await openFixture(family)
        const positions = new Positions(family)
        const fixed = new Map<number, Outcome>()
        const mine = (randoms: readonly Random[]) => {
          positions.newBlock()
          const chosen: ScriptedTransaction[] = []
          for (const random of randoms) {
            const txid = `tx${random.id}`
            if (fixture.chain.has(txid) || chosen.some((each) => each.txid === txid)) continue
            const placed = positions.place(fixture, [alice, bob], random)
            const outcome = FIXED.has(family) ? (fixed.get(random.id) ?? placed) : placed
            fixed.set(random.id, outcome)
            chosen.push({ txid, outcome })
          }
          fixture.chain.mine(...chosen)
        }
        for (const each of commands) {
          if (each === 'settle') await fixture.settle()
          else {
            if ('drop' in each) {
              fixture.chain.drop(each.drop)
              for (const block of each.mine) mine(block)
            } else mine(each.mine)
          }
        }
        // The final branch is longer than every earlier one.
        for (let count = 0; count < 8; count++) fixture.chain.mine()
        await fixture.settle()
        await check(fixture, [alice, bob])
      }),
      { numRuns: Number(process.env['CUSTODY_TEST_RUNS'] ?? 15) },
    )
  })
}

/** Compares the ledger, the deposits and the coins with the final chain. */
async function check(fixture: DepositFixture, tenants: readonly Tenant[]): Promise<void> {
  const paid = fixture.chain.blocks.flatMap(({ transfers }) => transfers)
  for (const tenant of tenants) {
    const mine = paid.filter(
      ({ address }) => address === tenant.omnibus || address === tenant.deposit,
    )
    const due: Record<string, string> = {}
    for (const asset of [...fixture.assets].sort()) {
      const sum = mine
        .filter((each) => each.asset === asset)
        .reduce((total, { amount }) => total + amount, 0n)
      if (sum > 0n) due[asset] = sum.toString()
    }
    assert.deepEqual(await fixture.books(tenant), due)
    const show = (
      txid: string | null,
      asset: string,
      address: string | null,
      amount: bigint | string,
      tag: string | null | undefined,
    ) => [txid, asset, address, String(amount), tag ?? '-'].join(' ')
    const credited = (await fixture.deposits()).filter(
      ({ status, state, workspace_id: owner }) =>
        (status === 'confirmed' || state === 'SUSPENSE') && owner === tenant.workspace,
    )
    assert.deepEqual(
      credited
        .map((row) => show(row.hash, row.asset, row.destination_id, row.amount, row.address_tag))
        .sort(),
      mine.map((each) => show(each.txid, each.asset, each.address, each.amount, each.tag)).sort(),
    )
    if (traitsOf(fixture.network).deposits !== 'spendable') continue
    const coins = await fixture.database.query<{ coin: string }>(
      `select txid || ':' || vout || ' ' || address || ' ' || value coin from utxos
        where wallet_id = any($1) and spendable order by 1`,
      [Object.values(tenant.wallets)],
    )
    assert.deepEqual(
      coins.map(({ coin }) => coin).sort(),
      mine
        .map(({ txid, position, address, amount }) => `${txid}:${position} ${address} ${amount}`)
        .sort(),
    )
  }
}

testEmittedEvents(database.get, ['deposit.detected', 'deposit.confirmed', 'deposit.reverted'])
