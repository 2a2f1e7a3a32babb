// The page that explains each field of a document, compared with the schema of documents.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { documentJsonSchema } from './json-schema.ts'

type Schema = Record<string, unknown>

/** Yields the path of every field, for example `rules[].match.to.addresses[].tag`. */
function* pathsOf(schema: Schema, path = ''): Generator<string> {
  const {
    properties = {},
    items,
    anyOf = [],
    oneOf = [],
  } = schema as {
    properties?: Record<string, Schema>
    items?: Schema
    anyOf?: Schema[]
    oneOf?: Schema[]
  }
  for (const [name, each] of Object.entries(properties)) {
    const field = path === '' ? name : `${path}.${name}`
    yield field
    yield* pathsOf(each, field)
  }
  if (items) yield* pathsOf(items, `${path}[]`)
  for (const each of [...anyOf, ...oneOf]) yield* pathsOf(each, path)
}

const page = readFileSync(new URL('../../../../docs/policy-reference.md', import.meta.url), 'utf8')
const fields = [...new Set(pathsOf(documentJsonSchema()))]

test('the reference of the policy language explains every field of a document', () => {
  assert.ok(fields.length > 60, String(fields.length))
  assert.deepEqual(
    fields.filter((field) => !page.includes(`\n| \`${field}\``)),
    [],
  )
})

test('the reference of the policy language explains no field that does not exist', () => {
  const explained = [...page.matchAll(/^\| `([a-z_[\].]+)`/gm)].map(([, field]) => field as string)
  assert.deepEqual(
    explained.filter((field) => !fields.includes(field)),
    [],
  )
})
