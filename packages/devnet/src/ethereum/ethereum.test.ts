import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  erc20Abi,
  http,
  parseEther,
  parseTransaction,
  serializeTransaction,
  type Hex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
const USDT = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const alice = privateKeyToAccount(`0x${'a1'.repeat(32)}`)
const bob = privateKeyToAccount(`0x${'b0'.repeat(32)}`)
const abi = [
  {
    type: 'function',
    name: 'transfer',
    stateMutability: 'nonpayable',
    inputs: [{ type: 'address' }, { type: 'uint256' }],
    outputs: [],
  },
  {
    type: 'function',
    name: 'approve',
    stateMutability: 'nonpayable',
    inputs: [{ type: 'address' }, { type: 'uint256' }],
    outputs: [],
  },
  {
    type: 'function',
    name: 'transferFrom',
    stateMutability: 'nonpayable',
    inputs: [{ type: 'address' }, { type: 'address' }, { type: 'uint256' }],
    outputs: [],
  },
] as const
let devnet: Running

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

function clients() {
  const chain = defineChain({
    id: 31337,
    name: 'local',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [`${devnet.url}/eth`] } },
  })
  const transport = http(`${devnet.url}/eth`, { batch: true })
  return {
    reader: createPublicClient({ chain, transport, pollingInterval: 100 }),
    wallet: (account: typeof alice) => createWalletClient({ chain, transport, account }),
  }
}

const receiptOf = (hash: Hex) =>
  devnet.mined('ETH', clients().reader.waitForTransactionReceipt({ hash }))

test('a funded address has its coins, a transfer has a receipt, and blocks become final', async () => {
  const { reader } = clients()
  const { hash } = await devnet.control<{ hash: Hex }>({
    command: 'fund',
    asset: 'ETH',
    address: alice.address,
    amount: '2.000000000000000001',
    tag: null,
  })
  const receipt = await reader.getTransactionReceipt({ hash })
  assert.deepEqual([receipt.status, receipt.to], ['success', alice.address.toLowerCase()])
  assert.equal(await reader.getBalance({ address: alice.address }), parseEther('2') + 1n)
  assert.ok((await reader.getBlock({ blockTag: 'finalized' })).number < receipt.blockNumber)
  await devnet.mine('ETH', 2)
  assert.equal((await reader.getBlock({ blockTag: 'finalized' })).number, receipt.blockNumber)
  const receipts = await devnet.call<{ transactionHash: Hex }[]>(
    'eth',
    'eth_getBlockReceipts',
    `0x${receipt.blockNumber.toString(16)}`,
  )
  assert.deepEqual(
    receipts.map(({ transactionHash }) => transactionHash),
    [hash],
  )
})

test('the token has six decimals, returns nothing, logs transfers, and has a fixed address', async () => {
  const { reader, wallet } = clients()
  const { hash } = await devnet.control<{ hash: Hex }>({
    command: 'fund',
    asset: 'USDT_ETH',
    address: alice.address,
    amount: '12.345678',
  })
  const token = { address: USDT, abi: erc20Abi } as const
  assert.equal(await reader.readContract({ ...token, functionName: 'decimals' }), 6)
  assert.equal(await reader.readContract({ ...token, functionName: 'symbol' }), 'USDT')
  assert.equal(
    await reader.readContract({ ...token, functionName: 'balanceOf', args: [alice.address] }),
    12_345_678n,
  )
  // A caller that requires a boolean fails here as on the main network.
  await assert.rejects(
    reader.simulateContract({
      ...token,
      functionName: 'transfer',
      args: [bob.address, 1n],
      account: alice,
    }),
  )
  const { result } = await reader.simulateContract({
    address: USDT,
    abi,
    functionName: 'transfer',
    args: [bob.address, 1n],
    account: alice,
  })
  assert.equal(result, undefined)
  const sent = await wallet(alice).writeContract({
    address: USDT,
    abi,
    functionName: 'transfer',
    args: [bob.address, 345_678n],
  })
  const receipt = await receiptOf(sent)
  assert.equal(receipt.status, 'success')
  assert.equal(
    await reader.readContract({ ...token, functionName: 'balanceOf', args: [bob.address] }),
    345_678n,
  )
  const logs = await reader.getContractEvents({
    ...token,
    eventName: 'Transfer',
    args: { to: bob.address },
    fromBlock: 0n,
  })
  assert.deepEqual(
    logs.map(({ transactionHash, args }) => [transactionHash, args.value]),
    [[sent, 345_678n]],
  )
  assert.notEqual(hash, sent)
})

