// Records of earlier versions, whose entries have no effects, are read with the result that those
// versions had. The files cannot be made again: this version writes other entries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registry } from '../../../policy/testing/registry.ts'
import { PLACE } from '../../../policy/testing/governance.ts'
import {
  POLICY_RECORDS,
  policyRecord,
  storeOf,
  summaryOf,
  type PolicyRecord,
} from '../../testing/policy-records.ts'
import type { Store } from '../store/index.ts'
import { Policies } from './policies.ts'

const workspace = 'acme'
const { mode, nodes } = PLACE

/** Opens a record, and returns what is logged when it is read. */
function opened({ rows, now_s }: Pick<PolicyRecord, 'rows' | 'now_s'>): {
  store: Store
  policies: Policies
  logged: string[]
} {
  const store = storeOf(rows, now_s)
  return { store, ...policiesOf(store) }
}

function policiesOf(store: Store): { policies: Policies; logged: string[] } {
  const logged: string[] = []
  const log = (level: string, message: string, fields: object = {}): void => {
    logged.push(`${level}: ${message} ${JSON.stringify(fields)}`)
  }
  const policies = new Policies({ store, rules: { registry, place: { mode, nodes } }, log })
  return { policies, logged }
}

for (const name of POLICY_RECORDS) {
  const record = policyRecord(name)
  test(`reads the record "${name}" of an earlier version: ${record.title}`, () => {
    const { policies, store, logged } = opened(record)
    const isPostDated = name === 'post-dated-stop'
    const at = Math.floor(
      (record.rows.find(({ kind }) => kind === 'policy-resumed')?.at ?? 0) / 1000,
    )
    const limited = isPostDated ? { resumedUpTo: [[null, at]] } : {}
    assert.deepEqual(summaryOf(policies.held(workspace)), { ...record.held, ...limited })
    assert.deepEqual(
      logged.map((line) => line.split(' {')[0]),
      isPostDated ? ['alert: an entry about a policy that would be refused now was limited'] : [],
    )
    store.close()
  })
}

test('an entry that cannot be applied stops the policy of its workspace only', () => {
  const { store } = opened(policyRecord('usual'))
  const item = { workspace: 'beta', document: '{}', possessions: [], approvals: [] }
  store.append('policy-change', { ...item, at_s: 1, witnesses: null })
  const { policies, logged } = policiesOf(store)
  assert.throws(() => policies.held('beta'), { code: 'RECORD_UNREADABLE' })
  assert.throws(() => policies.held('beta'), { code: 'RECORD_UNREADABLE' })
  assert.equal(policies.held(workspace).governance?.policy.document.number, 2)
  assert.equal(logged.length, 1)
  assert.match(logged[0]!, /^alert: the policy of a workspace cannot be read from the record/)
  store.close()
})

test('an effect that was judged under another document is not applied', () => {
  const { store, policies } = opened(policyRecord('usual'))
  const { hash } = policies.held(workspace).governance!.policy
  const stop = { type: 'stop' as const, hash, sub_account: null, by: 'alice', at: 1 }
  const effect = { ...stop, now_s: store.seconds(), in_force: 'ab'.repeat(32) }
  store.append('policy-statement', { workspace, signed: '{}', at_s: 1, effect })
  assert.throws(() => policies.held(workspace), {
    code: 'RECORD_UNREADABLE',
    message: /effect\.in_force: is (ab){32}, and [0-9a-f]{64} is in force/,
  })
  store.close()
})

test('an entry with an effect is applied without its statements being read', () => {
  const { store, policies } = opened(policyRecord('usual'))
  const before = policies.held(workspace)
  const in_force = before.governance!.policy.hash
  const stop = { type: 'stop' as const, hash: in_force, sub_account: null, by: 'alice', at: 7 }
  const effect = { ...stop, now_s: store.seconds(), in_force }
  store.append('policy-statement', { workspace, signed: 'not a statement', at_s: 1, effect })
  const { type: _type, ...expected } = stop
  assert.deepEqual(policies.held(workspace).governance!.stops, [
    ...before.governance!.stops,
    expected,
  ])
  store.close()
})
