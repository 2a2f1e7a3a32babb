import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Hex } from 'viem'
import { freePorts } from '../../../testing/free-ports.ts'
import { key } from '../testing/bitcoin-keys.ts'
import {
  enginesOf,
  isAlive,
  removeHome,
  startDevnet,
  tempHome,
  type Running,
} from '../testing/support.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const home = tempHome()
const TO = '0x1111111111111111111111111111111111111111'
const TOPIC_TO = `0x${TO.slice(2).padStart(64, '0')}`
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const { address } = key(31)
let devnet: Running | undefined
after(async () => {
  await devnet?.stop()
  removeHome(home)
})

type Info = { networks: Record<'BTC' | 'ETH', { height: number; hash: string }> }

async function hashAt(running: Running, path: 'btc' | 'eth', height: number): Promise<string> {
  if (path === 'btc') return running.call<string>('btc', 'getblockhash', height)
  const block = await running.call<{ hash: string } | null>(
    'eth',
    'eth_getBlockByNumber',
    `0x${height.toString(16)}`,
    false,
  )
  return block?.hash ?? 'missing'
}

/** Returns every hash of both chains, up to a height. */
async function hashes(running: Running, heights: { BTC: number; ETH: number }): Promise<string[]> {
  const matches: string[] = []
  for (let height = 0; height <= heights.BTC; height += 1)
    matches.push(await hashAt(running, 'btc', height))
  for (let height = 0; height <= heights.ETH; height += 1)
    matches.push(await hashAt(running, 'eth', height))
  return matches
}

async function heads(running: Running): Promise<{ BTC: number; ETH: number }> {
  const { networks } = await running.control<Info>({ command: 'info' })
  return { BTC: networks.BTC.height, ETH: networks.ETH.height }
}

test('after kill -9 of every process, every block and receipt exists with the same hash', async () => {
  const [port] = (await freePorts(1)) as [number]
  devnet = await startDevnet(home, { port })
  const fund = (asset: string, to: string) =>
    devnet!.control<{ hash: Hex }>({ command: 'fund', asset, address: to, amount: '1' })
  const funded = [await fund('ETH', TO), await fund('USDT_ETH', TO), await fund('BTC', address)]
  await devnet.control({ command: 'mine', network: 'ETH', blocks: 400 })
  await devnet.control({ command: 'reorg', network: 'ETH', depth: 3 })
  await devnet.control({ command: 'reorg', network: 'BTC', depth: 2 })
  funded.push(await fund('ETH', TO), await fund('BTC', address))
  const at = await heads(devnet)
  const before = await hashes(devnet, at)
  await devnet.killAll()

  devnet = await startDevnet(home, { port })
  assert.deepEqual(await hashes(devnet, at), before)
  for (const { hash } of [funded[0]!, funded[1]!, funded[3]!]) {
    assert.equal(
      (await devnet.call<{ status: string }>('eth', 'eth_getTransactionReceipt', hash)).status,
      '0x1',
    )
  }
  const logs = await devnet.call<{ transactionHash: Hex }[]>('eth', 'eth_getLogs', {
    fromBlock: '0x0',
    toBlock: 'latest',
    topics: [TRANSFER, null, TOPIC_TO],
  })
  assert.deepEqual(
    logs.map(({ transactionHash }) => transactionHash),
    [funded[1]!.hash],
  )
  assert.ok(
    (await devnet.call<{ confirmations: number }>('btc', 'getrawtransaction', funded[4]!.hash, 1))
      .confirmations >= 1,
  )
  assert.equal(
    BigInt(await devnet.call<Hex>('eth', 'eth_getBalance', TO, 'latest')),
    2n * 10n ** 18n,
  )
  await fund('ETH', TO)
  await fund('BTC', address)
})

