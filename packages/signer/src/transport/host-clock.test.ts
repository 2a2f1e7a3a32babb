import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { repairClock } from '../set-up/repair-clock.ts'
import { Store } from '../store/index.ts'
import { LEAP_MAX_MS, RecordStore } from '../store/record.ts'
import { Spending } from '../store/spending.ts'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  refused,
  signed,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * If a host's clock was wrong once, its node must not be blocked for as long as the clock was
 * ahead, and must not accept earlier times.
 */
const DAY_MS = 86_400_000
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let number = 0

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

/** Creates a payment whose request is issued now, by the machine's clock plus `aheadMs`. */
const transferAt = (aheadMs = cluster.aheadMs) =>
  transfer(
    caller,
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
    { now: Math.floor((Date.now() + aheadMs) / 1000) },
  )
async function sign(pair: readonly [number, number], request = transferAt()): Promise<Answer> {
  const answer = await workspace.sign(
    pay(await request),
    eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: number }),
    pair,
  )
  if (answer.status === 200) number++
  return answer
}

test('ignores a clock that jumps ahead on one host, and continues once it is right again', async () => {
  signed(await sign([1, 3]))
  for (const leap of [LEAP_MAX_MS + 60_000, DAY_MS, 3650 * DAY_MS]) {
    cluster.aheadMsOf.set(3, leap)
    for (const pair of [
      [1, 3],
      [3, 1],
    ] as const) {
      const answer = await sign(pair)
      refused(answer, 'CLOCK_DOUBTED')
      assert.match(
        answer.body.message,
        /^The clock of this host jumped ahead by \d+ s, and no peer reports the same time: correct it by NTP$/,
      )
    }
    signed(await sign([1, 2]))
    const { body } = await cluster.get(3, '/status')
    assert.equal(body.clock_doubted, true)
    // The node does not adopt the wrong clock at a restart either.
    await cluster.restartHere(3)
    refused(await sign([3, 2]), 'CLOCK_DOUBTED')
    cluster.aheadMsOf.delete(3)
    signed(await sign([3, 2]))
    assert.equal((await cluster.get(3, '/status')).body.clock_doubted, false)
  }
})

test('a host that was off for long waits until a peer reports the same time', async () => {
  for (const node of [1, 2, 3]) await cluster.stopHere(node)
  cluster.aheadMs += 30 * DAY_MS
  await cluster.restartHere(1)
  refused(await sign([1, 2]), 'CLOCK_DOUBTED')
  for (const node of [2, 3]) await cluster.restartHere(node)
  signed(await sign([1, 2]))
  signed(await sign([2, 3]))
  // All hosts move at the same time, as after the suspension of a machine that runs all three
  // nodes.
  cluster.aheadMs += DAY_MS
  signed(await sign([3, 1]))
})

