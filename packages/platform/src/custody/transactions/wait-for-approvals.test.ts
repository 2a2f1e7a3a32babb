// Transfers that the signer nodes refuse to sign until people have approved them: the platform learns
// it only from the refusal, when a nonce or coins are already fixed.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { wakePolicy } from '../../core/engine/lease.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-approval-'))
const PLACES: WalletAddress[] = [
  { code: 'ETH', to: '0x00000000000000000000000000000000000000AA', held: '50', amount: '0.1' },
  { code: 'BTC', to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', held: '5', amount: '0.1' },
  {
    code: 'SOL',
    to: '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM',
    held: '50',
    amount: '0.1',
  },
]
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Approvals {
  /** IDs of the transfers that require approvals. */
  required: Set<string>
  isApproved: boolean
  /** IDs of the transfers for which a window has no room now. */
  full: Set<string>
  /** Unix seconds from which the window has room; null: never. */
  freesAt: number | null
  /** Fuel is refused that pays for more than one transfer. */
  isSharedRefused: boolean
  /** Refusals of payments by busy nodes, before anything else. */
  busy: number
  /** Orders that the nodes have refused. */
  refused: string[]
}

/** Runs a test in which the nodes refuse payments, and judge requests once they have refused one. */
async function staged(
  place: WalletAddress,
  play: (fixture: FamilyFixture, approvals: Approvals) => Promise<void>,
): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  const approvals: Approvals = {
    required: new Set(),
    isApproved: false,
    full: new Set(),
    freesAt: null,
    isSharedRefused: false,
    busy: 0,
    refused: [],
  }
  let isGoverned = false
  const tokens = new Map<string, string>()
  const isFull = (token: string) => approvals.full.has(tokens.get(token) ?? '')
  const isMissing = (token: string) =>
    !approvals.isApproved && approvals.required.has(tokens.get(token) ?? '')
  Object.assign(fixture.services, {
    policies: {
      async judge(_workspace: string, { token }: { token: string }) {
        if (!isGoverned) return { kind: 'none' }
        const issued_at = Math.floor(clock.now() / 1000)
        if (isFull(token)) {
          const freesAt = [approvals.freesAt]
          return { kind: 'later', message: 'POLICY_WINDOW: the window is full', freesAt }
        }
        return isMissing(token)
          ? { kind: 'approval', judgement: { statement: {}, needs: [], issued_at } }
          : { kind: 'allowed', judgement: { needs: [] } }
      },
      mayJudgeAgain: () => true,
      isGoverned: () => isGoverned,
      noteGoverned: () => {
        isGoverned = true
      },
    },
  })
  fixture.nodes.fault = ({ purpose }) => {
    const served =
      purpose.kind === 'fuel'
        ? [purpose, ...(purpose.beside ?? [])].map((part) => part.for)
        : [purpose]
    const asked = served.flatMap((each) => (each.kind === 'pay' ? [each.request.token] : []))
    if (purpose.kind === 'pay' && approvals.busy > 0) {
      approvals.busy--
      return 'busy'
    }
    const isRefused = asked.some(isMissing) || (approvals.isSharedRefused && asked.length > 1)
    const fault = isRefused ? 'unapproved' : asked.some(isFull) ? 'full' : undefined
    if (fault === undefined) return undefined
    // From now on the platform knows that the workspace has a policy.
    isGoverned = true
    approvals.refused.push(purpose.kind)
    return fault
  }
  try {
    await fixture.open()
    const create = fixture.create.bind(fixture)
    fixture.create = async (...words) => {
      const id = await create(...words)
      tokens.set((await fixture.read(id)).request?.token ?? '', id)
      return id
    }
    await play(fixture, approvals)
    await fixture.check()
  } finally {
    await fixture.close()
  }
}

const requestOf = (fixture: FamilyFixture, id: string) =>
  fixture.database.one<{ state: string }>(
    'select state from approval_requests where transaction_id = $1',
    [id],
  )
const builtOf = (fixture: FamilyFixture, id: string) =>
  fixture.database.query<{ state: string }>(
    'select state from chain_transactions where transaction_id = $1',
    [id],
  )

