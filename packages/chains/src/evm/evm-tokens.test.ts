// Tokens with real deviations from the standard, on a real engine behind the production protocol.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ethers } from 'ethers'
import {
  BALANCES_MAX,
  ChainError,
  EvmClient,
  evm,
  familyOf,
  RpcReverted,
  RpcUnavailable,
  type Asset,
  type Network,
} from '../index.ts'
import { sweeperOf } from '../sweep/index.ts'
import { addressOf, local, privateKeyAt, publicKeyAt, sign } from '../../testing/support.ts'

const DEVNET = fileURLToPath(new URL('../../../devnet/', import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'chains-devnet-'))
let devnet: ChildProcess
let url = ''

before(async () => {
  devnet = spawn(process.execPath, [join(DEVNET, 'src/main.ts'), '--home', home, '--port', '0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  url = await new Promise<string>((resolve, reject) => {
    let text = ''
    devnet.stdout?.on('data', (part: Buffer) => {
      text += part.toString()
      const ready = /^devnet ready (\S+)$/m.exec(text)
      if (ready) resolve(ready[1] as string)
    })
    devnet.once('exit', (code) => reject(new Error(`the local chains ended with ${String(code)}`)))
  })
})
after(async () => {
  const ended = new Promise((resolve) => devnet.once('exit', resolve))
  devnet.kill('SIGTERM')
  await ended
  rmSync(home, { recursive: true, force: true })
})

const net = (code: string) => local.network(code) as Network
const clientOf = (code: string, assets: readonly Asset[] = local.assetsOf(code)) =>
  new EvmClient(net(code), assets, { url: `${url}/${code.toLowerCase()}` }, fetch)
const control = async (command: Record<string, unknown>) =>
  (await (
    await fetch(`${url}/control`, { method: 'POST', body: JSON.stringify(command) })
  ).json()) as { hash: string; error?: string }
const path = [1, 60, 0]
const owner = () => addressOf(net('ETH'), path)
const TO = '0x00000000000000000000000000000000000000B1'
const plain = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

/**
 * Returns the same key in another library, for an operator who deploys contracts that are not in
 * the registry.
 */
function deployer(code: string): ethers.Wallet {
  return new ethers.Wallet(
    Buffer.from(privateKeyAt(path)).toString('hex'),
    new ethers.JsonRpcProvider(`${url}/${code.toLowerCase()}`, net(code).chain_id, {
      staticNetwork: true,
      cacheTimeout: -1,
      pollingInterval: 100,
    }),
  )
}

async function deploy(name: string): Promise<{ asset: Asset; contract: ethers.Contract }> {
  await control({ command: 'fund', asset: 'ETH', address: owner(), amount: '1' })
  const { abi, bytecode } = JSON.parse(
    readFileSync(join(DEVNET, `contracts/${name}.json`), 'utf8'),
  ) as { abi: ethers.InterfaceAbi; bytecode: string }
  const contract = (await new ethers.ContractFactory(abi, bytecode, deployer('ETH')).deploy(
    1_000_000_000n,
  )) as unknown as ethers.Contract
  await contract.waitForDeployment()
  return {
    contract,
    asset: {
      ...(local.asset('USDT_ETH') as Asset),
      asset_name: 'ODD',
      contract_address: await contract.getAddress(),
    },
  }
}

/** Builds, signs, sends and mines a transaction with our own code. @returns its hash */
async function send(
  code: string,
  client: EvmClient,
  asset: Asset,
  amount: bigint,
  gas?: bigint,
): Promise<string> {
  const network = net(code)
  const from = owner()
  const unsigned = evm.buildTransfer(network, {
    asset,
    to: TO,
    amount,
    path,
    nonce: await client.nonce(from),
    gas: gas ?? (await client.gasLimit({ asset, from, to: TO, amount })),
    fee: (await client.feeRates()).medium,
  })
  const signed = familyOf(network).assemble(
    network,
    unsigned,
    sign(familyOf(network).signing(network, unsigned, publicKeyAt)),
    publicKeyAt,
  )
  assert.deepEqual(await client.broadcast(signed.raw), { kind: 'accepted' })
  await control({ command: 'mine', network: code, blocks: 1 })
  const judge = ethers.Transaction.from(`0x${signed.raw}`)
  assert.equal(judge.from, from, 'another library recovers the same sender')
  assert.equal(judge.type, network.legacy_gas_price ? 0 : 2)
  return signed.hash
}

