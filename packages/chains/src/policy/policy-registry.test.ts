// The view of the registry on which policies are evaluated. Related addresses are computed with
// cardano-serialization-lib, btc-signer and stellar-base.
import {
  Address,
  BaseAddress,
  Credential,
  EnterpriseAddress,
  Ed25519KeyHash,
  Pointer,
  PointerAddress,
  BigNum,
  ScriptHash,
} from '@emurgo/cardano-serialization-lib-nodejs'
import { ed25519 } from '@noble/curves/ed25519.js'
import { p2pkh, p2sh, p2tr, p2wpkh, p2wsh } from '@scure/btc-signer'
import { Account, MuxedAccount } from '@stellar/stellar-base'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressAt, policyRegistry, traitsOf, validateAddress, type Network } from '../index.ts'
import { local, mainnet, workspaceKey } from '../../testing/support.ts'

const MODES = [local, mainnet]
const ed25519Key = {
  publicKey: ed25519.getPublicKey(new Uint8Array(32).fill(1)),
  chainCode: new Uint8Array(32).fill(2),
}
const ownAddress = (network: Network, index: number): string =>
  addressAt(network, network.curve === 'ed25519' ? ed25519Key : workspaceKey, [1, 2, index])
const main = policyRegistry(mainnet)
const BTC = mainnet.network('BTC') as Network
const X_WITHOUT_TAG = 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqZ'
const X_WITH_TAG = 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu'
const CLASSIC = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59'

test('describes every asset of both modes by its registry entry', () => {
  for (const registry of MODES) {
    const policy = policyRegistry(registry)
    for (const asset of registry.assets) {
      const network = registry.networkOf(asset)
      const described = policy.asset(asset.asset_name)
      assert.deepEqual(described, {
        decimals: asset.decimals,
        network: network.code,
        contract: asset.contract_address,
        fee_asset: network.native_asset,
        wallet_pays_fee: traitsOf(network).feesFrom === 'wallet',
      })
      assert.ok(policy.hasNetwork(network.code))
      assert.equal(described.contract === null, asset.type === 'native', asset.asset_name)
      const fee = policy.asset(described.fee_asset)
      assert.deepEqual([fee?.network, fee?.contract], [network.code, null], asset.asset_name)
    }
    assert.equal(policy.asset('NONE'), undefined)
    assert.equal(policy.hasNetwork('NONE'), false)
  }
})

test('the wallet pays the fee of every asset of a network without gas tanks, and of no other', () => {
  const paying = (name: string) => main.asset(name)?.wallet_pays_fee
  assert.deepEqual(['BTC', 'SOL', 'USDC_SOL', 'XRP', 'XLM', 'ADA'].map(paying), [
    true,
    true,
    true,
    true,
    true,
    true,
  ])
  assert.deepEqual(['ETH', 'USDT_ETH', 'TRX', 'USDT_TRX'].map(paying), [false, false, false, false])
})

test('the canonical form of a valid address is the one of every asset, and its own canonical form', () => {
  for (const registry of MODES) {
    const policy = policyRegistry(registry)
    for (const network of registry.networks) {
      const own = ownAddress(network, 5)
      assert.equal(policy.canonicalAddress(network.code, own), own)
      const spellings = [own, own.toLowerCase(), own.toUpperCase(), ` ${own}`, own.slice(0, -1), '']
      for (const text of spellings) {
        const canonical = policy.canonicalAddress(network.code, text)
        for (const { asset_name } of registry.assetsOf(network.code)) {
          const checked = validateAddress(registry, asset_name, text)
          assert.equal(canonical, checked.valid ? checked.address : undefined, text)
        }
        if (canonical !== undefined)
          assert.equal(policy.canonicalAddress(network.code, canonical), canonical)
      }
    }
  }
})

