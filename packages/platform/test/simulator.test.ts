import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eth, SINK_ETH } from '../../signer/test/house.ts'
import { Chance } from './simulator/chance.ts'
import { read, Signatures } from './simulator/hostile/oracle.ts'
import { playHostile } from './simulator/hostile/play.ts'
import { People, SINKS } from './simulator/hostile/requests.ts'
import { shrink } from './simulator/shrink.ts'

/** What the simulator itself rests on: an oracle that sees, draws that replay, and a shrinker that keeps what fails. */
const NO_COINS = new Map<string, bigint>()
async function aWish() {
  const people = new People(1, new Chance(1, []), () => Date.UTC(2030, 0, 1))
  await people.wish()
  const wish = people.wishes[0] as (typeof people.wishes)[number]
  const signed = (options: Parameters<typeof eth>[1], path = [1, 60, 0]) => {
    const unsigned = eth(path, { to: wish.to, value: wish.units, ...options })
    return [read(unsigned, SINK_ETH, NO_COINS), `ETH ${unsigned.bytes}`] as const
  }
  return { wish, signed }
}

test('the oracle takes what was wished, and a dearer one of the same number', async () => {
  const { wish, signed } = await aWish()
  const signatures = new Signatures()
  signatures.payment(wish, ...signed({}), null)
  signatures.payment(wish, ...signed({ maxFeePerGas: 3_000_000_000n }), null)
  assert.deepEqual(signatures.problems, [])
})

test('the oracle sees a second payment, another amount, receiver or wallet, what nobody wished, and what follows two voids', async () => {
  const { wish, signed } = await aWish()
  const seen = (act: (signatures: Signatures) => void): string => {
    const signatures = new Signatures()
    signatures.payment(wish, ...signed({}), null)
    act(signatures)
    return signatures.problems.join('\n')
  }
  assert.match(seen((all) => all.payment(wish, ...signed({ nonce: 1 }), null)), /do not exclude each other/)
  assert.match(seen((all) => all.payment(wish, ...signed({ value: 1n }), null)), /not what/)
  assert.match(seen((all) => all.payment(wish, ...signed({ to: SINKS.find((sink) => sink !== wish.to) as string }), null)), /not what/)
  assert.match(seen((all) => all.payment(wish, ...signed({}, [2, 60, 0]), null)), /from another wallet/)
  assert.match(seen((all) => all.payment(undefined, ...signed({}), null)), /nobody wished/)
  assert.match(seen((all) => {
    all.voided(wish.name)
    all.payment(wish, ...signed({ maxFeePerGas: 3_000_000_000n }), null)
  }), /after two nodes had voided/)
  assert.match(seen((all) => all.fuel([wish], '', 5n, SINK_ETH, ...signed({ to: SINK_ETH, value: 6n }, [0, 60, 0]))), /fuel of more than 5/)
})

test('a hostile seed is the same story each time, and its draws play it again', async () => {
  const first = await playHostile(4)
  assert.equal(first.failure, null)
  assert.ok(first.signed > 0 && first.refusals.size > 5)
  const again = await playHostile(4, first.draws)
  assert.deepEqual([again.asked, again.signed, [...again.refusals]], [first.asked, first.signed, [...first.refusals]])
})

test('the shrinker keeps the one draw that matters', async () => {
  const run = async (draws: readonly number[]) => ({ failure: draws[70] === 3 ? 'it failed' : null, draws })
  const failed = await run(Array.from({ length: 200 }, (_, at) => (at === 70 ? 3 : at % 5)))
  const { draws, failure } = await shrink(failed, run, 5000)
  assert.equal(failure, 'it failed')
  assert.ok(draws.filter((draw) => draw !== 0).length < 20, String(draws))
})
