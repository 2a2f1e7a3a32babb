// BIP32, public derivation: the non-hardened steps of the published vectors, and random steps
// compared with @scure/bip32.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { HDKey } from '@scure/bip32'
import * as fc from '../../../testing/property.ts'
import { addressAt, derivePublicKey, pathOf, publicKeysBelow } from './index.ts'
import { BTC, ETH, privateKeyAt, publicKeyAt, refuses, workspaceKey } from '../testing/support.ts'
import { secp256k1 } from '@noble/curves/secp256k1.js'

const STEPS: [string, string, number[], string][] = [
  [
    'vector 1, m/0H → 1',
    'xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw',
    [1],
    'xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ',
  ],
  [
    'vector 1, m/0H/1/2H → 2',
    'xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5',
    [2],
    'xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV',
  ],
  [
    'vector 1, m/0H/1/2H/2 → 1000000000',
    'xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV',
    [1_000_000_000],
    'xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy',
  ],
  [
    'vector 1, two steps at once',
    'xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5',
    [2, 1_000_000_000],
    'xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy',
  ],
  [
    'vector 2, m → 0',
    'xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB',
    [0],
    'xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH',
  ],
]
for (const [name, from, path, to] of STEPS) {
  test(name, () => {
    const [start, end] = [HDKey.fromExtendedKey(from), HDKey.fromExtendedKey(to)]
    assert.deepEqual(
      derivePublicKey(
        'secp256k1',
        start.publicKey as Uint8Array,
        start.chainCode as Uint8Array,
        path,
      ),
      end.publicKey,
    )
  })
}

test('public and private derivation give the same keys on random paths', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(0x7fffffff), { maxLength: 4 }), (path) => {
      assert.deepEqual(publicKeyAt(path), secp256k1.getPublicKey(privateKeyAt(path), true))
    }),
    { numRuns: 25 },
  )
})

test('refuses hardened and invalid indices', () => {
  for (const index of [-1, 0x80000000, 1.5, Number.NaN, Infinity, 2 ** 53]) {
    refuses(
      () =>
        derivePublicKey('secp256k1', workspaceKey.publicKey, workspaceKey.chainCode, [0, index]),
      'PATH',
    )
    refuses(
      () => derivePublicKey('ed25519', workspaceKey.publicKey, workspaceKey.chainCode, [index]),
      'PATH',
    )
    refuses(() => pathOf(BTC, 1, index), 'PATH')
    refuses(() => pathOf(BTC, index, 1), 'PATH')
  }
})

test('a derivation path consists of sub-account, chain and index', () => {
  assert.deepEqual(pathOf(BTC, 3, 7), [3, BTC.chain_index, 7])
  assert.notDeepEqual(pathOf(BTC, 3, 7), pathOf(ETH, 3, 7))
})

test('changing any element of the path changes the address', () => {
  const addresses = [
    [1, 0, 0],
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 0],
    [1, 0, 1],
  ].map((path) => addressAt(BTC, workspaceKey, path))
  assert.equal(new Set(addresses).size, addresses.length)
})

test('a cached key equals the newly derived key', () => {
  const at = publicKeysBelow(workspaceKey)
  assert.deepEqual(at([1, 2, 3]), at([1, 2, 3]))
  assert.deepEqual(
    at([1, 2, 3]),
    derivePublicKey('secp256k1', workspaceKey.publicKey, workspaceKey.chainCode, [1, 2, 3]),
  )
  assert.notDeepEqual(at([12, 3]), at([1, 23]))
})

interface Vector {
  publicKey: string
  chainCode: string
  levels: { index: number; publicKey: string }[]
}
const { vectors } = JSON.parse(
  readFileSync(new URL('../testing/vectors/ed25519-derivation.json', import.meta.url), 'utf8'),
) as { vectors: Vector[] }

// Addresses are derived by other code than the shares that sign for them: the tests of both contain
// these vectors.
test('Ed25519: derives the same fixed test vectors as the signing engine', () => {
  assert.ok(vectors.length > 5)
  for (const vector of vectors) {
    vector.levels.forEach((level, depth) => {
      const path = vector.levels.slice(0, depth + 1).map(({ index }) => index)
      const derived = derivePublicKey(
        'ed25519',
        Buffer.from(vector.publicKey, 'hex'),
        Buffer.from(vector.chainCode, 'hex'),
        path,
      )
      assert.equal(Buffer.from(derived).toString('hex'), level.publicKey)
    })
  }
})
