import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { formatAmount } from '@custody/chains'
import { parseJson, stringifyJson } from '@custody/request-auth'
import * as fc from '../../../../../testing/property.ts'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { ApiError } from '../../core/errors.ts'
import type { Reply } from '../../core/http/endpoint.ts'
import { listWallets } from '../wallets/list-wallets.ts'
import { listCoins } from './list-coins.ts'
import { updateCoin } from './update-coin.ts'

/**
 * Tests that no transaction spends a frozen coin, and what a wallet with frozen coins can pay, with the
 * real choice of coins of each family and its local chain.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-frozen-coins-'))
let devnet: Devnet

const BTC: WalletAddress = {
  code: 'BTC',
  to: 'bcrt1q6z64a43mjgkcq0ul2znwneq3spghrlau9slefp',
  held: '1',
  amount: '0.5',
}
const PLACES: readonly WalletAddress[] = [
  BTC,
  { code: 'DASH', to: 'yNPbcFfabtNmmxKdGwhHomdYfVs6gikbPf', held: '1', amount: '0.5' },
  {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '100',
    amount: '50',
  },
]

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(place: WalletAddress, run: (fixture: FamilyFixture) => Promise<void>) {
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    await fixture.open()
    await run(fixture)
  } finally {
    await fixture.close()
  }
}

interface Coin {
  id: string
  amount: string
  hash: string
  height: string
  state: string
  frozen: boolean
  reason: string | null
  label: string | null
}

const bodyOf = ({ body }: Reply): unknown => plain(parseJson(stringifyJson(body)))
const contextOf = <Q, P, B>(fixture: FamilyFixture, query: Q, params: P, body: B) => ({
  caller: fixture.caller,
  signed: undefined as never,
  askedAt: clock.now(),
  query,
  params,
  body,
})

async function coinsOf(fixture: FamilyFixture, state?: 'reserved' | 'available'): Promise<Coin[]> {
  const query = { asset: fixture.place.code, limit: 100, state }
  const reply = await listCoins.handler(
    contextOf(fixture, query, undefined, undefined),
    fixture.services,
  )
  return (bodyOf(reply) as { data: Coin[] }).data
}

const change = async (fixture: FamilyFixture, id: string, body: { frozen?: boolean }) =>
  bodyOf(
    await updateCoin.handler(contextOf(fixture, undefined, { id }, body), fixture.services),
  ) as Coin

async function walletOf(fixture: FamilyFixture) {
  const query = { asset: fixture.place.code }
  const reply = await listWallets.handler(
    contextOf(fixture, query, undefined, undefined),
    fixture.services,
  )
  return (bodyOf(reply) as { balance: string; max_spendable: string | null }[])[0]!
}

/** Returns the coins that any transaction of the database spends, by their ids. */
async function spentCoins(fixture: FamilyFixture): Promise<Set<string>> {
  const rows = await fixture.database.query<{ unsigned: never }>(
    'select unsigned from chain_transactions',
  )
  const { coins } = fixture.services.networks.get(fixture.place.code)
  return new Set(
    rows
      .flatMap(({ unsigned }) => coins!.of(unsigned))
      .map(({ txid, vout }) => `${fixture.place.code}-${txid}-${vout}`),
  )
}

const refused = (request: Promise<unknown>, code: string, field: string) =>
  assert.rejects(request, (error) => {
    assert.ok(error instanceof ApiError, String(error))
    assert.deepEqual([error.code, error.field], [code, field], error.message)
    return true
  })