test('a token transfer that returns false is not a success and moves no tokens', async () => {
  const { asset, contract } = await deploy('FalseLike')
  const client = clientOf('ETH', [...local.assetsOf('ETH'), asset])
  const expected = { asset, from: owner(), to: TO }
  const good = await client.status(await send('ETH', client, asset, 5n), expected)
  assert.equal(good.state === 'included' && good.succeeded, true)
  await ((await contract.getFunction('freeze')(true)) as ethers.TransactionResponse).wait()
  await assert.rejects(
    client.gasLimit({ asset, from: owner(), to: TO, amount: 5n }),
    RpcReverted,
    'known before anything is signed',
  )
  const hash = await send('ETH', client, asset, 5n, 100_000n)
  const plain = await client.status(hash)
  assert.equal(
    plain.state === 'included' && plain.succeeded,
    true,
    'the receipt alone says that all is well',
  )
  const checked = await client.status(hash, expected)
  assert.equal(checked.state === 'included' && checked.succeeded, false)
  assert.equal(checked.state === 'included' && checked.fee! > 0n, true, 'its fee was spent')
})

test('the deposit of a token that deducts a fee is the received amount', async () => {
  const { asset } = await deploy('FeeLike')
  const client = clientOf('ETH', [...local.assetsOf('ETH'), asset])
  const hash = await send('ETH', client, asset, 1000n)
  const status = await client.status(hash, { asset, from: owner(), to: TO })
  assert.ok(status.state === 'included' && status.succeeded)
  const block = await client.block(status.height)
  assert.deepEqual(
    block?.transfers
      .filter((each) => each.asset === 'ODD')
      .map(({ address, amount }) => [address, amount]),
    [
      [TO, 990n],
      [owner(), 10n],
    ],
  )
  assert.equal(await client.balance(TO, asset), 990n)
})

test('if an endpoint omits the logs of a block, its receipts are read or the block fails', async () => {
  const { asset } = await deploy('FalseLike')
  const assets = [...local.assetsOf('ETH'), asset]
  const client = clientOf('ETH', assets)
  const hash = await send('ETH', client, asset, 7n)
  const { height } = (await client.status(hash)) as { height: number }
  const whole = await client.block(height)
  assert.deepEqual(
    whole?.transfers.map(({ asset: name, address, amount }) => [name, address, amount]),
    [['ODD', TO, 7n]],
  )
  // Each endpoint responds as if there were no logs, without an error.
  const empty: Record<string, (result: unknown) => unknown> = {
    eth_getLogs: () => [],
    eth_getBlockReceipts: (result) =>
      (result as object[]).map((receipt) => ({ ...receipt, logs: [] })),
    eth_getTransactionReceipt: (result) => ({ ...(result as object), logs: [] }),
  }
  const silent = new Set<string>()
  const half = new EvmClient(net('ETH'), assets, { url: `${url}/eth` }, async (input, init) => {
    const response = await fetch(input, init)
    const { method } = JSON.parse(String(init?.body)) as { method: string }
    if (!silent.has(method)) return response
    const body = (await response.json()) as { result: unknown }
    return Response.json({ ...body, result: empty[method]?.(body.result) })
  })
  silent.add('eth_getLogs')
  assert.equal(JSON.stringify(await half.block(height), plain), JSON.stringify(whole, plain))
  silent.add('eth_getBlockReceipts')
  await assert.rejects(half.block(height), RpcUnavailable)
  silent.add('eth_getTransactionReceipt')
  await assert.rejects(half.status(hash, { asset, from: owner(), to: TO }), RpcUnavailable)
})

test('transfers tokens without return value, with true, and with 18 decimals on every network', async () => {
  for (const code of ['ETH', 'BSC', 'KLAY']) {
    const client = clientOf(code)
    await client.probe()
    await control({ command: 'fund', asset: code, address: owner(), amount: '1' })
    for (const asset of local.assetsOf(code).filter((each) => each.type === 'token')) {
      assert.deepEqual(
        (
          await control({
            command: 'fund',
            asset: asset.asset_name,
            address: owner(),
            amount: '3',
          })
        ).error,
        undefined,
      )
      const unit = 10n ** BigInt(asset.decimals)
      assert.equal(await client.balance(owner(), asset), 3n * unit)
      const status = await client.status(await send(code, client, asset, unit + 1n), {
        asset,
        from: owner(),
        to: TO,
      })
      assert.ok(status.state === 'included' && status.succeeded, asset.asset_name)
      assert.equal(await client.balance(TO, asset), unit + 1n)
      await assert.rejects(
        client.gasLimit({ asset, from: owner(), to: TO, amount: 3n * unit }),
        RpcReverted,
        'more than there is',
      )
    }
  }
})

