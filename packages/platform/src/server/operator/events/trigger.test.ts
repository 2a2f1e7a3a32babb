import assert from 'node:assert/strict'
import { createPublicKey, randomUUID, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, test } from 'node:test'
import { verifyWebhook } from '@custody/client'
import { EVENT_TYPES } from '../../../core/database/event-types.ts'
import { EVENTS } from '../../../events/events/registry.ts'
import { sampleData } from '../../../events/events/samples.ts'
import { OperatorError } from '../command.ts'
import { eventsAfter } from './events.ts'
import { triggerEvent } from './trigger.ts'
import { useApi } from '../../../../testing/api-support.ts'
import { call, type User } from '../../../../testing/harness.ts'

/**
 * Tests of test events, sent to real receivers by the operator's command of a platform with a real
 * database.
 */
const api = useApi({})
interface Got {
  headers: IncomingHttpHeaders
  body: string
}
interface Sent {
  webhook: string
  status: number | null
  error: string | null
  body: string
}
interface Hook {
  id: string
  secret: string
  url: string
}
let alice: User & { workspaceId: string }
const got: Got[] = []
let status = 200
let url = ''
const receiver: Server = createServer((request, response) => {
  let body = ''
  request
    .setEncoding('utf8')
    .on('data', (chunk: string) => {
      body += chunk
    })
    .on('end', () => {
      got.push({ headers: request.headers, body })
      response.writeHead(status).end('seen')
    })
})
before(async () => {
  await api.started
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  alice = await api.user('alice')
})
api.beside.push(async () => {
  receiver.closeAllConnections()
  await new Promise((resolve) => receiver.close(resolve))
})