test('changing an allowance requires zero first, and a transfer above the balance reverts', async () => {
  const { wallet } = clients()
  await devnet.control({ command: 'fund', asset: 'ETH', address: bob.address, amount: '1' })
  const approve = (value: bigint) =>
    wallet(alice).writeContract({
      address: USDT,
      abi,
      functionName: 'approve',
      args: [bob.address, value],
      gas: 100_000n,
    })
  const status = async (hash: Hex) => (await receiptOf(hash)).status
  assert.equal(await status(await approve(500n)), 'success')
  assert.equal(await status(await approve(600n)), 'reverted')
  const pull = (value: bigint) =>
    wallet(bob).writeContract({
      address: USDT,
      abi,
      functionName: 'transferFrom',
      args: [alice.address, bob.address, value],
      gas: 100_000n,
    })
  assert.equal(await status(await pull(501n)), 'reverted')
  assert.equal(await status(await pull(500n)), 'success')
  const tooMuch = await wallet(alice).writeContract({
    address: USDT,
    abi,
    functionName: 'transfer',
    args: [bob.address, 10n ** 12n],
    gas: 100_000n,
  })
  assert.equal(await status(tooMuch), 'reverted')
})

test('accepts only the methods of a production node', async () => {
  for (const method of [
    'anvil_mine',
    'evm_mine',
    'evm_increaseTime',
    'hardhat_setBalance',
    'anvil_dumpState',
    'eth_sendTransaction',
    'eth_accounts',
    'eth_sign',
    'debug_traceTransaction',
    'personal_sign',
  ]) {
    const { error } = await devnet.rpc('eth', method)
    assert.equal(error?.code, -32601, method)
  }
  for (const [method, ...params] of [
    ['web3_clientVersion'],
    ['net_version'],
    ['eth_gasPrice'],
    ['eth_feeHistory', '0x4', 'latest', [25, 50, 75]],
    ['eth_maxPriorityFeePerGas'],
    ['eth_syncing'],
  ] as [string, ...unknown[]][]) {
    assert.notEqual(await devnet.call('eth', method, ...params), undefined, method)
  }
  const batch = [
    { jsonrpc: '2.0', id: 'a', method: 'eth_chainId' },
    { jsonrpc: '2.0', id: 7, method: 'evm_mine' },
  ]
  const answers = (await (
    await fetch(`${devnet.url}/eth`, { method: 'POST', body: JSON.stringify(batch) })
  ).json()) as {
    id: unknown
    result?: string
    error?: { code: number }
  }[]
  assert.deepEqual(
    answers.map(({ id, result, error }) => [id, result ?? error?.code]),
    [
      ['a', '0x7a69'],
      [7, -32601],
    ],
  )
})

test('refuses a signature with a high s, as mainnet does', async () => {
  const { reader } = clients()
  const nonce = await reader.getTransactionCount({ address: alice.address })
  const signed = await alice.signTransaction({
    type: 'eip1559',
    chainId: 31337,
    nonce,
    to: bob.address,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
  const { r, s, yParity, ...rest } = parseTransaction(signed)
  const high =
    `0x${(secp256k1.Point.Fn.ORDER - BigInt(s!)).toString(16).padStart(64, '0')}` as const
  const malleated = serializeTransaction(rest, { r: r!, s: high, yParity: 1 - yParity! })
  const { error } = await devnet.rpc('eth', 'eth_sendRawTransaction', malleated)
  assert.match(error!.message, /invalid sender/)
  const hash = await devnet.call<Hex>('eth', 'eth_sendRawTransaction', signed)
  assert.equal((await receiptOf(hash)).status, 'success')
})

test("refuses a broadcast with a production node's message", async () => {
  const nonce = Number(
    await devnet.call<Hex>('eth', 'eth_getTransactionCount', alice.address, 'pending'),
  )
  const payment = (tip: bigint, max: bigint, more: object = {}) =>
    alice.signTransaction({
      type: 'eip1559',
      chainId: 31337,
      nonce,
      to: bob.address,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: max,
      maxPriorityFeePerGas: tip,
      ...more,
    })
  const send = async (raw: Hex) => {
    const { result, error } = await devnet.rpc('eth', 'eth_sendRawTransaction', raw)
    return error ? [error.code, error.message] : [typeof result]
  }
  assert.deepEqual(await send(await payment(10n, 10n ** 12n)), ['string'])
  assert.deepEqual(await send(await payment(10n, 10n ** 12n)), [-32000, 'already known'])
  assert.deepEqual(await send(await payment(11n, (10n ** 12n * 109n) / 100n)), [
    -32000,
    'replacement transaction underpriced',
  ])
  assert.deepEqual(await send(await payment(10n, (10n ** 12n * 110n) / 100n)), [
    -32000,
    'replacement transaction underpriced',
  ])
  assert.deepEqual(await send(await payment(11n, (10n ** 12n * 110n) / 100n)), ['string'])
  const [code, message] = await send(
    await payment(11n, 10n ** 12n, { nonce: nonce + 1, value: 10n ** 30n }),
  )
  assert.equal(code, -32000)
  assert.match(
    String(message),
    /^insufficient funds for gas \* price \+ value: balance \d+, tx cost \d+, overshot \d+$/,
  )
  await devnet.control({ command: 'mine', network: 'ETH', blocks: 1 })
  assert.deepEqual(await send(await payment(99n, 10n ** 13n)), [
    -32000,
    `nonce too low: next nonce ${nonce + 1}, tx nonce ${nonce}`,
  ])
  assert.equal((await send('0x1234'))[0], -32000)
})
