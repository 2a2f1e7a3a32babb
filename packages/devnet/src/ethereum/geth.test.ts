import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Hex } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { nodeForTests } from '../../../../testing/real-nodes.ts'
import { findSources, read } from '../../../../testing/tree.ts'
import { compareAnswers } from '../../testing/compare-answers.ts'
import {
  CHAIN_ID,
  EVM_REQUESTS,
  FINALITY_REQUESTS,
  prepare,
  type EvmRequest,
  type EvmSide,
  type PreparedSide,
} from '../../testing/evm-requests.ts'
import { GethChain, type Geth, type RpcResponse } from '../../testing/geth.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'
import { FAUCET_KEY } from './networks.ts'

const { path: binary, skip } = nodeForTests('geth')
const home = tempHome()
let geth: GethChain | undefined
let devnet: Running | undefined
let sides: [PreparedSide, PreparedSide]
const finalRequest = {
  jsonrpc: '2.0',
  id: 1,
  method: 'eth_getBlockByNumber',
  params: ['finalized', false],
}

before(async () => {
  if (skip !== false) return
  const alloc = { [privateKeyToAddress(FAUCET_KEY)]: 10n ** 27n }
  const chain = await GethChain.start({ binary, chainId: CHAIN_ID, alloc })
  geth = chain
  const running = await startDevnet(home)
  devnet = running
  const real: EvmSide = {
    send: (body) => chain.first.send(body),
    include: (hash) => chain.include(hash),
  }
  sides = [await prepare(localSide(running)), await prepare(real)]
})
after(async () => {
  await geth?.stop()
  await devnet?.stop()
  removeHome(home)
})

function localSide(running: Running): EvmSide {
  const send = async (body: unknown): Promise<RpcResponse> => {
    const response = await fetch(`${running.url}/eth`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as RpcResponse['body'] }
  }
  return {
    send,
    // A block has every transaction that waits.
    include: async () => {
      await running.mine('ETH')
    },
  }
}

const WRONG_PARAMETERS =
  'Both refuse the request with the same code. The text comes from the engine, and the platform sends no such request.'
const MALFORMED_BYTES =
  'Both refuse the bytes with the same code. The text comes from the engine; the platform sends such bytes only to see whether a method is served.'
/** The allowed differences, local chain | geth, and the reason of each. */
const DIFFERENCES: Record<string, string> = {
  'eth_sendRawTransaction an empty list.message: Failed to decode transaction | rlp: too few elements for types.LegacyTx':
    MALFORMED_BYTES,
  'eth_sendRawTransaction no bytes.message: Empty transaction data | typed transaction too short':
    MALFORMED_BYTES,
  'eth_sendRawTransaction two bytes.message: Failed to decode transaction | transaction type not supported':
    MALFORMED_BYTES,
  'eth_chainId with too many parameters.message: invalid type: string "HEX", expected unit | too many arguments, want at most N':
    WRONG_PARAMETERS,
  'eth_estimateGas with a text.message: invalid type: string "payment", expected struct WithOtherFieldsHelper | invalid argument N: json: cannot unmarshal string into Go value of type ethapi.TransactionArgs':
    WRONG_PARAMETERS,
  'eth_getBalance with a short address.message: invalid string length | invalid argument N: hex string has length N, want N for common.Address':
    WRONG_PARAMETERS,
  'eth_getBalance without an address.message: invalid length N, expected tuple variant EthRequest::EthGetBalance with N elements | missing value for required argument N':
    WRONG_PARAMETERS,
  'eth_getBlockByNumber with a text for a boolean.message: invalid type: string "no", expected a boolean | invalid argument N: json: cannot unmarshal string into Go value of type bool':
    WRONG_PARAMETERS,
  'eth_getBlockByNumber with one parameter.message: invalid length N, expected tuple variant EthRequest::EthGetBlockByNumber with N elements | missing value for required argument N':
    WRONG_PARAMETERS,
  'eth_getBlockByNumber without parameters.message: invalid length N, expected tuple variant EthRequest::EthGetBlockByNumber with N elements | missing value for required argument N':
    WRONG_PARAMETERS,
  'eth_getLogs with a text.message: invalid type: string "logs", expected Filter object | invalid argument N: json: cannot unmarshal string into Go value of type filters.input':
    WRONG_PARAMETERS,
  'eth_getTransactionByHash with a short hash.message: invalid string length | invalid argument N: hex string has length N, want N for common.Hash':
    WRONG_PARAMETERS,
  'eth_getTransactionReceipt with a short hash.message: invalid string length | invalid argument N: hex string has length N, want N for common.Hash':
    WRONG_PARAMETERS,
  'parameters by name.message: invalid length N, expected tuple variant EthRequest::EthGetBlockByNumber with N elements | non-array args':
    WRONG_PARAMETERS,
}

