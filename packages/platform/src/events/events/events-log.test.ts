import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { get } from 'node:http'
import { before, test } from 'node:test'
import { requestHeaders, signRequest } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { publish, publishLoop } from './publish.ts'
import { forgetEvents } from './forget.ts'
import { runLoops } from '../../core/engine/loops/loop.ts'
import { emit } from '../../core/ledger/post.ts'
import { distributorOf } from '../webhooks/distribute.ts'
import * as fc from '../../../../../testing/property.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, type User } from '../../../testing/harness.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/** Tests of the event log: its order, who can read which events, its cursors, and its stream. */
// The numbers of transactions are those of the whole server.
const api = useApi({}, [], undefined, { server: 'own' })
type Owner = User & { workspaceId: string; subAccountId: string }
let alice: Owner
let sibling: Owner
let mallory: Owner
before(async () => {
  await api.started
  alice = await api.user('alice')
  sibling = await api.user('alice', { subAccount: 'other' })
  mallory = await api.user('mallory')
})

interface Event {
  id: string
  type: string
  timestamp: string
  object: string
  version: string
  data: Record<string, unknown>
}
interface Page {
  data: Event[]
  next: string | null
  has_more: boolean
}

const wallet = (id: string) =>
  JSON.stringify({ id, asset: 'ETH', status: 'inactive', updated_at: '2026-01-01T00:00:00.000Z' })
const tell = (
  tx: Queryable,
  owner: Owner,
  id: string = randomUUID(),
  subAccount: string | null = owner.subAccountId,
) => emit(tx, owner.workspaceId, subAccount, 'wallet.updated', wallet(id))
const published = async () => {
  while ((await publish(api.services, distributorOf(api.services))) > 0);
}
const list = async (user: User, query = '') => {
  const { status, body, text } = await call<Page>(user, 'GET', `/dac/v1/events${query}`)
  assert.equal(status, 200, text)
  return body
}
const summaries = ({ data }: Page) =>
  data.map(({ object, version }) => `${object.slice(0, 4)} ${version}`)

test('events that are committed late are listed after those already read', async () => {
  const [early, late] = [randomUUID(), randomUUID()]
  await api.database.transaction(async (tx) => {
    // This event has a lower id than the event that is committed before it.
    await tell(tx, alice, late)
    await tell(api.database, alice, early)
    await published()
    assert.deepEqual(
      (await list(alice)).data.map(({ object }) => object),
      [early],
    )
  })
  const { next } = await list(alice)
  await published()
  const rest = await list(alice, `?after=${next}`)
  assert.deepEqual(
    rest.data.map(({ object }) => object),
    [late],
    'it comes after what was read',
  )
  const ids = await api.database.query<{ id: string; position: string }>(
    `select id::text, position::text from events where position is not null
      order by events.position`,
  )
  assert.deepEqual(
    ids.map(({ position }) => Number(position)),
    ids.map((_, at) => at + 1),
    'without gaps',
  )
  assert.ok(
    Number(ids.at(-1)?.id) < Number(ids.at(-2)?.id),
    'the one that came late has the lower id',
  )
})

test('versions count each object from 1, also when many events are published concurrently', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 40 }),
      async (objects) => {
        const names = Array.from({ length: 4 }, () => randomUUID())
        for (const at of objects) await tell(api.database, alice, names[at])
        await Promise.all([1, 2, 3].map(published))
        for (const [at, name] of names.entries()) {
          const rows = await api.database.query<{ version: string }>(
            'select version::text from events where object = $1 order by events.position',
            [name],
          )
          assert.deepEqual(
            rows.map(({ version }) => Number(version)),
            objects.filter((each) => each === at).map((_, index) => index + 1),
          )
        }
      },
    ),
    { numRuns: 6 },
  ))

