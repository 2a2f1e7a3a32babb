import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOfKey, isTagged } from './verify.ts'
import * as list from './list.ts'
import { loadRegistry, familyOf, traitsOf, publicKeysBelow } from './index.ts'
import { ed25519 } from '@noble/curves/ed25519.js'
import { publicKeyAt } from '../testing/support.ts'

const chainCode = new Uint8Array(32).fill(1)
const ED25519 = publicKeysBelow({
  curve: 'ed25519',
  publicKey: ed25519.getPublicKey(chainCode),
  chainCode,
})
const PATH = [1, 0, 0]

test('the family of every network is in the list of families', () => {
  const { networks } = loadRegistry('local')
  assert.deepEqual(
    [...new Set(networks.map(({ family }) => family))].filter(
      (family) => !Object.keys(list).includes(family),
    ),
    [],
  )
})

for (const network of loadRegistry('local').networks) {
  test(`${network.code}: address derivation without a network client gives the same addresses`, async () => {
    const publicKey = (network.curve === 'ed25519' ? ED25519 : publicKeyAt)(PATH)
    assert.equal(
      await addressOfKey(network, publicKey),
      familyOf(network).address(network, publicKey),
    )
    assert.equal(await isTagged(network), traitsOf(network).deposits === 'tagged')
  })
}
