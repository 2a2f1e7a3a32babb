import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf } from './fields.ts'
import type { Proven } from './request.ts'
import { signedRequestSchema } from './request.ts'
import { shapeOfAnswer } from '../errors.ts'
import { shaped } from '../transport/body.ts'

test('refuses an object in place of a string, without an internal error', () => {
  const odd = JSON.parse('{"length":{"toString":1,"valueOf":1}}') as unknown
  const request = { token: 'a', method: 'POST', uri: '/', body: odd }
  assert.throws(() => shaped(signedRequestSchema, request), { code: 'BAD_ORDER' })
  assert.throws(() => shapeOfAnswer(signedRequestSchema, request, 2), { code: 'PEER_UNAVAILABLE' })
  const proven = { request: { body: JSON.stringify(request) } } as Proven
  assert.throws(() => bodyOf(proven, signedRequestSchema), { code: 'BAD_REQUEST_FIELD' })
})
