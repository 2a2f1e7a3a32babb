// Tests that every value in the OpenAPI document states its bounds, and that the code enforces
// these bounds.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { JsonNumber } from '@custody/request-auth'
import type { z } from 'zod'
import { endpoints } from '../../../server/app/endpoints.ts'
import { readAmount } from '../../../custody/assets/read-amount.ts'
import { ASSETS_MAX, EXCHANGES_MAX } from '../../bounds.ts'
import { checkedFeeRate } from '../../engine/check-fee-rate.ts'
import { ApiError } from '../../errors.ts'
import { withTextAmounts } from './text-amounts.ts'
import { readFiat } from '../../../commerce/invoices/quote.ts'
import { readTolerance } from '../../../commerce/invoices/settings.ts'
import { readPositive } from '../../../commerce/trading/order-params.ts'
import { document, violationOf } from '../../../../testing/openapi-assertions.ts'

type Node = { [key: string]: unknown }

/** Keywords whose value is data, not a schema. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const', 'required', 'x-codes'])

const has = (schema: Node, ...names: string[]) => names.some((name) => schema[name] !== undefined)

/** Returns the bounds that a schema does not state, by the schema's type. */
function openEnds(schema: Node): string[] {
  const { type, properties, additionalProperties } = schema
  if (has(schema, 'enum', 'const') || (typeof type !== 'string' && !Array.isArray(type))) return []
  const types = [type].flat()
  const isFixed =
    properties !== undefined &&
    (additionalProperties === undefined || additionalProperties === false)
  return [
    ...(types.includes('string') && !has(schema, 'maxLength') ? ['maxLength'] : []),
    ...(types.includes('array') && !has(schema, 'maxItems') ? ['maxItems'] : []),
    ...(types.includes('object') && !isFixed && !has(schema, 'maxProperties')
      ? ['maxProperties']
      : []),
    ...(types.includes('number') || types.includes('integer')
      ? [
          ...(has(schema, 'minimum', 'exclusiveMinimum') ? [] : ['minimum']),
          ...(has(schema, 'maximum') ? [] : ['maximum']),
        ]
      : []),
  ]
}

/**
 * Returns the JSON paths of all values below `value` that state no bounds.
 * @param isNames whether the keys of `value` are names of fields
 */
function unbounded(value: unknown, path: string, isNames = false): string[] {
  if (Array.isArray(value)) return value.flatMap((each, at) => unbounded(each, `${path}/${at}`))
  if (typeof value !== 'object' || value === null) return []
  const own = isNames ? [] : openEnds(value as Node).map((name) => `${path}: no ${name}`)
  return [
    ...own,
    ...Object.entries(value).flatMap(([key, inner]) =>
      !isNames && DATA.has(key)
        ? []
        : unbounded(
            inner,
            `${path}/${key}`,
            !isNames && (key === 'properties' || key === 'schemas'),
          ),
    ),
  ]
}

test('every string, array, number and map of the document has bounds', () => {
  assert.deepEqual(unbounded(document, '#'), [])
})

test('every string, array, number and map of the document with text amounts has bounds', () => {
  assert.deepEqual(unbounded(withTextAmounts(document as never), '#'), [])
})

test('detects a value without bounds at any depth', () => {
  const schema = {
    type: 'object',
    properties: {
      type: { type: ['string', 'null'] },
      list: { type: 'array', items: { type: 'integer', minimum: 0 } },
      map: { type: 'object', additionalProperties: { type: 'boolean' } },
      word: { type: 'string', enum: ['a'] },
    },
  }
  assert.deepEqual(unbounded({ schemas: { enum: schema } }, '#'), [
    '#/schemas/enum/properties/type: no maxLength',
    '#/schemas/enum/properties/list: no maxItems',
    '#/schemas/enum/properties/list/items: no maximum',
    '#/schemas/enum/properties/map: no maxProperties',
  ])
})

interface Parameter {
  name: string
  in: string
  schema: Node
}

/**
 * Maximum of amounts: the endpoint refuses a greater number when it converts the number to the
 * asset's units, as the test below shows.
 */
const AMOUNT_MAX = 1e78