test('returns the canonical form of addresses with several spellings', () => {
  for (const [network, text, canonical] of [
    [
      'ETH',
      '0xd8da6bf26964af9d7eed9e03e53415d37aa96045',
      '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045',
    ],
    [
      'BTC',
      'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4',
      'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    ],
    [
      'BCH',
      '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu',
      'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
    ],
    ['XRP', X_WITHOUT_TAG, CLASSIC],
  ] as const) {
    assert.equal(main.canonicalAddress(network, text), canonical)
    assert.equal(main.canonicalAddress(network, canonical), canonical)
    assert.equal(main.paymentKey(network, text), main.paymentKey(network, canonical))
  }
})

test('an address that is invalid, of another network, a contract, or contains a tag has no canonical form', () => {
  const usdt = mainnet.asset('USDT_ETH')?.contract_address as string
  for (const [network, text] of [
    ['XRP', X_WITH_TAG],
    ['ETH', usdt],
    ['ETH', '0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045'],
    ['ETH', `0x${'0'.repeat(40)}`],
    ['BTC', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
    ['SOL', 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D'],
    ['TRX', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
    ['ADA', 'stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw'],
    ['XLM', 'constructor'],
    ['NONE', CLASSIC],
  ] as const)
    assert.equal(main.canonicalAddress(network, text), undefined, text)
  assert.equal(main.paymentKey('NONE', 'anything'), 'anything')
  assert.equal(main.paymentKey('ETH', 'anything'), 'anything')
})

test('two own addresses have different payment keys, and an address is its key on most networks', () => {
  const changed = new Set<string>()
  for (const registry of MODES) {
    const policy = policyRegistry(registry)
    for (const network of registry.networks) {
      const [one, two] = [ownAddress(network, 1), ownAddress(network, 2)]
      const key = policy.paymentKey(network.code, one)
      assert.notEqual(key, policy.paymentKey(network.code, two))
      if (key !== one) changed.add(network.code)
    }
  }
  assert.deepEqual([...changed].sort(), ['ADA', 'BTC', 'LTC'])
})

test('all Cardano addresses of one payment credential have the same payment key', () => {
  const hash = (byte: number) => new Uint8Array(28).fill(byte)
  const [payer, other] = [hash(1), hash(2)].map((bytes) =>
    Credential.from_keyhash(Ed25519KeyHash.from_bytes(bytes)),
  ) as [Credential, Credential]
  const script = Credential.from_scripthash(ScriptHash.from_bytes(hash(1)))
  const text = (address: { to_address(): Address }) => address.to_address().to_bech32()
  const formsOf = (of: Credential) => [
    text(EnterpriseAddress.new(1, of)),
    text(BaseAddress.new(1, of, payer)),
    text(BaseAddress.new(1, of, other)),
    text(BaseAddress.new(1, of, script)),
    text(
      PointerAddress.new(
        1,
        of,
        Pointer.new_pointer(BigNum.from_str('1'), BigNum.from_str('2'), BigNum.from_str('3')),
      ),
    ),
    text(EnterpriseAddress.new(1, of)).toUpperCase(),
  ]
  const keys = [payer, other, script].map((of) => {
    const distinct = new Set(formsOf(of).map((form) => main.paymentKey('ADA', form)))
    assert.equal(distinct.size, 1)
    return [...distinct][0]
  })
  assert.equal(new Set(keys).size, 3)
})

test('all addresses of one Bitcoin key have the same payment key, and those of other conditions do not', () => {
  const network = { bech32: 'bc', pubKeyHash: 0, scriptHash: 5, wif: 128 }
  const addressesOf = (seed: number) => {
    const { publicKey } = workspaceKey
    const key = Uint8Array.of(publicKey[0] as number, ...publicKey.subarray(1, 33))
    const own = seed === 0 ? key : Uint8Array.of(5 - (key[0] as number), ...key.subarray(1))
    const single = p2wpkh(own, network)
    return {
      same: [p2pkh(own, network), single, p2sh(single, network)],
      script: [p2wsh(p2pkh(own), network), p2sh(p2wsh(p2pkh(own)), network)],
      legacyScript: [p2sh(p2pkh(own), network)],
      taproot: [p2tr(own.subarray(1), undefined, network)],
    }
  }
  const keysOf = (list: readonly { address?: string }[]) =>
    new Set(
      list.map(({ address }) => {
        assert.equal(main.canonicalAddress('BTC', address as string), address)
        return main.paymentKey('BTC', address as string)
      }),
    )
  const groups = [
    ...Object.values(addressesOf(0)),
    addressesOf(1).same,
    addressesOf(1).script,
    addressesOf(1).legacyScript,
  ].map(keysOf)
  assert.deepEqual(
    groups.map((keys) => keys.size),
    groups.map(() => 1),
  )
  assert.equal(new Set(groups.flatMap((keys) => [...keys])).size, groups.length)
  assert.equal(BTC.utxo?.bech32_hrp, 'bc')
})

test('all muxed addresses of a Stellar account have the payment key of the account', () => {
  const network = mainnet.network('XLM') as Network
  const [account, other] = [ownAddress(network, 1), ownAddress(network, 2)]
  const muxed = (of: string, id: string) => new MuxedAccount(new Account(of, '0'), id).accountId()
  for (const id of ['0', '7']) {
    assert.equal(main.canonicalAddress('XLM', muxed(account, id)), muxed(account, id))
    assert.equal(main.paymentKey('XLM', muxed(account, id)), account)
  }
  assert.equal(main.paymentKey('XLM', account), account)
  assert.equal(main.paymentKey('XLM', muxed(other, '7')), other)
})

test('an XRP address with a tag has the payment key of its account', () => {
  for (const text of [CLASSIC, X_WITHOUT_TAG, X_WITH_TAG])
    assert.equal(main.paymentKey('XRP', text), CLASSIC)
})

test('returns the canonical form of a tag, and none for what is no tag of the address', () => {
  const account = ownAddress(mainnet.network('XLM') as Network, 1)
  const hash = 'ab'.repeat(32)
  for (const [network, address, tag, canonical] of [
    ['XRP', CLASSIC, '5', '5'],
    ['XRP', CLASSIC, '0', '0'],
    ['XRP', CLASSIC, '05', undefined],
    ['XRP', CLASSIC, '4294967296', undefined],
    ['XRP', 'constructor', '5', undefined],
    ['XLM', account, '7', '7'],
    ['XLM', account, 'text:0', 'text:0'],
    ['XLM', account, `hash:${hash.toUpperCase()}`, `hash:${hash}`],
    ['XLM', account, '007', undefined],
    ['BTC', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', '5', undefined],
    ['NONE', CLASSIC, '5', undefined],
  ] as const)
    assert.equal(main.canonicalTag(network, address, tag), canonical, `${network} ${tag}`)
})

test('splits addresses that contain their tag into account and tag', () => {
  const account = ownAddress(mainnet.network('XLM') as Network, 1)
  const muxed = new MuxedAccount(new Account(account, '0'), '7').accountId()
  assert.deepEqual(main.splitAddress('XLM', muxed), { address: account, tag: '7' })
  assert.equal(main.canonicalTag('XLM', muxed, '7'), undefined)
  const split = main.splitAddress('XRP', X_WITH_TAG)
  assert.equal(split?.address, CLASSIC)
  assert.equal(main.canonicalTag('XRP', CLASSIC, split.tag), split.tag)
  for (const [network, text] of [
    ['XRP', X_WITHOUT_TAG],
    ['XRP', CLASSIC],
    ['XRP', 'X7'],
    ['XLM', account],
    ['BTC', X_WITH_TAG],
    ['NONE', X_WITH_TAG],
  ] as const)
    assert.equal(main.splitAddress(network, text), null, text)
})
