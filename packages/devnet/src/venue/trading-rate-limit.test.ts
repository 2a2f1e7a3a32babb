// Without manual mode, blocks are produced automatically, and sooner while a transaction is
// waiting.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Producer } from '../producer.ts'
import { manualTime, quickTime, REAL_TIME } from '../timing.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const home = tempHome()
const account = privateKeyToAccount(`0x${'c1'.repeat(32)}`)
let devnet: Running

before(async () => {
  devnet = await startDevnet(home, { manual: false })
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('produces blocks automatically while a transaction waits', async () => {
  await devnet.control({ command: 'fund', asset: 'ETH', address: account.address, amount: '5' })
  const address = await devnet.call<string>('btc', 'getnewaddress')
  await devnet.control({ command: 'fund', asset: 'BTC', address, amount: '1' })
  const raw = await account.signTransaction({
    type: 'eip1559',
    chainId: 31337,
    nonce: 0,
    to: account.address,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
  const hash = await devnet.call<Hex>('eth', 'eth_sendRawTransaction', raw)
  const id = await devnet.call<string>('btc', 'sendtoaddress', address, 0.5)
  await waitFor('both are mined', async () => {
    const { confirmations } = await devnet.call<{ confirmations?: number }>(
      'btc',
      'getrawtransaction',
      id,
      1,
    )
    return (
      (confirmations ?? 0) >= 1 &&
      (await devnet.call('eth', 'eth_getTransactionReceipt', hash)) !== null
    )
  })
})

test('a producer makes blocks at its interval, and no blocks in manual mode', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const made = { real: 0, manual: 0, quick: 0, standing: 0 }
  const options = { busyMs: 1000, idleMs: 30_000, isBusy: () => made.real < 2 }
  const real = new Producer({
    ...options,
    timing: REAL_TIME,
    produce: async () => {
      made.real += 1
    },
  })
  const manual = new Producer({
    ...options,
    timing: manualTime(),
    produce: async () => {
      made.manual += 1
    },
  })
  const quick = new Producer({
    ...options,
    isBusy: () => made.quick < 2,
    timing: quickTime(10),
    produce: async () => {
      made.quick += 1
    },
  })
  const pass = async (ms: number) => {
    context.mock.timers.tick(ms)
    // The producer sets its next timer when its block is complete.
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
  }
  real.wake()
  manual.wake()
  quick.wake()
  await pass(99)
  assert.equal(made.quick, 0)
  await pass(1)
  assert.equal(made.quick, 1)
  await pass(100)
  assert.equal(made.quick, 2)
  await pass(799)
  assert.equal(made.quick, 2, 'idle it is as slow as any')
  quick.stop()
  assert.equal(made.real, 0)
  await pass(1)
  await pass(1000)
  assert.equal(made.real, 2)
  await pass(29_999)
  assert.equal(made.real, 2, 'idle')
  await pass(1)
  assert.equal(made.real, 3)
  const halted = { ...REAL_TIME, halted: true }
  const standing = new Producer({
    ...options,
    timing: halted,
    isBusy: () => true,
    produce: async () => {
      made.standing += 1
    },
  })
  standing.wake()
  await pass(5000)
  assert.equal(made.standing, 0)
  halted.halted = false
  await pass(1000)
  assert.equal(made.standing, 1, 'it goes on by itself')
  standing.stop()
  real.stop()
  await pass(100_000)
  assert.deepEqual(made, { real: 3, manual: 0, quick: 2, standing: 1 })
})