test("only the operator can reset a record's clock, and only to the time that both peers report", async () => {
  const home = cluster.peers.nodes[2]!.home
  const old = await transferAt()
  await cluster.stopHere(3)
  // An entry of an earlier version, which accepted every clock.
  const poisoned = new Store(join(home, 'record.sqlite'), () => Date.now() + 20 * 365 * DAY_MS)
  poisoned.append('backup', { keys: 0, made_at: 0 })
  poisoned.saveClock()
  poisoned.close()
  // From here on the nodes use the machine's clock, as the command does.
  for (const node of [1, 2]) await cluster.stopHere(node)
  cluster.aheadMs = 0
  for (const node of [1, 2]) {
    const { home: its } = cluster.peers.nodes[node - 1]!
    const store = new Store(join(its, 'record.sqlite'), () => Date.now())
    store.repairClock()
    store.close()
    await cluster.restartHere(node)
  }
  await cluster.restartHere(3)
  refused(await sign([3, 1]), 'TOO_OLD')
  await assert.rejects(repairClock(home), { message: 'the node is running: stop it first' })
  await cluster.stopHere(3)
  for (const ahead of [-DAY_MS, 60_000]) {
    cluster.aheadMsOf.set(2, ahead)
    await assert.rejects(
      repairClock(home),
      /^SetupError: the clock of signer node 2 is \d+ s (ahead|behind): synchronise both by NTP first$/,
    )
  }
  cluster.aheadMsOf.delete(2)
  await cluster.stopHere(1)
  await assert.rejects(repairClock(home), /signer node 1 .* cannot be reached/)
  await cluster.restartHere(1)
  assert.match(await repairClock(home), /^the clock was changed from \S+ to \S+; start the node$/)
  await assert.rejects(repairClock(home), /not ahead of the host's: no repair is required/)
  await cluster.restartHere(3)
  // A request that was issued before the repair is still refused: the node's time has moved
  // forward, not back.
  const before = await transfer(
    caller,
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
    { now: Math.floor(Date.now() / 1000) - 3600 },
  )
  refused(await sign([3, 1], Promise.resolve(before)), 'TOO_OLD')
  refused(await sign([3, 1], Promise.resolve(old)), 'NOT_AUTHENTIC')
  // A request of the second in which the repair was made is refused as well.
  let answer = await sign([3, 1])
  while (answer.body.error === 'TOO_OLD') answer = await sign([3, 1])
  signed(answer)
  await cluster.restartHere(3)
  signed(await sign([3, 2]))
})

test("property: a record's time never goes back and never keeps an unconfirmed jump", async () => {
  const step = fc.record({
    passed: fc.integer({ min: 0, max: 3_600_000 }),
    error: fc.constantFrom(0, 0, -DAY_MS, 1000, LEAP_MAX_MS / 2, DAY_MS, 3650 * DAY_MS),
    after: fc.constantFrom('read', 'write', 'confirm', 'restart'),
  })
  const folder = mkdtempSync(join(tmpdir(), 'signer-clock-'))
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const path = join(folder, `${run++}.sqlite`)
      const start = 1_800_000_000_000
      let [truth, error, last, allowed] = [start, 0, 0, start]
      const open = (): RecordStore => {
        const store = new RecordStore(
          path,
          () => truth + error,
          () => truth,
        )
        store.replay(() => undefined)
        return store
      }
      let store = open()
      store.append({ kind: 'backup', body: { keys: 0, made_at: 0 } })
      for (const each of steps) {
        truth += each.passed
        error = each.error
        // The record may accept the time that has passed, and the time that was confirmed.
        allowed += each.passed
        if (each.after === 'confirm') {
          store.confirm()
          allowed = Math.max(allowed, truth + error)
        }
        if (each.after === 'write') store.append({ kind: 'backup', body: { keys: 0, made_at: 0 } })
        if (each.after === 'restart') {
          store.saveClock()
          store.close()
          store = open()
        }
        const now = store.clock()
        assert.ok(now >= last, 'time went back')
        last = now
        assert.ok(now <= allowed + LEAP_MAX_MS, `${now - allowed} ms beyond what may be believed`)
      }
      store.close()
    }),
    { numRuns: 60 },
  )
  rmSync(folder, { recursive: true })
})

test('amounts charged with a clock that was ahead count for one day after the repair', () => {
  const spending = new Spending()
  const charge = { budget: 'b', transaction: 't' }
  spending.add({ height: 1, charges: [{ ...charge, at: 9 * DAY_MS, amount: 5n, step: 's' }] })
  spending.add({ height: 2, charges: [{ ...charge, at: DAY_MS, amount: 3n, step: 't' }] })
  spending.clamp(2 * DAY_MS)
  assert.deepEqual(
    [DAY_MS, 2 * DAY_MS, 2 * DAY_MS + 1].map((since) =>
      spending.since('b', since).map(({ amount }) => amount),
    ),
    [[5n, 3n], [5n], []],
  )
})