async function differencesIn(requests: readonly EvmRequest[]): Promise<string[]> {
  const found: string[] = []
  for (const { name, run } of requests)
    found.push(...compareAnswers(name, await run(sides[0]), await run(sides[1])))
  return found.sort()
}

test(
  'without finality, the local chain answers as geth before its consensus layer has spoken',
  {
    skip,
  },
  async () => {
    const fault = (mode: string) => devnet!.control({ command: 'fault', network: 'ETH', mode })
    await fault('no-final')
    try {
      assert.deepEqual(await differencesIn(FINALITY_REQUESTS), [])
      const final = await sides[0].send(finalRequest)
      assert.equal(final.body.error?.message, 'finalized block not found')
    } finally {
      await fault('heal')
    }
    await geth!.finalize(2)
    assert.deepEqual(await differencesIn(FINALITY_REQUESTS), [])
    assert.equal((await sides[0].send(finalRequest)).body.error, undefined)
  },
)

test('the local chain answers every request as geth does', { skip }, async () => {
  assert.deepEqual(await differencesIn(EVM_REQUESTS), Object.keys(DIFFERENCES).sort())
})

test('the requests have every method that the platform calls', () => {
  const sources = findSources('packages/chains/src/{evm,probe}/**/*.ts').map(read)
  assert.ok(sources.length > 10)
  const methods = new Set(
    [...sources, read('docs/mainnet.md')].flatMap((text) => text.match(/\beth_[A-Za-z]+/g) ?? []),
  )
  assert.ok(methods.size > 10)
  const compared = new Set(EVM_REQUESTS.map(({ name }) => name.split(' ')[0]))
  const missing = [...methods].filter((method) => !compared.has(method))
  assert.deepEqual(missing, [])
})

test('the driver holds a node back, lets it catch up, and reorganises it', { skip }, async () => {
  const chain = await GethChain.start({ binary, chainId: CHAIN_ID, alloc: {}, nodes: 2 })
  try {
    const [first, second] = chain.nodes as [Geth, Geth]
    const head = async (node: Geth) => {
      const block = await node.call<{ number: Hex; hash: Hex }>(
        'eth_getBlockByNumber',
        'latest',
        false,
      )
      return { height: Number(block.number), hash: block.hash }
    }
    await chain.mine(3)
    assert.deepEqual(await head(second), await head(first))
    second.isHeld = true
    await chain.mine(2)
    assert.deepEqual([(await head(first)).height, (await head(second)).height], [5, 3])
    await chain.follow(second, first)
    assert.deepEqual(await head(second), await head(first))

    // Two branches above block 5, of which the second node's is the longer one.
    first.isHeld = true
    await chain.mine(1)
    const replaced = await head(first)
    await chain.mine(2, second)
    assert.equal((await head(first)).hash, replaced.hash)
    await chain.follow(first, second)
    assert.deepEqual(await head(first), { ...(await head(second)), height: 7 })
    const again = await first.call<{ hash: Hex }>('eth_getBlockByNumber', '0x6', false)
    assert.notEqual(again.hash, replaced.hash)

    for (const node of chain.nodes) node.isHeld = false
    await chain.finalize(3)
    for (const node of chain.nodes) {
      const final = await node.call<{ number: Hex }>('eth_getBlockByNumber', 'finalized', false)
      assert.equal(Number(final.number), 4)
    }
  } finally {
    await chain.stop()
  }
})
