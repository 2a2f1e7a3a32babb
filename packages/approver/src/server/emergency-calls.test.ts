// Stops, their ends and vetoes on the page, with a platform in this process that may lie.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkDocument, documentHash, statementHash, type Statement } from '@custody/policy'
import { assertionOf, signWithPasskey } from '../../../policy/testing/passkeys.ts'
import {
  alice,
  approvalOf,
  documentOf,
  NOW_S,
  place,
  statedBy,
  TestPlatform,
  trust,
} from '../../testing/fixture.ts'
import { ApproverError } from '../errors.ts'
import { Documents } from '../verify/documents.ts'
import type { ChallengeView, EmergencyView } from '../views.ts'
import { callsOf } from './calls.ts'

const inForce = documentOf()
const hash = documentHash(inForce)
const approval = await approvalOf(inForce)
const { mode, workspace, nodes } = inForce
const COMMON = { v: 1 as const, mode, workspace, nodes, by: 'alice', key: 'a1', at: NOW_S }
const WEEK_S = 604_800
const STOP = {
  kind: 'stop',
  ...COMMON,
  expires: NOW_S + WEEK_S,
  sub_account: null,
  reason: 'A laptop was stolen',
} satisfies Statement

function start() {
  const platform = new TestPlatform(structuredClone(approval))
  platform.inForce = inForce
  platform.statements = [1, 3].map((node) => statedBy(node, inForce))
  const calls = callsOf({
    config: {
      version: 1,
      person: 'alice',
      platform: 'http://platform.example',
      api_key: '',
      private_key_file: '',
      trust_file: '',
      document_file: null,
      origin: 'http://localhost:24873',
      host: null,
      port: 24_873,
    },
    place,
    trust,
    documents: new Documents(mkdtempSync(join(tmpdir(), 'custody-approver-')), null),
    platform,
    now: () => NOW_S * 1000,
  })
  const call = async <T>(name: string, input: object = {}): Promise<T> =>
    (await calls.get(name)?.(input as Record<string, unknown>)) as T
  /** Starts an act, signs the expected statement, and sends it. */
  const sign = async (input: object, statement: Statement) => {
    const { review } = await call<EmergencyView>('emergency')
    const challenge = await call<ChallengeView>('emergency-challenge', {
      key: 'a1',
      review,
      ...input,
    })
    const assertion = assertionOf(alice, statement)
    await call('emergency-send', { attempt: challenge.attempt, ...assertion })
    return { challenge, assertion }
  }
  return { platform, call, sign }
}

const fails = (code: string, work: Promise<unknown>) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof ApproverError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  })
const signer = (expires: number) => ({ by: 'alice', key: 'a1', at: NOW_S, expires })

test('stops signing with a passkey', async () => {
  const { platform, call, sign } = start()
  const { reason, sub_account } = STOP
  const { challenge, assertion } = await sign({ act: 'stop', sub_account: '', reason }, STOP)
  assert.match(challenge.sentences[0] ?? '', /^alice stops all signing for the whole workspace/)
  assert.deepEqual(platform.sent, [
    { ...signer(STOP.expires), passkey: assertion, sub_account, reason },
  ])
  for (const input of [{ reason: '' }, { reason: 'a'.repeat(201) }, { sub_account: 1 }])
    await fails(
      'INPUT',
      call('emergency-challenge', { act: 'stop', key: 'a1', sub_account: '', reason, ...input }),
    )
  await fails(
    'NO_PASSKEY',
    call('emergency-challenge', { act: 'stop', key: 'a9', sub_account: '', reason }),
  )
})

test('approves the end of a stop whose signed text was verified', async () => {
  const { platform, call, sign } = start()
  const stop = statementHash(STOP)
  platform.stops.set(stop, JSON.stringify(signWithPasskey(alice, STOP)))
  const view = await call<EmergencyView>('emergency')
  assert.deepEqual([view.may_stop, view.may_resume, view.may_veto], [true, true, true])
  assert.match(
    view.stops[0]?.text ?? '',
    /^alice stopped the whole workspace at .*\. Reason: "A laptop was stolen"\.$/,
  )
  assert.equal(view.stops[0]?.refusal, null)
  const statement: Statement = {
    kind: 'resume',
    ...COMMON,
    expires: NOW_S + 86_400,
    policy: { number: 1, hash },
    stop,
  }
  const { assertion } = await sign({ act: 'resume', hash: stop }, statement)
  assert.deepEqual(platform.sent, [{ ...signer(NOW_S + 86_400), passkey: assertion, stop }])
})

