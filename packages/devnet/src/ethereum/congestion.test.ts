import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  http,
  parseEther,
  parseGwei,
  type Hex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

/** Blocks include only transactions with a sufficient fee, so that a fee bump has an effect. */
const home = tempHome()
const alice = privateKeyToAccount(`0x${'a1'.repeat(32)}`)
const BOB = '0x00000000000000000000000000000000000000b0'
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
  const transport = http(`${devnet.url}/eth`)
  return {
    reader: createPublicClient({ chain, transport, pollingInterval: 100 }),
    wallet: createWalletClient({ chain, transport, account: alice }),
  }
}
const congest = (network: string, rate: string) =>
  devnet.control({ command: 'congestion', network, fee_rate: rate })
const mine = (network: string, blocks: number) =>
  devnet.control<{ height: number; hash: Hex }>({ command: 'mine', network, blocks })

test('EVM: a transaction below the base fee waits, and its replacement is mined', async () => {
  await devnet.control({ command: 'fund', asset: 'ETH', address: alice.address, amount: '5' })
  await congest('ETH', '50')
  const { reader, wallet } = clients()
  const fees = (gwei: string) => ({
    maxFeePerGas: parseGwei(gwei),
    maxPriorityFeePerGas: parseGwei('1'),
    nonce: 0,
    gas: 21_000n,
  })
  const low = await wallet.sendTransaction({ to: BOB, value: parseEther('1'), ...fees('20') })
  await mine('ETH', 3)
  assert.equal((await reader.getTransaction({ hash: low })).blockNumber, null, 'it waits')
  const high = await wallet.sendTransaction({
    to: BOB,
    value: parseEther('1'),
    ...fees('60'),
    maxPriorityFeePerGas: parseGwei('2'),
  })
  await mine('ETH', 1)
  assert.equal((await reader.getTransactionReceipt({ hash: high })).status, 'success')
  assert.equal((await reader.getBlock()).baseFeePerGas, parseGwei('50'))
  await congest('ETH', '0')
  const { height, hash } = await mine('ETH', 1)
  assert.ok(((await reader.getBlock()).baseFeePerGas ?? 0n) < parseGwei('5'))
  await devnet.killAll()
  devnet = await startDevnet(home)
  assert.equal((await clients().reader.getBlock({ blockNumber: BigInt(height) })).hash, hash)
})

test('Bitcoin: estimates follow congestion; a network without a fee market reports an error', async () => {
  const estimate = async () =>
    (await devnet.call<{ feerate: number }>('btc', 'estimatesmartfee', 6)).feerate
  const calm = await estimate()
  await congest('BTC', '80')
  assert.equal(await estimate(), 0.0008)
  await congest('BTC', '0')
  assert.equal(await estimate(), calm)
  await assert.rejects(congest('XRP', '5'), /XRP has no fee market/)
  await assert.rejects(congest('KLAY', 'x'), /not a decimal number/)
})
