// The registry that the SDK loads, compared with the one of the signer nodes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressAt, policyRegistry, validateAddress, type Network } from '../index.ts'
import { ChainError, loadPaymentRegistry } from '../verify.ts'
import { local, mainnet, workspaceKey } from '../../testing/support.ts'
import { ed25519 } from '@noble/curves/ed25519.js'

const ed25519Key = {
  publicKey: ed25519.getPublicKey(new Uint8Array(32).fill(1)),
  chainCode: new Uint8Array(32).fill(2),
}
const ownAddress = (network: Network): string =>
  addressAt(network, network.curve === 'ed25519' ? ed25519Key : workspaceKey, [1, 2, 5])

test('is equal to the registry of the signer nodes, for every asset and address', async () => {
  for (const registry of [local, mainnet]) {
    const loaded = await loadPaymentRegistry(registry)
    const own = policyRegistry(registry)
    for (const { asset_name: name } of registry.assets)
      assert.deepEqual(loaded.asset(name), own.asset(name))
    assert.equal(loaded.asset('NONE'), undefined)
    const contracts = registry.assets.flatMap(({ contract_address: each }) => each ?? [])
    const addresses = registry.networks.flatMap((network) => {
      const address = ownAddress(network)
      return [address, address.toUpperCase(), address.slice(0, -1)]
    })
    for (const network of registry.networks)
      for (const address of [...addresses, ...contracts, '']) {
        const { code, native_asset: asset } = network
        assert.equal(loaded.hasNetwork(code), own.hasNetwork(code))
        assert.equal(loaded.canonicalAddress(code, address), own.canonicalAddress(code, address))
        assert.equal(loaded.paymentKey(code, address), own.paymentKey(code, address))
        assert.equal(loaded.canonicalTag(code, address, '7'), own.canonicalTag(code, address, '7'))
        assert.deepEqual(loaded.splitAddress(code, address), own.splitAddress(code, address))
        for (const tag of [null, '7'])
          assert.deepEqual(
            loaded.validate(asset, address, tag),
            validateAddress(registry, asset, address, tag),
          )
      }
    assert.throws(() => loaded.validate('NONE', '', null), ChainError)
  }
})