test('a key lists only events of its sub-account and workspace, and accepts only their cursors', async () => {
  const [mine, siblings, all, theirs] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
  await tell(api.database, alice, mine)
  await tell(api.database, sibling, siblings)
  await tell(api.database, alice, all, null)
  await tell(api.database, mallory, theirs)
  await published()
  const seen = async (user: User) =>
    new Set((await list(user, '?limit=500')).data.map(({ object }) => object))
  for (const [user, sees] of [
    [alice, [true, false, true, false]],
    [sibling, [false, true, true, false]],
    [mallory, [false, false, false, true]],
  ] as const) {
    const objects = await seen(user)
    assert.deepEqual(
      [mine, siblings, all, theirs].map((each) => objects.has(each)),
      sees,
    )
  }
  const [secret] = (await list(mallory)).data
  for (const path of ['/dac/v1/events', '/dac/v1/events/stream']) {
    const { status, body } = await call<Problem>(alice, 'GET', `${path}?after=${secret?.id}`)
    assert.deepEqual([status, body.code, body.field], [410, 'CURSOR_EXPIRED', 'after'])
  }
})

test('events are paged by cursor, and filtered by type or group in any letter case', async () => {
  const user = await api.user('pages')
  for (let n = 0; n < 5; n++) await tell(api.database, user, randomUUID())
  await emit(
    api.database,
    user.workspaceId,
    null,
    'prepaid_fee.low',
    '{"balance":1,"currency":"USD","percent":20,"topped_up_to":5}',
  )
  await published()
  const whole = await list(user)
  assert.equal(whole.data.length, 6)
  assert.equal(whole.has_more, false)
  const pages: string[] = []
  let after = ''
  for (let isMore = true; isMore;) {
    const page = await list(user, `?limit=2${after}`)
    pages.push(...page.data.map(({ id }) => id))
    after = `&after=${page.next}`
    isMore = page.has_more
  }
  assert.deepEqual(
    pages,
    whole.data.map(({ id }) => id),
  )
  assert.deepEqual(await list(user, `?${after.slice(1)}`), {
    data: [],
    next: pages.at(-1),
    has_more: false,
  })
  assert.deepEqual(
    (await list(user, '?type=Prepaid_Fee.*')).data.map(({ type }) => type),
    ['prepaid_fee.low'],
  )
  assert.equal((await list(user, '?type=wallet.updated,prepaid_fee.low')).data.length, 6)
  assert.equal((await list(user, '?type=*')).data.length, 6)
  assert.deepEqual(await list(user, '?type=deposit.*'), { data: [], next: null, has_more: false })
  for (const [query, field] of [
    ['type=wallet', 'type'],
    ['type=', 'type'],
    ['after=1', 'after'],
    ['after=', 'after'],
    ['limit=0', 'limit'],
  ] as const) {
    const { status, body } = await call<Problem>(user, 'GET', `/dac/v1/events?${query}`)
    assert.deepEqual([status, body.field], [400, field], query)
  }
})

test('numbers in an event’s payload keep their exact digits', async () => {
  const user = await api.user('exact')
  await emit(
    api.database,
    user.workspaceId,
    null,
    'prepaid_fee.low',
    '{"balance":12345678901234567890.000001,"currency":"USD"}',
  )
  await published()
  assert.equal((await list(user)).data[0]?.data['balance'], '12345678901234567890.000001')
})

test('events are kept for 90 days, a cursor to a removed one gets an error, versions continue', async () => {
  const user = await api.user('old')
  const object = randomUUID()
  await tell(api.database, user, object)
  await published()
  const { next } = await list(user)
  await api.database.query(
    `update events set created_at = $2::timestamptz - interval '89 days' where object = $1`,
    [object, api.database.now()],
  )
  await forgetEvents(api.services)
  assert.equal((await list(user)).data.length, 1)
  await api.database.query(
    `update events set created_at = $2::timestamptz - interval '91 days' where object = $1`,
    [object, api.database.now()],
  )
  await forgetEvents(api.services)
  const { status, body } = await call<Problem>(user, 'GET', `/dac/v1/events?after=${next}`)
  assert.deepEqual([status, body.code], [410, 'CURSOR_EXPIRED'])
  assert.match(body.message, /90 days/)
  await tell(api.database, user, object)
  await published()
  assert.deepEqual(summaries(await list(user)), [`${object.slice(0, 4)} 2`])
})

