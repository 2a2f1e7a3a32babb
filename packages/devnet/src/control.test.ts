import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Devnet } from './devnet.ts'
import type { LocalChain } from './local-chain.ts'
import { key, payment } from '../testing/bitcoin-keys.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../testing/support.ts'

const home = tempHome()
const alice = key(41)
const account = privateKeyToAccount(`0x${'c1'.repeat(32)}`)
const BALANCE = 100_000_000n
let devnet: Running
type Info = { networks: Record<string, { hash: string | null; waiting: number | null }> }

before(async () => {
  devnet = await startDevnet(home)
  await devnet.control({ command: 'fund', asset: 'ETH', address: account.address, amount: '5' })
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

async function bitcoinPayment(): Promise<{ hex: string; id: string; block: string }> {
  const { hash } = await devnet.control<{ hash: string }>({
    command: 'fund',
    asset: 'BTC',
    address: alice.address,
    amount: '1',
  })
  const { vout, blockhash } = await devnet.call<{
    blockhash: string
    vout: { n: number; scriptPubKey: { address: string } }[]
  }>('btc', 'getrawtransaction', hash, 1)
  const { n } = vout.find(({ scriptPubKey }) => scriptPubKey.address === alice.address)!
  const tx = await payment(
    alice,
    [{ txid: hash, vout: n, value: BALANCE }],
    [{ script: key(42).script, value: BALANCE - 1000n }],
  )
  return { hex: tx.toHex(), id: tx.getId(), block: blockhash }
}

async function ethereumPayment(): Promise<Hex> {
  const nonce = Number(
    await devnet.call<Hex>('eth', 'eth_getTransactionCount', account.address, 'latest'),
  )
  return account.signTransaction({
    type: 'eip1559',
    chainId: 31337,
    nonce,
    to: account.address,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
}

test('in manual mode, blocks are produced only by command', async () => {
  const { id, hex } = await bitcoinPayment()
  const before = await devnet.control<Info>({ command: 'info' })
  assert.deepEqual([before.networks['BTC']?.waiting, before.networks['LTC']?.waiting], [0, null])
  await devnet.call('btc', 'sendrawtransaction', hex)
  const { networks } = await devnet.control<Info>({ command: 'info' })
  assert.deepEqual(
    [networks['BTC']?.waiting, networks['BTC']?.hash],
    [1, before.networks['BTC']?.hash],
  )
  const { hash } = await devnet.mine('BTC')
  assert.equal(
    (await devnet.call<{ blockhash: string }>('btc', 'getrawtransaction', id, 1)).blockhash,
    hash,
  )
})

test('a BTC reorganisation returns its transactions to the mempool, or drops them', async () => {
  const { hex, id, block } = await bitcoinPayment()
  await devnet.call('btc', 'sendrawtransaction', hex)
  const mined = await devnet.control<{ height: number; hash: string }>({
    command: 'mine',
    network: 'BTC',
    blocks: 1,
  })
  const after1 = await devnet.control<{ height: number; hash: string }>({
    command: 'reorg',
    network: 'BTC',
    depth: 1,
  })
  assert.equal(after1.height, mined.height + 1)
  assert.notEqual(await devnet.call('btc', 'getblockhash', mined.height), mined.hash)
  assert.equal(
    (await devnet.call<{ confirmations: number }>('btc', 'getblockheader', mined.hash))
      .confirmations,
    -1,
  )
  assert.deepEqual(await devnet.call('btc', 'getrawmempool'), [id])
  const again = await devnet.control<{ hash: string }>({
    command: 'mine',
    network: 'BTC',
    blocks: 1,
  })
  assert.equal(
    (await devnet.call<{ blockhash: string }>('btc', 'getrawtransaction', id, 1)).blockhash,
    again.hash,
  )

  await devnet.control({ command: 'reorg', network: 'BTC', depth: 1, drop: true })
  assert.deepEqual(await devnet.call('btc', 'getrawmempool'), [])
  assert.equal((await devnet.rpc('btc', 'getrawtransaction', id)).error?.code, -5)
  assert.equal(await devnet.call('btc', 'sendrawtransaction', hex), id, 'its input is free again')
  assert.equal(
    (await devnet.call<{ confirmations: number }>('btc', 'getblockheader', block)).confirmations >
      0,
    true,
  )
})

test('an ETH reorganisation removes receipts, and the same bytes can be sent again', async () => {
  const raw = await ethereumPayment()
  const hash = await devnet.call<Hex>('eth', 'eth_sendRawTransaction', raw)
  const mined = await devnet.control<{ height: number; hash: Hex }>({
    command: 'mine',
    network: 'ETH',
    blocks: 1,
  })
  assert.notEqual(await devnet.call('eth', 'eth_getTransactionReceipt', hash), null)
  const after1 = await devnet.control<{ height: number; hash: Hex }>({
    command: 'reorg',
    network: 'ETH',
    depth: 1,
  })
  assert.equal(after1.height, mined.height + 1)
  assert.equal(await devnet.call('eth', 'eth_getTransactionReceipt', hash), null)
  assert.equal(await devnet.call('eth', 'eth_getTransactionByHash', hash), null)
  assert.equal(await devnet.call('eth', 'eth_getBlockByHash', mined.hash, false), null)
  assert.equal(await devnet.call('eth', 'eth_sendRawTransaction', raw), hash)
  await devnet.mine('ETH')
  assert.notEqual(await devnet.call('eth', 'eth_getTransactionReceipt', hash), null)
})

test('an invalid command is refused with the name of the field', async () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ command: 'nothing' }, /command "nothing" is unknown/],
    [
      { command: 'fund', asset: 'DOGE2', address: 'x', amount: '1' },
      /asset "DOGE2" is unknown; must be one of BTC, LTC, DASH, DOGE, BCH, ETH, /,
    ],
    [
      {
        command: 'fund',
        asset: 'BTC',
        address: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
        amount: '1',
      },
      /is not an address of BTC/,
    ],
    [{ command: 'fund', asset: 'ETH', address: '0x123', amount: '1' }, /is not an address of ETH/],
    [
      { command: 'fund', asset: 'BTC', address: alice.address, amount: '0.000000001' },
      /more than 8 decimals/,
    ],
    [
      { command: 'fund', asset: 'USDT_ETH', address: account.address, amount: '0.0000001' },
      /more than 6 decimals/,
    ],
    [{ command: 'fund', asset: 'ETH', address: account.address, amount: '0' }, /greater than zero/],
    [
      { command: 'fund', asset: 'ETH', address: account.address, amount: '-1' },
      /not a decimal number/,
    ],
    [
      { command: 'fund', asset: 'ETH', address: account.address, amount: '1', tag: '7' },
      /no address tags/,
    ],
    [{ command: 'fund', asset: 'BTC', address: alice.address, amount: '0.00000001' }, /is dust/],
    [
      { command: 'fund', asset: 'BTC', address: alice.address, amount: '20999999' },
      /more than the miner can pay/,
    ],
    [
      { command: 'mine', network: 'BTC', blocks: 0 },
      /blocks 0 is not a whole number from 1 to 1000/,
    ],
    [{ command: 'mine', network: 'XYZ', blocks: 1 }, /network "XYZ" is unknown/],
    [
      { command: 'reorg', network: 'ETH', depth: 101 },
      /depth 101 is not a whole number from 1 to 100/,
    ],
    [{ command: 'reorg', network: 'ETH', depth: 100 }, /would undo the genesis phase/],
    [{ command: 'fault', network: 'ETH', mode: 'chaos' }, /mode "chaos" is unknown/],
  ]
  for (const [command, message] of cases) {
    const { status, body } = await devnet.rawControl(JSON.stringify(command))
    assert.equal(status, 400, JSON.stringify(command))
    assert.match(body.error!, message)
  }
  assert.equal((await devnet.rawControl('{')).status, 400)
  assert.equal((await fetch(`${devnet.url}/health`)).status, 200)
  assert.equal((await fetch(`${devnet.url}/nothing`)).status, 404)
  assert.equal(
    (
      await fetch(`${devnet.url}/control`, {
        method: 'POST',
        body: '{}',
        headers: { origin: 'http://evil.example' },
      })
    ).status,
    403,
  )
})

