// Whether a payment's tag is confirmed before the payment can be signed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTagInMemo, tagState } from './tag.ts'

const none = { tag: '', hasNoTag: false }
const answer = (requires: boolean | null, more = {}) => ({
  valid: true,
  address_tag: null,
  takes_tag: true,
  requires_tag: requires,
  ...more,
})

test('a payment of an asset with tags needs a tag, or a statement that the payee has none', () => {
  for (const validity of [
    null,
    answer(false),
    answer(null),
    { valid: false, reason: 'is not an address' },
  ]) {
    assert.equal(tagState(true, validity, none).isSettled, false)
    assert.deepEqual(tagState(true, validity, { tag: ' 0 ', hasNoTag: false }), {
      is: 'asked',
      tag: '0',
      isRequired: false,
      isSettled: true,
    })
    assert.equal(tagState(true, validity, { tag: '', hasNoTag: true }).isSettled, true)
    assert.equal(tagState(true, validity, { tag: '  ', hasNoTag: false }).isSettled, false)
  }
})

test('never pays without a tag an account that requires tags, whatever the user stated', () => {
  const state = tagState(true, answer(true), { tag: '', hasNoTag: true })
  assert.deepEqual([state.isRequired, state.isSettled], [true, false])
  assert.equal(tagState(true, answer(true), { tag: '7', hasNoTag: false }).isSettled, true)
})

test('an address that contains its tag, and an asset without tags, require no statement', () => {
  assert.deepEqual(tagState(true, answer(false, { takes_tag: false, address_tag: '12' }), none), {
    is: 'within',
    tag: '',
    isRequired: false,
    isSettled: true,
  })
  const settled = { is: 'none', tag: '', isRequired: false, isSettled: true }
  assert.deepEqual(
    tagState(false, { valid: true }, { tag: '7', hasNoTag: false }),
    settled,
    'a tag typed for another asset is not sent',
  )
  assert.deepEqual(
    tagState(true, { valid: true }, none),
    settled,
    'the platform says that the asset has no tags',
  )
})

test('a memo of only digits is reported as a possible missing tag', () => {
  const open = tagState(true, answer(false), none)
  assert.equal(isTagInMemo(open, ' 123456 '), true)
  assert.equal(isTagInMemo(open, 'invoice 123456'), false)
  assert.equal(
    isTagInMemo(tagState(true, answer(false), { tag: '1', hasNoTag: false }), '123456'),
    false,
  )
  assert.equal(isTagInMemo(tagState(false, { valid: true }, none), '123456'), false)
})
