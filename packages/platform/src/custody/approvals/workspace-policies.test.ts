// What two of three signer nodes say about a request, with nodes that lie, differ or are silent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Environment } from '../../core/environment.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { WorkspacePolicies } from './workspace-policies.ts'

const REQUEST = { token: 't', method: 'POST', uri: '/dac/v1/transaction', body: '{}' }
const NO_DETAILS = async () => ({})
const HASH = 'ab'.repeat(32)

const judgement = (code: string | null, hash = HASH) => ({
  policy: { number: 1, hash },
  issued_at: 1_800_000_000,
  statement: {
    v: 1,
    mode: 'local',
    workspace: 'w',
    nodes: 'cd'.repeat(32),
    policy: { number: 1, hash },
    id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    subject: 'ef'.repeat(32),
    action: 'transfer',
    facts: {
      sub_account: 'main',
      asset: 'ETH',
      network: 'ETH',
      contract: null,
      decimals: 18,
      amount: '1',
      to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      tag: null,
      fee_asset: 'ETH',
      fee_decimals: 18,
      fee_max: '1',
      standing: null,
      resource: null,
    },
  },
  effect: code === null ? 'allow' : code === 'POLICY_APPROVAL' ? 'approve' : 'deny',
  via: null,
  needs: [],
  approved_by: [],
  rejected_by: [],
  ignored: [],
  tried: [],
  nearest: null,
  windows: [],
  refusal: code === null ? null : { code, message: `because of ${code}`, frees_at: null },
})
const [ALLOWS, MISSES, DENIES, FULL] = [
  judgement(null),
  judgement('POLICY_APPROVAL'),
  judgement('POLICY_DENIED'),
  judgement('POLICY_WINDOW'),
]
const OTHER = judgement(null, 'ba'.repeat(32))
const NONE = { policy: null }
const AWAY = 'away'
const STOPPED = 'POLICY_STOPPED'

const UNAPPROVED = 'ENROLMENT_APPROVAL'

type Says = object | typeof AWAY | typeof STOPPED | typeof UNAPPROVED | 'NOT_FOUND'

/** Returns the policies over three nodes that say the given things, and the number of calls. */
function policiesOf(...says: [Says, Says, Says]) {
  const state = { says, calls: 0, now: 1_000_000 }
  const signers = {
    peers: [1, 2, 3].map((node) => ({ node })),
    isPenalised: () => false,
    call(node: number) {
      state.calls++
      const said = state.says[node - 1]
      if (said === AWAY) return Promise.reject(new NodeUnavailable(node, 'no response'))
      if (typeof said === 'string')
        return Promise.reject(new NodeRefused(node, 409, { error: said, message: 'said so' }))
      return Promise.resolve(said)
    },
  } as unknown as SignerNodes
  const environment = { now: () => state.now } as Environment
  return { policies: new WorkspacePolicies({ signers, environment }), state }
}

const CASES: [string, [Says, Says, Says], string][] = [
  ['two nodes agree', [ALLOWS, ALLOWS, DENIES], 'allowed'],
  ['two nodes miss approvals', [MISSES, MISSES, ALLOWS], 'approval'],
  ['two nodes deny', [DENIES, DENIES, ALLOWS], 'denied'],
  ['one node denies, and two allow', [DENIES, ALLOWS, ALLOWS], 'allowed'],
  ['one node misses approvals, and two allow', [MISSES, ALLOWS, ALLOWS], 'allowed'],
  ['one node has another document', [OTHER, MISSES, MISSES], 'approval'],
  ['one node has no policy', [NONE, ALLOWS, ALLOWS], 'allowed'],
  ['one node is stopped, and two allow', [STOPPED, ALLOWS, ALLOWS], 'allowed'],
  ['one node sends something else', [{ policy: 7 }, MISSES, MISSES], 'approval'],
  ['one node is away', [AWAY, DENIES, DENIES], 'denied'],
  ['a node is away, and one of the others misses approvals', [AWAY, ALLOWS, MISSES], 'approval'],
  ['a denial by one of two', [AWAY, ALLOWS, DENIES], 'later'],
  ['windows are full', [FULL, FULL, FULL], 'later'],
  ['all are stopped', [STOPPED, STOPPED, STOPPED], 'later'],
  ['the API key is not approved', [UNAPPROVED, UNAPPROVED, UNAPPROVED], 'later'],
  ['one node lacks the approvals of the API key', [UNAPPROVED, ALLOWS, ALLOWS], 'allowed'],
  ['three documents', [OTHER, ALLOWS, judgement(null, 'bc'.repeat(32))], 'later'],
  ['no workspace has a policy', [NONE, NONE, DENIES], 'none'],
  ['nodes of an earlier version', ['NOT_FOUND', 'NOT_FOUND', ALLOWS], 'none'],
]
for (const [name, says, kind] of CASES)
  test(`${name}: ${kind}`, async () => {
    const { policies } = policiesOf(...says)
    assert.equal((await policies.judge('w', REQUEST, NO_DETAILS)).kind, kind)
  })

