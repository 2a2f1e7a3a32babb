import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAmount } from '@custody/chains'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { ApiError } from '../../core/errors.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { readTransaction } from './read-transaction.ts'

/**
 * Tests of speed-up, cancellation and the automatic fee increase, on chains whose blocks include
 * only transactions with a sufficient fee.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-replacements-'))
let devnet: Devnet

const BTC: WalletAddress = {
  code: 'BTC',
  to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  held: '2',
  amount: '0.1',
}
const ETH: WalletAddress = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000b1',
  held: '5',
  amount: '1',
}
const DASH: WalletAddress = {
  code: 'DASH',
  to: 'yWziQMcwmKjRdzi7eWjwiQX8EjWcd6dSg6',
  held: '5',
  amount: '1',
}
const BUMP_AFTER_MS = 60_000

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(
  place: WalletAddress,
  play: (fixture: FamilyFixture) => Promise<void>,
): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    await fixture.open()
    await play(fixture)
    await fixture.check()
  } finally {
    await congest(fixture, '0')
    await fixture.close()
  }
}

const congest = (fixture: FamilyFixture, rate: string) =>
  fixture.control({ command: 'congestion', fee_rate: rate })

/** Returns a transfer as the API returns it. */
async function shown(fixture: FamilyFixture, id: string) {
  const { body } = await readTransaction.handler(
    {
      caller: fixture.caller,
      body: undefined,
      query: undefined,
      params: { id },
      signed: undefined as never,
      askedAt: clock.now(),
    },
    fixture.services,
  )
  return plain(parseJson(stringifyJson(body))) as {
    status: string
    sub_status: string
    hash: string | null
    failure_reason: string | null
    replacements?: { kind: string; state: string; reason: string | null }[]
  }
}

/** Creates a transfer with a low fee rate, and returns it when it waits for a block. */
async function waiting(fixture: FamilyFixture, sequence: string, more: Record<string, unknown>) {
  const id = await fixture.create(sequence, more)
  await fixture.runTo(id, 'CONFIRMING')
  const { hash } = await fixture.read(id)
  assert.notEqual(hash, null)
  return { id, hash }
}

const refused = (request: Promise<unknown>, code: string, status: number, message = /./) =>
  assert.rejects(request, (error) => {
    assert.ok(error instanceof ApiError, String(error))
    assert.deepEqual([error.code, error.status], [code, status], error.message)
    assert.match(error.message, message)
    return true
  })

test('Bitcoin: a transfer with too low a fee waits, and is mined after a speed-up', () =>
  staged(BTC, async (fixture) => {
    const before = await fixture.available()
    await congest(fixture, '60')
    const low = await waiting(fixture, 'low', { fee_rate: '5' })
    await refused(
      fixture.speedUp(low.id, { fee_rate: '5.5' }),
      'INVALID_REQUEST',
      400,
      /^fee_rate: /,
    )
    await refused(
      fixture.speedUp(low.id, { fee_rate: '70', fee_level: 'high' }),
      'INVALID_REQUEST',
      400,
      /^fee_level: /,
    )
    await fixture.speedUp(low.id, { fee_rate: '70' })
    await fixture.run()
    const done = await fixture.read(low.id)
    assert.deepEqual([done.status, done.failure_reason], ['confirmed', null])
    assert.notEqual(done.hash, low.hash)
    assert.equal(await fixture.onChain(low.id), 1)
    assert.equal(
      (await fixture.services.networks.client('BTC').status(low.hash as string)).state,
      'absent',
    )
    assert.equal(before - (await fixture.available()), fixture.amount + BigInt(done.fee as string))
    assert.deepEqual(
      (await shown(fixture, low.id)).replacements?.map(({ kind, state }) => [kind, state]),
      [['speed-up', 'done']],
    )
    await refused(fixture.speedUp(low.id, {}), 'TRANSACTION_FINAL', 400)
  }))

test('Bitcoin: a cancelled transfer returns its inputs, and its change can be spent again', () =>
  staged(BTC, async (fixture) => {
    const before = await fixture.available()
    await congest(fixture, '60')
    const low = await waiting(fixture, 'low', { amount: '0.2', fee_rate: '5' })
    await fixture.cancel(low.id)
    await fixture.cancel(low.id)
    await fixture.run()
    const done = await fixture.read(low.id)
    assert.deepEqual([done.status, done.state], ['failed', 'CANCELLED'])
    assert.match(done.failure_reason ?? '', /cancelled/)
    assert.equal(before - (await fixture.available()), BigInt(done.fee as string))
    assert.deepEqual(
      (await shown(fixture, low.id)).replacements?.map(({ kind, state }) => [kind, state]),
      [['cancel', 'done']],
      'two requests are one cancellation',
    )
    await congest(fixture, '0')
    const next = await fixture.create('next', { amount: '1' })
    await fixture.run()
    assert.equal((await fixture.read(next)).status, 'confirmed')
  }))

test('refuses to replace a transfer whose change is spent, and lets the later one pay for both', () =>
  staged(BTC, async (fixture) => {
    await congest(fixture, '60')
    const first = await waiting(fixture, 'first', { amount: '0.01', fee_rate: '5' })
    const second = await waiting(fixture, 'second', { amount: '0.01', fee_rate: '6' })
    for (const request of [() => fixture.speedUp(first.id, {}), () => fixture.cancel(first.id)])
      await refused(request(), 'NOT_REPLACEABLE', 400, new RegExp(second.id))
    await congest(fixture, '0')
    await fixture.run()
    for (const { id } of [first, second]) assert.equal((await fixture.read(id)).status, 'confirmed')
  }))