test('drop-answer: the transaction is accepted although its response is lost', async () => {
  const { hex, id } = await bitcoinPayment()
  const raw = await ethereumPayment()
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'drop-answer' })
  await assert.rejects(devnet.rpc('btc', 'sendrawtransaction', hex))
  await assert.rejects(devnet.rpc('eth', 'eth_sendRawTransaction', raw))
  assert.ok(
    (await devnet.call<string>('btc', 'getrawtransaction', id)).length > 0,
    'other calls are answered',
  )
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'heal' })
  assert.equal(await devnet.call('btc', 'sendrawtransaction', hex), id)
  await devnet.mine('ETH')
  assert.ok(
    BigInt(await devnet.call<Hex>('eth', 'eth_getTransactionCount', account.address, 'latest')) >
      0n,
  )
})

test('reject: a broadcast is refused and not accepted', async () => {
  const { hex, id } = await bitcoinPayment()
  const raw = await ethereumPayment()
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'reject' })
  assert.equal((await devnet.rpc('btc', 'sendrawtransaction', hex)).error?.code, -26)
  assert.equal((await devnet.rpc('eth', 'eth_sendRawTransaction', raw)).error?.code, -32000)
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'heal' })
  assert.equal((await devnet.rpc('btc', 'getrawtransaction', id)).error?.code, -5)
  assert.equal(await devnet.call('btc', 'sendrawtransaction', hex), id)
})

