import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ChaosRun } from '../testing/chaos/chaos-run.ts'
import { forked } from '../testing/chaos/fork.ts'
import { Installation } from '../testing/chaos/installation.ts'
import { killed } from '../testing/chaos/kills.ts'

/** Runs a story with an installation of its own. */
async function story(
  t: TestContext,
  run: (installation: Installation, say: (line: string) => void) => Promise<string[]>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'custody-chaos-'))
  const installation = new Installation(join(folder, 'home'))
  t.after(async () => {
    await installation.stop()
    installation.end()
    rmSync(folder, { recursive: true, force: true })
  })
  assert.deepEqual(await run(installation, (line) => t.diagnostic(line)), [])
}

test('no transfer is lost or paid twice if any process of the installation is killed under load', (t) =>
  story(t, (installation, say) =>
    killed(installation, {
      seed: 1,
      transfers: 40,
      assets: ['BTC', 'ETH', 'XRP', 'SOL'],
      perSecond: 4,
      secondsBetweenKills: 1,
      rounds: 1,
      stormSecondsMax: 600,
      say,
    }),
  ))

test('no transfer is lost or paid twice if chains replace their final blocks', (t) =>
  story(t, (installation, say) =>
    forked(new ChaosRun(installation, ['BTC', 'ETH', 'TRX'], 1, say)),
  ))