for (const place of PLACES) {
  test(`${place.code}: a refused transfer waits for approvals while others are paid`, () =>
    staged(place, async (fixture, approvals) => {
      const before = await fixture.available()
      const waiting = await fixture.create('waits')
      approvals.required.add(waiting)
      const others = [await fixture.create('other-1'), await fixture.create('other-2')]
      await fixture.runTo(waiting, 'APPROVAL')
      for (const id of others) await fixture.runTo(id, 'CONFIRMED')
      assert.equal((await fixture.read(waiting)).state, 'APPROVAL')
      assert.equal((await requestOf(fixture, waiting))?.state, 'open')
      // It was never signed, so it has given its nonce or its coins back.
      if (place.code !== 'SOL') assert.deepEqual(await builtOf(fixture, waiting), [])
      approvals.isApproved = true
      await fixture.run()
      for (const id of [waiting, ...others])
        assert.deepEqual(
          [(await fixture.read(id)).state, await fixture.onChain(id)],
          ['CONFIRMED', 1],
        )
      assert.equal((await requestOf(fixture, waiting))?.state, 'approved')
      assert.ok(before - (await fixture.available()) >= 3n * fixture.amount)
    }))

  test(`${place.code}: a transfer that is cancelled while it waits releases everything`, () =>
    staged(place, async (fixture, approvals) => {
      const before = await fixture.available()
      const id = await fixture.create('cancelled')
      approvals.required.add(id)
      await fixture.runTo(id, 'APPROVAL')
      await fixture.cancel(id)
      await fixture.run()
      assert.equal((await fixture.read(id)).state, 'CANCELLED')
      assert.equal((await requestOf(fixture, id))?.state ?? 'ended', 'ended')
      assert.equal(await fixture.available(), before)
    }))

  for (const commit of ['approval', 'approved'])
    test(`${place.code}: a transfer is paid once if the process ends after commit ${commit}`, () =>
      staged(place, async (fixture, approvals) => {
        const id = await fixture.create('ends')
        approvals.required.add(id)
        fixture.crashAt = `transaction.${commit}`
        await fixture.runTo(id, 'APPROVAL')
        approvals.isApproved = true
        await fixture.run()
        assert.equal(fixture.crashAt, null, 'the commit was reached')
        assert.deepEqual(
          [(await fixture.read(id)).state, await fixture.onChain(id)],
          ['CONFIRMED', 1],
        )
      }))
}

