import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChainTransfer } from '@custody/chains'
import * as fc from '../../../../../../testing/property.ts'
import { FRAMES_FROM, occurrences } from '../identity.ts'

const payment = (position: number, frame: boolean): ChainTransfer => ({
  txid: 'one',
  position,
  asset: 'TRX',
  address: 'payee',
  amount: 5n,
  sender: null,
  senders: null,
  coinbase: false,
  ...(frame ? { frame: true } : {}),
})
const numbersOf = (transfers: readonly ChainTransfer[], of: readonly ChainTransfer[]) => {
  const numbers = occurrences(transfers)
  return of.map((each) => numbers.get(each))
}

test('the identity of a plain deposit does not depend on what contracts paid', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: -1, max: 20 }), { maxLength: 5 }),
      fc.uniqueArray(fc.integer({ min: -20, max: -2 }), { maxLength: 5 }),
      fc.infiniteStream(fc.integer()),
      (plainAt, framesAt, draw) => {
        const plain = plainAt.map((position) => payment(position, false))
        const frames = framesAt.map((position) => payment(position, true))
        const key = new Map([...plain, ...frames].map((each) => [each, draw.next().value]))
        const mixed = [...plain, ...frames].sort((a, b) => Number(key.get(a)) - Number(key.get(b)))
        assert.deepEqual(numbersOf(mixed, plain), numbersOf(plain, plain))
        assert.deepEqual(
          numbersOf(mixed, frames)
            .map(Number)
            .sort((a, b) => a - b),
          frames.map((_, at) => FRAMES_FROM + at),
        )
      },
    ),
  )
})