test('the modes of some families exist on the networks whose nodes can lack them', async () => {
  const { networks } = await devnet.control<{ networks: Record<string, { engine: string }> }>({
    command: 'info',
  })
  const offering = async (mode: string) => {
    const codes: string[] = []
    for (const network of Object.keys(networks)) {
      const command = JSON.stringify({ command: 'fault', network, mode })
      if ((await devnet.rawControl(command)).status !== 200) continue
      codes.push(network)
      await devnet.control({ command: 'fault', network, mode: 'heal' })
    }
    return codes
  }
  const by = (engine: string) =>
    Object.keys(networks).filter((code) => networks[code]?.engine === engine)
  const [evm, utxo] = [by('anvil'), by('own regtest ledger')]
  assert.deepEqual(await offering('no-estimate'), ['BTC', 'LTC', 'DASH', ...evm])
  assert.deepEqual(await offering('no-final'), evm)
  assert.deepEqual(await offering('no-index'), utxo)
  assert.deepEqual(await offering('no-internal'), ['TRX'])
  assert.deepEqual(await offering('price'), [...utxo, ...evm, 'XRP', 'XLM'])
  await devnet.control({ command: 'fault', network: 'BTC', mode: 'no-estimate' })
  assert.deepEqual(await devnet.call('btc', 'estimatesmartfee', 6), {
    errors: ['Insufficient data or no feerate found'],
    blocks: 0,
  })
  await devnet.control({ command: 'fault', network: 'ETH', mode: 'no-final' })
  const final = () => devnet.rpc('eth', 'eth_getBlockByNumber', 'finalized', false)
  assert.deepEqual((await final()).error, { code: -32000, message: 'finalized block not found' })
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'heal' })
  assert.ok((await final()).result)
})

test('down: closes connections of the network, while the control endpoint works', async () => {
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'down' })
  await assert.rejects(devnet.rpc('btc', 'getblockcount'))
  await assert.rejects(devnet.rpc('eth', 'eth_blockNumber'))
  for (const network of ['BTC', 'ETH'])
    await devnet.control({ command: 'fault', network, mode: 'heal' })
  assert.equal(typeof (await devnet.call('btc', 'getblockcount')), 'number')
  assert.equal(typeof (await devnet.call('eth', 'eth_blockNumber')), 'string')
})

/** Resolves when a timer of this length is started. The timers are mocked already. */
function timerOf(context: TestContext, milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const mocked = globalThis.setTimeout
  context.mock.method(globalThis, 'setTimeout', (...args: Parameters<typeof mocked>) => {
    if (args[1] === milliseconds) resolve()
    return mocked(...args)
  })
  return promise
}

test('lag: sends responses 15 seconds late', async (context) => {
  const folder = tempHome()
  const local = await Devnet.start(folder, 0, { manual: true })
  try {
    for (const [path, method, type] of [
      ['/btc', 'getblockcount', 'number'],
      ['/eth', 'eth_blockNumber', 'string'],
    ] as const) {
      const ask = () =>
        local.answer({
          method: 'POST',
          url: path,
          headers: {},
          read: async () => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [] }),
        })
      // Without a configured fault, the response does not wait for a timer.
      assert.notEqual(await ask(), 'cut')
      const { faults } = local.chains.find(
        ({ code }) => code === path.slice(1).toUpperCase(),
      ) as LocalChain
      faults.set('lag')
      context.mock.timers.enable({ apis: ['setTimeout'] })
      const delayed = timerOf(context, 15_000)
      let isAnswered = false
      const answer = ask().finally(() => {
        isAnswered = true
      })
      // The chain's engine may be another process, so the timer starts only after input and output.
      await delayed
      context.mock.timers.tick(14_999)
      for (let turn = 0; turn < 10; turn++) await nextTurn()
      assert.equal(isAnswered, false)
      context.mock.timers.tick(1)
      const { body } = (await answer) as { body: string }
      assert.equal(typeof (JSON.parse(body) as { result: unknown }).result, type)
      context.mock.restoreAll()
      context.mock.timers.reset()
    }
  } finally {
    local.close()
    removeHome(folder)
  }
})