test('refuses the end of a stop whose text is missing, or of another stop', async () => {
  const { platform, call } = start()
  const [missing, other] = ['ab'.repeat(32), 'cd'.repeat(32)]
  platform.stops.set(missing, null)
  platform.stops.set(other, JSON.stringify(signWithPasskey(alice, STOP)))
  const { stops, review } = await call<EmergencyView>('emergency')
  assert.match(stops[0]?.refusal ?? '', /custody policy stop/)
  assert.match(stops[1]?.refusal ?? '', /another statement/)
  for (const each of [missing, other])
    await fails(
      'STOP',
      call('emergency-challenge', { act: 'resume', key: 'a1', hash: each, review }),
    )
  await fails('INPUT', call('emergency-challenge', { act: 'resume', key: 'a1', hash: 'x', review }))
  await fails(
    'INPUT',
    call('emergency-challenge', { act: 'other', key: 'a1', hash: missing, review }),
  )
})

/** Adds a stop that the platform lists, and returns how the page displays it. */
async function displayed(
  fields: Partial<Omit<typeof STOP, 'sub_account'>> & { sub_account?: string },
) {
  const started = start()
  const statement = { ...STOP, ...fields } as Statement
  const stop = statementHash(statement)
  started.platform.stops.set(stop, JSON.stringify(signWithPasskey(alice, statement)))
  const { review, stops } = await started.call<EmergencyView>('emergency')
  return { ...started, stop, review, view: stops[0] ?? assert.fail() }
}

test('attack: a stop whose time is in the future cannot be ended on the page', async () => {
  const year = 365 * 86_400
  for (const at of [NOW_S + 61, NOW_S + year]) {
    const { call, stop, review, view } = await displayed({ at, expires: at + WEEK_S })
    assert.match(view.refusal ?? '', /at: is in the future/)
    await fails(
      'STOP',
      call('emergency-challenge', { act: 'resume', key: 'a1', hash: stop, review }),
    )
  }
  assert.equal((await displayed({ at: NOW_S + 60 })).view.refusal, null)
})

test('a stop that has expired is still in force, and can be ended', async () => {
  const at = NOW_S - 30 * 86_400
  assert.equal((await displayed({ at, expires: at + WEEK_S })).view.refusal, null)
})

test('attack: reason and sub-account of a stop cannot reorder or imitate its sentence', async () => {
  const { view } = await displayed({
    sub_account: 'main\u202e" at 2020',
    reason: 'x\u2066y". Reason: "none',
  })
  assert.match(view.text, /sub-account "main\\u\{202e\}\\u\{22\} at 2020" at 2030-/)
  assert.match(view.text, /Reason: "x\\u\{2066\}y\\u\{22\}\. Reason: \\u\{22\}none"\.$/)
})

test('attack: no stop ends under a document that fewer than two signer nodes state', async () => {
  for (const statements of [
    [],
    [statedBy(1, inForce)],
    [statedBy(1, inForce), statedBy(2, documentOf(undefined, { stop: { group: 'treasury' } }))],
    [statedBy(1, inForce), statedBy(2, inForce, NOW_S - 301)],
    [statedBy(1, inForce), { ...statedBy(2, inForce), node: 3 }],
  ]) {
    const { platform, call } = start()
    const stop = statementHash(STOP)
    platform.stops.set(stop, JSON.stringify(signWithPasskey(alice, STOP)))
    platform.statements = statements
    const { stops, review } = await call<EmergencyView>('emergency')
    assert.match(stops[0]?.refusal ?? '', /fewer than two signer nodes/)
    const ask = (fields: object) => call('emergency-challenge', { key: 'a1', review, ...fields })
    await fails('STOP', ask({ act: 'resume', hash: stop }))
    // What stops signing does not wait for the nodes' statements.
    await ask({ act: 'stop', sub_account: '', reason: 'now' })
  }
})

