// Every network and asset in the registry is available, without additional code.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { address as solanaAddress } from '@solana/kit'
import { TronWeb } from 'tronweb'
import { UTXO_NETWORKS } from './bitcoin/networks.ts'
import { localContract as contractOn } from './contracts.ts'
import { FAMILIES } from './devnet.ts'
import { EthereumChain } from './ethereum/chain.ts'
import { evmNetworksOf, FAUCET_KEY } from './ethereum/networks.ts'
import { deployedAddress } from './evm/contracts.ts'
import { REGISTRY, type RegistryData } from './registry.ts'
import { manualTime } from './timing.ts'
import { tokensOf } from './tron/tvm.ts'
import { removeHome, tempHome } from '../testing/support.ts'

/** None of the chains is started, so nothing is written. */
const CHAINS = FAMILIES.flatMap((family) => family({ home: '/nonexistent', timing: manualTime() }))
const localContract = (network: unknown, ticker: unknown) => contractOn(CHAINS, network, ticker)
const withToken = (network: string, local: string): RegistryData => ({
  ...REGISTRY,
  assets: [
    ...REGISTRY.assets,
    {
      asset_name: `EURC_${network}`,
      ticker: 'EURC',
      network,
      type: 'token',
      decimals: 6,
      contract_address: { local },
    },
  ],
})

test('the address of a future token is derived from its name, and the local chain uses it', () => {
  const ether = localContract('ETH', 'EURC')
  const tokens =
    evmNetworksOf(withToken('ETH', ether.local)).find(({ code }) => code === 'ETH')?.tokens ?? []
  assert.deepEqual(tokens.at(-1), {
    asset: 'EURC_ETH',
    address: ether.local,
    decimals: 6,
    artefact: 'CircleLike',
    supply: 10n ** 18n,
  })
  assert.notEqual(localContract('BASE', 'EURC').local, ether.local)
  // A network that was just added is not known yet: a network that is added by data alone is an EVM
  // network.
  assert.match(localContract('GNOSIS', 'EURC').local, /^0x[0-9a-fA-F]{40}$/)
  const tron = localContract('TRX', 'EURC').local
  assert.ok(TronWeb.isAddress(tron))
  assert.equal(tokensOf('41', withToken('TRX', tron)).at(-1)?.asset, 'EURC_TRX')
  assert.equal(
    solanaAddress(localContract('SOL', 'EURC').local),
    localContract('SOL', 'EURC').local,
  )
})

test("the derived address equals the registry's address of every existing token", () => {
  for (const { asset_name: name, ticker, network, contract_address: contract } of REGISTRY.assets) {
    if (
      contract?.local === undefined ||
      network === 'SOL' ||
      contract.local === deployedAddress(FAUCET_KEY)
    )
      continue
    assert.deepEqual(localContract(network, ticker), { asset: name, local: contract.local })
  }
})

test('reports a wrong address together with the correct one', () => {
  const other = '0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c'
  assert.throws(() => evmNetworksOf(withToken('ETH', other)), {
    message: `the asset registry has EURC_ETH at ${other}: on the local chain it is at ${localContract('ETH', 'EURC').local}`,
  })
  assert.throws(() => tokensOf('41', withToken('TRX', other)), {
    message: `the asset registry has EURC_TRX at ${other}: on the local chain it is at ${localContract('TRX', 'EURC').local}`,
  })
})

test('refuses networks without tokens, and invalid names', () => {
  for (const network of ['BTC', 'XRP', 'XLM', 'ADA'])
    assert.throws(() => localContract(network, 'EURC'), new RegExp(`${network} has no tokens`))
  assert.throws(() => localContract('eth', 'EURC'), /network "eth"/)
  assert.throws(() => localContract('ETH', undefined), /ticker/)
})

test('deploys a token that was added to the registry later on the existing chain', async () => {
  const home = tempHome()
  const networkOf = (registry: RegistryData) =>
    evmNetworksOf(registry).find(({ code }) => code === 'BASE') ?? assert.fail()
  try {
    const before = await EthereumChain.open(networkOf(REGISTRY), home, manualTime())
    const head = await before.mine(3)
    before.close()
    const after = await EthereumChain.open(
      networkOf(withToken('BASE', localContract('BASE', 'EURC').local)),
      home,
      manualTime(),
    )
    const block = await after.anvil.call<{ hash: string }>(
      'eth_getBlockByNumber',
      `0x${head.height.toString(16)}`,
      false,
    )
    assert.equal(block.hash, head.hash, 'the chain is the same one')
    assert.match(
      await after.fund('EURC_BASE', '0x00000000000000000000000000000000000000b1', '5'),
      /^0x[0-9a-f]{64}$/,
    )
    after.close()
  } finally {
    removeHome(home)
  }
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

test('every local UTXO network of the registry has a local chain with its parameters', () => {
  const problems = REGISTRY.networks.flatMap(({ code, family, local }) => {
    if (family !== 'utxo' || local === undefined) return []
    const chain = UTXO_NETWORKS.find((each) => each.code === code)
    if (!chain)
      return [
        `${code}: has no local chain; add an entry to packages/devnet/src/bitcoin/networks.ts, or remove "local" from its entry in packages/chains/data/registry.json`,
      ]
    const { address, maturity, genesis, replacement, segwit } = chain
    const expected = {
      bech32_hrp: address.hrp,
      p2pkh_version: address.p2pkh,
      p2sh_version: address.p2sh,
      cashaddr_prefix: address.cashaddr ?? undefined,
      coinbase_maturity: maturity,
      replaceable: replacement === 'full',
      script: segwit ? 'p2wpkh' : 'p2pkh',
      genesis: sha256(sha256(genesis.subarray(0, 80)))
        .reverse()
        .toString('hex'),
    }
    const stated: Record<string, unknown> = { ...local.utxo, genesis: local.genesis }
    return Object.entries(expected).flatMap(([field, value]) =>
      stated[field] === value
        ? []
        : [
            `${code}: ${field} is ${String(stated[field])} in "local" of packages/chains/data/registry.json, and ${String(value)} in packages/devnet/src/bitcoin/networks.ts; correct the wrong one`,
          ],
    )
  })
  assert.ok(problems.length === 0, problems.join('\n'))
  assert.ok(REGISTRY.networks.some(({ family }) => family === 'utxo'))
})
