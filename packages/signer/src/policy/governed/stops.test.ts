// A stop of a sub-account holds for whatever serves it, also if the record does not name it.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Governance } from '@custody/policy'
import { policyWith } from '../../../../policy/testing/documents.ts'
import { State } from '../../store/state.ts'
import { PolicyJudge } from './policy-judge.ts'

/** Returns the judge's answer about a transaction: null, or the message of the refusal. */
function answer(stops: (string | null)[], serves: readonly number[] | null): string | null {
  const governance = {
    policy: policyWith([]),
    stops: stops.map((sub_account) => ({ hash: '', sub_account, by: 'alice', at: 1 })),
  } as unknown as Governance
  const names = new Map([
    [State.subAccountIndexKey('acme', 1), 'main'],
    [State.subAccountIndexKey('acme', 2), 'other'],
    [State.subAccountIndexKey('acme', 3), null],
  ])
  const judge = new PolicyJudge({
    store: { state: { subAccountNames: names } },
    policies: { current: () => governance },
  } as never)
  try {
    judge.assertNotStopped({ order: { workspace: 'acme' }, serves })
    return null
  } catch (error) {
    assert.equal((error as { code: string }).code, 'POLICY_STOPPED')
    return (error as Error).message
  }
}

test('a stop holds for its sub-account, a stop of the workspace for everything but a cancellation', () => {
  assert.equal(answer([], [1]), null)
  assert.equal(answer(['other'], [1]), null)
  assert.match(answer(['other'], [1, 2]) ?? '', /^alice has stopped the sub-account other: /)
  assert.match(answer(['other', null], [1]) ?? '', /^alice has stopped the workspace: /)
  assert.match(answer([null], []) ?? '', /^alice has stopped the workspace: /)
  assert.equal(answer(['other'], []), null)
  assert.equal(answer([null, 'main'], null), null)
})

test('any stop holds for a sub-account that has no name on the record', () => {
  for (const index of [3, 4]) {
    assert.match(
      answer(['other'], [index]) ?? '',
      /^alice has stopped the sub-account other, and sub-account \d has no name on this node's record: /,
    )
    assert.equal(answer([], [index]), null)
  }
})
