import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { connectAll } from '../../server/app/connect.ts'
import { localEndpoints } from '../../server/app/local/local.ts'
import { withoutPlatform } from '../../server/operator/doctor/networks.ts'

/**
 * Every family reads the height and the time of the newest block, by which its endpoints' answers are
 * judged.
 */
const home = mkdtempSync(join(tmpdir(), 'custody-heads-'))
const registry = loadRegistry('local')
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0)
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

const codes = new Map(registry.networks.map(({ family, code }) => [family, code]))

for (const [family, code] of codes)
  test(`${family}: the head has the height and the time of the newest block`, async () => {
    const networks = registry.networks.filter((each) => each.code === code)
    const [chain] = connectAll(
      withoutPlatform(registry),
      localEndpoints(devnet.url, networks),
      fetch,
    )
    const client = chain!.client
    await devnet.chains.find((each) => each.code === code)!.start()
    const before = (await client.tip()).height
    const { height, timeMs, lacks } = await client.head()
    const now = Date.now()
    assert.ok(height >= before && height <= (await client.tip()).height + 1, `${height}, ${before}`)
    assert.ok(timeMs !== null, 'the block has no time')
    // The local chains have clocks of their own.
    assert.ok(timeMs >= Date.UTC(2020) && timeMs < now + 86_400_000, new Date(timeMs).toISOString())
    assert.equal(lacks, null)
    const [state] = await chain!.belief!.states()
    assert.deepEqual([state?.head?.height !== undefined, state?.doubt], [true, null])
  })
