import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Fetch } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests that a failure of the provider proves nothing about a transfer: the transfer waits, reports
 * the reason, and is paid once the provider works again.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-provider-trouble-'))
let devnet: Devnet
/** Number of attempts, far more than the number after which a reverting transfer fails. */
const LOOKS = 30
const REVERTED = { code: 3, message: 'execution reverted: paused' }

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Trouble {
  status?: number
  error?: { code: number; message: string }
  text?: string
}

/**
 * Returns a fixture with a transfer, and an endpoint that returns the current error, if there is
 * one, whenever a transfer is estimated.
 */
async function staged(
  run: (fixture: FamilyFixture, id: string, trouble: { now: Trouble | null }) => Promise<void>,
): Promise<void> {
  const trouble: { now: Trouble | null } = { now: null }
  const troubled: Fetch = async (url, init) => {
    const { method, id } = JSON.parse(String(init.body)) as { method: string; id: number }
    if (!trouble.now || method !== 'eth_estimateGas') return fetch(url, init)
    const {
      status = 200,
      error,
      text = JSON.stringify({ jsonrpc: '2.0', id, error }),
    } = trouble.now
    return new Response(text, { status })
  }
  const fixture = new FamilyFixture(
    database.get(),
    devnet,
    { code: 'ETH', to: '0x00000000000000000000000000000000000000AA', held: '5', amount: '1' },
    clock,
    troubled,
  )
  try {
    await fixture.open()
    await run(fixture, await fixture.create('sent'), trouble)
  } finally {
    await fixture.close()
  }
}

/** Runs as many steps of the transfer as workers would run in hours. */
async function look(fixture: FamilyFixture, id: string, times: number): Promise<void> {
  for (let at = 0; at < times; at++) {
    await fixture.database.query('update transactions set next_run_at = $2 where id = $1', [
      id,
      fixture.database.now(),
    ])
    await fixture.step()
  }
}

test('quotas, overload and lost state of an endpoint delay a transfer, and never fail it', async () => {
  const troubles: Trouble[] = [
    {
      status: 429,
      error: { code: -32005, message: 'daily request count exceeded, request rate limited' },
    },
    {
      status: 429,
      error: {
        code: -32000,
        message: 'Your app has exceeded its compute units per second capacity',
      },
    },
    { error: { code: -32005, message: 'limit exceeded' } },
    { status: 503, error: { code: -32603, message: 'service temporarily unavailable' } },
    { error: { code: -32000, message: 'header not found' } },
    {
      error: {
        code: -32000,
        message: 'missing trie node 6e1a (path ) state 0x6e1a is not available',
      },
    },
    { error: { code: -32000, message: 'execution aborted (timeout = 5s)' } },
    { error: { code: -32603, message: 'Internal error' } },
    {
      error: { code: -32601, message: 'the method eth_estimateGas is not available on your plan' },
    },
    { status: 502, text: '<html>Bad gateway</html>' },
  ]
  await staged(async (fixture, id, trouble) => {
    for (const each of troubles) {
      trouble.now = each
      await look(fixture, id, LOOKS / 5)
      const { status, last_error } = await fixture.read(id)
      assert.equal(status, 'pending', `${JSON.stringify(each)}: ${last_error}`)
      assert.ok(last_error, 'it says why it waits')
    }
    await look(fixture, id, LOOKS)
    // After the outage, a node that lags behind reports once that the transfer would fail. A single
    // report is not sufficient proof.
    trouble.now = { error: REVERTED }
    await look(fixture, id, 1)
    assert.equal((await fixture.read(id)).status, 'pending')
    trouble.now = null
    await fixture.run()
    assert.deepEqual([(await fixture.read(id)).state, await fixture.onChain(id)], ['CONFIRMED', 1])
    await fixture.check()
  })
})

test('a transfer that the chain itself refuses fails after several attempts, with the reason', async () => {
  for (const error of [
    REVERTED,
    { code: -32000, message: 'insufficient funds for gas * price + value' },
  ]) {
    await staged(async (fixture, id, trouble) => {
      trouble.now = { error }
      // The transfer is screened, then planned.
      await look(fixture, id, 2)
      const { status, last_error } = await fixture.read(id)
      assert.deepEqual(
        [status, last_error],
        ['pending', `the chain would reject this transfer now: ${error.message}`],
      )
      await look(fixture, id, LOOKS)
      const ended = await fixture.read(id)
      assert.deepEqual(
        [ended.status, ended.failure_reason],
        ['failed', `the chain would reject this transfer: ${error.message}`],
      )
      trouble.now = null
      await fixture.check()
    })
  }
})
