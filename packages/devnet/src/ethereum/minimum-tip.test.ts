import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseGwei, toHex, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'
import { EVM_NETWORKS } from './networks.ts'

const home = tempHome()
const alice = privateKeyToAccount(toHex(0xa1, { size: 32 }))
const BOB = '0x00000000000000000000000000000000000000b0'
let devnet: Running

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('each network refuses tips below its minimum, and suggests no such tip', async () => {
  for (const { code, chainId, native, legacy, rollup, minTip } of EVM_NETWORKS) {
    const path = code.toLowerCase() as 'eth'
    await devnet.control({ command: 'fund', asset: native, address: alice.address, amount: '5' })
    const send = async (tip: bigint, nonce: number) => {
      const common = { chainId, nonce, to: BOB, value: 1n, gas: 200_000n } as const
      const raw = await alice.signTransaction(
        legacy
          ? { ...common, type: 'legacy', gasPrice: tip }
          : {
              ...common,
              type: 'eip1559',
              maxFeePerGas: parseGwei('200'),
              maxPriorityFeePerGas: tip,
            },
      )
      return devnet.rpc(path, 'eth_sendRawTransaction', raw)
    }
    const { error } = await send(minTip.wei - 1n, 0)
    // Nitro has no pool and takes any tip.
    if (rollup === 'arbitrum') assert.equal(error, undefined)
    else
      assert.deepEqual(error, {
        code: -32000,
        message: `${minTip.refusal}: gas tip cap ${minTip.wei - 1n}, minimum needed ${minTip.wei}`,
      })
    if (legacy) continue
    const suggested = BigInt(await devnet.call<Hex>(path, 'eth_maxPriorityFeePerGas'))
    assert.ok(suggested >= minTip.wei, code)
    assert.ok(BigInt(await devnet.call<Hex>(path, 'eth_gasPrice')) >= suggested, code)
    const accepted = await send(minTip.wei, rollup === 'arbitrum' ? 1 : 0)
    assert.equal(accepted.error, undefined, code)
    await devnet.mine(code)
    const { reward } = await devnet.call<{ reward: Hex[][] }>(
      path,
      'eth_feeHistory',
      '0xa',
      'latest',
      [25],
    )
    for (const [tip] of reward)
      assert.ok(BigInt(tip as Hex) === 0n || BigInt(tip as Hex) >= minTip.wei, code)
  }
})

test('the nodes of Polygon require 25 gwei', () => {
  const polygon = EVM_NETWORKS.find(({ code }) => code === 'POL')
  assert.equal(polygon?.minTip.wei, parseGwei('25'))
})