test('an event that cannot be assigned to webhooks does not block other events', async () => {
  const user = await api.user('poison')
  const objects = [randomUUID(), randomUUID(), randomUUID()]
  for (const object of objects) await tell(api.database, user, object)
  const ids: string[] = []
  const errors: unknown[] = []
  const services = {
    ...api.services,
    log: { ...api.services.log, error: (what: unknown) => void errors.push(what) },
  } as typeof api.services
  const spoilt = {
    ...distributorOf(services),
    write: async (_: unknown, events: readonly { object: string }[]) => {
      if (events.some(({ object }) => object === objects[1]))
        throw new Error('it cannot be written')
      ids.push(...events.map(({ object }) => object))
    },
  }
  while ((await publish(services, spoilt)) > 0);
  assert.deepEqual(
    (await list(user)).data.map(({ object }) => object),
    objects,
  )
  assert.deepEqual([new Set(ids), errors.length], [new Set([objects[0], objects[2]]), 1])
})

test('events that a full database could not store are delivered once there is space', async () => {
  const user = await api.user('full')
  const object = randomUUID()
  await tell(api.database, user, object)
  const ids: string[] = []
  let refusals = 2
  const spoilt = {
    ...distributorOf(api.services),
    write: async (_: unknown, events: readonly { object: string }[]) => {
      if (refusals-- > 0) throw Object.assign(new Error('could not extend file'), { code: '53100' })
      ids.push(...events.map((event) => event.object))
    },
  }
  await assert.rejects(publish(api.services, spoilt), { code: '53100' })
  assert.equal(
    (await list(user)).data.length,
    0,
    'it is not in the log before those it is for have it',
  )
  refusals = 0
  while ((await publish(api.services, spoilt)) > 0);
  assert.deepEqual(
    [ids, (await list(user)).data.map((event) => event.object)],
    [[object], [object]],
  )
})

test('existing events get positions in order when the log is introduced, and are not sent again', async () => {
  const user = await api.user('before')
  await api.database.query(
    `insert into events (workspace_id, sub_account_id, type, payload) select $1, $2,
      'wallet.updated', jsonb_build_object('id', n) from generate_series(1, 450) n`,
    [user.workspaceId, user.subAccountId],
  )
  const { status } = await call(user, 'POST', '/dac/v1/webhooks', {
    url: 'https://example.com/',
    events: ['*'],
  })
  assert.equal(status, 200)
  await published()
  const rows = await api.database.query<{ payload: { id: number } }>(
    'select payload from events e where workspace_id = $1 order by e.position',
    [user.workspaceId],
  )
  assert.deepEqual(
    rows.map(({ payload }) => payload.id),
    Array.from({ length: 450 }, (_, at) => at + 1),
  )
  assert.deepEqual(
    await api.database.query('select 1 from webhook_deliveries where workspace_id = $1', [
      user.workspaceId,
    ]),
    [],
  )
})

test('writes nothing while there are no events', async () => {
  await published()
  // The clock is far ahead of the database's clock, so events of the earlier tests are old enough
  // to be deleted.
  await forgetEvents(api.services)
  // Autovacuum also uses transaction numbers, once a minute.
  await api.admin.query('alter system set autovacuum = off')
  await api.admin.query('select pg_reload_conf()')
  await waitFor(
    'the end of autovacuum',
    async () =>
      (
        await api.database.query(
          `select 1 from pg_stat_activity where backend_type in ('autovacuum launcher',
            'autovacuum worker')`,
        )
      ).length === 0,
  )
  const written = async () =>
    await api.database.one<{ lsn: string; xid: string }>(
      `select pg_current_wal_insert_lsn()::text lsn,
        pg_snapshot_xmax(pg_current_snapshot())::text xid`,
    )
  const before = await written()
  for (let n = 0; n < 5; n++) {
    assert.equal(await publish(api.services, distributorOf(api.services)), 0)
    await forgetEvents(api.services)
  }
  assert.deepEqual((await written())?.xid, before?.xid, 'no transaction has taken a number')
})

