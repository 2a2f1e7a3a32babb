import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playByzantine } from './play.ts'

const SEEDS_HONEST = 50
const SEEDS_HOSTILE = 20

test('finds no problem in runs with a hostile third node', async () => {
  for (let seed = 1; seed <= SEEDS_HOSTILE; seed++)
    assert.equal((await playByzantine(seed)).failure, null, `seed ${seed}`)
})

test('finds no problem in runs with an honest third node', async () => {
  for (let seed = 1; seed <= SEEDS_HONEST; seed++) {
    const options = { attacks: null, hasCancellations: seed % 2 === 0 }
    assert.equal((await playByzantine(seed, null, options)).failure, null, `seed ${seed}`)
  }
})