for (const place of PLACES) {
  test(`${place.code}: a frozen coin is not spent until it is unfrozen, and the ledger is unchanged`, () =>
    staged(place, async (fixture) => {
      await fixture.fund(place.held)
      const balance = await fixture.available()
      const [kept, other] = await coinsOf(fixture)
      assert.ok(kept && other)
      assert.deepEqual([kept.state, kept.frozen, kept.reason], ['available', false, null])
      const frozen = await change(fixture, kept.id, { frozen: true })
      assert.deepEqual([frozen.state, frozen.frozen], ['frozen', true])
      assert.match(frozen.reason ?? '', /unfrozen/)
      assert.equal(await fixture.available(), balance)
      assert.deepEqual(
        (await coinsOf(fixture, 'available')).map(({ id }) => id),
        [other.id],
      )

      const paid = await fixture.create('with the other coin')
      await fixture.runTo(paid, 'CONFIRMING')
      assert.deepEqual([...(await spentCoins(fixture))], [other.id])
      const [reserved] = await coinsOf(fixture, 'reserved')
      assert.equal(reserved?.id, other.id)
      assert.match(reserved.reason ?? '', new RegExp(paid))
      await refused(change(fixture, other.id, { frozen: true }), 'COIN_RESERVED', 'frozen')
      await fixture.run()

      // What is left without the frozen coin is less than a second payment.
      await refused(fixture.create('too much'), 'INSUFFICIENT_BALANCE', 'amount')
      await change(fixture, kept.id, { frozen: false })
      const second = await fixture.create('too much')
      await fixture.run()
      assert.equal((await fixture.read(second)).state, 'CONFIRMED')
      assert.ok((await spentCoins(fixture)).has(kept.id))
      await fixture.check()
    }))

  test(`${place.code}: a transfer whose coins are frozen before they are chosen waits, and continues`, () =>
    staged(place, async (fixture) => {
      const [coin] = await coinsOf(fixture)
      assert.ok(coin)
      const id = await fixture.create('waits')
      await change(fixture, coin.id, { frozen: true })
      let waited = false
      for (let round = 0; round < 20 && !waited; round++) {
        await fixture.turn()
        const { state, last_error: reason } = await fixture.read(id)
        waited = state === 'QUEUED' && /frozen/.test(reason ?? '')
      }
      assert.ok(waited, JSON.stringify(await fixture.read(id)))
      const turned = fixture.turnedMs
      await change(fixture, coin.id, { frozen: false })
      await fixture.step()
      assert.equal((await fixture.read(id)).state, 'SIGNING', 'it continues without waiting')
      assert.equal(fixture.turnedMs, turned)
      await fixture.run()
      assert.equal((await fixture.read(id)).state, 'CONFIRMED')
      await fixture.check()
    }))

  test(`${place.code}: one transfer can pay max_spendable, which leaves frozen coins out`, () =>
    staged(place, async (fixture) => {
      await fixture.fund(place.held)
      await fixture.fund(place.amount)
      const all = await walletOf(fixture)
      const [largest] = await coinsOf(fixture)
      await change(fixture, largest!.id, { frozen: true })
      const left = await walletOf(fixture)
      assert.equal(left.balance, all.balance, 'the balance contains frozen coins')
      assert.ok(Number(left.max_spendable) > 0)
      assert.ok(
        Number(left.max_spendable) <= Number(left.balance) - Number(largest!.amount),
        JSON.stringify([all, left, largest]),
      )
      const id = await fixture.create('all that is free', { amount: left.max_spendable })
      await fixture.run()
      const sent = await fixture.read(id)
      assert.equal(sent.state, 'CONFIRMED', JSON.stringify(sent))
      assert.ok(!(await spentCoins(fixture)).has(largest!.id))
      await fixture.check()
    }))

  test(`${place.code}: a coin that is removed and recorded again is still frozen`, () =>
    staged(place, async (fixture) => {
      const [coin] = await coinsOf(fixture)
      await change(fixture, coin!.id, { frozen: true })
      await fixture.database.query('delete from utxos')
      const chain = fixture.services.networks.client(place.code)
      const { height } = await chain.tip()
      await fixture.control({ command: 'reorg', depth: height - Number(coin!.height) + 1 })
      await fixture.scan()
      await fixture.run()
      await fixture.control({ command: 'mine', blocks: 5 })
      await fixture.scan()
      await fixture.run()
      const again = (await coinsOf(fixture)).find(({ id }) => id === coin!.id)
      assert.equal(again?.state, 'frozen', JSON.stringify(await coinsOf(fixture)))
    }))
}