/** A node whose window is full until a time. */
const fullUntil = (frees_at: number | null) => ({
  ...FULL,
  refusal: { code: 'POLICY_WINDOW', message: 'full', frees_at },
})

test('a full window is returned with the times from which the nodes would allow the transfer', async () => {
  const freesAt = async (...says: [Says, Says, Says]) => {
    const outcome = await policiesOf(...says).policies.judge('w', REQUEST, NO_DETAILS)
    return outcome.kind === 'later' ? outcome.freesAt : outcome.kind
  }
  assert.deepEqual(await freesAt(fullUntil(50), fullUntil(60), fullUntil(70)), [50, 60])
  assert.deepEqual(await freesAt(fullUntil(null), ALLOWS, fullUntil(7)), [null])
  assert.deepEqual(await freesAt(fullUntil(50), MISSES, fullUntil(7)), [50])
  // Another reason can end at any time.
  assert.equal(await freesAt(fullUntil(50), DENIES, DENIES), 'denied')
  assert.equal(await freesAt(fullUntil(50), DENIES, AWAY), undefined)
  assert.equal(await freesAt(STOPPED, fullUntil(50), STOPPED), undefined)
})

test('waiting transfers of one workspace are judged again at a limited rate', () => {
  const { policies, state } = policiesOf(ALLOWS, ALLOWS, ALLOWS)
  const judged = (workspace: string) =>
    Array.from({ length: 100 }, () => policies.mayJudgeAgain(workspace)).filter(Boolean).length
  assert.equal(judged('a'), 20)
  assert.equal(judged('b'), 20)
  state.now += 1000
  assert.equal(judged('a'), 10)
  // A clock that is set back adds nothing.
  state.now -= 5000
  assert.equal(judged('a'), 0)
  state.now += 3_600_000
  assert.equal(judged('a'), 20)
})

test('silent nodes delay a workspace only if it is known to have a policy', async () => {
  const { policies, state } = policiesOf(AWAY, AWAY, ALLOWS)
  assert.equal((await policies.judge('w', REQUEST, NO_DETAILS)).kind, 'none')
  policies.noteGoverned('w')
  assert.equal((await policies.judge('w', REQUEST, NO_DETAILS)).kind, 'later')
  assert.equal((await policies.judge('another', REQUEST, NO_DETAILS)).kind, 'none')
  state.says = [ALLOWS, ALLOWS, ALLOWS]
  assert.equal((await policies.judge('another', REQUEST, NO_DETAILS)).kind, 'allowed')
  state.says = [AWAY, AWAY, AWAY]
  assert.equal((await policies.judge('another', REQUEST, NO_DETAILS)).kind, 'later')
})

test('a workspace without a policy is judged once a second', async () => {
  const { policies, state } = policiesOf(NONE, NONE, NONE)
  for (let time = 0; time < 5; time++) await policies.judge('w', REQUEST, NO_DETAILS)
  assert.equal(state.calls, 2)
  state.now += 1000
  state.says = [MISSES, MISSES, MISSES]
  assert.equal((await policies.judge('w', REQUEST, NO_DETAILS)).kind, 'approval')
  assert.equal((await policies.judge('w', REQUEST, NO_DETAILS)).kind, 'approval')
  assert.equal(state.calls, 6)
})