const chainStates = async (fixture: FamilyFixture, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => [(await fixture.read(id)).state, await fixture.onChain(id)]))
const PAID = ['CONFIRMED', 1]
/** Transfers whose fee the gas tank pays. */
const FUELLED: WalletAddress[] = [
  { code: 'ETH', to: '0x00000000000000000000000000000000000000AA', held: '50', amount: '0.1' },
  { code: 'TRX', to: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', held: '500', amount: '1' },
]

for (const place of FUELLED) {
  test(`${place.code}: a transfer whose fuel is refused waits for approvals, others do not`, () =>
    staged(place, async (fixture, approvals) => {
      const waiting = await fixture.create('waits')
      approvals.required.add(waiting)
      const others = [await fixture.create('other-1'), await fixture.create('other-2')]
      await fixture.runTo(waiting, 'APPROVAL')
      assert.ok(approvals.refused.includes('fuel'), 'its fuel was refused, not its payment')
      const { plan } = await fixture.read(waiting)
      assert.deepEqual([plan.fuel_id, plan.float_taken, plan.fuellings], [null, null, '1'])
      for (const id of others) await fixture.runTo(id, 'CONFIRMED')
      approvals.isApproved = true
      await fixture.run()
      const all = [waiting, ...others]
      assert.deepEqual(
        await chainStates(fixture, all),
        all.map(() => PAID),
      )
    }))

  test(`${place.code}: a transfer whose fuel is refused releases everything if it is cancelled`, () =>
    staged(place, async (fixture, approvals) => {
      const before = await fixture.available()
      const id = await fixture.create('cancelled')
      approvals.required.add(id)
      await fixture.runTo(id, 'APPROVAL')
      await fixture.cancel(id)
      await fixture.run()
      assert.equal((await fixture.read(id)).state, 'CANCELLED')
      assert.equal(await fixture.available(), before)
    }))

  test(`${place.code}: a transfer is paid once if the process ends when its fuel is returned`, () =>
    staged(place, async (fixture, approvals) => {
      const id = await fixture.create('ends')
      approvals.required.add(id)
      fixture.crashAt = 'transaction.unfuelled'
      await fixture.runTo(id, 'APPROVAL')
      approvals.isApproved = true
      await fixture.run()
      assert.equal(fixture.crashAt, null, 'the commit was reached')
      assert.deepEqual(await chainStates(fixture, [id]), [PAID])
    }))

  test(`${place.code}: fuel for which a window is full does not block the gas tank`, () =>
    staged(place, async (fixture, approvals) => {
      const waiting = await fixture.create('waits')
      approvals.full.add(waiting)
      const other = await fixture.create('other')
      await fixture.runTo(other, 'CONFIRMED')
      assert.ok(approvals.refused.includes('fuel'))
      const { state, waiting: reason } = await fixture.read(waiting)
      assert.deepEqual([state, reason?.code], ['QUEUED', 'POLICY'])
      approvals.full.clear()
      await fixture.run()
      assert.deepEqual(await chainStates(fixture, [waiting, other]), [PAID, PAID])
    }))
}

test('fuel that is refused for several transfers together is sent for each of them', () =>
  staged(FUELLED[0]!, async (fixture, approvals) => {
    approvals.isSharedRefused = true
    const ids = [await fixture.create('a'), await fixture.create('b'), await fixture.create('c')]
    await fixture.run()
    assert.ok(approvals.refused.includes('fuel'), 'they shared a fuel transaction')
    assert.deepEqual(
      await chainStates(fixture, ids),
      ids.map(() => PAID),
    )
    const fuel = await fixture.database.one<{ count: number }>(
      `select count(*)::int count from transactions where kind = 'FUEL'`,
    )
    assert.ok((fuel?.count ?? 0) <= 5, `${fuel?.count} fuel transactions`)
  }))

test('a payment whose window is full gives way although others are signed with it', () =>
  staged(PLACES[0]!, async (fixture, approvals) => {
    const waiting = await fixture.create('waits')
    const other = await fixture.create('other')
    await fixture.runTo(waiting, 'SIGNING')
    await fixture.runTo(other, 'SIGNING')
    approvals.full.add(waiting)
    await fixture.runTo(other, 'CONFIRMED')
    assert.equal((await fixture.read(waiting)).waiting?.code, 'POLICY')
    approvals.full.clear()
    await fixture.run()
    assert.deepEqual(await chainStates(fixture, [waiting, other]), [PAID, PAID])
  }))

test('a payment gives way also if busy nodes refused it before', () =>
  staged(PLACES[0]!, async (fixture, approvals) => {
    const waiting = await fixture.create('waits')
    // Two attempts with each of the three pairs.
    approvals.busy = 6
    await fixture.runTo(waiting, 'SIGNING')
    for (let round = 0; approvals.busy > 0; round++)
      assert.ok(round < 50 && (await fixture.turn()), 'it was never refused')
    approvals.full.add(waiting)
    const other = await fixture.create('other')
    await fixture.runTo(other, 'CONFIRMED')
    assert.deepEqual(await builtOf(fixture, waiting), [])
    approvals.full.clear()
    await fixture.run()
    assert.deepEqual(await chainStates(fixture, [waiting, other]), [PAID, PAID])
  }))

for (const place of PLACES.slice(0, 2))
  test(`${place.code}: a payment for which a window is full gives its nonce or coins back`, () =>
    staged(place, async (fixture, approvals) => {
      const waiting = await fixture.create('waits')
      // The window is filled by another payment after the judgement and before the signature.
      await fixture.runTo(waiting, 'SIGNING')
      approvals.full.add(waiting)
      const other = await fixture.create('other')
      await fixture.runTo(other, 'CONFIRMED')
      assert.ok(approvals.refused.includes('pay'))
      assert.deepEqual(await builtOf(fixture, waiting), [])
      assert.equal((await fixture.read(waiting)).waiting?.code, 'POLICY')
      approvals.full.clear()
      await fixture.run()
      assert.deepEqual(await chainStates(fixture, [waiting, other]), [PAID, PAID])
    }))

/** Milliseconds until the next step of a transfer. */
async function dueInMs(fixture: FamilyFixture, id: string): Promise<number> {
  const row = await fixture.database.one<{ next_run_at: Date }>(
    'select next_run_at from transactions where id = $1',
    [id],
  )
  return (row?.next_run_at.getTime() ?? Number.NaN) - clock.now()
}

test('a transfer waits until its window has room, or until another one is voided', () =>
  staged(PLACES[0]!, async (fixture, approvals) => {
    const ids = [await fixture.create('a'), await fixture.create('b')] as const
    for (const id of ids) approvals.full.add(id)
    for (const id of ids) {
      for (let round = 0; (await fixture.read(id)).waiting?.code !== 'POLICY'; round++)
        assert.ok(round < 100 && (await fixture.step()), 'it never waited')
    }
    const [id, other] = ids
    approvals.freesAt = Math.floor(clock.now() / 1000) + 100
    await wakePolicy(fixture.database, (await fixture.read(id)).workspace_id)
    assert.ok((await dueInMs(fixture, id)) <= 200)
    clock.advance(1000)
    await fixture.step()
    const wait = await dueInMs(fixture, id)
    assert.ok(wait > 90_000 && wait <= 101_000, `${wait} ms`)
    await fixture.cancel(other)
    await fixture.runTo(other, 'CANCELLED')
    assert.ok((await dueInMs(fixture, id)) <= 200)
    approvals.full.clear()
    await fixture.run()
    assert.deepEqual(await chainStates(fixture, [id]), [PAID])
  }))

test('a transfer whose approvals do not arrive in six days fails with voids', () =>
  staged(PLACES[0]!, async (fixture, approvals) => {
    const before = await fixture.available()
    const id = await fixture.create('expires')
    approvals.required.add(id)
    await fixture.runTo(id, 'APPROVAL')
    await fixture.step()
    clock.advance(6 * 24 * 3_600_000 + 60_000)
    await fixture.runTo(id, 'FAILED')
    await fixture.run()
    const row = await fixture.read(id)
    assert.match(row.failure_reason ?? '', /^APPROVAL_EXPIRED: /)
    assert.equal(row.voids?.length, 3)
    assert.equal((await requestOf(fixture, id))?.state, 'expired')
    assert.equal(await fixture.available(), before)
  }))
