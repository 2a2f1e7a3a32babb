import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../core/errors.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { judgeNewRule } from './judge-new-rule.ts'
import type { Judgement } from './judgement.ts'

const rule = {
  workspace_id: 'w',
  network: 'ETH',
  destination: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  address_tag: '1',
  request: { method: 'POST', uri: '/dac/v1/auto-forwarding', body: '{}', token: 't' },
}
const tried = [{ rule: 'large', effect: 'allow', fits: false, why: 'any text' }]
const judgementWith = (fields: object) =>
  ({ policy: { number: 1, hash: 'ab'.repeat(32) }, tried, ...fields }) as unknown as Judgement

const judging = (kind: 'denied' | 'approval' | 'allowed', fields: object) =>
  judgeNewRule(
    {
      environment: systemEnvironment(),
      policies: {
        isGoverned: () => true,
        judge: async () =>
          ({ kind, message: 'POLICY_DENIED: no rule', judgement: judgementWith(fields) }) as never,
      },
    } as unknown as Parameters<typeof judgeNewRule>[0],
    rule,
  )

test('a rule is refused if no rule of the policy allows a forward, also no larger one', async () => {
  await assert.rejects(
    judging('denied', { fits_above: false }),
    (error) =>
      error instanceof ApiError &&
      error.code === 'POLICY_DENIED' &&
      JSON.stringify(error.details) === JSON.stringify({ policy: judgementWith({}).policy, tried }),
  )
})

test('a rule is created if a larger forward may be allowed, or the node does not state it', async () => {
  assert.equal(await judging('denied', { fits_above: true }), null)
  assert.equal(await judging('denied', {}), null)
})

test('a rule waits for the approvals that its smallest forward requires', async () => {
  const judgement = await judging('approval', { fits_above: false })
  assert.deepEqual(judgement, judgementWith({ fits_above: false }))
  assert.equal(await judging('allowed', { fits_above: false }), null)
})