test('one call returns the balances of 500 addresses that a node of the network executes', async () => {
  const client = clientOf('ETH')
  const held = Array.from({ length: 3 }, (_, at) => addressOf(net('ETH'), [7, 60, at]))
  const empty = Array.from({ length: BALANCES_MAX - 3 }, (_, at) =>
    ethers.getAddress(ethers.toBeHex(2n ** 159n + BigInt(at), 20)),
  )
  const list = [held[0]!, ...empty, held[1]!, held[2]!]
  const provider = new ethers.JsonRpcProvider(`${url}/eth`, net('ETH').chain_id, {
    staticNetwork: true,
    cacheTimeout: -1,
  })
  const abi = ['function balanceOf(address) view returns (uint256)']
  const { height } = await client.tip()
  const assets = local.assetsOf('ETH')
  assert.ok(assets.length >= 3)
  for (const asset of assets) {
    for (const [at, address] of held.entries())
      await control({ command: 'fund', asset: asset.asset_name, address, amount: `${at + 1}.25` })
    const requests: string[] = []
    const counted = new EvmClient(net('ETH'), assets, { url: `${url}/eth` }, (input, init) => {
      requests.push(String(init.body))
      return fetch(input, init)
    })
    const balances = await counted.balances(list, asset)
    assert.equal(requests.length, 1)
    const unit = 10n ** BigInt(asset.decimals)
    assert.deepEqual(
      [balances[0], balances.at(-2), balances.at(-1)],
      [1n, 2n, 3n].map((whole) => whole * unit + unit / 4n),
      asset.asset_name,
    )
    assert.deepEqual(new Set(balances.slice(1, -2)), new Set([0n]))
    const judge = (address: string) =>
      asset.type === 'native'
        ? provider.getBalance(address)
        : (new ethers.Contract(asset.contract_address!, abi, provider).getFunction('balanceOf')(
            address,
          ) as Promise<bigint>)
    assert.deepEqual(
      [balances[0], balances.at(-1)],
      await Promise.all([judge(list[0]!), judge(list.at(-1)!)]),
    )
    assert.deepEqual(new Set(await counted.balances(list, asset, height)), new Set([0n]))
  }
  provider.destroy()
})

test('a token that fails, or answers other than one word, has no balances', async () => {
  const odd = async (runtime: string): Promise<Asset> => {
    // Init code that returns the runtime code of at most 32 bytes.
    const size = (runtime.length / 2).toString(16).padStart(2, '0')
    const init = `0x60${size}600c60003960${size}6000f3${runtime}`
    const deployed = await new ethers.ContractFactory([], init, deployer('ETH')).deploy()
    await deployed.waitForDeployment()
    return { ...(local.asset('USDT_ETH') as Asset), contract_address: await deployed.getAddress() }
  }
  await control({ command: 'fund', asset: 'ETH', address: owner(), amount: '1' })
  const client = clientOf('ETH')
  const one = await client.balances([owner(), TO], await odd('600760005260206000f3'))
  assert.deepEqual(one, [7n, 7n], 'a contract that returns the word 7')
  for (const [name, runtime] of [
    ['reverts', '60006000fd'],
    ['runs an invalid operation', 'fe'],
    ['returns nothing', '00'],
    ['returns 31 bytes', '6007600052601f6000f3'],
    ['returns 64 bytes', '600760005260406000f3'],
  ] as const) {
    const asset = await odd(runtime)
    await assert.rejects(client.balances([owner(), TO], asset), ChainError, name)
  }
  const none = { ...(local.asset('USDT_ETH') as Asset), contract_address: TO }
  await assert.rejects(client.balances([owner()], none), ChainError, 'there is no contract')
})

test('refuses the endpoint of another network', async () => {
  const wrong = new EvmClient(net('BSC'), [], { url: `${url}/pol` }, fetch)
  await assert.rejects(wrong.probe(), { code: 'WRONG_NETWORK' })
})

