import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test, type TestContext } from 'node:test'
import { runLoops } from '../../core/engine/loops/loop.ts'
import type { Application } from '../../server/app/application.ts'
import { publish } from '../events/publish.ts'
import { Notifier } from '../../core/ledger/notifier.ts'
import { emit } from '../../core/ledger/post.ts'
import { allocateSlots, SLOTS, type Queue } from './fair-queue.ts'
import { deliverLoop } from './deliver.ts'
import { distributorOf } from './distribute.ts'
import type { Answer } from './send.ts'
import * as fc from '../../../../../testing/property.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests that one receiver's failure does not affect others, and that another process continues the
 * work of one that dies. The network is scripted.
 */
const clock = new ManualClock()
// The numbers of transactions are those of the whole server.
const api = useApi({}, [], clock, { server: 'own' })
type Owner = User & { workspaceId: string; subAccountId: string }
before(() => api.started)

const GOOD: Answer = { status: 200, error: null, text: '', retryAfterMs: null, durationMs: 1 }
const BAD: Answer = { ...GOOD, status: null, error: 'no complete response within 15 s' }
interface Posted {
  url: string
  id: string
  body: string
}

/** The webhook part of a platform process: its delivery loop, with its own scripted network. */
class Process {
  readonly posted: Posted[] = []
  /** Requests without a response so far, in the order in which they were sent. */
  readonly hanging: { url: string; answer(answer: Answer): void }[] = []
  readonly #running = new AbortController()
  readonly #work: Promise<unknown>
  dieAt: string | null = null
  /** Whether the process has died at its checkpoint. */
  hasDied = false
  #onRequest: () => void = () => undefined
  readonly services: Application

  constructor(t: TestContext) {
    t.after(() => this.end())
    const { webhooks, environment } = api.services
    const sender = {
      post: (
        url: string,
        headers: Record<string, string>,
        body: string,
        signal: AbortSignal,
      ): Promise<Answer | null> => {
        this.posted.push({ url, id: headers['webhook-id'] as string, body })
        this.#onRequest()
        if (!url.includes('hangs')) return Promise.resolve(url.includes('fails') ? BAD : GOOD)
        if (signal.aborted) return Promise.resolve(null)
        return new Promise((resolve) => {
          this.hanging.push({ url, answer: resolve })
          signal.addEventListener('abort', () => resolve(null))
        })
      },
      close: () => undefined,
    }
    this.services = {
      ...api.services,
      environment: {
        ...environment,
        checkpoint: (name: string) => {
          if (name !== this.dieAt) return
          this.hasDied = true
          this.#onRequest()
          throw new Error('the process has died')
        },
      },
      webhooks: { ...webhooks, due: new Notifier(environment), sender: sender as never },
    }
    this.#work = runLoops(this.services, [deliverLoop(this.services)], this.#running.signal)
  }

  of(word: string): Posted[] {
    return this.posted.filter(({ url }) => url.includes(word))
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds())
      await new Promise<void>((resolve) => {
        this.#onRequest = resolve
      })
  }

  /** Ends the process gracefully, as SIGTERM does. */
  async end(): Promise<void> {
    this.#running.abort()
    await this.#work
  }
}

