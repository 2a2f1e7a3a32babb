import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { RpcUnavailable } from '@custody/chains'
import { collectRoleHealth } from '../../../server/app/health/collectors/role-health.ts'
import { heartbeatLoop } from '../../../server/app/health/role-health.ts'
import { readiness } from '../../../server/app/health/readiness.ts'
import { scanLoop } from '../../../custody/deposits/scanner.ts'
import { LoopHealth } from './health.ts'
import { runLoops } from './loop.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import type { SignerNodes } from '../../signing/nodes.ts'
import { DatabaseHold } from '../database-hold.ts'
import type { Application } from '../../../server/app/application.ts'
import { doctor } from '../../../server/operator/doctor/doctor.ts'
import { startOperatorServer } from '../../../server/operator/server.ts'
import { useDatabase, DepositFixture } from '../../../../testing/deposits-support.ts'

/**
 * Tests that a loop that fails for minutes is reported with its reason by /readyz, the metrics and
 * the doctor. The other loops continue to work.
 */
let now = Date.UTC(2026, 0, 1)
const opened = useDatabase({ migrated: true, now: () => now })
const home = mkdtempSync(join(tmpdir(), 'custody-loops-'))
after(() => rmSync(home, { recursive: true, force: true }))

const MINUTE_MS = 60_000
const TROUBLE = 'ETH: eth_getBlockByNumber answered without parentHash\u001b[2J'

async function setUp() {
  await opened.started
  await opened.get().query('delete from processes')
  const fixture = new DepositFixture(opened.get(), 'evm')
  await fixture.open()
  fixture.now = now
  const id = randomUUID()
  const health = new LoopHealth()
  const services: Application = {
    ...fixture.services,
    settings: { ...fixture.services.settings, role: 'all', home },
    prices: { price: () => null } as unknown as Prices,
    signers: { peers: [], calls: [] } as unknown as SignerNodes,
    hold: new DatabaseHold(),
  }
  const heartbeat = heartbeatLoop(services, id, health)
  const scan = scanLoop(services, services.networks.get('ETH'), async () => new Set(['ETH']))
  let others = 0
  const other = {
    name: 'other',
    everyMs: 1000,
    run: async () => {
      others++
      return false
    },
  }
  return {
    world: fixture,
    services,
    other: () => others,
    /** Runs all loops for some minutes of their clock. Their sleeps take no real time. */
    async run(minutes: number): Promise<void> {
      const end = new AbortController()
      const until = now + minutes * MINUTE_MS
      const sleep = async (ms: number) => {
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
        now += ms / 3
        fixture.now = now
        if (now >= until) end.abort()
      }
      const environment = { ...services.environment, now: () => now, sleep }
      // Removes `due`, which queries the database for due work, so each loop runs at its regular
      // interval.
      const { due: _, ...paced } = scan
      const loops = [paced, other, heartbeat]
      await runLoops({ ...services, environment }, loops, end.signal, health)
      await heartbeat.run(new AbortController().signal)
    },
  }
}

test('reports a scan that fails for minutes with network and reason, while other work continues', async () => {
  const { world: fixture, services, run, other } = await setUp()
  const seconds = async () =>
    /^custody_loop_failing_seconds\{loop="scan ETH"\} (\d+)/m.exec(
      await services.metrics.text(),
    )?.[1]
  await run(1)
  assert.equal((await readiness(services)).checks['loops'], 'ok')
  const honest = fixture.chain.block.bind(fixture.chain)
  fixture.chain.mine()
  fixture.chain.block = async () => {
    throw new RpcUnavailable(TROUBLE)
  }
  await run(1)
  assert.equal((await readiness(services)).checks['loops'], 'ok', 'a moment is not worth a word')
  const before = other()
  await run(10)
  const { ready, attended, checks } = await readiness(services)
  assert.deepEqual([ready, attended], [true, true], 'the API serves every other network')
  assert.match(
    checks['loops'] ?? '',
    /^scan ETH has failed for \d+ min: ETH: eth_getBlockByNumber answered without parentHash \[2J$/,
  )
  assert.ok(other() > before, 'other loops go on')
  await collectRoleHealth(services)
  assert.ok(Number(await seconds()) > 300)

  const operator = await startOperatorServer(services)
  const env = { ...process.env }
  try {
    Object.assign(process.env, { CUSTODY_HOME: home, CUSTODY_NETWORK: 'local' })
    const { result, text, exitCode } = await doctor()
    assert.equal(exitCode, 1)
    assert.deepEqual(
      (result['loops'] as { loop: string }[]).map(({ loop }) => loop),
      ['scan ETH'],
    )
    assert.match(
      text.join('\n'),
      /^scan ETH has failed for -?\d+ min: ETH: eth_getBlockByNumber answered without parentHash/m,
    )
  } finally {
    process.env = env
    await operator.close()
  }

  fixture.chain.block = honest
  await run(1)
  assert.equal((await readiness(services)).checks['loops'], 'ok')
  await collectRoleHealth(services)
  assert.equal(await seconds(), undefined)
  assert.equal(
    (await fixture.database.one<{ height: string }>('select height::text from network_scans'))
      ?.height,
    '1',
  )
})