/** Opens an event stream with a signed request, as a client does. */
async function open(user: User, o: { path?: string; lastEventId?: string } = {}) {
  const path = o.path ?? '/dac/v1/events/stream'
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'GET',
    uri: path,
    body: '',
  })
  const got: Event[] = []
  let onEvent = () => undefined as void
  let text = ''
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const headers = {
    ...requestHeaders(signed, user.apiKey),
    ...(o.lastEventId === undefined ? {} : { 'last-event-id': o.lastEventId }),
  }
  const outgoing = get(`${api.base}${path}`, { headers }, (response) => {
    response
      .setEncoding('utf8')
      .on('data', (chunk: string) => {
        text += chunk
        const frames = text.split('\n\n')
        text = frames.pop() as string
        for (const frame of frames) {
          const lines = Object.fromEntries(
            frame
              .split('\n')
              .map((line) => [
                line.slice(0, line.indexOf(': ')),
                line.slice(line.indexOf(': ') + 2),
              ]),
          )
          if (lines['retry']) begin()
          if (!lines['data']) continue
          const event = JSON.parse(lines['data']) as Event
          assert.deepEqual([lines['id'], lines['event']], [event.id, event.type])
          got.push(event)
        }
        onEvent()
      })
      .on('close', end)
      .on('error', end)
  })
  outgoing.on('error', end)
  await begun
  return {
    got,
    ended,
    leave: () => outgoing.destroy(),
    async until(count: number) {
      while (got.length < count)
        await new Promise<void>((resolve) => {
          onEvent = resolve
        })
    },
  }
}

test("streams each event of the caller once from the client's position, across reconnects", async () => {
  const user = await api.user('stream')
  const running = new AbortController()
  const work = Promise.all([
    api.services.feed.run(running.signal),
    runLoops(
      api.services,
      [publishLoop(api.services, distributorOf(api.services))],
      running.signal,
    ),
  ])
  const ids: string[] = []
  const say = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const id = randomUUID()
      ids.push(id)
      await tell(api.database, user, id)
      await tell(api.database, mallory)
      api.services.outbox.ring()
    }
  }
  const first = await open(user)
  const filtered = await open(user, { path: '/dac/v1/events/stream?type=prepaid_fee.*' })
  await say(3)
  await first.until(3)
  first.leave()
  await first.ended
  await say(250)
  const second = await open(user, { lastEventId: first.got.at(-1)?.id as string })
  await say(2)
  await second.until(252)
  await emit(api.database, user.workspaceId, null, 'prepaid_fee.empty', '{}')
  api.services.outbox.ring()
  await filtered.until(1)
  await second.until(253)
  assert.deepEqual([...first.got, ...second.got].map(({ object }) => object).slice(0, -1), ids)
  assert.deepEqual(
    filtered.got.map(({ type }) => type),
    ['prepaid_fee.empty'],
  )
  const replay = await open(user, { path: `/dac/v1/events/stream?after=${first.got[0]?.id}` })
  await replay.until(255)
  assert.deepEqual(replay.got.map(({ object }) => object).slice(0, -1), ids.slice(1))
  for (const each of [second, filtered, replay]) each.leave()
  const { status, body } = await call<Problem>(user, 'GET', '/dac/v1/events/stream', undefined, {
    headers: { 'last-event-id': 'x' },
  })
  assert.deepEqual([status, body.field], [400, 'Last-Event-ID'])
  running.abort()
  await work
})