async function hook(owner: Owner, name: string): Promise<string> {
  const { status, body, text } = await call<{ id: string }>(
    owner,
    'POST',
    '/dac/v1/webhooks',
    { url: `https://example.com/${name}`, events: ['*'] },
    { sign: { now: Math.floor(api.now() / 1000) } },
  )
  assert.equal(status, 200, text)
  return body.id
}
const tell = async (owner: Owner, count: number) => {
  for (let n = 0; n < count; n++)
    await emit(
      api.database,
      owner.workspaceId,
      owner.subAccountId,
      'wallet.updated',
      `{"id":"${randomUUID()}"}`,
    )
  // An event cannot be published while an older database transaction is open.
  while (
    (await api.database.one('select 1 from events where position is null limit 1')) !== undefined
  ) {
    if ((await publish(api.services, distributorOf(api.services))) === 0)
      await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
const pending = async (name: string) =>
  (
    await api.database.one<{ n: number }>(
      `select count(*)::int n from webhook_deliveries d join webhooks w on w.id = d.webhook_id
        where w.url like $1 and d.status = 'pending'`,
      [`%${name}`],
    )
  )?.n

const queue = (webhook: string, more: Partial<Queue> = {}): Queue => ({
  webhook,
  workspace: webhook,
  failures: 0,
  inFlight: { fresh: 0, again: 0 },
  waits: { fresh: 100, again: 100 },
  ...more,
})
const nothing = { inFlight: 0, failing: 0, ofWorkspace: new Map<string, number>() }

test('free delivery slots go to waiting webhooks in turn, within each limit', () => {
  assert.deepEqual(allocateSlots([queue('a')], nothing), [
    { webhook: 'a', workspace: 'a', fresh: SLOTS.webhook, again: SLOTS.again },
  ])
  assert.deepEqual(allocateSlots([queue('a', { failures: 1 })], nothing), [
    { webhook: 'a', workspace: 'a', fresh: SLOTS.failingWebhook, again: SLOTS.again },
  ])
  assert.deepEqual(allocateSlots([queue('a', { waits: { fresh: 0, again: 5 } })], nothing), [
    { webhook: 'a', workspace: 'a', fresh: 0, again: SLOTS.again },
  ])
  assert.deepEqual(
    allocateSlots(
      [queue('a', { inFlight: { fresh: SLOTS.webhook, again: SLOTS.again } })],
      nothing,
    ),
    [],
  )
  assert.deepEqual(allocateSlots([queue('a')], { ...nothing, inFlight: SLOTS.all }), [])
  assert.deepEqual(
    allocateSlots([queue('a')], { ...nothing, ofWorkspace: new Map([['a', SLOTS.workspace]]) }),
    [],
  )
  assert.deepEqual(
    allocateSlots([queue('a', { failures: 3 }), queue('b')], {
      ...nothing,
      failing: SLOTS.failing,
    }).map(({ webhook }) => webhook),
    ['b'],
  )
  // One slot is free, and is assigned to the webhook with the fewest deliveries in progress.
  const last = allocateSlots([queue('a', { inFlight: { fresh: 2, again: 0 } }), queue('b')], {
    ...nothing,
    inFlight: SLOTS.all - 1,
  })
  assert.deepEqual(last, [{ webhook: 'b', workspace: 'b', fresh: 1, again: 0 }])
})

test('for any queue, limits hold, usable slots are used, and working receivers are served', () => {
  const queues = fc
    .array(
      fc.record({
        webhook: fc.uuid(),
        workspace: fc.constantFrom('a', 'b', 'c', 'd'),
        failures: fc.constantFrom(0, 0, 1, 20),
        inFlight: fc.record({ fresh: fc.nat(SLOTS.webhook), again: fc.nat(SLOTS.again) }),
        waits: fc.record({ fresh: fc.nat(40), again: fc.nat(3) }),
      }),
      { maxLength: 60 },
    )
    .map((all) => [...new Map(all.map((each) => [each.webhook, each])).values()])
  fc.assert(
    fc.property(queues, fc.nat(SLOTS.all), fc.nat(SLOTS.failing), (all, inFlight, failing) => {
      const ofWorkspace = new Map<string, number>()
      for (const each of all)
        ofWorkspace.set(
          each.workspace,
          (ofWorkspace.get(each.workspace) ?? 0) + each.inFlight.fresh + each.inFlight.again,
        )
      const shares = new Map(
        allocateSlots(all, { inFlight, failing, ofWorkspace }).map((share) => [
          share.webhook,
          share,
        ]),
      )
      let begun = 0
      let begunFailing = 0
      const used = new Map(ofWorkspace)
      for (const each of all) {
        const { fresh = 0, again = 0 } = shares.get(each.webhook) ?? {}
        assert.ok(fresh <= each.waits.fresh && again <= each.waits.again)
        assert.ok(
          fresh === 0 ||
            each.inFlight.fresh + fresh <=
              (each.failures > 0 ? SLOTS.failingWebhook : SLOTS.webhook),
        )
        assert.ok(again === 0 || each.inFlight.again + again <= SLOTS.again)
        begun += fresh + again
        if (each.failures > 0) begunFailing += fresh + again
        used.set(each.workspace, (used.get(each.workspace) ?? 0) + fresh + again)
      }
      assert.ok(begun === 0 || inFlight + begun <= SLOTS.all)
      assert.ok(begunFailing === 0 || failing + begunFailing <= SLOTS.failing)
      for (const [workspace, count] of used)
        assert.ok(count <= Math.max(SLOTS.workspace, ofWorkspace.get(workspace) ?? 0))
      for (const each of all) {
        const isFree =
          inFlight + begun < SLOTS.all &&
          (used.get(each.workspace) ?? 0) < SLOTS.workspace &&
          each.failures === 0
        const share = shares.get(each.webhook)?.fresh ?? 0
        if (isFree)
          assert.equal(
            share,
            Math.max(0, Math.min(each.waits.fresh, SLOTS.webhook - each.inFlight.fresh)),
            'an idle place',
          )
      }
    }),
    { numRuns: 300 },
  )
})

test('hanging receivers block only their own slots, and are served once they answer', async (t) => {
  const mallory = await api.user('mallory')
  const alice = await api.user('alice')
  for (let n = 0; n < 6; n++) await hook(mallory, `hangs-${n}`)
  await hook(mallory, 'mallorys-other')
  await hook(alice, 'alices')
  await hook(alice, 'alice-hangs')
  await tell(mallory, 60)
  await tell(alice, 60)
  const process = new Process(t)
  // All other deliveries complete before any of the hanging ones gets a response.
  await process.until(() => process.of('alices').length === 60)
  assert.equal(process.hanging.length, process.of('hangs').length)
  assert.ok(
    process.of('mallor').length + process.of('/hangs').length >= SLOTS.workspace,
    'mallory’s places are all taken',
  )
  assert.ok(process.of('/hangs').length <= SLOTS.workspace, 'and no more')
  assert.equal(
    process.of('alice-hangs').length,
    SLOTS.webhook,
    'the other webhook of the same sub-account hangs within its own places',
  )
  // Webhooks have fewer slots after they have failed.
  for (const each of process.hanging.splice(0)) each.answer(BAD)
  const unharmed = `select 1 from webhooks where url like '%hangs%' and failures = 0`
  while ((await api.database.one(unharmed)) !== undefined) {
    for (const each of process.hanging.splice(0)) each.answer(BAD)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  for (const each of process.hanging.splice(0)) each.answer(BAD)
  await process.until(() => process.of('mallorys-other').length === 60)
  await tell(alice, 20)
  process.services.webhooks.due.ring()
  await process.until(() => process.of('alices').length === 80)
  // Attempts that began before the failures were recorded may still be in progress.
  const tooMany = () =>
    process.hanging.find(
      ({ url }) =>
        process.hanging.filter((each) => each.url === url).length >
        SLOTS.failingWebhook + SLOTS.again,
    )
  for (let each = tooMany(); each; each = tooMany()) {
    process.hanging.splice(process.hanging.indexOf(each), 1)
    each.answer(BAD)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await process.end()
  assert.equal(await pending('alices'), 0)
})

test('a graceful stop returns running deliveries, and the next process sends them again', async (t) => {
  const owner = await api.user('ending')
  const id = await hook(owner, 'ending-hangs')
  await tell(owner, 3)
  const first = new Process(t)
  await first.until(() => first.of('ending-hangs').length === 3)
  await first.end()
  const row = await api.database.one<{ failures: number; leased: number }>(
    `select failures, (select count(*)::int from webhook_deliveries where webhook_id = w.id
      and lease_token is not null) leased from webhooks w where id = $1`,
    [id],
  )
  assert.deepEqual(row, { failures: 0, leased: 0 })
  const second = new Process(t)
  await second.until(() => second.of('ending-hangs').length >= 1)
  assert.ok(first.of('ending-hangs').some((one) => one.id === second.of('ending-hangs')[0]?.id))
  await second.end()
  await api.database.query('delete from webhooks where id = $1', [id])
})

for (const checkpoint of ['webhooks.claimed', 'webhooks.sent']) {
  test(`after a process dies at ${checkpoint}, another one sends the same delivery again`, async (t) => {
    const owner = await api.user(checkpoint)
    const name = `after-${checkpoint}`
    const id = await hook(owner, name)
    await tell(owner, 1)
    const dying = new Process(t)
    dying.dieAt = checkpoint
    dying.services.webhooks.due.ring()
    await dying.until(() => dying.hasDied)
    assert.ok(
      await api.database.one(
        'select 1 from webhook_deliveries where webhook_id = $1 and lease_token is not null',
        [id],
      ),
    )
    assert.equal(dying.of(name).length, checkpoint === 'webhooks.sent' ? 1 : 0)
    const other = new Process(t)
    const [sent] = dying.of(name)
    assert.equal(other.of(name).length, 0, 'its lease is respected')
    clock.advance(60_001)
    other.services.webhooks.due.ring()
    dying.dieAt = null
    while ((await pending(name)) !== 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const all = [...dying.of(name), ...other.of(name)]
    assert.equal(
      all.length,
      checkpoint === 'webhooks.sent' ? 2 : 1,
      'at least once: the first may have arrived',
    )
    if (sent) assert.ok(all.every(({ id: one, body }) => one === sent.id && body === sent.body))
    await Promise.all([dying.end(), other.end()])
  })
}

test('several processes share the deliveries, and each delivery is made once', async (t) => {
  const owner = await api.user('shared')
  await hook(owner, 'shared')
  await tell(owner, 150)
  const processes = [new Process(t), new Process(t), new Process(t)]
  while ((await pending('shared')) !== 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const ids = processes.flatMap((each) => each.of('shared').map(({ id }) => id))
  assert.deepEqual([ids.length, new Set(ids).size], [150, 150])
  await Promise.all(processes.map((each) => each.end()))
})

test('the delivery loop writes nothing when no delivery is pending', async () => {
  const written = async () =>
    (
      await api.database.one<{ xid: string }>(
        'select pg_snapshot_xmax(pg_current_snapshot())::text xid',
      )
    )?.xid
  await api.database.query('delete from webhooks')
  const loop = deliverLoop(api.services)
  const before = await written()
  for (let pass = 0; pass < 10; pass++)
    assert.equal(await loop.run(new AbortController().signal), false)
  assert.equal(await written(), before)
})