/** Returns the alternatives of a schema whose value may be null or of one of several types. */
const branches = (schema: Node): Node[] =>
  Array.isArray(schema['anyOf']) ? (schema['anyOf'] as Node[]).flatMap(branches) : [schema]

test('each endpoint refuses a text or number beyond the bounds of its field', () => {
  const accepted: string[] = []
  let count = 0
  const check = (place: string, field: z.ZodType, schema: Node) => {
    for (const { type, maxLength, maximum, minimum, maxItems } of branches(schema)) {
      const beyond =
        typeof maxLength === 'number'
          ? ['0', 'a'].map((character) => character.repeat(maxLength + 1))
          : type === 'number' && typeof maximum === 'number' && maximum < AMOUNT_MAX
            ? [new JsonNumber(String(maximum * 10)), new JsonNumber('-1')]
            : type === 'integer' && typeof maximum === 'number' && typeof minimum === 'number'
              ? [maximum + 1, minimum - 1].flatMap((each) => [
                  String(each),
                  new JsonNumber(String(each)),
                ])
              : type === 'array' && typeof maxItems === 'number'
                ? [Array.from({ length: maxItems + 1 }, () => 'BTC')]
                : []
      for (const value of beyond) {
        count++
        if (field.safeParse(value).success)
          accepted.push(`${place}: ${JSON.stringify(value).slice(0, 40)}`)
      }
    }
  }
  for (const { id, path, method, body, query } of endpoints) {
    const shapeOf = (schema: z.ZodType) =>
      (schema as z.ZodObject).shape as unknown as Record<string, z.ZodType>
    if (body) {
      const { properties } = document.components.schemas[
        `${id[0]?.toUpperCase()}${id.slice(1)}Request`
      ] as { properties: Record<string, Node> }
      for (const [name, field] of Object.entries(shapeOf(body)))
        check(`${id}.${name}`, field, properties[name] as Node)
    }
    const operation = (document.paths[path] ?? {})[method.toLowerCase()] as
      | { parameters?: Parameter[] }
      | undefined
    for (const { name, schema } of (operation?.parameters ?? []).filter(
      (each) => each.in === 'query',
    )) {
      check(`${id}?${name}`, shapeOf(query as z.ZodType)[name] as z.ZodType, schema)
    }
  }
  assert.deepEqual(accepted, [])
  assert.ok(count > 200, String(count))
})

test("refuses an amount beyond the document's maximum, and names its field", () => {
  const beyond = ['1e79', '9e999', `1${'0'.repeat(79)}`]
  const isRefused = (field: string) => (error: unknown) =>
    error instanceof ApiError && error.status === 400 && error.field === field
  const loaded = loadRegistry('mainnet')
  const { assets, networkOf } = loaded
  for (const text of beyond) {
    for (const asset of assets) {
      assert.throws(() => readAmount(text, asset, 'amount'), isRefused('amount'))
      assert.throws(() => checkedFeeRate(text, networkOf(asset), loaded), isRefused('fee_rate'))
    }
    assert.throws(() => readPositive(text, 'price'), isRefused('price'))
    assert.throws(() => readFiat(text), isRefused('fiat_amount'))
    assert.throws(() => readTolerance(text), isRefused('tolerance'))
  }
})

test('the registry and the list of exchanges are within the bounds of their responses', () => {
  for (const mode of ['mainnet', 'regtest-1337', 'local'] as const) {
    const { assets } = loadRegistry(mode)
    assert.ok(assets.length > 0 && assets.length <= ASSETS_MAX)
    for (const asset of assets) {
      const shown = {
        ...asset,
        mode,
        min_withdrawal: Number(asset.min_withdrawal),
        is_active: true,
        contract_payments: 'credited',
        watched_within_s: null,
        min_contract_payment: null,
      }
      assert.equal(violationOf(['components', 'schemas', 'Asset'], shown), null, asset.asset_name)
    }
  }
  const exchanges = JSON.parse(
    readFileSync(new URL('../../../../data/exchanges.json', import.meta.url), 'utf8'),
  ) as { features: object }[]
  assert.ok(exchanges.length > 0 && exchanges.length <= EXCHANGES_MAX)
  const data = exchanges.map((each) => ({ ...each, support: 'generic', passphrase: false }))
  assert.equal(violationOf(['components', 'schemas', 'ExchangePage'], { data }), null)
})
