import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { EvmClient, loadRegistry, UtxoClient, type Network } from '@custody/chains'
import { interleaved, report } from '../../../testing/figures.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { migrate } from '../src/core/database/migrate.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import { scanLoop } from '../src/custody/deposits/scanner.ts'
import { systemEnvironment } from '../src/core/environment.ts'
import { createMetrics } from '../src/core/metrics.ts'
import { fixtureServices } from '../testing/chains/chain-fixture.ts'

/**
 * Measures the scanner on a real PostgreSQL with a million addresses, and a scripted node in a
 * separate process. A full Bitcoin block and an Ethereum block are compared with fetching and
 * parsing the same block alone, and the catch-up rate over many blocks with the node's own rate.
 * `--blocks N`: 2,000 by default; `--addresses N`.
 */
const { values: options } = parseArgs({
  options: { blocks: { type: 'string' }, addresses: { type: 'string' } },
})
const BLOCKS = Number(options.blocks ?? process.env['CUSTODY_BENCH_BLOCKS'] ?? 2000)
const ADDRESSES = Number(options.addresses ?? 1_000_000)
const ROUNDS = 15
/** Number of addresses that are inserted by one statement. */
const PART = 100_000
const registry = loadRegistry('local')
// The scripted node has a different genesis block.
const { genesis: _, checkpoints: __, ...btc } = registry.network('BTC') as Network
const eth: Network = { ...(registry.network('ETH') as Network), chain_id: 1 }
const assets = registry.assets.filter(({ network }) => network === 'ETH')
const CONTRACT = String(
  assets.find(({ asset_name }) => asset_name === 'USDT_ETH')?.contract_address,
).toLowerCase()
const OWN = '0x00000000000000000000000000000000000000be'
const OWN_SCRIPT = `0014${'11'.repeat(20)}`

interface Node {
  url: string
  tip(height: number): Promise<void>
  stop(): void
}
async function startNode(
  coins: number,
  tokens: number,
  answerMs: number,
  atOnce: number,
  paidEvery: number,
): Promise<Node> {
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(new URL('scripted-node.ts', import.meta.url)),
      ...[coins, tokens, answerMs, atOnce, paidEvery].map(String),
      OWN_SCRIPT,
      OWN,
      CONTRACT,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const port = await new Promise<string>((resolve) => {
    child.stdout.on('data', (text: Buffer) =>
      resolve(/ready (\d+)/.exec(text.toString())?.[1] as string),
    )
  })
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    tip: async (height) => {
      await (await fetch(`${url}/tip/${height}`)).text()
    },
    stop: () => child.kill(),
  }
}