test('attack: a platform neither hides a stop that nodes state, nor invents one', async () => {
  const { platform, call } = start()
  const [stop, hidden] = [statementHash(STOP), 'ab'.repeat(32)]
  platform.stops.set(stop, JSON.stringify(signWithPasskey(alice, STOP)))
  const shown = async (...stated: (readonly string[] | undefined)[]) => {
    platform.statements = stated.map((stops, at) => statedBy(at + 1, inForce, NOW_S, stops))
    const { stops } = await call<EmergencyView>('emergency')
    return stops.map(({ hash: each, refusal }) => [each, refusal])
  }
  assert.deepEqual(await shown([stop], [stop]), [[stop, null]])
  // A stop holds at the nodes that have it, so one node is enough.
  assert.deepEqual(await shown([], [stop]), [[stop, null]])
  const invented = 'no signer node of the trust file states that this stop applies'
  assert.deepEqual(await shown([], []), [[stop, invented]])
  const file = /^its signed text is in the file/
  const [, added] = await shown([stop, hidden], [stop])
  assert.equal(added?.[0], hidden)
  assert.match(String(added?.[1]), file)
  // Statements about stops that prove nothing, and earlier versions of the nodes.
  assert.deepEqual(await shown([], undefined), [[stop, null]])
  const [forged] = [statedBy(2, inForce, NOW_S, [stop])]
  platform.statements = [statedBy(1, inForce, NOW_S, []), { ...forged, stops: [] }]
  assert.equal((await call<EmergencyView>('emergency')).stops[0]?.refusal, null)
})

test('vetoes a pending change, which is displayed as sentences', async () => {
  const { platform, call, sign } = start()
  const next = checkDocument({ ...inForce, number: 2, previous: hash, rules: [] })
  platform.pending = [{ document: next, acts_at: new Date(NOW_S * 1000).toISOString() }]
  const { pending } = await call<EmergencyView>('emergency')
  const own = documentHash(next)
  assert.deepEqual(
    pending.map((each) => each.hash),
    [own],
  )
  assert.match(pending[0]?.differences[0] ?? '', /large/)
  const statement: Statement = {
    kind: 'veto',
    ...COMMON,
    expires: NOW_S + WEEK_S,
    policy: { number: 1, hash },
    next: { number: 2, hash: own },
  }
  const { assertion } = await sign({ act: 'veto', hash: own }, statement)
  assert.deepEqual(platform.sent, [{ ...signer(NOW_S + WEEK_S), passkey: assertion, hash: own }])
})

test('attack: what the page has not displayed neither ends a stop nor is vetoed', async () => {
  const { platform, call } = start()
  const stop = statementHash(STOP)
  platform.stops.set(stop, JSON.stringify(signWithPasskey(alice, STOP)))
  const next = checkDocument({ ...inForce, number: 2, previous: hash, rules: [] })
  platform.pending = [{ document: next, acts_at: new Date(NOW_S * 1000).toISOString() }]
  const { review } = await call<EmergencyView>('emergency')
  const ask = (fields: object) => call('emergency-challenge', { key: 'a1', review, ...fields })
  const [resume, veto] = [
    { act: 'resume', hash: stop },
    { act: 'veto', hash: documentHash(next) },
  ]
  // A stop that the platform returns only after the page was displayed.
  const later: Statement = { ...STOP, reason: 'Another reason' }
  platform.stops.set(statementHash(later), JSON.stringify(signWithPasskey(alice, later)))
  await fails('STOP', ask({ act: 'resume', hash: statementHash(later) }))
  await fails('INPUT', ask({ act: 'veto', hash: stop }))
  platform.inForce = checkDocument({ ...inForce, stop: { group: 'treasury' } })
  for (const each of [resume, veto]) await fails('CHANGED', ask(each))
  for (const each of [resume, veto]) await fails('REVIEW', ask({ ...each, review: '' }))
  platform.inForce = inForce
  for (const each of [resume, veto]) await ask(each)
  assert.deepEqual(platform.sent, [])
})

test('refuses a policy of another installation, or none', async () => {
  const { platform, call } = start()
  platform.inForce = documentOf(undefined, { nodes: 'ab'.repeat(32) })
  await fails('OTHER_PLACE', call('emergency'))
  platform.inForce = null
  await fails('DOCUMENT', call('emergency'))
})
