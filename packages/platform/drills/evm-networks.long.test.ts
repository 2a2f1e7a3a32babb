import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { readRegistryFile } from '@custody/chains'
import { ModifiedCopy, fencedBlocks } from '../testing/modified-copy.ts'
import {
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

// Tests every EVM network and token of the registry, and those that docs/adding-a-chain.md adds, in
// a copy of the source tree.
const copy = new ModifiedCopy()
const added = ['A token', 'An EVM network']
  .flatMap((heading) => fencedBlocks('docs/adding-a-chain.md', heading, 'json'))
  .map((block) => JSON.parse(block) as Record<string, unknown>)
copy.addToRegistry(added)
/**
 * Further tokens, because the document states: "Tokens of Tron and Solana are added in the same
 * way."
 */
const elsewhere = [
  ['TRX', 'TL4b31DTpMxnUaraRLwV4QvvxyPmT9aevS'],
  ['SOL', '7c8HY9BeBrbcUWgnXHPLgY69T42HJmdBEgVDHE3SDa2Z'],
].map(([network, local]) => ({
  ...added[0],
  asset_name: `EURC_${network}`,
  network,
  contract_address: { local },
}))
copy.addToRegistry(elsewhere)
const platform = new TestPlatform({ folder: join(copy.root, 'packages', 'platform') })
let alice: User
const TO = '0x00000000000000000000000000000000000000B1'

interface Listed {
  asset_name: string
  network: string
  family: string
  type: string
  decimals: string
  contract_address: string | null
}
let assets: Listed[] = []
const networks = () => [...new Set(assets.map((asset) => asset.network))]

before(async () => {
  // The local price source is queried with the corrected id, too.
  await platform.start({ CUSTODY_COINGECKO_IDS: 'EURC=another-euro', CUSTODY_PRICE_REFRESH_S: '1' })
  alice = await platform.user('alice')
  assets = (await call<Listed[]>(alice, 'GET', '/assets')).body.filter(
    (asset) => asset.family === 'evm',
  )
})
after(async () => {
  await platform.remove()
  copy.remove()
})

const whole = (decimals: number | string) => 10n ** BigInt(decimals)
const tokensOf = async (asset: Listed, owner: string) =>
  BigInt(
    await rpc<string>(platform, asset.network, 'eth_call', [
      {
        to: asset.contract_address,
        data: `0x70a08231${owner.slice(2).toLowerCase().padStart(64, '0')}`,
      },
      'latest',
    ]),
  )
const coinsOf = async (network: string, owner: string) =>
  BigInt(await rpc<string>(platform, network, 'eth_getBalance', [owner, 'latest']))

test('this test covers every EVM network and token of the registry and of the document', async () => {
  const file = readRegistryFile()
  const evm = new Set(
    file.networks.filter(({ family, local }) => family === 'evm' && local).map(({ code }) => code),
  )
  assert.deepEqual(networks(), [...evm, 'GNOSIS'])
  // Token contracts are identified by network and address, because the same address can be another
  // contract on another network.
  const tokens = assets.filter((asset) => asset.type === 'token')
  const contracts = file.assets
    .filter((asset) => evm.has(asset.network) && asset.contract_address?.local)
    .map((asset) => asset.asset_name)
  assert.deepEqual(
    tokens.map((asset) => asset.asset_name),
    [...contracts, 'EURC_ETH'],
  )
  assert.equal(
    new Set(tokens.map((asset) => `${asset.network} ${String(asset.contract_address)}`)).size,
    tokens.length,
  )
  assert.deepEqual(
    tokens
      .filter((asset) => asset.decimals === '18')
      .map((asset) => asset.asset_name)
      .sort(),
    ['USDC_BSC', 'USDT_BSC'],
  )
})

test('a token and a network added by the document pass the registry’s test and have a price', async () => {
  assert.deepEqual(
    added.map((line) => line['asset_name'] ?? line['code'] ?? line['ticker']),
    ['EURC_ETH', 'EURC', 'GNOSIS', 'GNOSIS', 'XDAI'],
  )
  const checked = copy.test('packages/chains/src/registry.test.ts')
  assert.equal(checked.status, 0, checked.output)
  const printed = await platform.cli('devnet', 'contract', 'ETH', 'EURC', '--json')
  assert.deepEqual(JSON.parse(printed.stdout), {
    asset: 'EURC_ETH',
    local: (added[0] as { contract_address: { local: string } }).contract_address.local,
  })
  const priceOf = async (asset: string) =>
    (await call<{ price_usd: string }[]>(alice, 'GET', `/dac/v1/prices?assets=${asset}`)).body[0]
      ?.price_usd
  assert.deepEqual([await priceOf('EURC_ETH'), await priceOf('GNOSIS')], ['1.08', '1'])
  assert.equal((await platform.cli('devnet', 'price', 'EURC', '1.10')).status, 0)
  await waitFor('the new price of EURC', async () => (await priceOf('EURC_ETH')) === '1.1')
})

test('prints the new network’s endpoint with the others', async () => {
  const printed = await platform.cli('devnet', 'urls')
  assert.equal(printed.status, 0, printed.stderr)
  assert.match(
    printed.stdout,
    /^GNOSIS {2}Ethereum JSON-RPC {6}http:\/\/127\.0\.0\.1:\d+\/gnosis\n {8}curl -s .*eth_blockNumber/m,
  )
  assert.match(printed.stdout, /^XLM {5}Horizon {16}http:\S+\/xlm\/horizon$/m)
  assert.match(printed.stdout, /^SOL {5}Solana JSON-RPC {8}http:\S+\/sol, ws:\S+\/sol$/m)
  const { endpoints } = JSON.parse((await platform.cli('devnet', 'urls', '--json')).stdout) as {
    endpoints: { network: string; url: string; example: string }[]
  }
  assert.match(endpoints.find(({ network }) => network === 'GNOSIS')?.url ?? '', /\/gnosis$/)
})

test('a Tron token and a Solana token added by the document can be received and sent', async () => {
  await Promise.all(
    [
      ['TRX', 'TUg28KYvCXWW81EqMUeZvCZmZw2BChk1HQ'],
      ['SOL', '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU'],
    ].map(async ([network, to]) => {
      const ticker = `EURC_${network}`
      assert.deepEqual(
        JSON.parse(
          (await platform.cli('devnet', 'contract', network as string, 'EURC', '--json')).stdout,
        ),
        {
          asset: ticker,
          local: elsewhere.find((line) => line.network === network)?.contract_address.local,
        },
      )
      // On Solana the sub-account's own SOL pays the fee.
      if (network === 'SOL') await fundedWallet(platform, alice, 'SOL', '1')
      await fundedWallet(platform, alice, ticker, '5')
      const sent = await call<Transfer>(
        alice,
        'POST',
        '/dac/v1/transaction',
        transferBody(ticker, '1.5', to as string),
      )
      assert.equal(sent.status, 200, sent.text)
      const done = await terminal(alice, sent.body.id)
      assert.equal(done.status, 'confirmed', String(done.failure_reason))
      assert.equal((await balance(alice, ticker)).balance, '3.5')
    }),
  )
})

/** Tests one network: each of its assets receives and sends, with gas paid by the tank. */
async function journey(network: string): Promise<string> {
  let omnibus = ''
  for (const asset of assets.filter((each) => each.network === network)) {
    const ticker = asset.asset_name
    omnibus = await fundedWallet(platform, alice, ticker, '5')
    const before = asset.type === 'native' ? await coinsOf(network, TO) : await tokensOf(asset, TO)
    const sent = await call<Transfer>(
      alice,
      'POST',
      '/dac/v1/transaction',
      transferBody(ticker, '1.000001', TO),
    )
    assert.equal(sent.status, 200, sent.text)
    const done = await terminal(alice, sent.body.id)
    assert.equal(done.status, 'confirmed', `${ticker}: ${String(done.failure_reason)}`)
    assert.ok(Number(done['platform_fee']) > 0, `${ticker} has a price, and so a platform fee`)
    assert.equal(
      (await balance(alice, ticker)).balance,
      '3.999999',
      'the tank pays the fee, not the wallet',
    )
    const after = asset.type === 'native' ? await coinsOf(network, TO) : await tokensOf(asset, TO)
    assert.equal(after - before, (whole(asset.decimals) * 1_000_001n) / 1_000_000n, ticker)
    const transaction = await rpc<{ type: string; chainId: string }>(
      platform,
      network,
      'eth_getTransactionByHash',
      [done.hash],
    )
    assert.equal(transaction.type, network === 'ONE' ? '0x0' : '0x2')
    assert.equal(
      Number(transaction.chainId),
      Number(await rpc<string>(platform, network, 'eth_chainId', [])),
    )
  }
  return omnibus
}

test('every asset can be received and sent, and its gas tank pays the fee', async () => {
  await Promise.all(
    networks().map(async (network) => {
      const omnibus = await journey(network)
      if (network !== 'OP_ETH' && network !== 'BASE') return
      // The fuel transaction covered the fee of the base chain and the operator fee. The safety
      // margin is still at the address.
      const fuelled = (await coinsOf(network, omnibus)) - (whole(18) * 3_999_999n) / 1_000_000n
      assert.ok(fuelled > 0n, `${network}: ${fuelled} wei are left of the fuel`)
    }),
  )
})

test('sweeps coins and tokens from further addresses, with 18 decimals and a base-chain fee', async () => {
  await Promise.all(
    ['USDT_BSC', 'USDC_OP_ETH', 'CRO'].map(async (ticker) => {
      const { address } = (
        await call<{ address: string }>(alice, 'POST', '/dac/v1/address', { asset: ticker })
      ).body
      assert.notEqual(address, undefined)
      await platform.fund(ticker, address, '2.000001')
      // The sweep of the native coin pays its own fee.
      await waitFor(
        `${ticker} sweep`,
        async () =>
          Math.abs(Number((await balance(alice, ticker)).balance) - 6) <=
          (ticker === 'CRO' ? 0.01 : 0),
      )
    }),
  )
})

test('lists a gas tank for each network, and can drain one', async () => {
  const tanks = (
    await call<{ network: string; status: string }[]>(alice, 'GET', '/dac/v1/gas-tanks')
  ).body
  for (const network of networks())
    assert.equal(tanks.find((tank) => tank.network === network)?.status, 'ok', network)
  for (const network of ['ONE', 'OP_ETH']) {
    const to = `0x00000000000000000000000000000000000000${network === 'ONE' ? 'd1' : 'd2'}`
    const drained = await platform.cli(
      'gas-tank',
      'drain',
      '--workspace',
      'alice',
      '--network',
      network,
      '--to',
      to,
    )
    assert.equal(drained.status, 0, drained.stderr)
    assert.ok((await coinsOf(network, to)) > 9n * whole(18))
  }
})

test('after these transfers, the ledger agrees with every chain', async () => {
  const report = await platform.operator('audit')
  const { ok, differences, dust } = report
  assert.deepEqual([ok, dust], [true, []], JSON.stringify(differences))
})
