// The minimum number of remaining blocks when signing begins, and the minimum fee of each level.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58 } from '@scure/base'
import * as fc from '../../../../testing/property.ts'
import { loadRegistry, solana, SolanaClient, type Network } from '../index.ts'
import { Lives } from './life.ts'

const SOL = loadRegistry('local').network('SOL') as Network
const hashAt = (number: number) =>
  base58.encode(Buffer.alloc(32, number % 256).fill(number >> 8, 0, 8))
const rawWith = (number: number) =>
  `01ff${Buffer.from(base58.decode(hashAt(number))).toString('hex')}00`

/** Blockhashes of a chain with a block every `blockMs`, each sent after `tookMs`. */
function lives(blockMs: number, tookMs: number, count = 100): Lives {
  let now = 0
  const life = new Lives(() => now)
  for (let at = 0; at < count; at++) {
    life.began(hashAt(at), Math.floor(now / blockMs) + 150)
    const began = now
    now += tookMs
    life.sent(rawWith(at))
    // Sending the same bytes again does not count as signing.
    now += 3000
    life.sent(rawWith(at))
    now = began + Math.max(2000, tookMs + 3000)
  }
  return life
}

test('requires a third of the lifetime at 400 ms slots, and more for slow signing', () => {
  assert.equal(new Lives(() => 0).blocksNeeded, 50)
  assert.equal(lives(400, 1000).blocksNeeded, 50)
  assert.equal(lives(400, 12_000).blocksNeeded, 60)
  assert.equal(lives(200, 1000).blocksNeeded, 50)
  assert.equal(lives(200, 8000).blocksNeeded, 80)
  assert.equal(lives(150, 1000).blocksNeeded, 67)
})

test('requires between 50 and 100 remaining blocks at any signing speed and block interval', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 0, max: 600_000 }),
      fc.integer({ min: 1, max: 60 }),
      (blockMs, tookMs, count) => {
        const { blocksNeeded } = lives(blockMs, tookMs, count)
        assert.ok(blocksNeeded >= 50 && blocksNeeded <= 100, String(blocksNeeded))
      },
    ),
    { numRuns: 200 },
  )
})

test('a clock or an endpoint that goes backwards does not distort the measurement', () => {
  let now = 1_000_000
  const life = new Lives(() => now)
  life.began(hashAt(1), 1000)
  now -= 900_000
  life.began(hashAt(2), 1001)
  now += 30_000
  life.began(hashAt(3), 500)
  life.sent(rawWith(1))
  assert.equal(life.blocksNeeded, 50)
})

test('queued transactions do not count as slow signing and are not rebuilt more often', async () => {
  let now = 0
  const began = () => Math.floor(now / 400)
  const client = new SolanaClient(
    SOL,
    [],
    { url: 'http://node.test' },
    async (_url, init) => {
      const { method } = JSON.parse(String(init.body)) as { method: string }
      const result =
        method === 'sendTransaction'
          ? 'signature'
          : {
              context: { slot: began() },
              value: { blockhash: hashAt(began()), lastValidBlockHeight: began() + 150 },
            }
      return Response.json({ jsonrpc: '2.0', id: 1, result })
    },
    () => now,
  )
  for (let round = 0; round < 50; round++) {
    const { validUntil } = await client.lifetime()
    const number = began()
    // 62 of the 150 blocks remain, which is enough.
    now += 25_000
    assert.equal(await client.isStale(validUntil), false, `round ${round}`)
    now += 500
    await client.broadcast(rawWith(number))
  }
})

test('each fee level pays at least its minimum lamports, for SOL and for tokens', () => {
  const quiet = { low: 0n, medium: 0n, high: 0n }
  for (const units of [solana.unitsOf(false), solana.unitsOf(true)]) {
    const fees = (['low', 'medium', 'high'] as const).map((level) =>
      solana.feeOf(units, solana.unitPriceOf(quiet, level, units)),
    )
    assert.deepEqual(
      fees
        .map((fee, at) => fee - [5000n, 6000n, 15_000n][at]!)
        .every((past) => past <= 0n && past >= -1n),
      true,
      String(fees),
    )
    // The fee that the blocks require counts if it is higher.
    assert.equal(
      solana.unitPriceOf({ low: 7n, medium: 20_000_000n, high: 9_000_000_000n }, 'medium', units),
      20_000_000n,
    )
  }
})
