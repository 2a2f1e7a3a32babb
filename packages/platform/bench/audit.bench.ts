import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BALANCES_MAX, EvmClient, loadRegistry, type Network } from '@custody/chains'
import { report } from '../../../testing/figures.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { migrate } from '../src/core/database/migrate.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import type { Chain } from '../src/core/engine/chain.ts'
import type { Networks } from '../src/core/engine/networks.ts'
import { accountDifferences } from '../src/server/audit/accounts.ts'

/**
 * Measures the audit of a million addresses of ETH with its tokens, or of the number in
 * CUSTODY_BENCH_ADDRESSES, at a node that answers each request after ten milliseconds. The target
 * applies to the time in which the node answers, which does not depend on this machine.
 */
const COUNT = Number(process.env['CUSTODY_BENCH_ADDRESSES'] ?? 1_000_000)
const ANSWER_MS = 10
const TARGET_MINUTES = 10

if (COUNT % BALANCES_MAX !== 0) throw new Error(`the number must be a multiple of ${BALANCES_MAX}`)
const registry = loadRegistry('local')
const network = registry.network('ETH') as Network
const home = mkdtempSync(join(tmpdir(), 'custody-audit-'))
const postgres = await startEmbeddedPostgres(home)
const database = openDatabase(postgres.adminUrl)
try {
  await migrate(database)
  const workspace = randomUUID()
  await database.query('insert into workspaces (id, name) values ($1, $2)', [workspace, workspace])
  const PART = 100_000
  for (let from = 0; from < COUNT; from += PART)
    await database.query(
      `begin; set local session_replication_role = replica;
       insert into chain_addresses (network, address, workspace_id, path_index, kind)
       select 'ETH', '0x' || md5(n::text) || '00000000', '${workspace}', n, 'deposit'
       from generate_series(${from}, ${Math.min(COUNT, from + PART) - 1}) n; commit`,
    )
  await database.query('analyze chain_addresses')
  let calls = 0
  const result = JSON.stringify({ result: `0x${'0'.repeat(64 * BALANCES_MAX)}` })
  const client = new EvmClient(
    network,
    registry.assetsOf('ETH'),
    { url: 'http://node' },
    async () => {
      calls++
      await sleep(ANSWER_MS)
      return new Response(result)
    },
  )
  const chain: Partial<Chain> = {
    network,
    client,
    coins: null,
    stakes: null,
    balance: (address, asset) => client.balance(address, asset),
    balances: (addresses, asset) => client.balances(addresses, asset),
  }
  const services = { database, registry, networks: undefined as never as Networks }
  const started = performance.now()
  const { addresses } = await accountDifferences(services, chain as Chain, [])
  const seconds = (performance.now() - started) / 1000
  if (addresses !== COUNT) throw new Error(`${addresses} addresses were compared, not ${COUNT}`)
  report({
    name: `audit of ${COUNT} ETH addresses, answers of ${ANSWER_MS} ms`,
    unit: 'min',
    value: (calls * ANSWER_MS) / 60_000,
    floor: null,
    target: { atMost: TARGET_MINUTES },
    note: `${calls} calls, ${registry.assetsOf('ETH').length} assets; in all ${seconds.toFixed(0)} s`,
  })
} finally {
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
}
