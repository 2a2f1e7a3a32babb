import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Cluster, whyNoCluster } from '../testing/chaos/cluster.ts'
import { primaryFails } from '../testing/chaos/database.ts'
import { Installation } from '../testing/chaos/installation.ts'
import { ChaosRun } from '../testing/chaos/chaos-run.ts'

test(
  'if the primary of three database hosts fails under load, no confirmed change is lost',
  { skip: whyNoCluster() ?? false },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'custody-chaos-'))
    const cluster = new Cluster(join(folder, 'hosts'))
    const installation = new Installation(join(folder, 'home'), () => ({
      DATABASE_URL: cluster.url,
    }))
    const destroy = () => cluster.destroy()
    process.once('exit', destroy)
    t.after(async () => {
      await installation.stop()
      installation.end()
      await cluster.remove()
      process.off('exit', destroy)
      rmSync(folder, { recursive: true, force: true })
    })
    await cluster.start()
    const run = new ChaosRun(installation, ['SOL'], 1, (line) => t.diagnostic(line))
    assert.deepEqual(
      await primaryFails({
        cluster,
        run,
        seed: 1,
        transfers: 50,
        perSecond: 4,
        troubles: ['host gone'],
      }),
      [],
    )
  },
)
