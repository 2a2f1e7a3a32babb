import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SignerCluster } from '../../../../../signer/testing/signer-cluster.ts'
import { collectNodes } from '../../app/health/collectors/nodes.ts'
import { banMessages } from '../../../console-api/console/health.ts'
import { systemEnvironment } from '../../../core/environment.ts'
import { createMetrics } from '../../../core/metrics.ts'
import type { Outcome } from '../cli/typed.ts'
import { ban, bans } from '../cli/signer.ts'
import { banLine, diagnoseBans } from './bans.ts'
import { SignerNodes } from '../../../core/signing/nodes.ts'
import { readBans } from '../../../core/signing/status.ts'

/**
 * Tests of the operator's view of a ban: the command, the metric, the doctor and the control panel,
 * with three real nodes.
 */
let cluster: SignerCluster
let folder: string
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  folder = join(cluster.home, 'platform')
})
after(() => cluster.stop())

async function gauges(): Promise<string[]> {
  const signers = new SignerNodes(folder)
  try {
    const metrics = createMetrics()
    await collectNodes({
      signers,
      metrics,
      environment: systemEnvironment(),
    })
    return (await metrics.text())
      .split('\n')
      .filter((line) => line.startsWith('custody_signer_bans{'))
  } finally {
    signers.close()
  }
}
const run = (command: typeof ban, node: number, values: Record<string, string> = {}) =>
  command({
    home: cluster.home,
    values: { home: join(cluster.home, `node-${node}`), ...values },
  } as never)

test('without a ban, the metric of each pair of nodes is 0, and the doctor reports nothing', async () => {
  assert.equal((await gauges()).filter((line) => line.endsWith(' 0')).length, 6)
  assert.deepEqual(await diagnoseBans(folder), [])
  assert.deepEqual(await diagnoseBans(join(cluster.home, 'none')), [])
  assert.equal(
    (await run(bans, 1)).text,
    'signer 1: it has banned no peer, and no peer reports a ban',
  )
  await assert.rejects(async () => run(ban, 1, { peer: '1' }), /node: must be a peer, 2 or 3/)
  await assert.rejects(async () => run(ban, 1, { peer: 'three' }), /--peer: must be 1, 2 or 3/)
})

const printed = ({ text = [] }: Outcome): string => [text].flat().join('\n')

test('command, metric and doctor report a ban, even if only the third node can report it', async () => {
  const text = printed(await run(ban, 1, { peer: '3', reason: 'seen at its host' }))
  assert.match(
    text,
    /^signer 1 has banned signer 3 \([0-9a-f]{64}\): operator's order, \d{4}-\S+Z: seen at its host$/,
  )
  assert.equal(printed(await run(bans, 1)), text)
  assert.deepEqual(
    (await gauges()).filter((line) => line.endsWith(' 1')),
    ['custody_signer_bans{node="1",banned="3"} 1'],
  )
  const confirmed = [{ by: 1, banned: 3, confirmed: true }]
  assert.deepEqual(await diagnoseBans(folder), confirmed)
  assert.match(
    banLine(confirmed[0]!),
    /^signer 1 has banned signer 3: stop withdrawals and move the funds .*replacing-a-banned-node\.md\)$/,
  )
  for (
    let tries = 0;
    !/signer 1 reports a ban of signer 3/.test(printed(await run(bans, 2)));
    tries++
  ) {
    assert.ok(tries < 100, 'node 2 has no report')
    await sleep(100)
  }
  await cluster.stopHere(1)
  const reported = await diagnoseBans(folder)
  assert.deepEqual(reported, [{ by: 1, banned: 3, confirmed: false }])
  assert.match(banLine(reported[0]!), /^signer 1 is reported to have banned signer 3: /)
  assert.deepEqual(
    (await gauges()).filter((line) => line.includes('node="1"')),
    [],
  )
})

test('the control panel names each ban, and ignores malformed responses', () => {
  assert.deepEqual(
    banMessages([
      { node: 1, bans: [3] },
      { node: 2, bans: [] },
    ]),
    ['signer 1 has banned signer 3: move the funds to a new installation'],
  )
  assert.deepEqual([readBans([3, 4, '2', null]), readBans(undefined), readBans('3')], [[3], [], []])
})

test('the pages to which the messages refer exist', () => {
  const page = readFileSync(
    new URL('../../../../../../docs/production/replacing-a-banned-node.md', import.meta.url),
    'utf8',
  )
  assert.ok(page.startsWith('# Replacing a banned node\n'))
})
