import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Installation } from '../testing/chaos/installation.ts'
import { killed } from '../testing/chaos/kills.ts'

test('no transfer is lost or paid twice if any process of the installation is killed under load', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'custody-chaos-'))
  const installation = new Installation(join(folder, 'home'))
  t.after(async () => {
    await installation.stop()
    installation.end()
    rmSync(folder, { recursive: true, force: true })
  })
  assert.deepEqual(
    await killed(installation, {
      seed: 1,
      transfers: 40,
      assets: ['BTC', 'ETH', 'XRP', 'SOL'],
      perSecond: 4,
      secondsBetweenKills: 1,
      rounds: 1,
      stormSecondsMax: 600,
      say: (line) => t.diagnostic(line),
    }),
    [],
  )
})