test('killing the process while it produces a block loses no data that could already be read', async () => {
  for (let round = 0; round < 3; round += 1) {
    const running = devnet!
    const shown: { path: 'btc' | 'eth'; height: number; hash: string }[] = []
    const state = { stopped: false }
    // Each round kills later. The moment is counted in reported heads, so that it does not depend
    // on the machine's speed.
    const enough = Promise.withResolvers<void>()
    const watch = async () => {
      while (!state.stopped) {
        const eth = await running.call<{ number: Hex; hash: string }>(
          'eth',
          'eth_getBlockByNumber',
          'latest',
          false,
        )
        shown.push({ path: 'eth', height: Number(eth.number), hash: eth.hash })
        const hash = await running.call<string>('btc', 'getbestblockhash')
        shown.push({
          path: 'btc',
          height: (await running.call<{ height: number }>('btc', 'getblockheader', hash)).height,
          hash,
        })
        if (shown.length >= 2 + 10 * round) enough.resolve()
      }
    }
    const watched = watch()
    watched.catch(enough.reject)
    const work = [
      watched,
      ...Array.from({ length: 50 }, () =>
        running.control({ command: 'mine', network: 'ETH', blocks: 2 }),
      ),
      ...Array.from({ length: 50 }, () =>
        running.control({ command: 'mine', network: 'BTC', blocks: 1 }),
      ),
      ...Array.from({ length: 50 }, () =>
        running.control({ command: 'fund', asset: 'ETH', address: TO, amount: '1' }),
      ),
    ]
    const settled = Promise.allSettled(work)
    await enough.promise
    await running.killAll()
    state.stopped = true
    await settled
    devnet = await startDevnet(home)
    for (const { path, height, hash } of shown) {
      assert.equal(await hashAt(devnet, path, height), hash, `${path} block ${height}`)
    }
  }
})

test('the next start ends an orphaned engine process', async () => {
  const [orphan] = enginesOf(home)
  await devnet!.killNode()
  assert.ok(isAlive(orphan!), 'the engine outlives a kill -9 of its parent')
  devnet = await startDevnet(home)
  assert.ok(!isAlive(orphan!))
  assert.equal(enginesOf(home).length, 1)
})

test('does not end a foreign process with the recorded pid', async () => {
  await devnet!.killAll()
  const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    stdio: 'ignore',
  })
  try {
    const file = join(home, 'eth', 'anvil-0.pid')
    const [, command] = readFileSync(
      existsSync(file) ? file : join(home, 'eth', 'anvil-1.pid'),
      'utf8',
    ).split('\n')
    for (const name of ['anvil-0.pid', 'anvil-1.pid'])
      writeFileSync(join(home, 'eth', name), `${stranger.pid}\n${command}`)
    devnet = await startDevnet(home)
    assert.ok(isAlive(stranger.pid!))
  } finally {
    stranger.kill('SIGKILL')
  }
})

test('stopping during a start leaves no running engine', async () => {
  await devnet!.stop()
  const place = tempHome()
  const main = fileURLToPath(new URL('./main.ts', import.meta.url))
  const child = spawn(process.execPath, [main, '--home', place], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  await waitFor(
    'the engine has been started',
    () =>
      existsSync(join(place, 'eth')) &&
      readdirSync(join(place, 'eth')).some((name) => name.endsWith('.pid')),
  )
  child.stdin.end()
  await exit
  await waitFor('the engine is gone', () => enginesOf(place).length === 0)
  removeHome(place)
  devnet = await startDevnet(home)
})

test('restarts a killed engine with the same chain', async () => {
  const at = await heads(devnet!)
  const before = await hashes(devnet!, at)
  process.kill(enginesOf(home)[0]!, 'SIGKILL')
  await waitFor(
    'the engine answers again',
    async () => (await devnet!.rpc('eth', 'eth_blockNumber')).result !== undefined,
  )
  assert.deepEqual(await hashes(devnet!, at), before)
})

test('drops a half-written last record', async () => {
  const at = await heads(devnet!)
  const before = await hashes(devnet!, at)
  await devnet!.killAll()
  for (const chain of ['btc', 'eth']) {
    const path = join(home, chain, 'blocks.journal')
    const whole = readFileSync(path)
    const start = whole.lastIndexOf(10, whole.length - 2) + 1
    appendFileSync(path, whole.subarray(start, start + 60))
  }
  devnet = await startDevnet(home)
  assert.deepEqual(await hashes(devnet, at), before)

  // If the last block itself was only half written, the chain ends one block earlier.
  await devnet.killAll()
  truncateSync(
    join(home, 'btc', 'blocks.journal'),
    readFileSync(join(home, 'btc', 'blocks.journal')).length - 5,
  )
  devnet = await startDevnet(home)
  assert.equal(await devnet.call<string>('btc', 'getblockhash', at.BTC - 1), before[at.BTC - 1])
})

test('all processes end when the parent process ends', async () => {
  const engines = enginesOf(home)
  assert.equal(await devnet!.closeStdin(), 0)
  await waitFor('the engine is gone', () => engines.every((pid) => !isAlive(pid)))
  const again = await startDevnet(home)
  assert.equal(await again.stop(), 0)
  devnet = undefined
})
