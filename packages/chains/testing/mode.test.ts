// Modes of installations: what an operator may enter, and what the registry contains in each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  byMode,
  hasLocalChains,
  hasRealCoins,
  loadRegistry,
  meaningOf,
  readMode,
  readRegistryFile,
  type Network,
  type NetworkMode,
} from '../src/index.ts'
import { addressOf } from './support.ts'

const chainIds = readRegistryFile().networks.flatMap(({ local, mainnet }) =>
  [local?.chain_id, mainnet?.chain_id].filter((id) => id !== undefined),
)

test('regtest alone is the chain id of geth --dev, and no rehearsal has the chain id of a known network', () => {
  assert.deepEqual(
    ['local', 'mainnet', 'regtest', 'regtest-1337', 'regtest-999999999999999'].map(readMode),
    ['local', 'mainnet', 'regtest-1337', 'regtest-1337', 'regtest-999999999999999'],
  )
  assert.ok(chainIds.length > 15)
  for (const id of chainIds)
    assert.throws(() => readMode(`regtest-${id}`), { code: 'MODE', message: /is the chain id of/ })
  for (const text of ['', 'testnet', 'Local', 'regtest-', 'regtest-0', 'regtest-01', 'regtest--5'])
    assert.throws(() => readMode(text), { code: 'MODE', message: /must be local, mainnet or/ })
})

test('a rehearsal has BTC, LTC and ETH, whose chain id is that of the mode', () => {
  const [first, second] = [loadRegistry('regtest-1337'), loadRegistry('regtest-4242')]
  assert.deepEqual(
    first.assets.map(({ asset_name }) => asset_name),
    ['BTC', 'LTC', 'ETH'],
  )
  assert.deepEqual(
    [first, second].map((each) => each.networks.map(({ chain_id: id }) => id ?? null)),
    [
      [null, null, 1337],
      [null, null, 4242],
    ],
  )
  // Nodes compare the meaning, so even networks without a chain id differ between two rehearsals.
  for (const { code } of first.networks) {
    const meanings = [first, second, loadRegistry('local'), loadRegistry('mainnet')].map((each) =>
      JSON.stringify(meaningOf(each.network(code) as Network)),
    )
    assert.equal(new Set(meanings).size, 4, code)
  }
})

test('a rehearsal has minimum fee rates, because an empty chain has no estimate', () => {
  const floorsOf = (mode: NetworkMode) =>
    ['BTC', 'LTC'].map((code) => loadRegistry(mode).network(code)?.utxo?.fee_floors)
  const floors = { low: '1', medium: '2', high: '10' }
  assert.deepEqual(floorsOf('regtest-1337'), [floors, floors])
  assert.deepEqual(floorsOf('mainnet'), [undefined, floors])
})

test('addresses of a rehearsal on Bitcoin and Litecoin are not addresses of the real networks', () => {
  const registry = loadRegistry('regtest-1337')
  for (const code of ['BTC', 'LTC']) {
    const [own, real] = [registry, loadRegistry('mainnet')].map((each) => {
      const network = each.network(code) as Network
      return addressOf(network, [1, network.chain_index, 0])
    })
    assert.match(own as string, /^(?:bcrt|rltc)1q/)
    assert.notEqual(own, real)
  }
})

test('each kind of mode has one value', () => {
  const kinds = (['local', 'regtest-5', 'mainnet'] as const).map((mode) => [
    byMode(mode, { local: 1, regtest: 2, mainnet: 3 }),
    hasLocalChains(mode),
    hasRealCoins(mode),
  ])
  assert.deepEqual(kinds, [
    [1, true, false],
    [2, false, false],
    [3, false, true],
  ])
})