test('ONE: builds only type 0 transactions with a gas price', async () => {
  const client = clientOf('ONE')
  const { medium } = await client.feeRates()
  assert.equal(medium.legacy, true)
  // A probe also finds this if the registry does not state it.
  const { legacy_gas_price: _, ...silent } = net('ONE')
  assert.equal(
    (await new EvmClient(silent, [], { url: `${url}/one` }, fetch).feeRates()).low.legacy,
    true,
  )
  await control({ command: 'fund', asset: 'ONE', address: owner(), amount: '1' })
  const status = await client.status(await send('ONE', client, local.asset('ONE') as Asset, 7n))
  assert.ok(
    status.state === 'included' && status.succeeded && status.fee === 21_000n * medium.maxFeePerGas,
  )
  const modern = await deployer('ONE').signTransaction({
    type: 2,
    chainId: net('ONE').chain_id,
    nonce: 1,
    to: TO,
    value: 1n,
    gasLimit: 21_000n,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 1n,
  })
  assert.equal((await client.broadcast(modern.slice(2))).kind, 'rejected')
})

test('the fee on a roll-up includes the base-chain fee for the size of the transaction', async () => {
  const fee = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n }
  const build = (code: string, asset: string) =>
    evm.buildTransfer(net(code), {
      asset: local.asset(asset) as Asset,
      to: TO,
      amount: 1n,
      nonce: 1n,
      gas: 50_000n,
      fee,
      path,
    })
  for (const code of ['OP_ETH', 'BASE']) {
    const native = build(code, code)
    const oracle = new ethers.Contract(
      '0x420000000000000000000000000000000000000F',
      ['function getL1Fee(bytes) view returns (uint256)'],
      deployer(code),
    )
    const quoted = (await oracle.getFunction('getL1Fee')(`0x${native.bytes}`)) as bigint
    assert.ok(quoted > 0n)
    assert.equal(await clientOf(code).l1Fee(native, false), quoted)
    assert.equal(await clientOf(code).l1Fee(native, true), (quoted * 150n) / 100n)
    assert.ok((await clientOf(code).l1Fee(build(code, `USDT_${code}`), false)) > quoted)
  }
  assert.equal(await clientOf('ARB').l1Fee(build('ARB', 'ARB'), true), 0n)
})

test('ARB: a recovery funds gas, collects tokens, then coins, with the estimated gas', async () => {
  const network = net('ARB')
  const placeAt = (subAccount: number, index: number) => {
    const at = [subAccount, network.chain_index, index]
    return { path: at, address: addressOf(network, at) }
  }
  const to = '0x00000000000000000000000000000000000000C7'
  const endpoint = { url: `${url}/arb` }
  const client = clientOf('ARB')
  await control({ command: 'fund', asset: 'ARB', address: placeAt(0, 0).address, amount: '1' })
  await control({
    command: 'fund',
    asset: 'USDT_ARB',
    address: placeAt(1, 1).address,
    amount: '9',
  })
  const sweeper = sweeperOf(network)
  const ask = {
    registry: local,
    network,
    endpoint,
    fetch,
    subAccounts: [0, 1],
    gap: 2,
    fromHeight: 0,
    placeAt,
    to,
    notify: () => undefined,
  }
  let fuels = 0
  for (let round = 0, more = true; more; round++) {
    assert.ok(round < 4, 'the rounds do not end')
    const plan = sweeper.plan({
      registry: local,
      network,
      publicKeyAt,
      scan: await sweeper.look(ask),
      to,
      tag: null,
    })
    for (const { unsigned, fuel } of plan.transactions) {
      if (fuel) fuels++
      const signed = familyOf(network).assemble(
        network,
        unsigned,
        sign(familyOf(network).signing(network, unsigned, publicKeyAt)),
        publicKeyAt,
      )
      assert.deepEqual(await client.broadcast(signed.raw), { kind: 'accepted' })
    }
    await control({ command: 'mine', network: 'ARB', blocks: 1 })
    more = plan.more
  }
  assert.equal(fuels, 1)
  assert.equal(await client.balance(to, local.asset('USDT_ARB') as Asset), 9_000_000n)
  assert.ok((await client.balance(to, local.asset('ARB') as Asset)) > 99n * 10n ** 16n)
})
