import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EVENT_TYPES, type EventType } from '../../core/database/event-types.ts'
import { typesOf } from './filter.ts'
import { objectOf } from './object.ts'
import { openApiWebhooks } from './openapi.ts'
import { Components, type JsonSchema } from '../../core/http/openapi/components.ts'
import { EVENTS } from './registry.ts'
import { withTable } from './table.ts'
import { read, ROOT } from '../../../testing/documents.ts'

/**
 * Compares the registry of events with the code that emits them, the tests that expect them and the
 * documents that describe them.
 */
const below = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|sql)$/.test(name))
    .map((name) => `${folder}/${name}`)
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')

test('each event type is emitted by the code and expected by a test', () => {
  const sources = below('packages/platform/src')
    .filter(
      (file) =>
        !/\.test\.ts$|event-types\.ts$|events\/registry\.ts$|ledger\/log-events\.ts$/.test(file),
    )
    .map(textOf)
    .join('\n')
  const isEmitted = (type: EventType) =>
    sources.includes(`'${type}'`) ||
    (type.startsWith('gas_tank.') && sources.includes('`gas_tank.${'))
  assert.deepEqual(
    EVENT_TYPES.filter((type) => !isEmitted(type)),
    [],
  )
  const tests = ['src', 'e2e', 'drills', 'testing']
    .flatMap((folder) => below(`packages/platform/${folder}`))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('events-registry'))
    .map(textOf)
  // A test expects the event if it lists the event in `testEmittedEvents` or queries it by type.
  const isSeen = (type: EventType) =>
    tests.some(
      (text) =>
        text.includes(`type = '${type}'`) ||
        [...text.matchAll(/^testEmittedEvents\([^]*?\)$/gm)].some(([call]) =>
          call.includes(`'${type}'`),
        ),
    )
  assert.deepEqual(
    EVENT_TYPES.filter((type) => !isSeen(type)),
    [],
  )
})

test('docs/events.md matches the registry of events', () => {
  const document = read('docs/events.md')
  assert.equal(withTable(document), document, 'run: npx node scripts/events-table.mjs')
  assert.throws(() => withTable('# nothing'), /has no/)
})

test('the OpenAPI document contains each event with the schema of its data', () => {
  const components = new Components()
  const webhooks = openApiWebhooks(components) as Record<
    string,
    {
      post: {
        operationId: string
        requestBody: {
          content: Record<
            string,
            { schema: { properties: Record<string, { const?: string; properties?: object }> } }
          >
        }
      }
    }
  >
  assert.deepEqual(Object.keys(webhooks), [...EVENT_TYPES])
  for (const type of EVENT_TYPES) {
    const { properties } = webhooks[type]!.post.requestBody.content['application/json']!.schema
    assert.equal(properties['type']?.const, type)
    const data = components.resolve(properties['data'] as JsonSchema)
    assert.ok(Object.keys(data['properties'] ?? {}).length >= 2, type)
  }
})

test('event types can be filtered by name, by group, or with *', () => {
  assert.deepEqual(typesOf(['*']), [...EVENT_TYPES])
  assert.deepEqual(typesOf(['gas_tank.*', 'webhook.test']), [
    'gas_tank.low',
    'gas_tank.empty',
    'webhook.test',
  ])
  assert.deepEqual(typesOf(['gas_tank.low', 'gas_tank.*']), ['gas_tank.low', 'gas_tank.empty'])
})

test("an event's object is its transaction, or a frozen address with network and tag", () => {
  const objects: [EventType, Record<string, unknown>, string][] = [
    ['transaction.updated', { id: 't' }, 't'],
    ['deposit.confirmed', { id: 't' }, 't'],
    ['staking.releasable', { id: 't' }, 't'],
    ['aml.screening_overdue', { transaction_id: 't', provider: 'x' }, 't'],
    ['invoice.paid', { inv_id: 'i' }, 'i'],
    ['address.created', { id: 'a', address: '0x1', network: 'ETH' }, 'a'],
    ['address.frozen', { address: '0x1', network: 'ETH', address_tag: null }, 'address:ETH:0x1'],
    ['address.unfrozen', { address: 'r', network: 'XRP', address_tag: '7' }, 'address:XRP:r:7'],
    ['gas_tank.low', { id: 'g', network: 'ETH' }, 'gas_tank:w:ETH'],
    ['prepaid_fee.low', { balance: 1 }, 'prepaid_fee:w'],
    ['prepaid_fee.tier_changed', { tier: 'x' }, 'prepaid_fee:w'],
    ['wallet.updated', { id: 'x' }, 'x'],
  ]
  for (const [type, payload, object] of objects)
    assert.equal(objectOf(type, payload, 'w'), object, type)
  assert.equal(Object.keys(EVENTS).length, EVENT_TYPES.length)
})
