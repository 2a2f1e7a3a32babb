import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { encodeFunctionData, erc20Abi, parseGwei, toHex, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tokenAddress } from '../evm/contracts.ts'
import { EVM_NETWORKS } from './networks.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
const alice = privateKeyToAccount(`0x${'a1'.repeat(32)}`)
const bob = privateKeyToAccount(`0x${'b0'.repeat(32)}`)
const MAX_FEE = parseGwei('5')
/** Call of the GasPriceOracle, as OP Stack defines it. */
const GET_OPERATOR_FEE = '0x275aedd2'
const ORACLE = '0x420000000000000000000000000000000000000F'
let devnet: Running

interface Receipt {
  status: Hex
  gasUsed: Hex
  effectiveGasPrice: Hex
  gasUsedForL1?: Hex
  l1Fee?: Hex
  operatorFeeScalar?: Hex
  operatorFeeConstant?: Hex
}

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

const on = (network: string) => {
  const path = network.toLowerCase() as 'eth'
  const call = <T>(method: string, ...params: unknown[]) => devnet.call<T>(path, method, ...params)
  return {
    call,
    async balance(address: Hex) {
      return BigInt(await call<Hex>('eth_getBalance', address, 'latest'))
    },
    async estimate(to: Hex, value: bigint, data?: Hex) {
      return BigInt(
        await call<Hex>('eth_estimateGas', {
          from: alice.address,
          to,
          value: toHex(value),
          ...(data ? { data } : {}),
        }),
      )
    },
    async sign(gas: bigint, to: Hex, value: bigint, data?: Hex) {
      const chainId = EVM_NETWORKS.find(({ code }) => code === network)!.chainId
      const nonce = Number(await call<Hex>('eth_getTransactionCount', alice.address, 'latest'))
      return alice.signTransaction({
        type: 'eip1559',
        chainId,
        nonce,
        gas,
        to,
        value,
        maxFeePerGas: MAX_FEE,
        maxPriorityFeePerGas: 1n,
        ...(data ? { data } : {}),
      })
    },
    async receipt(raw: Hex): Promise<Receipt> {
      const hash = await call<Hex>('eth_sendRawTransaction', raw)
      await devnet.mine(network)
      return call<Receipt>('eth_getTransactionReceipt', hash)
    },
    refusal: async (raw: Hex) =>
      (await devnet.rpc(path, 'eth_sendRawTransaction', raw)).error?.message,
    fund: (asset: string, amount: string) =>
      devnet.control({ command: 'fund', asset, address: alice.address, amount, tag: null }),
  }
}

test('ARB: refuses a transfer with 21,000 gas, and charges the estimate with its L1 data gas', async () => {
  const arb = on('ARB')
  await arb.fund('ARB', '1')
  assert.match(
    (await arb.refusal(await arb.sign(21_000n, bob.address, 5n))) ?? '',
    /^intrinsic gas too low: have 21000, want \d+$/,
  )
  const gas = await arb.estimate(bob.address, 5n)
  assert.ok(gas > 50_000n, String(gas))
  const before = await arb.balance(alice.address)
  const receipt = await arb.receipt(await arb.sign(gas, bob.address, 5n))
  assert.equal(receipt.status, '0x1')
  assert.equal(BigInt(receipt.gasUsed), 21_000n + BigInt(receipt.gasUsedForL1!))
  assert.ok(BigInt(receipt.gasUsedForL1!) >= 30_000n)
  assert.equal(
    before - (await arb.balance(alice.address)),
    5n + BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice),
  )
})

test('ARB: a token transfer publishes more bytes, and pays for more L1 data gas', async () => {
  const arb = on('ARB')
  await arb.fund('USDT_ARB', '10')
  const data = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'transfer',
    args: [bob.address, 7n],
  })
  const token = tokenAddress('USDT_ARB')
  const receipt = await arb.receipt(
    await arb.sign(((await arb.estimate(token, 0n, data)) * 130n) / 100n, token, 0n, data),
  )
  assert.equal(receipt.status, '0x1')
  assert.ok(BigInt(receipt.gasUsedForL1!) >= 47_000n, receipt.gasUsedForL1)
})

test('ARB: the L1 gas price changes by less than the safety margin of a third', async () => {
  const arb = on('ARB')
  const seen: bigint[] = []
  for (let block = 0; block < 17; block += 1) {
    seen.push(await arb.estimate(bob.address, 1n))
    await devnet.mine('ARB')
  }
  const sorted = [...seen].sort((a, b) => Number(a - b))
  assert.ok(new Set(seen).size > 4)
  assert.ok(sorted.at(-1)! * 100n < sorted[0]! * 130n)
})

for (const [code, formula] of [
  [
    'OP_ETH',
    (gas: bigint, scalar: bigint, constant: bigint) => (gas * scalar) / 1_000_000n + constant,
  ],
  ['BASE', (gas: bigint, scalar: bigint, constant: bigint) => gas * scalar * 100n + constant],
] as const) {
  test(`${code}: the sender pays the L1 fee and the operator fee that oracle and receipt state`, async () => {
    const chain = on(code)
    await chain.fund(code, '1')
    const before = await chain.balance(alice.address)
    const receipt = await chain.receipt(await chain.sign(21_000n, bob.address, 5n))
    const operator = formula(
      BigInt(receipt.gasUsed),
      BigInt(receipt.operatorFeeScalar!),
      BigInt(receipt.operatorFeeConstant!),
    )
    assert.ok(operator > 0n && BigInt(receipt.l1Fee!) > 0n)
    assert.equal(
      before - (await chain.balance(alice.address)),
      5n +
        BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) +
        BigInt(receipt.l1Fee!) +
        operator,
    )
    const fee = await chain.call<Hex>(
      'eth_call',
      { to: ORACLE, data: `${GET_OPERATOR_FEE}${21_000n.toString(16).padStart(64, '0')}` },
      'latest',
    )
    assert.equal(BigInt(fee), operator)
    const left = await chain.balance(alice.address)
    assert.match(
      (await chain.refusal(await chain.sign(21_000n, bob.address, left - 21_000n * MAX_FEE))) ?? '',
      /^insufficient funds for gas/,
    )
  })
}

test('a restart charges the same amounts again, and a reorganisation refunds them', async () => {
  const arb = on('ARB')
  const before = await arb.balance(alice.address)
  const receipt = await arb.receipt(
    await arb.sign(await arb.estimate(bob.address, 5n), bob.address, 5n),
  )
  const after = await arb.balance(alice.address)
  assert.equal(before - after, 5n + BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice))
  await devnet.mine('ARB', 2)
  await devnet.stop()
  devnet = await startDevnet(home)
  assert.equal(await arb.balance(alice.address), after)
  assert.equal(await on('OP_ETH').balance(bob.address), 5n)
  await devnet.control({ command: 'reorg', network: 'ARB', depth: 3 })
  assert.equal(await arb.balance(alice.address), before)
})