test('BTC: a coin is either frozen or chosen, if both happen at the same time', () =>
  staged(BTC, async (fixture) => {
    for (let round = 0; round < 24; round++) {
      const coins = await coinsOf(fixture, 'available')
      const id = await fixture.create(`round ${round}`, { amount: '0.01' })
      while ((await fixture.read(id)).state !== 'QUEUED') assert.ok(await fixture.turn())
      const freeze = async (coin: Coin) => {
        for (let tick = 0; tick < round % 12; tick++) await fixture.database.one('select 1')
        return change(fixture, coin.id, { frozen: true }).catch((error: unknown) => {
          assert.equal(error instanceof ApiError && error.code, 'COIN_RESERVED', String(error))
          return null
        })
      }
      const [frozen] = await Promise.all([Promise.all(coins.map(freeze)), fixture.step()])
      const spent = await spentCoins(fixture)
      const kept = frozen.flatMap((coin) => coin ?? [])
      assert.deepEqual(
        kept.filter((coin) => spent.has(coin.id)),
        [],
      )
      for (const coin of kept) await change(fixture, coin.id, { frozen: false })
      await fixture.run()
    }
    await fixture.check()
  }))

test('BTC: a replacement with a higher fee adds no frozen coin', () =>
  staged({ ...BTC, amount: '0.9999' }, async (fixture) => {
    await fixture.control({ command: 'congestion', fee_rate: '60' })
    try {
      await fixture.fund('0.5')
      const id = await fixture.create('low', { fee_rate: '5' })
      await fixture.runTo(id, 'CONFIRMING')
      const [free] = await coinsOf(fixture, 'available')
      assert.equal(free?.amount, '0.5')
      await change(fixture, free.id, { frozen: true })
      // The first coin alone does not cover the amount and a fee at this rate.
      await fixture.speedUp(id, { fee_rate: '200' })
      const ended = () =>
        fixture.database.one<{ reason: string }>(
          `select reason from replacements where transaction_id = $1 and state = 'REFUSED'`,
          [id],
        )
      for (let round = 0; round < 20 && !(await ended()); round++) await fixture.turn()
      assert.match((await ended())?.reason ?? '', /do not cover the higher fee/)
      await change(fixture, free.id, { frozen: false })
      await fixture.speedUp(id, { fee_rate: '200' })
      await fixture.run()
      assert.ok((await spentCoins(fixture)).has(free.id), 'it is added when it is unfrozen')
      await fixture.check()
    } finally {
      await fixture.control({ command: 'congestion', fee_rate: '0' })
    }
  }))

for (const place of PLACES.filter(({ code }) => code !== 'DASH')) {
  test(`${place.code}: whatever is frozen is in no transaction that is built`, () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            kind: fc.constantFrom('fund', 'pay', 'pay', 'freeze', 'freeze', 'unfreeze'),
            share: fc.integer({ min: 2, max: 100 }),
          }),
          { minLength: 8, maxLength: 16 },
        ),
        (steps) =>
          staged(place, async (fixture) => {
            const frozen = new Set<string>()
            for (const [at, { kind, share }] of steps.entries()) {
              const amount = formatAmount(
                (fixture.amount * BigInt(share)) / 50n,
                fixture.asset.decimals,
              )
              const coins = await coinsOf(fixture)
              const coin = coins[share % Math.max(1, coins.length)]
              if (kind === 'fund') await fixture.fund(amount)
              else if (kind === 'pay') {
                const earlier = await spentCoins(fixture)
                await fixture.create(`step ${at}`, { amount }).catch((error: unknown) => {
                  assert.ok(error instanceof ApiError && error.status === 400, String(error))
                })
                await fixture.run()
                const spent = [...(await spentCoins(fixture))].filter((id) => !earlier.has(id))
                assert.deepEqual(
                  spent.filter((id) => frozen.has(id)),
                  [],
                )
              } else if (coin !== undefined) {
                await change(fixture, coin.id, { frozen: kind === 'freeze' })
                if (kind === 'freeze') frozen.add(coin.id)
                else frozen.delete(coin.id)
              }
              const wallet = await walletOf(fixture)
              assert.ok(Number(wallet.max_spendable) <= Number(wallet.balance))
            }
            for (const id of frozen) await change(fixture, id, { frozen: false })
            await fixture.run()
            await fixture.check()
          }),
      ),
      { numRuns: 15 },
    ))
}
