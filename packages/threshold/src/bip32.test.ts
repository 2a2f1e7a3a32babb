import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HDKey } from '@scure/bip32'
import * as fc from '../../../testing/property.ts'

import { derivePublicKey, ThresholdError } from './index.ts'

// The steps of BIP32's test vectors 1 and 2 that public derivation can compute:
// https://github.com/bitcoin/bips/blob/master/bip-0032.mediawiki#test-vectors
const steps: { parent: string; index: number; child: string }[] = [
  {
    parent:
      'xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw',
    index: 1,
    child:
      'xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ',
  },
  {
    parent:
      'xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5',
    index: 2,
    child:
      'xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV',
  },
  {
    parent:
      'xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV',
    index: 1000000000,
    child:
      'xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy',
  },
  {
    parent:
      'xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB',
    index: 0,
    child:
      'xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH',
  },
  {
    parent:
      'xpub6ASAVgeehLbnwdqV6UKMHVzgqAG8Gr6riv3Fxxpj8ksbH9ebxaEyBLZ85ySDhKiLDBrQSARLq1uNRts8RuJiHjaDMBU4Zn9h8LZNnBC5y4a',
    index: 1,
    child:
      'xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon',
  },
  {
    parent:
      'xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL',
    index: 2,
    child:
      'xpub6FnCn6nSzZAw5Tw7cgR9bi15UV96gLZhjDstkXXxvCLsUXBGXPdSnLFbdpq8p9HmGsApME5hQTZ3emM2rnY5agb9rXpVGyy3bdW6EEgAtqt',
  },
]

for (const [i, { parent, index, child }] of steps.entries()) {
  test(`BIP32 published vector, public step ${i + 1} (index ${index})`, () => {
    const from = HDKey.fromExtendedKey(parent)
    const to = HDKey.fromExtendedKey(child)
    assert.deepEqual(
      Buffer.from(derivePublicKey('secp256k1', from.publicKey!, from.chainCode!, [index])),
      Buffer.from(to.publicKey!),
    )
  })
}

test('derives the same keys as @scure/bip32 on random paths', () => {
  const root = HDKey.fromMasterSeed(new Uint8Array(32).fill(7))
  const path = fc.array(fc.integer({ min: 0, max: 0x7fffffff }), { maxLength: 6 })
  fc.assert(
    fc.property(path, (indices) => {
      const expected = indices.reduce(
        (key, index) => key.deriveChild(index),
        HDKey.fromExtendedKey(root.publicExtendedKey),
      )
      assert.deepEqual(
        Buffer.from(derivePublicKey('secp256k1', root.publicKey!, root.chainCode!, indices)),
        Buffer.from(expected.publicKey!),
      )
    }),
    { numRuns: 200 },
  )
})

test('refuses hardened, fractional and negative indices, bad points and long paths', () => {
  const { publicKey, chainCode } = HDKey.fromMasterSeed(new Uint8Array(32).fill(7))
  const refused = (fn: () => unknown) =>
    assert.throws(fn, (error) => error instanceof ThresholdError && error.code === 'BAD_ARGUMENT')
  for (const path of [
    [0x80000000],
    [2 ** 32],
    [-1],
    [1.5],
    [Number.NaN],
    Array.from({ length: 33 }, () => 0),
  ]) {
    refused(() => derivePublicKey('secp256k1', publicKey!, chainCode!, path))
  }
  refused(() =>
    derivePublicKey('secp256k1', new Uint8Array(33).fill(2, 0, 1).fill(5, 1), chainCode!, []),
  )
  refused(() => derivePublicKey('secp256k1', new Uint8Array(65), chainCode!, []))
  refused(() => derivePublicKey('secp256k1', publicKey!, new Uint8Array(31), [0]))
  refused(() => derivePublicKey('p256' as never, publicKey!, chainCode!, [0]))
  refused(() => derivePublicKey('secp256k1', 'text' as never, chainCode!, [0]))
})
