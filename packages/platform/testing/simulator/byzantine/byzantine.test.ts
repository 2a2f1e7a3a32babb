import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '../seeded-random.ts'
import { ATTACKS, type Attack } from './attacks.ts'
import { Chain } from './chain.ts'
import { ClusterKeys } from './cluster-keys.ts'
import type { HonestNode } from './honest-node.ts'
import { Oracle } from './oracle.ts'
import { playByzantine } from './play.ts'
import type { Platform } from './platform.ts'
import { Signatures } from './signatures.ts'
import { VirtualClock } from './virtual-clock.ts'
import { amountOf, Wallets } from './wallets.ts'

/** Attacks whose effect is found soon under a policy only. */
const GOVERNED: readonly Attack[] = ['replay', 'policy-position']
/** Runs with cancellations, in which voids of two nodes did not suffice. */
const CANCELLED = [11, 25, 35]

/** Returns the problem of a run in which the hostile node makes one attack at every opportunity. */
async function problemOf(
  seed: number,
  attack: Attack,
  hasCancellations = false,
): Promise<string | null> {
  const isGoverned = GOVERNED.includes(attack)
  const options = { attacks: [attack], hasAllAttacks: true, isGoverned, hasCancellations }
  return (await playByzantine(seed, null, options)).failure
}

for (const attack of ATTACKS)
  test(`nodes and platform withstand the attack "${attack}" of a hostile node`, async () => {
    for (let seed = 1; seed <= 4; seed++)
      assert.equal(await problemOf(seed, attack), null, `seed ${seed}`)
  })

test('no cancelled transfer can still be published by a hostile node', async () => {
  for (const seed of CANCELLED)
    assert.equal(await problemOf(seed, 'false-voids', true), null, `seed ${seed}`)
})

test('gives the same run for the same seed', async () => {
  const options = { attacks: ATTACKS, hasCancellations: true }
  for (const seed of [1, 2]) {
    const first = await playByzantine(seed, null, options)
    const again = await playByzantine(seed, null, options)
    assert.deepEqual(again.log, first.log, `seed ${seed}`)
    assert.equal(again.events, first.events)
    assert.deepEqual((await playByzantine(seed, first.draws, options)).log, first.log)
  }
})

/** Returns an oracle with transactions that are signed, and transfers in given states. */
function fixture({ isPlatformHostile = false, orders = 0 } = {}) {
  const keys = new ClusterKeys(1)
  const clock = new VirtualClock(Date.UTC(2030, 0, 1))
  const chain = new Chain(clock, new SeededRandom(1))
  const signatures = new Signatures(keys, () => clock.nowMs)
  const transfers: object[] = []
  const sweeps: object[] = []
  const honest: HonestNode[] = [2, 3].map((node) => ({ node, name: `node ${node}` }) as HonestNode)
  const platform = { transfers, sweeps, orders } as unknown as Platform
  const oracle = new Oracle({ signatures, chain, platform, honest, isPlatformHostile }, () => 0)
  const wallets = new Wallets(keys)
  const coin = () => {
    const made = wallets.coin()
    chain.addCoin(made.outpoint)
    return made
  }
  const signed = (place: Parameters<Wallets['pay']>[2], signers: readonly number[] = []) => {
    const code = place.nonce === null ? 'BTC' : 'ETH'
    const known = signatures.note(wallets.pay(code, amountOf[code], place), 'transfer 1')
    known.signedAtMs = clock.nowMs
    for (const node of signers) known.signers.add(node)
    return known
  }
  const found = () => {
    oracle.checkSafety()
    return oracle.problems.map(({ text }) => text)
  }
  return { oracle, honest, transfers, sweeps, coin, invented: () => wallets.coin(), signed, found }
}
const withCoins = (...coins: ReturnType<Wallets['coin']>[]) => ({
  nonce: null,
  coins,
  validUntil: null,
})
const withNonce = (nonce: bigint) => ({ nonce, coins: [], validUntil: null })

test('the oracle finds two transactions of a payment that do not exclude each other', () => {
  const coins = fixture()
  coins.signed(withCoins(coins.coin()))
  coins.signed(withCoins(coins.coin()))
  assert.deepEqual(coins.found(), ['two transactions of transfer 1 can both confirm'])
  const nonces = fixture()
  nonces.signed(withNonce(0n))
  nonces.signed(withNonce(1n))
  assert.deepEqual(nonces.found(), ['two transactions of transfer 1 can both confirm'])
})

test('the oracle accepts transactions that share an input, or that spend an invented one', () => {
  const { coin, invented, signed, found } = fixture()
  const shared = coin()
  signed(withCoins(shared))
  signed(withCoins(shared, coin()))
  signed(withCoins(invented()))
  assert.deepEqual(found(), [])
})

test('with a hostile platform, each honest node may sign one transaction of a payment', () => {
  const { coin, signed, found } = fixture({ isPlatformHostile: true })
  signed(withCoins(coin()), [1, 2])
  signed(withCoins(coin()), [1, 3])
  assert.deepEqual(found(), [])
  signed(withCoins(coin()), [2, 3])
  assert.deepEqual(found(), [
    'node 2 signed two transactions of transfer 1 that can both confirm',
    'node 3 signed two transactions of transfer 1 that can both confirm',
  ])
})

test('the oracle finds a failed payment that can still confirm', () => {
  const { coin, signed, found, transfers } = fixture()
  transfers.push({ name: 'transfer 1', state: 'FAILED', attempts: [] })
  assert.deepEqual(found(), [])
  signed(withCoins(coin()))
  assert.deepEqual(found(), ['transfer 1 is FAILED, and can still confirm'])
})

test('the oracle finds payments and sweeps that do not end, or fail without a cause', () => {
  const { oracle, transfers, sweeps } = fixture()
  const transfer = (name: string, state: string) =>
    transfers.push({ name, state, attempts: [], reason: 'refused', lastError: 'refused' })
  transfer('transfer 1', 'CONFIRMED')
  transfer('transfer 2', 'FAILED')
  transfer('transfer 3', 'SIGNING')
  sweeps.push({ name: 'sweep 1', isSigned: false, lastError: 'BUDGET' })
  oracle.checkLiveness()
  assert.deepEqual(
    oracle.problems.map(({ text }) => text),
    [
      'transfer 2 failed without a cause: refused',
      'transfer 3 does not end: SIGNING, refused',
      'sweep 1 is not signed: BUDGET',
    ],
  )
})

test('the oracle compares the size of a record with the orders of the platform', () => {
  const { oracle, honest } = fixture({ orders: 10 })
  const entriesOf = (height: number) => {
    const database = { prepare: () => ({ get: () => ({ bytes: height * 500 }) }) }
    honest.splice(0, 2, {
      name: 'node 2',
      process: {},
      store: { record: { height, database }, state: { steps: new Map() } },
    } as unknown as HonestNode)
  }
  entriesOf(130)
  oracle.checkGrowth(10)
  assert.deepEqual(oracle.problems, [])
  entriesOf(150)
  oracle.checkGrowth(10)
  assert.deepEqual(
    oracle.problems.map(({ text }) => text),
    ['the record of node 2 has 150 entries, and 10 orders explain 140'],
  )
})