test('the platform speeds up a waiting transfer automatically, up to the caller’s own rate', () =>
  staged(BTC, async (fixture) => {
    Object.assign(fixture.services.settings, { feeBumpAfterMs: BUMP_AFTER_MS })
    await congest(fixture, '60')
    const low = await waiting(fixture, 'own rate', { amount: '0.03', fee_rate: '59' })
    const isRefused = async () =>
      (await shown(fixture, low.id)).replacements?.some(({ state }) => state === 'refused')
    for (let turns = 0; !(await isRefused()); turns++) {
      assert.ok(turns < 100, 'no increase was attempted')
      clock.advance(BUMP_AFTER_MS)
      await fixture.turn()
    }
    const { hash, replacements } = await shown(fixture, low.id)
    assert.equal(hash, low.hash)
    for (const { kind, state, reason } of replacements ?? [])
      assert.deepEqual(
        [kind, state, reason],
        ['automatic', 'refused', 'the fee_rate of the transfer allows no higher fee'],
      )
    await congest(fixture, '0')
    await fixture.run()
    assert.equal((await fixture.read(low.id)).status, 'confirmed')

    // The fee is fixed at a low market price; then the price rises.
    clock.advance(BUMP_AFTER_MS)
    await fixture.control({ command: 'fault', mode: 'reject' })
    const id = await fixture.create('market rate', { amount: '0.03', fee_level: 'low' })
    await fixture.runTo(id, 'BROADCASTING')
    const signed = (await fixture.read(id)).hash
    assert.notEqual(signed, null)
    await congest(fixture, '60')
    await fixture.control({ command: 'fault', mode: 'heal' })
    for (let turns = 0; (await fixture.read(id)).hash === signed; turns++) {
      assert.ok(turns < 100, 'the fee was not increased')
      clock.advance(BUMP_AFTER_MS)
      await fixture.turn()
    }
    await fixture.run()
    const done = await fixture.read(id)
    assert.deepEqual([done.status, done.failure_reason], ['confirmed', null])
    assert.notEqual(done.hash, signed)
    const increases = (await shown(fixture, id)).replacements ?? []
    assert.ok(
      increases.length > 0 &&
        increases.every(({ kind, state }) => kind === 'automatic' && state === 'done'),
      JSON.stringify(increases),
    )
  }))

test('Ethereum: speeds up one token transfer and cancels another transfer, and both nonces are used', () =>
  staged(ETH, async (fixture) => {
    const address = await fixture.openWallet('USDT_ETH')
    await fixture.control({ command: 'fund', asset: 'USDT_ETH', address, amount: '1000' })
    await fixture.scan()
    await fixture.run()
    const tokens = async () =>
      (
        await database.get().one<{ balance: string }>(
          `select sum(balance)::text balance from ledger_accounts where asset = 'USDT_ETH'
             and kind = 'available' and wallet_id is not null`,
        )
      )?.balance
    assert.equal(await tokens(), '1000000000')
    await congest(fixture, '40')
    const low = await waiting(fixture, 'tokens', {
      asset: 'USDT_ETH',
      amount: '10',
      fee_rate: '20',
    })
    await refused(
      fixture.speedUp(low.id, { fee_rate: '21.9' }),
      'INVALID_REQUEST',
      400,
      /at least 22 GWei/,
    )
    await fixture.speedUp(low.id, { fee_rate: '90' })
    await fixture.run()
    const done = await fixture.read(low.id)
    assert.deepEqual([done.status, done.failure_reason], ['confirmed', null])
    assert.notEqual(done.hash, low.hash)
    assert.equal(await tokens(), '990000000')

    const coins = await fixture.available()
    const native = await waiting(fixture, 'coins', { amount: '1.5', fee_rate: '20' })
    await fixture.cancel(native.id)
    await fixture.run()
    const ended = await fixture.read(native.id)
    assert.deepEqual(
      [ended.status, ended.state],
      ['failed', 'CANCELLED'],
      `${ended.failure_reason}`,
    )
    assert.equal(await fixture.available(), coins, 'the tank paid the fee of the cancellation')
    await congest(fixture, '0')
    const next = await fixture.create('next')
    await fixture.run()
    assert.equal((await fixture.read(next)).status, 'confirmed')
    assert.equal(coins - (await fixture.available()), parseAmount('1', 18))
  }))

test('an unsigned transfer is cancelled at no cost while the chain is unreachable', () =>
  staged(ETH, async (fixture) => {
    const before = await fixture.available()
    await fixture.control({ command: 'fault', mode: 'down' })
    const id = await fixture.create('unsigned', { amount: '0.5' })
    await fixture.cancel(id)
    for (let turns = 0; (await fixture.read(id)).status === 'pending'; turns++) {
      assert.ok(turns < 400, 'it does not end')
      await fixture.turn()
    }
    const { status, sub_status: state, hash } = await shown(fixture, id)
    assert.deepEqual([status, hash, state], ['failed', null, 'CANCELLED'])
    assert.equal(await fixture.available(), before)
    await fixture.control({ command: 'fault', mode: 'heal' })
  }))

test('a signed transfer cannot be replaced on a chain without replacement', () =>
  staged(DASH, async (fixture) => {
    await congest(fixture, '90')
    const { id } = await waiting(fixture, 'dash', { fee_rate: '5' })
    for (const request of [() => fixture.speedUp(id, {}), () => fixture.cancel(id)])
      await refused(request(), 'NOT_REPLACEABLE', 400)
    await congest(fixture, '0')
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
  }))