const home = mkdtempSync(join(tmpdir(), 'custody-scanner-'))
const postgres = await startEmbeddedPostgres(home)
const database = openDatabase(postgres.adminUrl)
const nodes: Node[] = []
const quiet = {
  info: () => undefined,
  warn: console.error,
  error: console.error,
  debug: () => undefined,
}
try {
  await migrate(database)
  const full = await startNode(4000, 300, 0, 8, 10)
  nodes.push(full)
  const workspace = randomUUID()
  const owner = randomUUID()
  await database.query('insert into workspaces (id, name) values ($1, $2)', [workspace, workspace])
  await database.query(
    `insert into sub_accounts (id, workspace_id, name, path_index) values ($1, $2, 'main', 1)`,
    [owner, workspace],
  )
  const sample = new UtxoClient(btc, { url: `${full.url}/btc` }, fetch)
  const ownCoins = (await sample.block(10))?.transfers.find(
    ({ position, txid }, at, all) => position === 0 && all[at + 1]?.txid === txid && at === 10,
  )?.address as string
  for (const [network, own, name] of [
    ['BTC', ownCoins, `'bc1q' || md5(n::text)`],
    ['ETH', OWN, `'0x' || md5(n::text) || '00000000'`],
  ]) {
    for (let from = 0; from < ADDRESSES; from += PART) {
      // Checks of references are disabled, because they take most of the time.
      await database.query(
        `begin; set local session_replication_role = replica;
         insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
         select '${network as string}', ${name as string}, '${workspace}', '${owner}', n + 10, 'deposit'
         from generate_series(${from + 1}, ${Math.min(ADDRESSES, from + PART)}) n; commit`,
      )
    }
    await database.query(
      `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
        kind) values ($1, $2, $3, $4, 1, 'deposit')`,
      [network, own, workspace, owner],
    )
    await database.query(
      'insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $3)',
      [workspace, owner, network],
    )
  }
  await database.query('vacuum analyze chain_addresses')

  /** Returns a scanner of one network at a height of a node. */
  const scannerOf = async (network: Network, node: Node, client: UtxoClient | EvmClient) => {
    const services = fixtureServices(
      {
        environment: systemEnvironment(),
        database,
        log: quiet,
        settings: { pollMs: 1000 },
        metrics: createMetrics(),
      },
      { [network.code]: client },
      { [network.code]: network },
    )
    const loop = scanLoop(
      services,
      services.networks.get(network.code),
      async () => new Set([network.code]),
    )
    let height = 1
    await node.tip(height)
    const first = await client.block(height)
    await database.query('delete from network_scans where network = $1', [network.code])
    await database.query('delete from blocks where network = $1', [network.code])
    await database.query(
      'insert into network_scans (network, height, tip_height) values ($1, $2, $2)',
      [network.code, height],
    )
    await database.query(
      'insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4)',
      [network.code, height, first?.hash, ''],
    )
    const run = async () => {
      while (await loop.run(new AbortController().signal)) continue
    }
    await run()
    return {
      /**
       * Advances the chain by this number of blocks.
       * @returns the time in milliseconds
       */
      go: async (blocks: number): Promise<number> => {
        height += blocks
        await node.tip(height)
        const started = performance.now()
        await run()
        const took = performance.now() - started
        const row = await database.one<{ height: string }>(
          'select height from network_scans where network = $1',
          [network.code],
        )
        if (Number(row?.height) !== height)
          throw new Error(`the scan stands at ${String(row?.height)}, not at ${height}`)
        return took
      },
      /** Fetches and parses the next block alone. */
      alone: async (): Promise<number> => {
        await client.block(height + 1)
        const started = performance.now()
        await client.block(height + 1)
        return performance.now() - started
      },
    }
  }

  for (const [network, client, name] of [
    [btc, sample, 'a full Bitcoin block (4,000 transactions)'],
    [
      eth,
      new EvmClient(eth, assets, { url: `${full.url}/eth` }, fetch),
      'an Ethereum block with 300 token transfers',
    ],
  ] as const) {
    const scanner = await scannerOf(network, full, client)
    for (let warm = 0; warm < 3; warm++) {
      await scanner.alone()
      await scanner.go(1)
    }
    const times = await interleaved(ROUNDS, { alone: scanner.alone, scanned: () => scanner.go(1) })
    report({
      name: `${name}, ${ADDRESSES} addresses`,
      unit: 'ms',
      value: times.scanned,
      floor: times.alone,
      target: { atMost: 1.3 },
      note: 'against fetching and parsing it alone; one block in ten pays us',
    })
  }

  // A node that takes eight milliseconds for a response, and handles eight requests concurrently.
  const far = await startNode(20, 20, 8, 8, 50)
  nodes.push(far)
  const scanner = await scannerOf(
    eth,
    far,
    new EvmClient(eth, assets, { url: `${far.url}/eth` }, fetch),
  )
  const ask = async (method: string, params: unknown[]) => {
    const response = await fetch(`${far.url}/eth`, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return response.text()
  }
  /**
   * Returns the time in milliseconds in which the node answers requests for this number of blocks,
   * with as many concurrent requests as it handles.
   */
  const answered = async (from: number, count: number): Promise<number> => {
    let next = from
    const started = performance.now()
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (next < from + count) {
          const text = await ask('eth_getBlockByNumber', [`0x${(next++).toString(16)}`, true])
          await ask('eth_getLogs', [
            { blockHash: /"hash":"(0x[0-9a-f]{64})","parentHash"/.exec(text)?.[1] },
          ])
        }
      }),
    )
    return performance.now() - started
  }
  const TURNS = 5
  const part = Math.floor(BLOCKS / TURNS)
  let at = 1
  const times = await interleaved(TURNS, {
    // The first request for a block makes the node generate it.
    made: () => answered(at + 1, part),
    node: () => answered(at + 1, part),
    scanned: async () => {
      const took = await scanner.go(part)
      at += part
      return took
    },
  })
  report({
    name: `catching up ${BLOCKS} blocks`,
    unit: '/s',
    value: (part / times.scanned) * 1000,
    floor: (part / times.node) * 1000,
    target: { atLeast: 0.7 },
    note: 'against what the node answers, unread: 8 ms each, eight at a time',
  })
} finally {
  for (const node of nodes) node.stop()
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
}