async function hookOf(user: User, events: string[], more: object = {}): Promise<Hook> {
  const answer = await call<Hook>(
    user,
    'POST',
    '/dac/v1/webhooks',
    { url, events, ...more },
    { sign: { now: Math.floor(api.now() / 1000) } },
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
async function trigger(event: string, more: Record<string, unknown> = {}): Promise<Sent[]> {
  got.length = 0
  return (await triggerEvent(api.services, { event, ...more }))['sent'] as Sent[]
}
const refused = (event: string, more: Record<string, unknown>, expected: RegExp) =>
  assert.rejects(trigger(event, more), (error) => {
    assert.ok(error instanceof OperatorError, String(error))
    assert.match(error.message, expected)
    assert.doesNotMatch(error.message, /\n/, 'the CLI prints what the platform says as one line')
    assert.equal(got.length, 0, 'nothing was sent')
    return true
  })
const written = async () =>
  api.database.one<Record<string, string>>(
    `select (select count(*) from events)::text events,
      (select count(*) from webhook_deliveries)::text deliveries,
     (select sum(failures) from webhooks)::text failures`,
  )

for (const type of EVENT_TYPES) {
  test(`${type}: the sample matches the event’s schema, with consistent fields and new ids`, () => {
    const data = sampleData(type, Date.UTC(2031, 0, 2))
    const parsed = EVENTS[type].data.safeParse(data)
    assert.ok(parsed.success, JSON.stringify(parsed.error?.issues))
    assert.doesNotMatch(
      JSON.stringify(data),
      /"text"|7c9e6679|2026-11-22/,
      'no filler, and no fixed id or time',
    )
    if (type.startsWith('deposit.')) assert.equal(data['type'], 'Deposit')
    if (data['status'] === 'confirmed')
      assert.equal(data['confirmed_at'], '2031-01-02T00:00:00.000Z')
    const [group, word] = type.split('.') as [string, string]
    if (['transaction', 'deposit'].includes(group) && ['confirmed', 'failed'].includes(word))
      assert.equal(data['status'], word)
    if (group === 'invoice' && ['processing', 'paid', 'expired', 'invalid'].includes(word))
      assert.equal(String(data['inv_status']).toLowerCase(), word)
  })
}

test('a triggered event is signed like a real one, marked as a test, and not stored', async () => {
  const hook = await hookOf(alice, ['deposit.*'])
  const before = await written()
  const sent = await trigger('Deposit.Confirmed')
  assert.deepEqual(
    sent.map((each) => [each.webhook, each.status, each.error]),
    [[hook.id, 200, null]],
  )
  const [{ headers, body }] = got as [Got]
  const event = verifyWebhook(headers as Record<string, string>, body, hook.secret, {
    now: Math.floor(api.now() / 1000),
  })
  assert.deepEqual(
    [event.type, event.test, headers['custody-test'], event.id],
    ['deposit.confirmed', true, 'true', headers['webhook-id']],
  )
  assert.equal(event.object, event.data['id'])
  const pem = await (await fetch(`${api.base}/.well-known/custody-webhook-key.pem`)).text()
  assert.ok(
    verify(
      'RSA-SHA512',
      Buffer.from(body),
      createPublicKey(pem),
      Buffer.from(String(headers['x-signature']), 'base64'),
    ),
  )
  assert.equal(sent[0]?.body, body)
  status = 500
  const failing = await trigger('deposit.confirmed')
  status = 200
  assert.match(String(failing[0]?.error), /500/)
  assert.deepEqual(await written(), before, 'no event, no delivery, no failure of the webhook')
})

test('trigger sends to all subscribed, enabled webhooks, or to those given with --webhook', async () => {
  const owner = await api.user('listeners')
  const wanted = await hookOf(owner, ['order.*'])
  await hookOf(owner, ['order.*'], { disabled: true, description: 'disabled' })
  const other = await hookOf(owner, ['invoice.*'])
  const at = { workspace: 'listeners' }
  assert.deepEqual(
    (await trigger('order.created', at)).map(({ webhook }) => webhook),
    [wanted.id],
  )
  assert.deepEqual(
    (
      await trigger('order.created', {
        webhooks: `${other.id}\n${wanted.id.toUpperCase()}\n${other.id}`,
      })
    )
      .map(({ webhook }) => webhook)
      .sort(),
    [other.id, wanted.id].sort(),
  )
  assert.equal(got.length, 2)
  const [{ body }] = (await trigger('webhook.disabled', { webhooks: other.id })) as [Sent]
  assert.deepEqual(
    [(JSON.parse(body) as { data: Hook }).data.id, (JSON.parse(body) as { object: string }).object],
    [other.id, other.id],
  )
})

test('a triggered event also reaches the listeners that are running, without a webhook', async () => {
  await api.user('quiet')
  interface Page {
    cursor: string
    tests: number
    events: Record<string, unknown>[]
  }
  const ask = async (page: Page | null, filter: Record<string, unknown> = {}) =>
    (await eventsAfter(api.services, {
      after: page?.cursor ?? null,
      tests: page?.tests ?? null,
      sign: true,
      ...filter,
    })) as unknown as Page
  const listening = { workspace: 'quiet', events: 'order.*' }
  const start = await ask(null, listening)
  const others = await ask(null, { workspace: 'alice' })
  const result = await triggerEvent(api.services, { event: 'order.created', workspace: 'quiet' })
  assert.deepEqual([result['sent'], result['listened']], [[], true])
  const page = await ask(start, listening)
  assert.equal(page.events.length, 1)
  const [event] = page.events as [Record<string, string>]
  assert.deepEqual(
    [event['id'], event['type'], event['workspace'], event['test']],
    [result['id'], 'order.created', 'quiet', true],
  )
  assert.equal((JSON.parse(event['body']!) as { test: boolean }).test, true)
  const pem = await (await fetch(`${api.base}/.well-known/custody-webhook-key.pem`)).text()
  assert.ok(
    verify(
      'RSA-SHA512',
      Buffer.from(event['body']!),
      createPublicKey(pem),
      Buffer.from(event['x_signature']!, 'base64'),
    ),
  )
  assert.deepEqual((await ask(page, listening)).events, [], 'once')
  assert.deepEqual((await ask(others, { workspace: 'alice' })).events, [], 'of another workspace')
  assert.deepEqual(
    (await ask({ ...page, tests: page.tests + 50 }, listening)).tests,
    page.tests,
    'a platform that was restarted',
  )
  await refused(
    'invoice.paid',
    { workspace: 'quiet' },
    /no listener is running, so no event was sent/,
  )
  const before = api.now
  api.now = () => before() + 10_000
  await refused('order.created', { workspace: 'quiet' }, /no listener is running/)
  api.now = before
})

test('a webhook of the classic format receives the classic payload, marked as a test', async () => {
  const owner = await api.user('classic')
  const hook = await hookOf(owner, ['*'], { format: 'classic' })
  const [{ body }] = (await trigger('deposit.confirmed', { webhooks: hook.id })) as [Sent]
  const { data, test: mark } = JSON.parse(body) as { data: Record<string, unknown>; test: boolean }
  assert.deepEqual(
    [mark, data['type'], data['dest_type'], data['fees'], data['created_by']],
    [true, 'Deposit', 'INTERNAL', { sweep_fee: 0, refill_fee: 0, withdrawal_fee: 0 }, null],
  )
  assert.ok('created_on_utc' in data)
})

test('attack: trigger refuses to send test events outside the local network', async () => {
  await hookOf(alice, ['*'], { description: 'all' })
  const services = {
    ...api.services,
    settings: { ...api.services.settings, network: 'mainnet' as const },
  }
  got.length = 0
  for (const event of ['deposit.confirmed', 'invoice.paid', 'webhook.test'])
    await assert.rejects(
      triggerEvent(services, { event }),
      /only with CUSTODY_NETWORK=local.*webhooks\/\{id\}\/test/,
    )
  assert.equal(got.length, 0)
})

test('invalid arguments of trigger are reported with advice, and nothing is sent', async () => {
  await refused(
    'deposit.confirmd',
    {},
    /^EVENT: "deposit\.confirmd" is not an event type; did you mean deposit\.confirmed\? Events: transaction\.created, /,
  )
  await refused('deposit.*', {}, /^EVENT: "deposit\.\*" is not an event type/)
  await refused(
    'order.created',
    { webhooks: 'nonsense' },
    /^--webhook: "nonsense" is not a webhook id \(a UUID\)$/,
  )
  const missing = randomUUID()
  await refused(
    'order.created',
    { webhooks: missing },
    new RegExp(`^--webhook: webhook ${missing} does not exist; GET `),
  )
  await refused(
    'order.created',
    { workspace: 'nobody' },
    /^--workspace: workspace nobody does not exist$/,
  )
  const stranger = await api.user('stranger')
  const hook = await hookOf(stranger, ['invoice.*'])
  await refused(
    'order.created',
    { webhooks: hook.id, workspace: 'alice' },
    new RegExp(`webhook ${hook.id} does not exist in the workspace alice`),
  )
  await refused(
    'order.created',
    { workspace: 'stranger' },
    /^no enabled webhook of the workspace stranger is subscribed to order\.created, and no listener is running, so no event was sent\. Create a webhook/,
  )
})
